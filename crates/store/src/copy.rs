//! A slot whose content comes from another node: emptied, then given items as they stand there.
//! Called by `cluster::replication`; what a client does goes through `apply`.

use crate::{Applied, DecodedItem, Effect, Seed, SlotTable, Touch, Version};

impl SlotTable {
    /// Empties the slot, and with it what it remembers. It is at `version` from now on: what comes next builds on that.
    pub fn begin_copy(&mut self, version: Version, seed: &Seed) -> Applied {
        let forgotten = self.reunite();
        let mut applied = self.apply(&Effect::Clear, version, Touch::Nothing, seed);
        applied.grown_bytes += forgotten.grown_bytes;
        applied
    }

    /// Takes an item as it stands elsewhere, with its own version. The slot's stays as it is.
    pub fn copy_item(&mut self, item: &DecodedItem<'_>, seed: &Seed) -> Applied {
        let at = self.version;
        let key = seed.key(item.key);
        let (value, expires_at) = (item.value.clone(), item.expires_at);
        let put = Effect::Put { key, value, expires_at };
        let applied = self.apply(&put, item.version, Touch::Nothing, seed);
        if let Some(at) = self.locate(&key) {
            self.index.change(at, |stored| stored.set_mark(item.mark));
        }
        self.version = at;
        applied
    }

    /// The slot is at `version` from now on.
    pub fn advance_to(&mut self, version: Version) {
        self.version = version;
    }
}
