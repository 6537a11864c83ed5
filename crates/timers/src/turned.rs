//! A client has turned to a node that may not serve. Of two nodes the one that is left cannot tell whether
//! the other is dead or cut off; that a client comes is its evidence for going on alone, as it is when
//! somebody asks for a key. Whether it may is not decided here (`cluster::control`): it is only told.

use crate::core::Timers;
use crate::input::Action;

impl Timers {
    /// Said again and again while a client waits: at first the silence may not have lasted long enough.
    pub(crate) fn tell_of_client(&mut self) {
        if !self.has_lease() && self.has_client() {
            self.out.push(Action::ClientTurned);
        }
    }

    /// Whether one waits that has come since we last heard that we may serve. One from before may have
    /// gone to the other side together with the rest.
    fn has_client(&self) -> bool {
        let changing = self.coordinated.values().map(|asked| asked.asked_at);
        let looking = self.looking.values().filter_map(|looking| looking.for_one_since());
        changing.chain(looking).any(|asked_at| asked_at >= self.lease.told_at())
    }
}

#[cfg(test)]
mod tests;
