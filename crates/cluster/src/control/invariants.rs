//! Invariants of the control plane between two inputs. Builds with debug assertions check them after every input,
//! so that every simulated history does.

use super::Control;

impl Control {
    /// Asserts the invariants that hold between inputs.
    pub(super) fn check_invariants(&self) {
        assert!(self.out.is_empty(), "every action was handed out");
        assert!(self.next_tick > self.now || self.is_gone, "ticks that are due have passed");
        let Some(map) = &self.map else { return };
        if self.is_gone {
            return;
        }
        self.handovers.check_invariants(map);
        if let Some(leader) = &self.leader {
            leader.granter.check_invariants(map.members());
        }
    }
}
