//! Messages in flight from a thread to the workers with subscribers. They are collected while commands run, and
//! posted together with the replies: after the slot locks are released, with one mailbox lock per worker.

use std::sync::Arc;

use cluster::map::Peer;
use cluster::replication::Frame;
use commands::{Announcement, Post};
use settings::{NotifyClasses, NotifyScope, Settings};

use super::Exchange;
use crate::data::Links;
use crate::mailbox::Mailboxes;
use crate::published::{Audience, Author, PublishedMessage};

pub(crate) struct PubsubOutbox {
    /// By worker, in the order of publication.
    messages: Vec<Vec<Arc<PublishedMessage>>>,
    /// Messages for other nodes.
    remote: Vec<(Vec<Peer>, Vec<u8>)>,
    is_empty: bool,
}

/// The key events that are published, and to which subscribers.
#[derive(Clone, Copy)]
pub(crate) struct EventRules {
    classes: NotifyClasses,
    scope: NotifyScope,
}

impl EventRules {
    pub(crate) fn of(settings: &Settings) -> EventRules {
        EventRules { classes: settings.notify_keyspace_events, scope: settings.notify_scope }
    }
}

impl PubsubOutbox {
    pub(crate) fn new(workers: usize) -> PubsubOutbox {
        PubsubOutbox { messages: vec![Vec::new(); workers], remote: Vec::new(), is_empty: true }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Publishes a message. Returns the number of times it will be received.
    pub(crate) fn publish(
        &mut self,
        exchange: &Exchange,
        author: Option<Author>,
        post: Post<'_>,
    ) -> usize {
        self.publish_afar(exchange, post, Audience::All);
        self.publish_here(exchange, author, post, Audience::All)
    }

    /// Publishes like [`PubsubOutbox::publish`], but only to subscribers on this node.
    pub(crate) fn publish_here(
        &mut self,
        exchange: &Exchange,
        author: Option<Author>,
        post: Post<'_>,
        audience: Audience,
    ) -> usize {
        let Some(route) = exchange.route(post.space, post.channel) else { return 0 };
        let (by_name, patterns) = (route.by_name, &route.patterns);
        let message = PublishedMessage::new(post, audience, by_name, patterns, author);
        let message = Arc::new(message);
        for (list, concerned) in self.messages.iter_mut().zip(&route.workers) {
            if *concerned {
                list.push(Arc::clone(&message));
            }
        }
        self.is_empty = false;
        route.receivers
    }

    fn publish_afar(&mut self, exchange: &Exchange, post: Post<'_>, audience: Audience) {
        if let Some(wanted) = exchange.remote.wanted_by(post, audience) {
            self.remote.push(wanted);
            self.is_empty = false;
        }
    }

    /// Publishes key events, and the messages behind them.
    pub(crate) fn tell(
        &mut self,
        exchange: &Exchange,
        author: Option<Author>,
        rules: EventRules,
        announcements: &mut Vec<Announcement>,
    ) {
        let remote = match rules.scope {
            NotifyScope::Node => Audience::ClusterWide,
            NotifyScope::Cluster => Audience::All,
        };
        for announcement in announcements.drain(..) {
            match announcement {
                Announcement::Event(_) if exchange.is_silent() => {}
                Announcement::Event(event) => event.announce(rules.classes, |post| {
                    self.publish_afar(exchange, post, remote);
                    self.publish_here(exchange, author, post, Audience::All);
                }),
                Announcement::Message { space, channel, payload } => {
                    let post = Post { space, channel: &channel, payload: &payload };
                    self.publish(exchange, author, post);
                }
            }
        }
    }

    /// Returns the messages that wait here for one worker.
    pub(crate) fn to_worker(&self, worker: usize) -> &[Arc<PublishedMessage>] {
        &self.messages[worker]
    }

    /// Puts all messages into their mailboxes, and wakes the workers that may be asleep; not the posting
    /// worker, which checks its own mail. Returns true if the posting worker has mail.
    pub(crate) fn post(
        &mut self,
        links: &Links,
        mailboxes: &Mailboxes,
        poster: Option<usize>,
    ) -> bool {
        for (peers, bytes) in self.remote.drain(..) {
            let wanting = peers.into_iter().filter_map(|peer| links.to(peer));
            // A message may be lost, as on a slow connection; it must not exhaust memory.
            for link in wanting.filter(|link| !link.is_congested()) {
                link.push(&Frame::Pubsub { bytes: &bytes });
            }
        }
        let mut own_mail = false;
        for (worker, messages) in self.messages.iter_mut().enumerate() {
            if messages.is_empty() {
                continue;
            }
            let first = mailboxes[worker].leave(messages);
            if poster == Some(worker) {
                own_mail = true;
            } else if first {
                mailboxes[worker].wake();
            }
        }
        self.is_empty = true;
        own_mail
    }
}
