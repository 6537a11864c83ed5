//! Merges two sides of the cluster that diverged in a split brain (`cluster::merge`): `give.rs` runs on the
//! nodes of the losing side (the one that yields), `take.rs` on the primaries of the surviving side (the one
//! that stands), `report.rs` reports to people. `bring.rs` does the same for a node that returns too late with
//! its copies.

mod bring; //  On a thread of its own, for buckets that were started again, empty.
mod give; //   On the mover's thread, which has nothing else to do then.
mod report; // The results: counts, and every conflict.
mod take; //   On the thread of the link.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

use cluster::map::{Endpoints, Generation, Map};
use cluster::merge::Ledger;
use parking_lot::Mutex;
use placement::Hashmask;

use crate::peer::LinkMaker;

/// Maximum number of remembered addresses of nodes of another side.
const MET_MAX: usize = 16;

/// The state of merging, shared by the threads.
#[derive(Default)]
pub(crate) struct Merging {
    /// The results of merging the data that other nodes have handed over to this node.
    ledger: Mutex<Ledger>,
    links: OnceLock<LinkMaker>,
    yields: Mutex<Option<Generation>>,
    /// Buckets whose copies, kept by this process, are to be handed over.
    brings: Mutex<Option<Vec<Hashmask>>>,
    /// Addresses where nodes of another side were met, the latest last.
    met: Mutex<Vec<Endpoints>>,
    is_given: AtomicBool,
}

impl Merging {
    pub(crate) fn link_with(&self, links: LinkMaker) {
        // There is one control thread, and this is called once.
        let _ = self.links.set(links);
    }

    /// Records an address where a node of another side is reached.
    pub(crate) fn note_met(&self, at: Endpoints) {
        let mut met = self.met.lock();
        met.retain(|known| *known != at);
        met.push(at);
        if met.len() > MET_MAX {
            met.remove(0);
        }
    }

    /// Returns the addresses where nodes of another side may be reached, the likeliest first.
    pub(crate) fn other_sides(&self, map: &Map) -> Vec<Endpoints> {
        let met = self.met.lock();
        let partitioned_members = map.partitioned_members().iter().map(|member| member.at.clone());
        met.iter().rev().cloned().chain(partitioned_members).collect()
    }

    /// Orders this node to hand its data over to that generation.
    pub(crate) fn yield_to(&self, to: Generation) {
        *self.yields.lock() = Some(to);
    }

    /// Orders this process to hand its kept copies of these buckets over to their primaries.
    pub(crate) fn bring(&self, buckets: Vec<Hashmask>) {
        *self.brings.lock() = Some(buckets);
    }

    /// Returns the buckets whose copies are to be handed over, once.
    pub(crate) fn take_brings(&self) -> Option<Vec<Hashmask>> {
        self.brings.lock().take()
    }

    /// Returns the generation that this node still has to hand data over to.
    pub(crate) fn yields(&self) -> Option<Generation> {
        let is_given = self.is_given.load(Ordering::Acquire);
        self.yields.lock().filter(|_| !is_given)
    }
}
