//! Finds items of one database by hash. A slot usually needs one segment; a slot with many keys (of one hash tag) gets a directory
//! of segments (extendible hashing), so that growing never moves more than one segment. Called by `databases.rs`.

use crate::databases::Databases;
use crate::item::{Item, ItemRef};
use crate::key::name_of;
use crate::segment::{ENTRIES_MAX, EntryIndex, EntryTag, Inserted, Segment};
use crate::slot_table::ScanPosition;
use crate::{Database, Seed, UnixMillis};

/// The location of an item; valid until the index is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct At {
    /// The leaf in its lower `DEPTH_MAX` bits, above them the position of the database among those of the slot.
    leaf: u32,
    place: EntryIndex,
}

impl At {
    /// Returns the location as one in the database at `position` of the slot.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "at most 10,000 databases, and 14 bits for them"
    )]
    pub(crate) fn in_part(self, position: usize) -> At {
        At { leaf: self.leaf | (position as u32) << DEPTH_MAX, ..self }
    }

    /// Returns the position of the database, and the location within it.
    pub(crate) fn split(self) -> (usize, At) {
        let leaf = self.leaf & ((1 << DEPTH_MAX) - 1);
        ((self.leaf >> DEPTH_MAX) as usize, At { leaf, ..self })
    }
}

/// At this depth of the directory, segments stop splitting and grow instead: 1.5 billion keys in one slot, or
/// thousands of keys crafted to collide, need not be fast.
const DEPTH_MAX: u32 = 18;

/// A segment in a directory, and its range of hashes: those that begin with the first `depth` bits of `prefix`.
struct Leaf {
    segment: Segment,
    range: Range,
}

#[derive(Clone, Copy, Default)]
struct Range {
    depth: u32,
    prefix: u64,
}

/// The directory of an index with several segments.
pub(crate) struct SegmentDirectory {
    /// The leaf for each value of the first `depth` bits of a hash. Leaves of a lesser depth appear several times.
    routes: Vec<u32>,
    depth: u32,
    leaves: Vec<Leaf>,
    /// Sums over all leaves.
    len: usize,
    expiring: usize,
    array_bytes: usize,
}

/// The index of one database in one slot. Small on purpose: there is one in each of 16,384 slots.
pub(crate) enum HashIndex {
    One(Segment),
    Many(Box<LargeIndex>),
}

/// An index with memory of its own. There is one box for both kinds, because [`HashIndex`] has room for one pointer
/// without growing.
pub(crate) enum LargeIndex {
    Segments(SegmentDirectory),
    /// The slot has several databases. Only `databases.rs` makes and reads this.
    Databases(Databases),
}

impl LargeIndex {
    #[inline(always)]
    fn segments(&self) -> &SegmentDirectory {
        match self {
            LargeIndex::Segments(directory) => directory,
            LargeIndex::Databases(_) => unreachable!("{ONE_DATABASE}"),
        }
    }

    #[inline(always)]
    fn segments_mut(&mut self) -> &mut SegmentDirectory {
        match self {
            LargeIndex::Segments(directory) => directory,
            LargeIndex::Databases(_) => unreachable!("{ONE_DATABASE}"),
        }
    }
}

const ONE_DATABASE: &str = "`databases.rs` calls this on the index of one database";

impl Default for HashIndex {
    fn default() -> HashIndex {
        HashIndex::One(Segment::default())
    }
}

impl Range {
    /// The range of an only segment: all hashes.
    const ALL: Range = Range { depth: 0, prefix: 0 };

    #[inline(always)]
    fn tag(self, hash: u64) -> EntryTag {
        tag_below(self.depth, hash)
    }

    /// Returns the position of a tag of this range among all hashes of the slot.
    fn position(self, tag: EntryTag) -> ScanPosition {
        let below = u64::from(tag) << (u64::BITS - EntryTag::BITS);
        ScanPosition::of_hash(self.prefix | below >> self.depth)
    }

    /// Returns the first hash after the range; `None` after the last range.
    fn end(self) -> Option<u64> {
        let step = 1u64.checked_shl(u64::BITS - self.depth)?;
        self.prefix.checked_add(step)
    }
}

/// Returns the tag: the 16 bits of a hash that follow the `depth` bits used by the directory.
#[inline(always)]
fn tag_below(depth: u32, hash: u64) -> EntryTag {
    ((hash << depth) >> (u64::BITS - EntryTag::BITS)) as EntryTag
}

impl HashIndex {
    pub(crate) fn len(&self) -> usize {
        match self {
            HashIndex::One(segment) => segment.len(),
            HashIndex::Many(large) => large.segments().len,
        }
    }

    pub(crate) fn expiring(&self) -> usize {
        match self {
            HashIndex::One(segment) => segment.expiring(),
            HashIndex::Many(large) => large.segments().expiring,
        }
    }

    /// Returns the index's memory in the allocator, without the items.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            HashIndex::One(segment) => segment.bytes(),
            HashIndex::Many(large) => large.segments().array_bytes,
        }
    }

    #[inline]
    pub(crate) fn find(&self, hash: u64, key: &[u8]) -> Option<At> {
        let leaf = self.leaf_number(hash);
        let (segment, range) = self.leaf(leaf);
        segment.find(range.tag(hash), key).map(|place| At { leaf, place })
    }

    #[inline]
    pub(crate) fn prefetch_home(&self, hash: u64) {
        let (segment, range) = self.leaf(self.leaf_number(hash));
        segment.prefetch_home(range.tag(hash));
    }

    #[inline]
    pub(crate) fn prefetch_item(&self, hash: u64) {
        let (segment, range) = self.leaf(self.leaf_number(hash));
        segment.prefetch_item(range.tag(hash));
    }

    #[inline]
    pub(crate) fn item(&self, at: At) -> ItemRef<'_> {
        self.segment(at.leaf).item(at.place)
    }

    #[inline]
    pub(crate) fn expiry(&self, at: At) -> Option<UnixMillis> {
        self.segment(at.leaf).expiry(at.place)
    }

    pub(crate) fn set_expiry(&mut self, at: At, expiry: Option<UnixMillis>) {
        self.on_segment(at.leaf, |segment| segment.set_expiry(at.place, expiry));
    }

    #[inline]
    pub(crate) fn change<R>(&mut self, at: At, change: impl FnOnce(&mut Item) -> R) -> R {
        self.segment_mut(at.leaf).change(at.place, change)
    }

    /// Inserts an item that is known to be absent.
    pub(crate) fn insert(&mut self, hash: u64, item: Item, seed: &Seed) -> At {
        let mut item = item;
        loop {
            let number = self.leaf_number(hash);
            let range = self.leaf(number).1;
            let max = if range.depth < DEPTH_MAX { ENTRIES_MAX } else { usize::MAX };
            match self.on_segment(number, |segment| segment.insert(range.tag(hash), item, max)) {
                Inserted::At(place) => return At { leaf: number, place },
                Inserted::Full(back) => {
                    item = back;
                    self.split(number, seed);
                }
            }
        }
    }

    pub(crate) fn remove(&mut self, at: At) -> Item {
        let item = self.on_segment(at.leaf, |segment| segment.remove(at.place));
        if self.len() == 0 {
            *self = HashIndex::default();
        }
        item
    }

    /// Visits items in the order of their hashes from `from` on, until `visit` has seen at least `count` of them,
    /// and returns the position to continue from; `None` at the end. An item that is in the index during a whole
    /// walk is visited by that walk, however often the index grows or shrinks meanwhile.
    pub(crate) fn scan(
        &self,
        from: ScanPosition,
        count: usize,
        visit: &mut dyn FnMut(ItemRef<'_>, Option<UnixMillis>),
    ) -> Option<ScanPosition> {
        let mut hash = from.first_hash();
        let mut visited = 0;
        let mut last = None;
        loop {
            let (segment, range) = self.leaf(self.leaf_number(hash));
            let mut next = segment.first_with(range.tag(hash));
            while let Some((place, tag)) = next {
                let position = range.position(tag);
                if visited >= count && last != Some(position) {
                    return Some(position);
                }
                segment.prefetch_ahead(place);
                visit(segment.item(place), segment.expiry(place));
                visited += 1;
                last = Some(position);
                next = segment.next_from(place.next());
            }
            hash = range.end()?;
        }
    }

    /// Returns the first item at or after a random position, wrapping around once.
    pub(crate) fn random(&self, roll: u64) -> Option<At> {
        self.pick(roll, |segment, from| segment.next_from(from).map(|(place, _)| place))
    }

    /// Same as `random`, among the items that expire.
    pub(crate) fn random_expiring(&self, roll: u64) -> Option<At> {
        self.pick(roll, Segment::next_expiring)
    }

    /// Adds the names of keys that are due at `now`, until there are `max`. They are of this database.
    pub(crate) fn due(
        &self,
        database: Database,
        now: UnixMillis,
        max: usize,
        keys: &mut Vec<Vec<u8>>,
    ) {
        for segment in self.segments() {
            let mut from = EntryIndex::FIRST;
            while let Some(place) = segment.next_due(from, now) {
                if keys.len() == max {
                    return;
                }
                keys.push(name_of(database, segment.item(place).key()).into_owned());
                from = place.next();
            }
        }
    }

    pub(crate) fn earliest_expiry(&self) -> Option<UnixMillis> {
        self.segments().filter_map(Segment::earliest_expiry).min()
    }

    fn pick(
        &self,
        roll: u64,
        next: impl Fn(&Segment, EntryIndex) -> Option<EntryIndex>,
    ) -> Option<At> {
        let first = self.leaf_number(roll);
        let start = self.segment(first).random_place(roll.rotate_left(DEPTH_MAX));
        if let Some(place) = next(self.segment(first), start) {
            return Some(At { leaf: first, place });
        }
        let count = self.leaf_count();
        // There was nothing after the chosen position: wrap around; the start of the first leaf comes last.
        (1..=count).find_map(|step| {
            let leaf = (first + step) % count;
            next(self.segment(leaf), EntryIndex::FIRST).map(|place| At { leaf, place })
        })
    }

    #[inline(always)]
    fn leaf_number(&self, hash: u64) -> u32 {
        match self {
            HashIndex::One(_) => 0,
            HashIndex::Many(large) => {
                let directory = large.segments();
                directory.routes[directory.route(hash)]
            }
        }
    }

    #[inline(always)]
    fn leaf(&self, number: u32) -> (&Segment, Range) {
        match self {
            HashIndex::One(segment) => (segment, Range::ALL),
            HashIndex::Many(large) => {
                let leaf = &large.segments().leaves[number as usize];
                (&leaf.segment, leaf.range)
            }
        }
    }

    #[inline(always)]
    fn segment(&self, number: u32) -> &Segment {
        self.leaf(number).0
    }

    #[inline(always)]
    fn segment_mut(&mut self, number: u32) -> &mut Segment {
        match self {
            HashIndex::One(segment) => segment,
            HashIndex::Many(large) => &mut large.segments_mut().leaves[number as usize].segment,
        }
    }

    fn leaf_count(&self) -> u32 {
        match self {
            HashIndex::One(_) => 1,
            HashIndex::Many(large) => leaf_id(large.segments().leaves.len()),
        }
    }

    fn segments(&self) -> impl Iterator<Item = &Segment> {
        (0..self.leaf_count()).map(|number| self.segment(number))
    }

    /// Changes a segment and updates the directory's sums.
    #[inline]
    fn on_segment<R>(&mut self, number: u32, change: impl FnOnce(&mut Segment) -> R) -> R {
        match self {
            HashIndex::One(segment) => change(segment),
            HashIndex::Many(large) => large.segments_mut().on_segment(number, change),
        }
    }

    /// Splits a full leaf in two by the next bit of its items' hashes.
    fn split(&mut self, number: u32, seed: &Seed) {
        if let HashIndex::One(segment) = self {
            let directory = SegmentDirectory::new(core::mem::take(segment));
            *self = HashIndex::Many(Box::new(LargeIndex::Segments(directory)));
        }
        let HashIndex::Many(large) = self else { unreachable!("it has just become one") };
        for (item, expiry) in large.segments_mut().split(number) {
            let hash = seed.hash(item.as_ref().key());
            let at = self.insert(hash, item, seed);
            self.set_expiry(at, expiry);
        }
    }
}

impl SegmentDirectory {
    fn new(segment: Segment) -> SegmentDirectory {
        let (len, expiring, array_bytes) = (segment.len(), segment.expiring(), segment.bytes());
        let leaves = vec![Leaf { segment, range: Range::ALL }];
        SegmentDirectory { routes: vec![0], depth: 0, leaves, len, expiring, array_bytes }
    }

    #[inline(always)]
    fn route(&self, hash: u64) -> usize {
        // Shifted in two steps because a shift by 64 (depth zero) overflows.
        (hash >> 1 >> (u64::BITS - 1 - self.depth)) as usize
    }

    fn on_segment<R>(&mut self, number: u32, change: impl FnOnce(&mut Segment) -> R) -> R {
        let segment = &mut self.leaves[number as usize].segment;
        let before = (segment.len(), segment.expiring(), segment.bytes());
        let result = change(segment);
        self.len = self.len + segment.len() - before.0;
        self.expiring = self.expiring + segment.expiring() - before.1;
        self.array_bytes = self.array_bytes + segment.bytes() - before.2;
        result
    }

    /// Adds a second leaf beside `number` and returns all of its items, to be inserted again.
    fn split(&mut self, number: u32) -> Vec<(Item, Option<UnixMillis>)> {
        let Range { depth, prefix } = self.leaves[number as usize].range;
        assert!(depth < DEPTH_MAX, "a segment this deep is never full");
        if depth == self.depth {
            self.routes = self.routes.iter().flat_map(|leaf| [*leaf, *leaf]).collect();
            self.depth += 1;
        }
        let depth = depth + 1;
        self.leaves[number as usize].range = Range { depth, prefix };
        let prefix = prefix | 1 << (u64::BITS - depth);
        let first = self.route(prefix);
        let count = 1 << (self.depth - depth);
        self.routes[first..first + count].fill(leaf_id(self.leaves.len()));
        self.leaves.push(Leaf { segment: Segment::default(), range: Range { depth, prefix } });
        self.on_segment(number, Segment::drain)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "at most 2^18 leaves")]
fn leaf_id(index: usize) -> u32 {
    index as u32
}
