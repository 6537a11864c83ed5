//! Reports that a client waits at a node without a lease. The survivor of two nodes cannot tell whether the
//! other is dead or cut off; a waiting client is its evidence for going on alone, just like a client that asks
//! for a key. This module only reports it; `cluster::control` decides.

use crate::core::Timers;
use crate::input::TimerAction;

impl Timers {
    /// Reports a waiting client. Repeated while it waits: at first the silence may not have lasted long enough.
    pub(crate) fn tell_of_client(&mut self) {
        if !self.has_lease() && self.has_client() {
            self.out.push(TimerAction::ClientDemand);
        }
    }

    /// Returns whether a client waits that came after the last report of a lease. A client from before may have
    /// gone to the other side together with the rest.
    fn has_client(&self) -> bool {
        let changing = self.coordinated.values().map(|asked| asked.asked_at);
        let looking = self.looking.values().filter_map(|looking| looking.for_one_since());
        changing.chain(looking).any(|asked_at| asked_at >= self.lease.reported_at())
    }
}

#[cfg(test)]
mod tests;
