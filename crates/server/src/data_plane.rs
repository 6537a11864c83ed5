//! The node, as the control thread and its applier see it: connections, maps, leases and orders come in here.

use core::sync::atomic::Ordering::Relaxed;
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use cluster::Moment;
use cluster::control::{Answer, Gone, Input, MapChanged};
use cluster::data::{BucketLag, MoverInput, Order};
use cluster::map::{Endpoints, Generation, Map, NodeId, Peer};
use cluster::merge::{MergeReply, MergeRequest, MergeTaker};
use commands::follow_scripts;
use placement::Hashmask;

use crate::command_env::access;
use crate::data::{Data, Notice, Unwanted};
use crate::log;
use crate::peer::{ControlHandle, DataPlane};
use crate::pubsub::introduce;
use crate::shared::Shared;

impl DataPlane for Shared {
    fn expected_from(&self, peer: Peer) -> u64 {
        self.data.expected_from(peer)
    }

    fn outgoing(&self, peer: Peer, stream: TcpStream, next: u64) -> Result<(), Unwanted> {
        self.data.outgoing(peer, stream, next)
    }

    fn incoming(&self, peer: Peer, stream: TcpStream, announced: u64) -> Result<(), Unwanted> {
        self.data.incoming(peer, stream, announced)
    }

    fn map_changed(&self, changed: &MapChanged) {
        let before = self.map();
        if holds_anything(&self.data, &changed.map) {
            self.data.kept.forget(); // From here on the node's data may change.
        }
        follow(self, &changed.map);
        let links = &self.data.links;
        self.cluster_view.map_changed(&before, changed, &self.exchange, links, &self.mailboxes);
        self.timers.map_changed(&changed.map);
    }

    fn follow_settings(&self, me: Peer, map: &Map) {
        follow_scripts(&self.data.scripts, map.documents());
        for request in self.config.follow(&self.settings, &self.timers, me, map) {
            self.control.ask(request, |answer| {
                if let Answer::Refused(text) | Answer::Unknown(text) = answer {
                    let line = format!("cannot make this node's flags the cluster's: {text}");
                    log::warn("settings", &line);
                }
            });
        }
    }

    fn lease_until(&self, until: Moment) {
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

    fn merge(&self, question: MergeRequest, taker: &mut MergeTaker) -> Option<MergeReply> {
        let settings = self.settings.load_full();
        self.merging.answer(&self.data, settings.data_dir.as_deref(), question, taker)
    }

    fn note_backup_lag(&self, from: NodeId, remaining_bytes: u64, lags: Vec<BucketLag>) {
        self.data.note_lags(from, lags);
        if remaining_bytes == 0 {
            self.data.note_heard(from);
        }
    }

    fn make_room(&self, node: NodeId, bytes: u64) {
        self.data.crowding.note(node, bytes, Instant::now());
    }

    fn count_disk_pulse(&self) {
        self.data.disk_pulse.fetch_add(1, Relaxed);
    }

    fn end_lease_for_good(&self) {
        self.data.lease.end();
    }

    fn gone(&self, gone: &Gone) {
        match gone {
            // Clients that still come are redirected; the janitor stops the node later.
            Gone::Left | Gone::LeftFor(_) => drop(self.data.left.set(Instant::now())),
            Gone::LeftAsTheLast | Gone::Removed | Gone::Yielded(_) | Gone::Refused(_) => {
                self.stop();
            }
        }
    }
}

/// Applies a map: to the links to its members, then to the slots.
pub(crate) fn follow(shared: &Shared, map: &Arc<Map>) {
    let others = shared.data.others_in(map);
    for link in shared.data.links.follow(&others) {
        introduce(&shared.exchange, &link);
    }
    shared.exchange.remote.keep(&others);
    let access = access(&shared.settings.load());
    shared.data.follow(map, access);
}

/// Hands data over to another side of the cluster if the control plane has asked for it. Called on the mover's
/// thread, which has nothing else to do while this node yields. Copies of buckets that were started again are
/// handed over on a thread of its own.
pub(crate) fn hand_over_if_wanted(shared: &Arc<Shared>) {
    if let Some(to) = shared.merging.yields() {
        shared.merging.give(&shared.data, &shared.control, to);
    }
    if let Some(buckets) = shared.merging.take_brings() {
        let shared = Arc::clone(shared);
        let bring = move || {
            let brought = shared.merging.bring_copies(&shared.data, &buckets);
            shared.control.tell(Input::Brought(brought));
        };
        let started = thread::Builder::new().name("bring".to_owned()).spawn(bring);
        // Panics: a node that cannot keep its promises must not go on making them.
        started.expect("a thread can be started");
    }
}

/// Returns whether, by this map, this very process holds a copy of anything.
fn holds_anything(data: &Data, map: &Map) -> bool {
    let is_member = map.member(data.me).is_some_and(|it| it.boot == data.boot);
    is_member && map.load(data.me).total() > 0
}

/// Sends the notices of the data plane to the control thread from now on.
pub(crate) fn report_to(data: &Data, control: ControlHandle) {
    let tell = move |notice| match notice {
        Notice::LinkBroke(peer) => control.data_link_lost(peer),
        Notice::NewerReignSeen { slot, reign } => {
            control.tell(Input::NewerReignSeen { slot, reign });
        }
        Notice::ClientDemand => control.tell(Input::ClientDemand),
        Notice::Vitals(vitals) => control.tell(Input::Vitals(vitals)),
        Notice::Memory(report) => control.tell(Input::Memory(report)),
        Notice::Sizes(sizes) => control.tell(Input::Sizes(sizes)),
        Notice::Report(report) => control.tell(report.into()),
    };
    // There is one control thread, and this is called once.
    let _ = data.notice.set(Box::new(tell));
}
