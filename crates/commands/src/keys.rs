//! The locked slots as commands see them: read a key, apply an effect, notify of an event. Commands never see
//! expired keys: looking one up removes it first, by an ordinary effect.

use std::sync::Arc;
use std::time::Duration;

use cluster::serving::{
    ChangeContext, ServedSlot, ServedSlots, ServingPlane, WaitNumber, Waiter, WalkedCopies, Wanted,
};
use placement::{Slot, SplitMix64};
use scripting::NodeScripts;
use settings::NotifyClasses;
use store::{
    AccessTracking, Applied, At, Cause, Database, Effect, Found, Key, LfuTuning, NewValue,
    ScanPosition, Seed, SlotTable, Touch, UnixMillis,
};

use crate::cluster::View;
use crate::outcome::{Announcement, Event, Outcome};

/// The slots that a command works on. A served slot changes only through [`Slots::apply`].
pub trait Slots {
    /// Returns the table of a slot for reading. With [`crate::LockSet::AsNeeded`] this takes the slot's lock, and
    /// releases the previous one.
    fn table(&mut self, slot: Slot) -> &SlotTable;

    /// Records the use of an item, for eviction, and returns the item.
    fn touch(&mut self, slot: Slot, at: At, touch: Touch) -> Found<'_>;

    /// Applies an effect and records it for the backups.
    fn apply(&mut self, slot: Slot, effect: &Effect<'_>, change: ChangeContext) -> Applied;

    /// Returns whether another connection has waited for longer for such a value of this key.
    fn is_behind(&mut self, key: &Key<'_>, wanted: Wanted, number: Option<WaitNumber>) -> bool;

    /// Puts a connection in the line of a key, or lets it stay there.
    fn enter_line(
        &mut self,
        slot: Slot,
        key: &Arc<[u8]>,
        wanted: Wanted,
        place: (WaitNumber, Waiter),
    );

    /// Returns whether the slot may be changed: it is served here, and not being handed over.
    fn may_change(&mut self, _slot: Slot) -> bool {
        true
    }

    /// Returns whether a walk has skipped a slot that must not change now.
    fn has_left_out(&self) -> bool {
        false
    }

    /// Returns whether this node alone has the slot: no other node has a copy, may come back with one, or may have served
    /// the slot since a split brain.
    fn is_alone(&mut self, _slot: Slot) -> bool {
        true
    }

    /// Takes the lock of a further slot for a script. Returns false if that is not possible here and now.
    fn grow(&mut self, _slot: Slot) -> bool {
        false
    }

    /// Returns the first slot from `from` on that holds keys. A server that keeps counters needs no lock for this.
    fn occupied(&mut self, from: Slot) -> Option<Slot> {
        Slot::all().skip(from.index()).find(|slot| !self.table(*slot).is_empty())
    }

    /// Returns the first slot from `from` on that holds keys of databases other than 0, with no lock either.
    fn with_databases(&mut self, from: Slot) -> Option<Slot> {
        Slot::all().skip(from.index()).find(|slot| self.table(*slot).has_other_databases())
    }

    /// Returns the number of keys in a slot.
    fn len(&mut self, slot: Slot) -> usize {
        self.table(slot).len()
    }

    /// Returns the number of keys in all slots, including expired ones not yet removed.
    fn key_count(&mut self) -> usize {
        Slot::all().map(|slot| self.table(slot).len()).sum()
    }
}

impl<P: ServingPlane> Slots for ServedSlots<'_, '_, P> {
    #[inline]
    fn table(&mut self, slot: Slot) -> &SlotTable {
        ServedSlots::table(self, slot)
    }

    #[inline]
    fn touch(&mut self, slot: Slot, at: At, touch: Touch) -> Found<'_> {
        ServedSlots::touch(self, slot, at, touch)
    }

    #[inline]
    fn apply(&mut self, slot: Slot, effect: &Effect<'_>, change: ChangeContext) -> Applied {
        ServedSlots::apply(self, slot, effect, change)
    }

    fn is_behind(&mut self, key: &Key<'_>, wanted: Wanted, number: Option<WaitNumber>) -> bool {
        ServedSlots::is_behind(self, key, wanted, number)
    }

    fn enter_line(
        &mut self,
        slot: Slot,
        key: &Arc<[u8]>,
        wanted: Wanted,
        place: (WaitNumber, Waiter),
    ) {
        ServedSlots::enter_line(self, slot, key, wanted, place);
    }

    fn may_change(&mut self, slot: Slot) -> bool {
        ServedSlots::may_change(self, slot)
    }

    fn has_left_out(&self) -> bool {
        self.left_out().is_some()
    }

    fn is_alone(&mut self, slot: Slot) -> bool {
        ServedSlots::is_alone(self, slot)
    }

    fn with_databases(&mut self, from: Slot) -> Option<Slot> {
        ServedSlots::with_databases(self, from)
    }

    fn grow(&mut self, slot: Slot) -> bool {
        ServedSlots::grow(self, slot)
    }

    fn occupied(&mut self, from: Slot) -> Option<Slot> {
        ServedSlots::occupied(self, from)
    }

    fn len(&mut self, slot: Slot) -> usize {
        ServedSlots::len(self, slot)
    }

    fn key_count(&mut self) -> usize {
        ServedSlots::key_count(self)
    }
}

impl<P: ServingPlane> Slots for ServedSlot<'_, '_, P> {
    #[inline]
    fn table(&mut self, slot: Slot) -> &SlotTable {
        ServedSlot::table(self, slot)
    }

    #[inline]
    fn touch(&mut self, slot: Slot, at: At, touch: Touch) -> Found<'_> {
        ServedSlot::touch(self, slot, at, touch)
    }

    #[inline]
    fn apply(&mut self, slot: Slot, effect: &Effect<'_>, change: ChangeContext) -> Applied {
        ServedSlot::apply(self, slot, effect, change)
    }

    fn is_behind(&mut self, key: &Key<'_>, wanted: Wanted, number: Option<WaitNumber>) -> bool {
        ServedSlot::is_behind(self, key, wanted, number)
    }

    fn enter_line(
        &mut self,
        slot: Slot,
        key: &Arc<[u8]>,
        wanted: Wanted,
        place: (WaitNumber, Waiter),
    ) {
        ServedSlot::enter_line(self, slot, key, wanted, place);
    }
}

/// Parameters that are the same for all commands of a batch.
#[derive(Clone)]
pub struct CommandEnv {
    pub now: UnixMillis,
    pub seed: Seed,
    pub access: AccessTracking,
    pub notify: NotifyClasses,
    /// True if memory is short and nothing more can be evicted.
    pub out_of_memory: bool,
    /// The owners of the slots.
    pub cluster: Arc<View>,
    /// True if the keys of one command must share a slot.
    pub one_slot_only: bool,
    pub password_required: bool,
    /// Maximum length of a string that a command may create.
    pub string_bytes_max: usize,
    /// The scripts of the node, and the time after which one is slow.
    pub scripts: Arc<NodeScripts>,
    pub slow_script: Duration,
}

/// Access to the keys for commands.
pub struct Keys<'a> {
    pub(crate) slots: &'a mut dyn Slots,
    pub(crate) env: &'a CommandEnv,
    pub(crate) outcome: &'a mut Outcome,
    /// True if reads must not update access marks (`CLIENT NO-TOUCH`).
    pub(crate) no_touch: bool,
    /// The database that the connection has selected.
    pub(crate) database: Database,
    /// The copies that a command on the whole keyspace covers.
    walks: WalkedCopies,
    /// The state of a small random number generator, seeded by the server.
    pub(crate) rng: &'a mut SplitMix64,
}

impl<'a> Keys<'a> {
    #[inline]
    pub fn new(
        slots: &'a mut dyn Slots,
        env: &'a CommandEnv,
        outcome: &'a mut Outcome,
        rng: &'a mut SplitMix64,
    ) -> Keys<'a> {
        let (no_touch, database) = (false, Database::ZERO);
        Keys { slots, env, outcome, no_touch, database, walks: WalkedCopies::Primaries, rng }
    }

    /// Sets the copies that a command on the whole keyspace covers.
    #[inline]
    #[must_use]
    pub fn walking(self, walks: WalkedCopies) -> Keys<'a> {
        Keys { walks, ..self }
    }

    /// Returns the same keys, for a command that runs inside another one (EXEC).
    pub fn reborrow(&mut self) -> Keys<'_> {
        Keys {
            slots: &mut *self.slots,
            env: self.env,
            outcome: &mut *self.outcome,
            no_touch: self.no_touch,
            database: self.database,
            walks: self.walks,
            rng: &mut *self.rng,
        }
    }

    #[inline]
    pub fn now(&self) -> UnixMillis {
        self.env.now
    }

    /// Returns the time of a slot, by which deadlines in it are computed and checked.
    #[inline]
    pub fn now_in(&mut self, slot: Slot) -> UnixMillis {
        let now = self.env.now;
        self.slots.table(slot).time(now)
    }

    /// Returns the deadline of a key that moves from one slot to another: the remaining time stays the same.
    pub fn carry_deadline(&mut self, at: UnixMillis, from: Slot, to: Slot) -> UnixMillis {
        let left = at.0.saturating_sub(self.now_in(from).0);
        UnixMillis(self.now_in(to).0.saturating_add(left))
    }

    pub fn env(&self) -> &'a CommandEnv {
        self.env
    }

    /// Returns a key of the selected database.
    #[inline]
    pub fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        self.env.seed.key(bytes).in_database(self.database)
    }

    /// Reads a key for a client: records the use, counts a hit or miss.
    #[inline]
    pub fn read(&mut self, key: &Key<'_>) -> Option<Found<'_>> {
        let Some(at) = self.live(key) else {
            self.missed(key);
            return None;
        };
        self.outcome.hits += 1;
        Some(self.touched(key, at))
    }

    fn missed(&mut self, key: &Key<'_>) {
        self.outcome.misses += 1;
        self.notify_key(NotifyClasses::KEY_MISS, "keymiss", key);
    }

    /// Like [`Keys::read`], for commands that inspect a key without using it: counts a hit or miss, records no use.
    pub fn inspect(&mut self, key: &Key<'_>) -> Option<Found<'_>> {
        let Some(at) = self.live(key) else {
            self.missed(key);
            return None;
        };
        self.outcome.hits += 1;
        Some(self.slots.table(key.slot()).found(at))
    }

    /// Looks up a key for a command that is about to write it: records the use, counts neither hit nor miss.
    #[inline]
    pub fn find(&mut self, key: &Key<'_>) -> Option<Found<'_>> {
        let at = self.live(key)?;
        Some(self.touched(key, at))
    }

    /// Looks up a key without recording or counting anything.
    pub fn peek(&mut self, key: &Key<'_>) -> Option<Found<'_>> {
        let at = self.live(key)?;
        Some(self.slots.table(key.slot()).found(at))
    }

    pub fn exists(&mut self, key: &Key<'_>) -> bool {
        self.live(key).is_some()
    }

    /// Applies an effect and records it for the backups.
    #[inline]
    pub fn apply(&mut self, effect: &Effect<'_>) {
        let Some(key) = effect.key() else {
            unreachable!("a whole slot is emptied by `clear`");
        };
        let new = self.new_key(effect);
        self.apply_to(key.slot(), effect);
        if let Some(key) = new {
            self.notify_key(NotifyClasses::NEW, "new", &key);
        }
    }

    /// Creates a key that replaces any existing one (RENAME, COPY, RESTORE): it always causes a "new" event.
    pub fn replace_key(
        &mut self,
        key: Key<'_>,
        value: NewValue<'_>,
        expires_at: Option<UnixMillis>,
    ) {
        self.apply_to(key.slot(), &Effect::Put { key, value, expires_at });
        self.notify_key(NotifyClasses::NEW, "new", &key);
    }

    /// Returns the key that the effect is going to create, if "new" events are published.
    #[inline]
    fn new_key<'k>(&mut self, effect: &Effect<'k>) -> Option<Key<'k>> {
        if !self.env.notify.publishes(NotifyClasses::NEW) {
            return None;
        }
        match effect {
            Effect::Put { key, .. }
            | Effect::Append { key, .. }
            | Effect::Overwrite { key, .. }
            | Effect::SetFields { key, .. }
            | Effect::InsertElements { key, .. }
            | Effect::SetScores { key, .. }
            | Effect::AddMembers { key, .. }
            | Effect::ChangeStream { key, .. } => {
                self.slots.table(key.slot()).locate(key).is_none().then_some(*key)
            }
            Effect::RemoveFields { .. }
            | Effect::ExpireFields { .. }
            | Effect::SetElement { .. }
            | Effect::RemoveElements { .. }
            | Effect::RemoveScored { .. }
            | Effect::RemoveMembers { .. }
            | Effect::Expire { .. }
            | Effect::Mark { .. }
            | Effect::Remove { .. }
            | Effect::SwapDatabases { .. }
            | Effect::Clear => None,
        }
    }

    /// Returns whether a walk has skipped a slot that must not change now.
    pub(crate) fn has_left_out(&self) -> bool {
        self.slots.has_left_out()
    }

    /// Returns whether a command that reads may change the key's slot as well, to keep a result there.
    pub(crate) fn may_change(&mut self, key: &Key<'_>) -> bool {
        self.slots.may_change(key.slot())
    }

    /// Removes all keys of a slot, in all databases.
    pub fn clear(&mut self, slot: Slot) {
        self.apply_to(slot, &Effect::Clear);
    }

    /// Removes all keys of a slot that are in the selected database: one by one, unless there are no others, and no other
    /// side of a split brain that may have some.
    pub(crate) fn clear_database(&mut self, slot: Slot) {
        let database = self.database;
        let table = self.slots.table(slot);
        if table.len_in(database) == table.len() && table.divergence().is_none() {
            return self.clear(slot);
        }
        let mut names = Vec::new();
        let end = table.scan_database(database, ScanPosition::START, usize::MAX, |found| {
            names.push(found.item.key().to_vec());
        });
        debug_assert!(end.is_none(), "all of them were visited");
        for name in &names {
            let key = self.key(name);
            self.apply_to(slot, &Effect::Remove { key, cause: Cause::Deleted });
        }
    }

    /// Exchanges the contents of two databases in a slot. Only if no other node has a copy of any slot
    /// ([`Keys::has_copies`]).
    pub(crate) fn swap_databases(&mut self, slot: Slot, one: Database, other: Database) {
        self.apply_to(slot, &Effect::SwapDatabases { one, other });
    }

    /// Returns whether another node has, or may come back with, a copy of any slot.
    pub(crate) fn has_copies(&mut self) -> bool {
        Slot::all().any(|slot| !self.slots.is_alone(slot))
    }

    /// Removes a key, if it exists.
    pub fn remove(&mut self, key: &Key<'_>) -> bool {
        let there = self.exists(key);
        if there {
            self.apply(&Effect::Remove { key: *key, cause: Cause::Deleted });
        }
        there
    }

    /// Publishes a keyspace event about a key of the selected database.
    #[inline]
    pub fn notify(&mut self, class: NotifyClasses, name: &'static str, key: &[u8]) {
        self.notify_in(self.database, class, name, key);
    }

    /// Publishes a keyspace event about a key of any database.
    #[inline]
    pub fn notify_key(&mut self, class: NotifyClasses, name: &'static str, key: &Key<'_>) {
        self.notify_in(key.database(), class, name, key.bytes());
    }

    #[inline]
    fn notify_in(
        &mut self,
        database: Database,
        class: NotifyClasses,
        name: &'static str,
        key: &[u8],
    ) {
        if self.env.notify.publishes(class) {
            let event = Event { class, name, database, key: key.to_vec() };
            self.outcome.events.push(Announcement::Event(event));
        }
    }

    /// Returns the announcements so far, for a command that publishes more itself.
    pub(crate) fn announcements(&mut self) -> &mut Vec<Announcement> {
        &mut self.outcome.events
    }

    /// Returns a random number.
    pub fn roll(&mut self) -> u64 {
        self.rng.draw()
    }

    /// Takes the lock of a further slot, for a script.
    pub(crate) fn grow(&mut self, slot: Slot) -> bool {
        self.slots.grow(slot)
    }

    /// Returns the table of a slot, for commands that walk over all of them.
    pub fn table(&mut self, slot: Slot) -> &SlotTable {
        self.slots.table(slot)
    }

    /// Returns the first slot from `from` on that holds keys of the selected database and is covered on this connection:
    /// on the ordinary port those that this node serves, on the replica port its backup copies.
    pub fn occupied(&mut self, from: Slot) -> Option<Slot> {
        let database = self.database;
        let mut from = Some(from);
        loop {
            let slot = match database {
                Database::ZERO => self.occupied_anywhere(from?)?,
                _ => self.with_databases(from?)?,
            };
            let table = self.slots.table(slot);
            // A slot that seems empty now may be on its way to another node; a walk that changes it must notice that.
            if !table.has_other_databases() || table.len_in(database) > 0 {
                return Some(slot);
            }
            from = Slot::new(slot.number() + 1);
        }
    }

    /// Same as `occupied`, for keys of any database.
    pub fn occupied_anywhere(&mut self, from: Slot) -> Option<Slot> {
        match self.walks {
            WalkedCopies::Primaries => self.next_covered(from, |slots, from| slots.occupied(from)),
            WalkedCopies::Backups => self.backup_with(from, |table| !table.is_empty()),
        }
    }

    /// Same as `occupied`, for keys of databases other than 0.
    fn with_databases(&mut self, from: Slot) -> Option<Slot> {
        match self.walks {
            WalkedCopies::Primaries => {
                self.next_covered(from, |slots, from| slots.with_databases(from))
            }
            WalkedCopies::Backups => self.backup_with(from, SlotTable::has_other_databases),
        }
    }

    fn next_covered(
        &mut self,
        from: Slot,
        next: impl Fn(&mut dyn Slots, Slot) -> Option<Slot>,
    ) -> Option<Slot> {
        let mut from = Some(from);
        loop {
            let slot = next(self.slots, from?)?;
            if self.covers(slot) {
                return Some(slot);
            }
            from = Slot::new(slot.number() + 1);
        }
    }

    /// Returns the number of keys of the selected database in the slots that are covered on this connection.
    pub fn key_count(&mut self) -> usize {
        let mut in_others = 0;
        let mut in_database = 0;
        let mut next = Slot::new(0).and_then(|from| self.with_databases(from));
        while let Some(slot) = next {
            let table = self.slots.table(slot);
            in_others += table.len() - table.len_in(Database::ZERO);
            in_database += table.len_in(self.database);
            let behind = Slot::new(slot.number() + 1);
            next = behind.and_then(|from| self.with_databases(from));
        }
        match self.database {
            // A slot may have changed between the two counts.
            Database::ZERO => self.key_count_anywhere().saturating_sub(in_others),
            _ => in_database,
        }
    }

    fn key_count_anywhere(&mut self) -> usize {
        if self.env.cluster.serves_all() && self.walks == WalkedCopies::Primaries {
            return self.slots.key_count();
        }
        let mut count = 0;
        for slot in Slot::all() {
            if self.covers(slot) {
                count += self.slots.len(slot);
            }
        }
        count
    }

    /// Looks into every backup copy: only the counts of slots that this node serves are published.
    fn backup_with(&mut self, from: Slot, has: impl Fn(&SlotTable) -> bool) -> Option<Slot> {
        let mut slots = (from.number()..Slot::COUNT).filter_map(Slot::new);
        slots.find(|slot| self.covers(*slot) && has(self.slots.table(*slot)))
    }

    fn covers(&self, slot: Slot) -> bool {
        match self.walks {
            WalkedCopies::Primaries => self.env.cluster.is_mine(slot),
            WalkedCopies::Backups => self.env.cluster.is_backed_up_here(slot),
        }
    }

    pub fn lfu_tuning(&self) -> LfuTuning {
        match self.env.access {
            AccessTracking::Lfu(tuning) => tuning,
            AccessTracking::Lru => LfuTuning { log_factor: 10, decay_minutes: 1 },
        }
    }

    /// Returns the location of the key. An expired key is removed first, and a hash without unexpired fields.
    #[inline]
    fn live(&mut self, key: &Key<'_>) -> Option<At> {
        let now = self.env.now;
        let table = self.slots.table(key.slot());
        let at = table.locate(key)?;
        match table.expiry(at) {
            Some(expiry) if expiry <= table.time(now) => {
                self.expire(key);
                None
            }
            Some(_) | None if table.is_emptied_hash(at, now) => {
                self.expire_hash(key);
                None
            }
            Some(_) | None => Some(at),
        }
    }

    /// Removes a key that is due. A backup only hides it, because only the primary removes keys; the same holds for
    /// a slot that is being handed over.
    pub fn expire(&mut self, key: &Key<'_>) {
        if !self.slots.may_change(key.slot()) {
            return;
        }
        self.outcome.expired += 1;
        self.apply(&Effect::Remove { key: *key, cause: Cause::Expired });
        self.notify_key(NotifyClasses::EXPIRED, "expired", key);
    }

    /// Removes a hash of which all fields are due, unless only the primary may do that, as with `expire`.
    fn expire_hash(&mut self, key: &Key<'_>) {
        if !self.slots.may_change(key.slot()) {
            return;
        }
        self.apply(&Effect::Remove { key: *key, cause: Cause::Expired });
        self.notify_key(NotifyClasses::HASH, "hexpired", key);
        self.notify_key(NotifyClasses::GENERIC, "del", key);
    }

    /// Removes some fields of a hash that are due, in the background: commands only hide them.
    pub fn expire_fields(&mut self, key: &Key<'_>) {
        if !self.slots.may_change(key.slot()) {
            return;
        }
        let now = self.env.now;
        let due = self.slots.table(key.slot()).due_fields(key, now);
        if due.is_all {
            self.expire_hash(key);
        } else if due.count > 0 {
            self.apply(&Effect::RemoveFields { key: *key, fields: &due.fields });
            self.notify_key(NotifyClasses::HASH, "hexpired", key);
        }
    }

    /// Returns the item at `at` after recording its use.
    #[inline]
    fn touched(&mut self, key: &Key<'_>, at: At) -> Found<'_> {
        let touch = self.touch();
        self.slots.touch(key.slot(), at, touch)
    }

    fn apply_to(&mut self, slot: Slot, effect: &Effect<'_>) {
        let change = ChangeContext { now: self.env.now, touch: self.touch() };
        let applied = self.slots.apply(slot, effect, change);
        self.outcome.applied(applied);
        self.outcome.changes += 1;
    }

    #[inline]
    fn touch(&mut self) -> Touch {
        if self.no_touch {
            return Touch::Nothing;
        }
        let roll = match self.env.access {
            AccessTracking::Lru => 0,
            AccessTracking::Lfu(_) => (self.roll() >> 32) as u32,
        };
        Touch::at(self.env.now, self.env.access, roll)
    }
}
