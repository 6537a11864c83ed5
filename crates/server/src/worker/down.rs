//! A node without a lease serves nothing: it refuses every command for a key. The worker reports the refused
//! demand to the control thread: the survivor of two nodes may need it to take over (`cluster::control`).

use core::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use commands::{Error, Request};
use resp::Output;

use super::Worker;
use crate::data::Notice;

/// Minimum interval between two reports of client demand to the control thread.
const REPORT_DEMAND_EVERY: Duration = Duration::from_millis(100);

/// Records since when this node has no lease.
#[derive(Default)]
pub(super) struct Fence {
    /// Id of the first client that could have connected since the lease was lost; `None` while there is a lease.
    clients_from: Option<u64>,
    demand_reported: Option<Instant>,
}

impl Fence {
    #[inline]
    pub(super) fn is_up(&self) -> bool {
        self.clients_from.is_some()
    }
}

impl Worker<'_> {
    /// Checks whether this node may serve in this round.
    #[inline]
    pub(super) fn look_at_lease(&mut self) {
        if self.shared.data.lease.is_valid() {
            self.fence.clients_from = None;
        } else if self.fence.clients_from.is_none() {
            self.fence.clients_from = Some(self.shared.next_client.load(Relaxed));
        }
    }

    /// Refuses a command that needs a slot.
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

    /// Counts an admitted command for a key as demand for takeover, also if another node would serve it: that
    /// node may be gone. Unauthenticated clients are not admitted, and scans and health probes name no key.
    pub(super) fn note_demand(&mut self, request: &Request<'_>) {
        let is_exec = request.spec.is_some_and(|spec| spec.full_name == "exec");
        if request.key.is_some() || is_exec {
            self.report_demand();
        }
    }

    /// Counts a topology query as demand for takeover if its connection was opened after the lease was lost.
    #[cold]
    pub(super) fn note_topology_question(&mut self, index: usize, request: &Request<'_>) {
        const TOPOLOGY: [&str; 3] = ["cluster|slots", "cluster|shards", "cluster|nodes"];
        let asks = request.spec.is_some_and(|spec| TOPOLOGY.contains(&spec.full_name));
        let id = self.connections[index].session.id;
        if asks && self.fence.clients_from.is_some_and(|first| id >= first) {
            self.report_demand();
        }
    }

    fn report_demand(&mut self) {
        if self.fence.demand_reported.is_none_or(|at| at.elapsed() >= REPORT_DEMAND_EVERY) {
            self.fence.demand_reported = Some(Instant::now());
            self.shared.data.notify(Notice::ClientDemand);
        }
    }
}
