//! Replaces a slot's content by a copy from another node: empties the slot, then inserts the items as the other
//! node has them. Called by `cluster::replication`; changes by clients go through `apply`.

use crate::{Applied, DecodedItem, Effect, ItemExtent, NewValue, Seed, SlotTable, Touch, Version};

impl SlotTable {
    /// Empties the slot, including its tombstones, and sets its version to `version`: later effects build on that.
    pub fn begin_copy(&mut self, version: Version, seed: &Seed) -> Applied {
        let forgotten = self.end_divergence();
        let mut applied = self.apply(&Effect::Clear, version, Touch::Nothing, seed);
        applied.grown_bytes += forgotten.grown_bytes;
        applied
    }

    /// Inserts an item copied from another node, or adds a part of it, with its own version. The slot's version does not change.
    pub fn copy_item(&mut self, item: &DecodedItem<'_>, seed: &Seed) -> Applied {
        let at = self.version;
        let key = seed.key(item.key).in_database(item.database);
        let effect = match (&item.value, item.extent) {
            (NewValue::Hash(pairs), ItemExtent::More) => Effect::SetFields { key, pairs },
            (NewValue::List(elements), ItemExtent::More) => {
                Effect::InsertElements { key, index: usize::MAX, elements }
            }
            (NewValue::SortedSet(pairs), ItemExtent::More) => Effect::SetScores { key, pairs },
            (NewValue::Set(members), ItemExtent::More) => Effect::AddMembers { key, members },
            (NewValue::Stream(records), ItemExtent::More) => Effect::ChangeStream { key, records },
            (value, ItemExtent::Whole | ItemExtent::More) => {
                Effect::Put { key, value: value.clone(), expires_at: item.expires_at }
            }
        };
        let applied = self.apply(&effect, item.version, Touch::Nothing, seed);
        if let Some(at) = self.locate(&key) {
            self.index.change(at, |stored| stored.set_mark(item.mark));
        }
        self.version = at;
        applied
    }

    /// Sets the slot's version to `version`.
    pub fn advance_to(&mut self, version: Version) {
        self.version = version;
    }
}
