//! The beginning and the end of a connection's subscription, and telling the other nodes of it.

use std::sync::Arc;

use commands::{Session, SubscriptionKind};

use super::Exchange;
use super::message::{Interest, PubsubMessage};
use super::remote::announce;
use crate::data::Links;
use crate::published::Audience;

/// Adds a connection of a worker to the subscribers of a name.
pub(crate) fn listen(
    exchange: &Exchange,
    links: &Links,
    worker: usize,
    session: &Session,
    kind: SubscriptionKind,
    name: &Arc<[u8]>,
) {
    for audience in audiences(session, kind) {
        // Under the lock of the name: else another worker's opposite message could overtake this one.
        exchange.enter(worker, *audience, kind, name, || {
            announce(links, PubsubMessage::Listen(Interest { kind, name, audience: *audience }));
        });
    }
}

/// Removes a connection of a worker from the subscribers of a name.
pub(crate) fn stop_listening(
    exchange: &Exchange,
    links: &Links,
    worker: usize,
    session: &Session,
    kind: SubscriptionKind,
    name: &[u8],
) {
    for audience in audiences(session, kind) {
        exchange.strike(worker, *audience, kind, name, || {
            announce(links, PubsubMessage::Stop(Interest { kind, name, audience: *audience }));
        });
    }
}

/// Returns the audiences that a subscription of this connection belongs to.
fn audiences(session: &Session, kind: SubscriptionKind) -> &'static [Audience] {
    match kind {
        SubscriptionKind::Channel | SubscriptionKind::Pattern if session.hears_all => {
            &[Audience::All, Audience::ClusterWide]
        }
        SubscriptionKind::Channel | SubscriptionKind::Pattern | SubscriptionKind::ShardChannel => {
            &[Audience::All]
        }
    }
}
