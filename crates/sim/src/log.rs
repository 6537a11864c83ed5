//! The log of map changes, and the map at every entry with the plan that belongs to it.
//!
//! All nodes share one version of an entry's map instead of each applying it: `cluster::map` shows that
//! applying is deterministic, and applying it on 500 nodes with 4,096 buckets each would only be slow.

use std::rc::Rc;

use cluster::balance::{Plan, PlanView, split};
use cluster::map::{Change, ChangeOutcome, Epoch, LogIndex, Map};

/// The map after an entry, and the plan at its basis.
pub(crate) struct Version {
    pub(crate) map: Map,
    pub(crate) plan: Rc<Plan>,
}

impl Version {
    pub(crate) fn view(&self) -> PlanView<'_> {
        PlanView { map: &self.map, plan: &self.plan }
    }
}

pub(crate) struct Log {
    head: Rc<Version>,
    index: LogIndex,
}

impl Log {
    pub(crate) fn new(map: Map) -> Log {
        let plan = Rc::new(Plan::of(&map));
        Log { head: Rc::new(Version { map, plan }), index: LogIndex::FIRST }
    }

    pub(crate) fn head(&self) -> &Rc<Version> {
        &self.head
    }

    /// Commits one entry. A join also commits the splits that it makes necessary. Returns the outcome of each
    /// change, splits included.
    pub(crate) fn commit(
        &mut self,
        planned_at: Option<Epoch>,
        changes: &[Change],
    ) -> Vec<(Change, ChangeOutcome)> {
        self.index.0 += 1;
        let mut map = self.head.map.clone();
        let done = map.apply_entry(self.index, planned_at, changes);
        let mut outcomes: Vec<_> = changes.iter().cloned().zip(done).collect();
        if changes.iter().any(|change| matches!(change, Change::Join(_))) {
            while let Some(split) = split::split_by_count(&map) {
                let outcome = map.apply(self.index, &split);
                outcomes.push((split, outcome));
            }
        }
        let same_basis = map.basis() == self.head.map.basis();
        let plan = if same_basis { self.head.plan.clone() } else { Rc::new(Plan::of(&map)) };
        self.head = Rc::new(Version { map, plan });
        outcomes
    }
}
