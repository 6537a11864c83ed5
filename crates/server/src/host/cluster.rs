//! The other nodes, for CLUSTER.

use core::sync::atomic::Ordering::Relaxed;
use std::collections::BTreeSet;
use std::time::Instant;

use cluster::control::OperatorRequest;
use cluster::map::NodeId;
use cluster::status::Status;
use commands::{Acknowledged, Block, Cluster, LinkDirection, LinkFacts, StallFacts};

use super::NodeHost;
use crate::news;
use crate::wait_until::WaitUntil;

impl Cluster for NodeHost<'_> {
    fn status(&self) -> Status {
        self.shared.status()
    }

    fn ask(&mut self, ask: OperatorRequest) -> Result<(), String> {
        news::ask(&self.shared.data, &self.shared.control, ask)
    }

    fn conflicts(&self) -> Vec<String> {
        self.shared.merging.conflicts()
    }

    fn pending(&self) -> BTreeSet<NodeId> {
        BTreeSet::clone(&self.shared.data.pending.load())
    }

    fn acknowledged(&mut self, wanted: i64, block: Block) -> Acknowledged {
        let backups = self.written.backups(&self.shared.data, self.has_lease);
        let is_enough = i64::try_from(backups).is_ok_and(|backups| backups >= wanted);
        let until = self.wait_until.take().or(match block {
            Block::Not => None,
            Block::For(long) => Instant::now().checked_add(long).map(WaitUntil::At),
            Block::ForEver => Some(WaitUntil::ForEver),
        });
        *self.wait_until = until.filter(|until| !is_enough && !until.is_over());
        if self.wait_until.is_some() { Acknowledged::Waiting } else { Acknowledged::By(backups) }
    }

    fn stalls(&self) -> StallFacts {
        let stalls = &self.shared.data.parked;
        StallFacts {
            count: stalls.count.load(Relaxed),
            longest_micros: stalls.longest_micros.load(Relaxed),
            total_micros: stalls.total_micros.load(Relaxed),
        }
    }

    fn links(&self) -> Vec<LinkFacts> {
        let links = self.shared.data.links.living();
        let fact = |link: &std::sync::Arc<crate::data::Link>| LinkFacts {
            direction: LinkDirection::To,
            node: link.peer.id,
            unsent_bytes: link.unacknowledged_bytes() as u64,
        };
        let to = links.iter().map(fact);
        let from = self.shared.data.sources().into_iter().map(|peer| LinkFacts {
            direction: LinkDirection::From,
            node: peer.id,
            unsent_bytes: 0,
        });
        to.chain(from).collect()
    }
}
