//! [`SlotTable::apply`]: the one way a slot changes, on the primary and on its backups alike.

use std::sync::Arc;

use crate::index::At;
use crate::item::Item;
use crate::slot_table::{Applied, Garbage, NEVER, SHARED_FROM_BYTES, SlotTable};
use crate::{Effect, Key, NewValue, Seed, Touch, UnixMillis, Value, Version};

/// Values from here on are freed elsewhere.
const GARBAGE_FROM_BYTES: usize = 64 * 1024;

/// The circumstances of a change that are not part of the effect.
#[derive(Clone, Copy)]
struct Change<'a> {
    version: Version,
    touch: Touch,
    seed: &'a Seed,
}

impl SlotTable {
    /// Applies one effect as `version`. Every effect can be applied to every content: one that finds
    /// nothing to work on (which a primary never sends) does what comes nearest.
    pub fn apply(
        &mut self,
        effect: &Effect<'_>,
        version: Version,
        touch: Touch,
        seed: &Seed,
    ) -> Applied {
        let before = self.bytes();
        let change = Change { version, touch, seed };
        let garbage = match effect {
            Effect::Put { key, value, expires_at } => {
                self.put(change, key, value.clone(), *expires_at)
            }
            Effect::Append { key, tail } => self.rewrite(change, key, |bytes| {
                bytes.extend_from_slice(tail);
            }),
            Effect::Overwrite { key, offset, bytes } => self.overwrite(change, key, *offset, bytes),
            Effect::Expire { key, at } => self.expire(change, key, *at),
            Effect::Mark { key, mark } => {
                if let Some(at) = self.locate(key) {
                    self.index.change(at, |item| item.set_mark(*mark));
                }
                None
            }
            Effect::Remove { key, .. } => self.remove(change, key),
            Effect::Clear => self.clear(change),
        };
        self.version = version;
        Applied { grown_bytes: grown(before, self.bytes()), garbage }
    }

    fn put(
        &mut self,
        change: Change<'_>,
        key: &Key<'_>,
        value: NewValue<'_>,
        expires_at: Option<UnixMillis>,
    ) -> Option<Garbage> {
        let value = shared_if_large(value);
        let (at, garbage) = match self.locate(key) {
            Some(at) => (at, self.replace(change, at, value)),
            None => (self.insert(change, key, value), None),
        };
        self.set_expiry(at, expires_at);
        garbage
    }

    fn insert(&mut self, change: Change<'_>, key: &Key<'_>, value: NewValue<'_>) -> At {
        let mark = change.touch.new_mark();
        let item = Item::new(key.bytes(), value, change.version, mark);
        self.item_bytes += item.as_ref().bytes();
        self.index.insert(key.hash(), item, change.seed)
    }

    /// Gives the item at `at` another value.
    fn replace(&mut self, change: Change<'_>, at: At, value: NewValue<'_>) -> Option<Garbage> {
        let Change { version, touch, .. } = change;
        let mut item_bytes = self.item_bytes;
        let garbage = self.index.change(at, |item| {
            let mark = touch.used(item.as_ref().mark());
            item_bytes -= item.as_ref().bytes();
            let old = item.take_shared();
            if let Err(value) = item.overwrite(value, version, mark) {
                *item = Item::new(item.as_ref().key(), value, version, mark);
            }
            item_bytes += item.as_ref().bytes();
            old
        });
        self.item_bytes = item_bytes;
        garbage.and_then(garbage_if_large)
    }

    /// Lets `edit` change the string's bytes: in its own block if it is large, in a copy otherwise.
    fn rewrite(
        &mut self,
        change: Change<'_>,
        key: &Key<'_>,
        edit: impl FnOnce(&mut Vec<u8>),
    ) -> Option<Garbage> {
        let Some(at) = self.locate(key) else {
            let mut bytes = Vec::new();
            edit(&mut bytes);
            return self.put(change, key, NewValue::Raw(&bytes), None);
        };
        if let Value::Shared(_) = self.index.item(at).value() {
            self.rewrite_shared(change, at, edit);
            return None;
        }
        let mut bytes = self.index.item(at).value().to_bytes().into_owned();
        edit(&mut bytes);
        self.replace(change, at, shared_if_large(NewValue::Raw(&bytes)))
    }

    fn rewrite_shared(&mut self, change: Change<'_>, at: At, edit: impl FnOnce(&mut Vec<u8>)) {
        let Change { version, touch, .. } = change;
        let mut item_bytes = self.item_bytes;
        self.index.change(at, |item| {
            item_bytes -= item.as_ref().bytes();
            let mut shared = item.take_shared().expect("the caller has seen that it is shared");
            // A reply or a fill that still holds the old bytes keeps them; then, and only then, this
            // copies.
            edit(Arc::make_mut(&mut shared));
            item.put_shared(shared);
            item.set_version(version);
            item.set_mark(touch.used(item.as_ref().mark()));
            item_bytes += item.as_ref().bytes();
        });
        self.item_bytes = item_bytes;
    }

    fn overwrite(
        &mut self,
        change: Change<'_>,
        key: &Key<'_>,
        offset: usize,
        bytes: &[u8],
    ) -> Option<Garbage> {
        let end = offset + bytes.len();
        if let Some(at) = self.locate(key) {
            let Change { version, touch, .. } = change;
            let in_place = self.index.change(at, |item| {
                let Some(target) = item.inline_bytes_mut().and_then(|all| all.get_mut(offset..end))
                else {
                    return false;
                };
                target.copy_from_slice(bytes);
                item.set_version(version);
                item.set_mark(touch.used(item.as_ref().mark()));
                true
            });
            if in_place {
                return None;
            }
        }
        self.rewrite(change, key, |all| {
            if all.len() < end {
                all.resize(end, 0);
            }
            all[offset..end].copy_from_slice(bytes);
        })
    }

    fn expire(
        &mut self,
        change: Change<'_>,
        key: &Key<'_>,
        expires_at: Option<UnixMillis>,
    ) -> Option<Garbage> {
        if let Some(at) = self.locate(key) {
            self.index.change(at, |item| item.set_version(change.version));
            self.set_expiry(at, expires_at);
        }
        None
    }

    fn remove(&mut self, change: Change<'_>, key: &Key<'_>) -> Option<Garbage> {
        let at = self.locate(key)?;
        let mut item = self.index.remove(at);
        self.item_bytes -= item.as_ref().bytes();
        self.last_removal = change.version;
        item.take_shared().and_then(garbage_if_large)
    }

    fn clear(&mut self, change: Change<'_>) -> Option<Garbage> {
        if self.is_empty() {
            return None;
        }
        let version = self.version;
        let old = core::mem::replace(self, SlotTable { version, ..SlotTable::default() });
        self.last_removal = change.version;
        Some(Garbage::Items(Box::new(old)))
    }

    fn set_expiry(&mut self, at: At, expires_at: Option<UnixMillis>) {
        self.index.set_expiry(at, expires_at);
        if let Some(time) = expires_at {
            self.expires_from = self.expires_from.min(time);
        } else if self.index.expiring() == 0 {
            self.expires_from = NEVER;
        }
    }
}

fn shared_if_large(value: NewValue<'_>) -> NewValue<'_> {
    match &value {
        NewValue::Plain(bytes) | NewValue::Raw(bytes) if bytes.len() >= SHARED_FROM_BYTES => {
            NewValue::Shared(Arc::new(bytes.to_vec()))
        }
        NewValue::Plain(_) | NewValue::Raw(_) | NewValue::Integer(_) | NewValue::Shared(_) => value,
    }
}

fn garbage_if_large(value: Arc<Vec<u8>>) -> Option<Garbage> {
    (value.capacity() >= GARBAGE_FROM_BYTES).then_some(Garbage::Value(value))
}

fn grown(before: usize, after: usize) -> i64 {
    // Both are far below 2^63: they count bytes of this machine's memory.
    after.cast_signed() as i64 - before.cast_signed() as i64
}
