//! A node without a lease serves nothing: who asks for a key is told so, and nothing runs. That somebody
//! asked may be what a survivor of two needs to know (`cluster::control`).

use core::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use commands::{Error, Request};
use resp::Output;

use super::Worker;
use crate::data::Notice;

/// How often the control thread is told that clients have come.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// Since when this node has no lease.
#[derive(Default)]
pub(super) struct Fence {
    /// The first client that could have come since; none while there is a lease.
    clients_from: Option<u64>,
    told: Option<Instant>,
}

impl Fence {
    #[inline]
    pub(super) fn is_up(&self) -> bool {
        self.clients_from.is_some()
    }
}

impl Worker<'_> {
    /// Looks whether this node may serve in this round.
    #[inline]
    pub(super) fn look_at_lease(&mut self) {
        if self.shared.data.lease.is_valid() {
            self.fence.clients_from = None;
        } else if self.fence.clients_from.is_none() {
            self.fence.clients_from = Some(self.shared.next_client.load(Relaxed));
        }
    }

    /// A command that needs a slot does not run.
    #[cold]
    pub(super) fn refuse_fenced(
        &mut self,
        index: usize,
        request: &Request<'_>,
        output: &mut Output,
    ) {
        let error = Error::fixed(
            "CLUSTERDOWN this node is cut off from the majority and serves nothing; try the others, or \
             again in a moment",
        );
        self.refuse(index, request, error, output);
        self.note_demand(request);
    }

    /// An admitted command for a key counts as demand for takeover, also if another node would serve it: that
    /// one may be gone. Whoever has not authenticated is not admitted, and walks and probes name no key.
    pub(super) fn note_demand(&mut self, request: &Request<'_>) {
        let is_exec = request.spec.is_some_and(|spec| spec.full_name == "exec");
        if request.key.is_some() || is_exec {
            self.tell_of_client();
        }
    }

    /// A question about the topology counts on a connection that was opened since the lease was lost.
    #[cold]
    pub(super) fn note_topology_question(&mut self, index: usize, request: &Request<'_>) {
        const TOPOLOGY: [&str; 3] = ["cluster|slots", "cluster|shards", "cluster|nodes"];
        let asks = request.spec.is_some_and(|spec| TOPOLOGY.contains(&spec.full_name));
        let id = self.connections[index].session.id;
        if asks && self.fence.clients_from.is_some_and(|first| id >= first) {
            self.tell_of_client();
        }
    }

    fn tell_of_client(&mut self) {
        if self.fence.told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
            self.fence.told = Some(Instant::now());
            self.shared.data.notify(Notice::ClientTurned);
        }
    }
}
