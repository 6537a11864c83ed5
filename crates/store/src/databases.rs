//! The index of one slot: one index of items for each database that has any. A slot with items in database 0 only, and an
//! empty one, pay nothing for that. Called by `slot_table.rs`.
//!
//! The order of a walk is by database, then by hash.

use crate::index::{At, HashIndex, LargeIndex};
use crate::item::{Item, ItemRef};
use crate::slot_table::{Found, ScanPosition};
use crate::{Database, Seed, UnixMillis};

#[derive(Default)]
pub(crate) struct Index(HashIndex);

/// The two states of an index.
enum View<'a> {
    /// Items of database 0, or none at all.
    Zero(&'a HashIndex),
    /// At least one item of another database.
    Several(&'a Databases),
}

enum ViewMut<'a> {
    Zero(&'a mut HashIndex),
    Several(&'a mut Databases),
}

/// The databases of one slot that have items, in ascending order.
pub(crate) struct Databases {
    parts: Vec<Part>,
    /// Sums over all parts.
    len: usize,
    expiring: usize,
    bytes: usize,
}

struct Part {
    database: Database,
    index: HashIndex,
}

/// Numbers of items of one database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatabaseSize {
    pub database: Database,
    pub len: usize,
    pub expiring: usize,
}

/// A function that a walk calls with each item.
pub(crate) type Visit<'v> = &'v mut dyn FnMut(Found<'_>);

impl Index {
    #[inline(always)]
    fn view(&self) -> View<'_> {
        match &self.0 {
            HashIndex::Many(large) => match &**large {
                LargeIndex::Databases(databases) => View::Several(databases),
                LargeIndex::Segments(_) => View::Zero(&self.0),
            },
            HashIndex::One(_) => View::Zero(&self.0),
        }
    }

    #[inline(always)]
    fn view_mut(&mut self) -> ViewMut<'_> {
        if !self.has_other_databases() {
            return ViewMut::Zero(&mut self.0);
        }
        let HashIndex::Many(large) = &mut self.0 else { unreachable!("it has a box") };
        let LargeIndex::Databases(databases) = &mut **large else { unreachable!("just seen") };
        ViewMut::Several(databases)
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self.view() {
            View::Zero(index) => index.len(),
            View::Several(databases) => databases.len,
        }
    }

    #[inline]
    pub(crate) fn expiring(&self) -> usize {
        match self.view() {
            View::Zero(index) => index.expiring(),
            View::Several(databases) => databases.expiring,
        }
    }

    /// Returns the index's memory in the allocator, without the items.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        match self.view() {
            View::Zero(index) => index.bytes(),
            View::Several(databases) => databases.bytes + databases.own_bytes(),
        }
    }

    #[inline]
    pub(crate) fn has_other_databases(&self) -> bool {
        matches!(self.view(), View::Several(_))
    }

    pub(crate) fn databases(&self) -> impl Iterator<Item = DatabaseSize> {
        let (zero, parts): (_, &[Part]) = match self.view() {
            View::Zero(index) => (Some(size(Database::ZERO, index)), &[]),
            View::Several(databases) => (None, &databases.parts),
        };
        let zero = zero.filter(|size| size.len > 0);
        zero.into_iter().chain(parts.iter().map(|part| size(part.database, &part.index)))
    }

    pub(crate) fn size_of(&self, database: Database) -> DatabaseSize {
        let nothing = DatabaseSize { database, len: 0, expiring: 0 };
        self.part(database).map_or(nothing, |(_, index)| size(database, index))
    }

    #[inline]
    pub(crate) fn find(&self, database: Database, hash: u64, key: &[u8]) -> Option<At> {
        match self.view() {
            View::Zero(index) if database == Database::ZERO => index.find(hash, key),
            View::Zero(_) => None,
            View::Several(databases) => databases.find(database, hash, key),
        }
    }

    #[inline]
    pub(crate) fn prefetch_home(&self, database: Database, hash: u64) {
        match self.view() {
            View::Zero(index) => index.prefetch_home(hash),
            View::Several(_) => {
                if let Some((_, index)) = self.part(database) {
                    index.prefetch_home(hash);
                }
            }
        }
    }

    #[inline]
    pub(crate) fn prefetch_item(&self, database: Database, hash: u64) {
        match self.view() {
            View::Zero(index) => index.prefetch_item(hash),
            View::Several(_) => {
                if let Some((_, index)) = self.part(database) {
                    index.prefetch_item(hash);
                }
            }
        }
    }

    #[inline]
    pub(crate) fn item(&self, at: At) -> ItemRef<'_> {
        match self.view() {
            View::Zero(index) => index.item(at),
            View::Several(databases) => {
                let (part, at) = databases.at(at);
                part.index.item(at)
            }
        }
    }

    #[inline]
    pub(crate) fn expiry(&self, at: At) -> Option<UnixMillis> {
        match self.view() {
            View::Zero(index) => index.expiry(at),
            View::Several(databases) => {
                let (part, at) = databases.at(at);
                part.index.expiry(at)
            }
        }
    }

    /// Returns the database of the item at `at`.
    #[inline]
    pub(crate) fn database(&self, at: At) -> Database {
        match self.view() {
            View::Zero(_) => Database::ZERO,
            View::Several(databases) => databases.at(at).0.database,
        }
    }

    #[inline]
    pub(crate) fn set_expiry(&mut self, at: At, expiry: Option<UnixMillis>) {
        match self.view_mut() {
            ViewMut::Zero(index) => index.set_expiry(at, expiry),
            ViewMut::Several(databases) => {
                let (position, at) = at.split();
                databases.on_part(position, |index| index.set_expiry(at, expiry));
            }
        }
    }

    #[inline]
    pub(crate) fn change<R>(&mut self, at: At, change: impl FnOnce(&mut Item) -> R) -> R {
        match self.view_mut() {
            ViewMut::Zero(index) => index.change(at, change),
            ViewMut::Several(databases) => {
                let (position, at) = at.split();
                databases.parts[position].index.change(at, change)
            }
        }
    }

    /// Inserts an item that is known to be absent.
    #[inline]
    pub(crate) fn insert(&mut self, database: Database, hash: u64, item: Item, seed: &Seed) -> At {
        if database == Database::ZERO
            && let ViewMut::Zero(index) = self.view_mut()
        {
            return index.insert(hash, item, seed);
        }
        let databases = self.several();
        let position = databases.position_for(database);
        let at = databases.on_part(position, |index| index.insert(hash, item, seed));
        at.in_part(position)
    }

    pub(crate) fn remove(&mut self, at: At) -> Item {
        match self.view_mut() {
            ViewMut::Zero(index) => index.remove(at),
            ViewMut::Several(databases) => {
                let (position, at) = at.split();
                let item = databases.on_part(position, |index| index.remove(at));
                if databases.parts[position].index.len() == 0 {
                    databases.on_part(position, core::mem::take);
                    databases.parts.remove(position);
                    self.simplify();
                }
                item
            }
        }
    }

    /// Exchanges the contents of two databases.
    pub(crate) fn swap_databases(&mut self, one: Database, other: Database) {
        let databases = self.several();
        for part in &mut databases.parts {
            if part.database == one {
                part.database = other;
            } else if part.database == other {
                part.database = one;
            }
        }
        databases.parts.sort_unstable_by_key(|part| part.database);
        self.simplify();
    }

    /// Visits items in the order of databases and hashes; see [`HashIndex::scan`].
    pub(crate) fn scan(
        &self,
        from: ScanPosition,
        count: usize,
        visit: Visit<'_>,
    ) -> Option<ScanPosition> {
        let first = from.database()?;
        match self.view() {
            View::Zero(index) if first == Database::ZERO => {
                scan_part(Database::ZERO, index, from, count, visit)
            }
            View::Zero(_) => None,
            View::Several(databases) => databases.scan(first, from, count, visit),
        }
    }

    pub(crate) fn scan_database(
        &self,
        database: Database,
        from: ScanPosition,
        count: usize,
        visit: Visit<'_>,
    ) -> Option<ScanPosition> {
        let (_, index) = self.part(database)?;
        scan_part(database, index, from, count, visit)
    }

    /// Returns an item of one database, chosen by a random number.
    pub(crate) fn random_in(&self, database: Database, roll: u64) -> Option<At> {
        let (position, index) = self.part(database)?;
        index.random(roll).map(|at| at.in_part(position))
    }

    /// Same as `random_in`, among the items that expire.
    pub(crate) fn random_expiring_in(&self, database: Database, roll: u64) -> Option<At> {
        let (position, index) = self.part(database)?;
        index.random_expiring(roll).map(|at| at.in_part(position))
    }

    /// Returns an item of any database, chosen by a random number.
    pub(crate) fn random(&self, roll: u64) -> Option<At> {
        match self.view() {
            View::Zero(index) => index.random(roll),
            View::Several(databases) => {
                let (position, index) = databases.weighted(roll, databases.len, HashIndex::len)?;
                index.random(roll).map(|at| at.in_part(position))
            }
        }
    }

    /// Same as `random`, among the items that expire.
    pub(crate) fn random_expiring(&self, roll: u64) -> Option<At> {
        match self.view() {
            View::Zero(index) => index.random_expiring(roll),
            View::Several(databases) => {
                let total = databases.expiring;
                let (position, index) = databases.weighted(roll, total, HashIndex::expiring)?;
                index.random_expiring(roll).map(|at| at.in_part(position))
            }
        }
    }

    /// Returns the names of up to `max` keys that are due at `now`.
    pub(crate) fn due(&self, now: UnixMillis, max: usize) -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        match self.view() {
            View::Zero(index) => index.due(Database::ZERO, now, max, &mut keys),
            View::Several(databases) => {
                for part in &databases.parts {
                    part.index.due(part.database, now, max, &mut keys);
                }
            }
        }
        keys
    }

    pub(crate) fn earliest_expiry(&self) -> Option<UnixMillis> {
        match self.view() {
            View::Zero(index) => index.earliest_expiry(),
            View::Several(databases) => {
                databases.parts.iter().filter_map(|part| part.index.earliest_expiry()).min()
            }
        }
    }

    /// Returns the index of a database, with its position among those of the slot.
    fn part(&self, database: Database) -> Option<(usize, &HashIndex)> {
        match self.view() {
            View::Zero(index) => (database == Database::ZERO).then_some((0, index)),
            View::Several(databases) => {
                let position = databases.position(database).ok()?;
                Some((position, &databases.parts[position].index))
            }
        }
    }

    /// Turns the index into one of several databases, if it is not.
    fn several(&mut self) -> &mut Databases {
        if !self.has_other_databases() {
            let databases = Databases::new(core::mem::take(&mut self.0));
            self.0 = HashIndex::Many(Box::new(LargeIndex::Databases(databases)));
        }
        let ViewMut::Several(databases) = self.view_mut() else {
            unreachable!("it has just become one")
        };
        databases
    }

    /// Turns the index into one of database 0, if nothing else is left.
    fn simplify(&mut self) {
        let ViewMut::Several(databases) = self.view_mut() else { return };
        match &mut databases.parts[..] {
            [] => self.0 = HashIndex::default(),
            [part] if part.database == Database::ZERO => {
                self.0 = core::mem::take(&mut part.index);
            }
            _ => {}
        }
    }
}

impl Databases {
    fn new(zero: HashIndex) -> Databases {
        let (len, expiring, bytes) = (zero.len(), zero.expiring(), zero.bytes());
        let zero = (len > 0).then_some(Part { database: Database::ZERO, index: zero });
        Databases { parts: zero.into_iter().collect(), len, expiring, bytes }
    }

    fn own_bytes(&self) -> usize {
        size_of::<LargeIndex>() + self.parts.capacity() * size_of::<Part>()
    }

    fn position(&self, database: Database) -> Result<usize, usize> {
        self.parts.binary_search_by_key(&database, |part| part.database)
    }

    /// Returns the position of a database. One without items is added.
    fn position_for(&mut self, database: Database) -> usize {
        self.position(database).unwrap_or_else(|position| {
            self.parts.insert(position, Part { database, index: HashIndex::default() });
            position
        })
    }

    fn at(&self, at: At) -> (&Part, At) {
        let (position, at) = at.split();
        (&self.parts[position], at)
    }

    fn find(&self, database: Database, hash: u64, key: &[u8]) -> Option<At> {
        let position = self.position(database).ok()?;
        let at = self.parts[position].index.find(hash, key);
        at.map(|at| at.in_part(position))
    }

    /// Changes a part and updates the sums.
    fn on_part<R>(&mut self, position: usize, change: impl FnOnce(&mut HashIndex) -> R) -> R {
        let index = &mut self.parts[position].index;
        let before = (index.len(), index.expiring(), index.bytes());
        let result = change(index);
        self.len = self.len + index.len() - before.0;
        self.expiring = self.expiring + index.expiring() - before.1;
        self.bytes = self.bytes + index.bytes() - before.2;
        result
    }

    fn scan(
        &self,
        first: Database,
        from: ScanPosition,
        count: usize,
        visit: Visit<'_>,
    ) -> Option<ScanPosition> {
        let mut visited = 0;
        for part in self.parts.iter().filter(|part| part.database >= first) {
            let start = if part.database == first { from } else { ScanPosition::START };
            let left = count.saturating_sub(visited);
            let next = scan_part(part.database, &part.index, start, left, &mut |found| {
                visited += 1;
                visit(found);
            });
            if next.is_some() {
                return next;
            }
        }
        None
    }

    /// Returns a part with a chance in proportion to its weight.
    fn weighted(
        &self,
        roll: u64,
        total: usize,
        weight: impl Fn(&HashIndex) -> usize,
    ) -> Option<(usize, &HashIndex)> {
        // The upper bits choose the place within the part.
        let mut rest = (roll & u64::from(u32::MAX)).checked_rem(total as u64)? as usize;
        for (position, part) in self.parts.iter().enumerate() {
            let weight = weight(&part.index);
            if rest < weight {
                return Some((position, &part.index));
            }
            rest -= weight;
        }
        None
    }
}

fn size(database: Database, index: &HashIndex) -> DatabaseSize {
    DatabaseSize { database, len: index.len(), expiring: index.expiring() }
}

fn scan_part(
    database: Database,
    index: &HashIndex,
    from: ScanPosition,
    count: usize,
    visit: Visit<'_>,
) -> Option<ScanPosition> {
    let next = index.scan(from, count, &mut |item, expires_at| {
        visit(Found { item, expires_at, database });
    });
    next.map(|next| next.in_database(database))
}

#[cfg(test)]
mod tests;
