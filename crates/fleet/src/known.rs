//! Facts a proxy has learnt about moving keys during one migration, so that it need not ask again.
//!
//! Absence at the previous server is final while a migration runs: nobody writes there any more. The jobs
//! report what they learnt; `plan.rs` looks it up. A new epoch starts with no knowledge.

use std::collections::BTreeMap;

/// Maximum number of remembered keys. Forgetting the rest is safe: knowing less is never wrong.
const KEYS_MAX: usize = 1 << 20;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Knowledge {
    Nothing,
    /// The previous server no longer has the key. A mover that copied it earlier may still restore it at its
    /// new server.
    Gone,
    /// Gone, and no such copy can arrive any more: the key is like any other.
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

    /// Records knowledge about a key. Knowledge only grows.
    pub fn learn(&mut self, key: &[u8], knowledge: Knowledge) {
        if let Some(known) = self.keys.get_mut(key) {
            *known = knowledge.max(*known);
        } else if self.keys.len() < KEYS_MAX {
            self.keys.insert(key.to_vec(), knowledge);
        }
    }

    /// Forgets everything. Call it with every new epoch: absence is no longer final.
    pub fn forget(&mut self) {
        self.keys.clear();
    }
}
