//! The data plane as the control thread and its applier see it: connections, maps, leases and orders come in here.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use cluster::control::{Gone, Input, MapChanged};
use cluster::data::{MoverInput, Order};
use cluster::map::{Endpoints, Generation, Map, NodeId, Peer};
use cluster::merge::{MergeRequest, Reply, Taker};
use placement::Hashmask;

use super::{Notice, follow, incoming, outgoing};
use crate::merge;
use crate::news;
use crate::peer::{ControlHandle, DataPlane, Unwanted};
use crate::shared::Shared;

impl DataPlane for Shared {
    fn expected_from(&self, peer: Peer) -> u64 {
        self.data.expected_from(peer)
    }

    fn outgoing(&self, peer: Peer, stream: TcpStream, next: u64) -> Result<(), Unwanted> {
        outgoing(self, peer, stream, next)
    }

    fn incoming(&self, peer: Peer, stream: TcpStream, announced: u64) -> Result<(), Unwanted> {
        incoming(self, peer, stream, announced)
    }

    fn map_changed(&self, changed: &MapChanged) {
        let before = self.map();
        if holds_anything(self, &changed.map) {
            self.data.kept.forget(); // From here on the node's data may change.
        }
        follow(self, &changed.map);
        news::map_changed(self, &before, changed);
        self.timers.map_changed(&changed.map);
    }

    fn lease_until(&self, until: Duration) {
        self.data.lease.set(until);
        self.timers.lease_until(until);
    }

    fn timers_link(&self, peer: Peer, stream: TcpStream) {
        self.timers.accepted(peer, stream);
    }

    fn order(&self, order: Order) {
        self.data.tell_mover(MoverInput::Order(order));
    }

    fn met(&self, at: Endpoints) {
        self.merging.note_met(at);
    }

    fn yield_to(&self, to: Generation) {
        self.merging.yield_to(to);
    }

    fn bring(&self, buckets: Vec<Hashmask>) {
        self.merging.bring(buckets);
    }

    fn merge(&self, question: MergeRequest, taker: &mut Taker) -> Option<Reply> {
        merge::answer(self, question, taker)
    }

    fn beat(&self, from: NodeId, remaining_bytes: u64) {
        if remaining_bytes == 0 {
            self.data.note_heard(from);
        }
    }

    fn fence(&self) {
        self.data.lease.end();
    }

    fn gone(&self, gone: &Gone) {
        match gone {
            // Clients that still come are redirected; the janitor stops the node later.
            Gone::Left | Gone::LeftFor(_) => drop(self.data.left.set(Instant::now())),
            Gone::LeftAsTheLast | Gone::Outcast | Gone::Yielded(_) | Gone::Refused(_) => {
                self.stop();
            }
        }
    }
}

/// Returns whether, by this map, this very process holds a copy of anything.
fn holds_anything(shared: &Shared, map: &Map) -> bool {
    let is_member = map.member(shared.data.me).is_some_and(|it| it.boot == shared.data.boot);
    is_member && map.load(shared.data.me).total() > 0
}

/// Sends the notices of the data plane to the control thread from now on.
pub(crate) fn report_to(shared: &Shared, line: ControlHandle) {
    let tell = move |notice| match notice {
        Notice::LinkBroke(peer) => line.data_link_lost(peer),
        Notice::Reigned { slot, reign } => line.tell(Input::Reigned { slot, reign }),
        Notice::ClientTurned => line.tell(Input::ClientTurned),
        Notice::Vitals(vitals) => line.tell(Input::Vitals(vitals)),
        Notice::Sizes(sizes) => line.tell(Input::Sizes(sizes)),
        Notice::Moved(report) => line.tell(report.into()),
    };
    // There is one control thread, and this is called once.
    let _ = shared.data.notice.set(Box::new(tell));
}
