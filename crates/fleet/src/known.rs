//! What a proxy has learnt about moving keys during one migration, so that it need not ask again.
//!
//! Absence at the previous server is final while a migration runs: nobody writes there any more.
//! The jobs report what they learnt; `plan.rs` looks it up. A new epoch begins with nothing known.

use std::collections::BTreeMap;

/// Beyond this many keys nothing more is remembered: knowing less is never wrong.
const KEYS_MAX: usize = 1 << 20;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Knowledge {
    Nothing,
    /// The previous server has it no more. Somebody who copied it earlier may still be about to put
    /// it at its new place.
    Gone,
    /// Gone, and no such copy can arrive any more: a key like any other.
    Settled,
}

#[derive(Clone, Debug, Default)]
pub struct Known {
    keys: BTreeMap<Vec<u8>, Knowledge>,
}

impl Known {
    pub fn of(&self, key: &[u8]) -> Knowledge {
        self.keys.get(key).copied().unwrap_or(Knowledge::Nothing)
    }

    /// Knowledge only grows.
    pub fn learn(&mut self, key: &[u8], knowledge: Knowledge) {
        if let Some(known) = self.keys.get_mut(key) {
            *known = knowledge.max(*known);
        } else if self.keys.len() < KEYS_MAX {
            self.keys.insert(key.to_vec(), knowledge);
        }
    }

    /// To be called with every new epoch: what was final is so no more.
    pub fn forget(&mut self) {
        self.keys.clear();
    }
}
