//! Two sides of the cluster that went on apart become one again (`cluster::merge`), as a server does it:
//! `give.rs` on a node of the side that yields, `take.rs` on the primaries of the one that stands,
//! `report.rs` for people. `bring.rs` does the same for one that comes back too late with its copies.

mod bring; //  On a thread of its own, for buckets that began again.
mod give; //   On the mover's thread, which has nothing else to do then.
mod report; // What became of it: counts, and every conflict.
mod take; //   On the thread of the link.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

use cluster::map::{Endpoints, Generation, Map};
use cluster::merge::Ledger;
use parking_lot::Mutex;
use placement::Hashmask;

pub(crate) use bring::bring_if_wanted;
pub(crate) use give::give;
pub(crate) use report::{conflicts, merged, report_conflicts};
pub(crate) use take::answer;

use crate::peer::LinkMaker;

/// Of those that were met, so many are remembered.
const MET_MAX: usize = 16;

/// What the threads share about merging.
#[derive(Default)]
pub(crate) struct Merging {
    /// What others have handed over to this node.
    pub ledger: Mutex<Ledger>,
    links: OnceLock<LinkMaker>,
    yields: Mutex<Option<Generation>>,
    /// Buckets of which what this process has kept is to be handed over.
    brings: Mutex<Option<Vec<Hashmask>>>,
    /// Where nodes of another side were met, the latest last.
    met: Mutex<Vec<Endpoints>>,
    is_given: AtomicBool,
}

impl Merging {
    pub(crate) fn link_with(&self, links: LinkMaker) {
        // There is one control thread, and it is told of once.
        let _ = self.links.set(links);
    }

    /// A node of another side is reached there.
    pub(crate) fn note_met(&self, at: Endpoints) {
        let mut met = self.met.lock();
        met.retain(|known| *known != at);
        met.push(at);
        if met.len() > MET_MAX {
            met.remove(0);
        }
    }

    /// Where nodes of another side may be reached, the likeliest first.
    pub(crate) fn other_sides(&self, map: &Map) -> Vec<Endpoints> {
        let met = self.met.lock();
        let estranged = map.estranged().iter().map(|member| member.at.clone());
        met.iter().rev().cloned().chain(estranged).collect()
    }

    /// What this node has is to be handed over.
    pub(crate) fn yield_to(&self, to: Generation) {
        *self.yields.lock() = Some(to);
    }

    /// What this process has kept of these is to be handed over to those who serve them.
    pub(crate) fn bring(&self, buckets: Vec<Hashmask>) {
        *self.brings.lock() = Some(buckets);
    }

    /// The generation that this node still has to hand something over to.
    pub(crate) fn yields(&self) -> Option<Generation> {
        let is_given = self.is_given.load(Ordering::Acquire);
        self.yields.lock().filter(|_| !is_given)
    }
}
