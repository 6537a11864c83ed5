//! From hash to item. A slot usually needs one segment; one that a hash tag has filled gets a
//! directory of them (extendible hashing), so that growing never moves more than one segment.
//! Called by `slot_table.rs`.

use crate::item::{Item, ItemRef};
use crate::segment::{Inserted, Place, Segment, Tag};
use crate::slot_table::ScanPosition;
use crate::{Seed, UnixMillis};

/// Where an item stands; good until the index is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct At {
    leaf: u32,
    place: Place,
}

/// With this many bits used up by the directory, segments stop to split. 1.5 billion keys in one slot
/// are not a case to be quick at.
const DEPTH_MAX: u32 = 18;

/// A segment and the run of hashes it serves: those that begin with `prefix`, `depth` bits of it.
#[derive(Default)]
struct Leaf {
    segment: Segment,
    depth: u32,
    prefix: u64,
}

/// What grows out of one leaf.
struct Directory {
    /// By the first `depth` bits of a hash: which leaf. Leaves of a lesser depth stand several times.
    routes: Vec<u32>,
    depth: u32,
    leaves: Vec<Leaf>,
}

#[derive(Default)]
pub(crate) struct Index {
    /// The only leaf, as long as one is enough.
    first: Leaf,
    directory: Option<Box<Directory>>,
    len: usize,
    expiring: usize,
    array_bytes: usize,
}

impl Leaf {
    fn tag(&self, hash: u64) -> Tag {
        tag_below(self.depth, hash)
    }

    /// The position of a tag of this leaf among all hashes of the slot.
    fn position(&self, tag: Tag) -> ScanPosition {
        let below = u64::from(tag) << (u64::BITS - Tag::BITS);
        ScanPosition::of_hash(self.prefix | below >> self.depth)
    }

    /// The first hash behind this leaf; `None` behind the last one.
    fn end(&self) -> Option<u64> {
        let step = 1u64.checked_shl(u64::BITS - self.depth)?;
        self.prefix.checked_add(step)
    }
}

/// The tag: the 16 bits of a hash that follow the `depth` ones the directory has used.
#[inline(always)]
fn tag_below(depth: u32, hash: u64) -> Tag {
    ((hash << depth) >> (u64::BITS - Tag::BITS)) as Tag
}

impl Index {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn expiring(&self) -> usize {
        self.expiring
    }

    /// What the index takes in the allocator, without the items.
    pub(crate) fn bytes(&self) -> usize {
        self.array_bytes
    }

    #[inline]
    pub(crate) fn find(&self, hash: u64, key: &[u8]) -> Option<At> {
        let number = self.leaf_number(hash);
        let leaf = self.leaf(number);
        leaf.segment.find(leaf.tag(hash), key).map(|place| At { leaf: number, place })
    }

    #[inline]
    pub(crate) fn prefetch_home(&self, hash: u64) {
        let leaf = self.leaf(self.leaf_number(hash));
        leaf.segment.prefetch_home(leaf.tag(hash));
    }

    #[inline]
    pub(crate) fn prefetch_item(&self, hash: u64) {
        let leaf = self.leaf(self.leaf_number(hash));
        leaf.segment.prefetch_item(leaf.tag(hash));
    }

    #[inline]
    pub(crate) fn item(&self, at: At) -> ItemRef<'_> {
        self.leaf(at.leaf).segment.item(at.place)
    }

    pub(crate) fn expiry(&self, at: At) -> Option<UnixMillis> {
        self.leaf(at.leaf).segment.expiry(at.place)
    }

    pub(crate) fn set_expiry(&mut self, at: At, expiry: Option<UnixMillis>) {
        self.on_segment(at.leaf, |segment| segment.set_expiry(at.place, expiry));
    }

    #[inline]
    pub(crate) fn change<R>(&mut self, at: At, change: impl FnOnce(&mut Item) -> R) -> R {
        self.leaf_mut(at.leaf).segment.change(at.place, change)
    }

    /// Puts an item in that is known not to be there.
    pub(crate) fn insert(&mut self, hash: u64, item: Item, seed: &Seed) -> At {
        let mut item = item;
        loop {
            let number = self.leaf_number(hash);
            let tag = self.leaf(number).tag(hash);
            match self.on_segment(number, |segment| segment.insert(tag, item)) {
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
        if self.len == 0 {
            *self = Index::default();
        }
        item
    }

    /// Visits items in the order of their hashes from `from` on, until `visit` has seen at least
    /// `count` of them, and says where to go on. `None` at the end. What stands in the index during
    /// a whole walk is visited in that walk, however often it grew or shrank meanwhile.
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
            let leaf = self.leaf(self.leaf_number(hash));
            let mut next = leaf.segment.first_with(leaf.tag(hash));
            while let Some((place, tag)) = next {
                let position = leaf.position(tag);
                if visited >= count && last != Some(position) {
                    return Some(position);
                }
                visit(leaf.segment.item(place), leaf.segment.expiry(place));
                visited += 1;
                last = Some(position);
                next = leaf.segment.next_from(place.next());
            }
            hash = leaf.end()?;
        }
    }

    /// The first item at or behind a random place, going round once.
    pub(crate) fn random(&self, roll: u64) -> Option<At> {
        self.pick(roll, |segment, from| segment.next_from(from).map(|(place, _)| place))
    }

    /// The same among those that expire.
    pub(crate) fn random_expiring(&self, roll: u64) -> Option<At> {
        self.pick(roll, Segment::next_expiring)
    }

    /// Up to `max` keys that are due at `now`.
    pub(crate) fn due(&self, now: UnixMillis, max: usize) -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        for leaf in self.leaves() {
            let mut from = Place::FIRST;
            while let Some(place) = leaf.segment.next_due(from, now) {
                if keys.len() == max {
                    return keys;
                }
                keys.push(leaf.segment.item(place).key().to_vec());
                from = place.next();
            }
        }
        keys
    }

    pub(crate) fn earliest_expiry(&self) -> Option<UnixMillis> {
        self.leaves().filter_map(|leaf| leaf.segment.earliest_expiry()).min()
    }

    fn pick(&self, roll: u64, next: impl Fn(&Segment, Place) -> Option<Place>) -> Option<At> {
        let first = self.leaf_number(roll);
        let start = self.leaf(first).segment.random_place(roll.rotate_left(DEPTH_MAX));
        if let Some(place) = next(&self.leaf(first).segment, start) {
            return Some(At { leaf: first, place });
        }
        let count = self.leaf_count();
        // Behind the chosen place there was nothing: go round, the rest of the first leaf at last.
        (1..=count).find_map(|step| {
            let leaf = (first + step) % count;
            next(&self.leaf(leaf).segment, Place::FIRST).map(|place| At { leaf, place })
        })
    }

    #[inline(always)]
    fn leaf_number(&self, hash: u64) -> u32 {
        match &self.directory {
            None => 0,
            Some(directory) => directory.routes[directory.route(hash)],
        }
    }

    #[inline(always)]
    fn leaf(&self, number: u32) -> &Leaf {
        match &self.directory {
            None => &self.first,
            Some(directory) => &directory.leaves[number as usize],
        }
    }

    #[inline(always)]
    fn leaf_mut(&mut self, number: u32) -> &mut Leaf {
        match &mut self.directory {
            None => &mut self.first,
            Some(directory) => &mut directory.leaves[number as usize],
        }
    }

    fn leaf_count(&self) -> u32 {
        self.directory.as_ref().map_or(1, |directory| leaf_id(directory.leaves.len()))
    }

    fn leaves(&self) -> impl Iterator<Item = &Leaf> {
        (0..self.leaf_count()).map(|number| self.leaf(number))
    }

    /// Changes a segment and keeps the sums right.
    fn on_segment<R>(&mut self, number: u32, change: impl FnOnce(&mut Segment) -> R) -> R {
        let segment = &mut self.leaf_mut(number).segment;
        let before = (segment.len(), segment.expiring(), segment.bytes());
        let result = change(segment);
        let after = (segment.len(), segment.expiring(), segment.bytes());
        self.len = self.len + after.0 - before.0;
        self.expiring = self.expiring + after.1 - before.1;
        self.array_bytes = self.array_bytes + after.2 - before.2;
        result
    }

    /// Splits a full leaf in two by the next bit of its items' hashes.
    fn split(&mut self, number: u32, seed: &Seed) {
        let directory = self.directory.get_or_insert_with(|| {
            let leaves = vec![core::mem::take(&mut self.first)];
            Box::new(Directory { routes: vec![0], depth: 0, leaves })
        });
        let (upper_number, items) = directory.split(number);
        // The items are counted again as they come back in.
        self.len -= items.len();
        self.expiring -= items.iter().filter(|(_, expiry)| expiry.is_some()).count();
        self.array_bytes = self.leaves().map(|leaf| leaf.segment.bytes()).sum();
        for (item, expiry) in items {
            let hash = seed.hash(item.as_ref().key());
            let at = self.insert(hash, item, seed);
            debug_assert!(at.leaf == number || at.leaf == upper_number);
            self.set_expiry(at, expiry);
        }
    }
}

impl Directory {
    #[inline(always)]
    fn route(&self, hash: u64) -> usize {
        // Shifted in two steps because a shift by 64 (depth zero) is none.
        (hash >> 1 >> (u64::BITS - 1 - self.depth)) as usize
    }

    /// Makes a second leaf beside `number` and hands out all of its items, to be put in anew.
    fn split(&mut self, number: u32) -> (u32, Vec<(Item, Option<UnixMillis>)>) {
        let depth = self.leaves[number as usize].depth;
        assert!(depth < DEPTH_MAX, "a slot with a billion keys");
        if depth == self.depth {
            self.routes = self.routes.iter().flat_map(|leaf| [*leaf, *leaf]).collect();
            self.depth += 1;
        }
        let upper_number = leaf_id(self.leaves.len());
        let lower = &mut self.leaves[number as usize];
        let items = lower.segment.drain();
        lower.depth += 1;
        let prefix = lower.prefix | 1 << (u64::BITS - lower.depth);
        let upper = Leaf { segment: Segment::default(), depth: lower.depth, prefix };
        let count = 1 << (self.depth - upper.depth);
        let first = self.route(prefix);
        self.routes[first..first + count].fill(upper_number);
        self.leaves.push(upper);
        (upper_number, items)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "at most 2^18 leaves")]
fn leaf_id(index: usize) -> u32 {
    index as u32
}
