//! The taker: a node of the surviving side that decides key by key whose change wins. It takes keys that nobody
//! here has changed since the split; a key changed on both sides is a conflict, which the later version wins.

use store::{
    Cause, DivergenceLog, Effect, Found, Key, NewValue, Row, ScoredRow, Seed, SlotTable,
    StoredValue, StreamRecords, Version,
};

use super::change::{ChangeBatch, MergedChange};
use super::ledger::{Conflict, Side, Tally, Winner};

/// Maximum length of a value. No peer of ours sends longer ones; pieces beyond it are dropped.
const VALUE_BYTES_MAX: usize = 512 * 1024 * 1024;

/// A slot that this side's primary serves, under its lock.
pub trait Ground {
    fn table(&mut self) -> &SlotTable;
    /// Carries out an effect as a write of its own, later than all received changes.
    fn apply(&mut self, effect: &Effect<'_>);
    /// Records the version at which the other side had made the change just carried out.
    fn brought(&mut self, key: &Key<'_>, made: Version);
    /// Records a conflict: both sides have changed a key.
    fn conflict(&mut self, conflict: Conflict);
}

/// The state of the dialogue with one node.
#[derive(Default, Debug)]
pub struct MergeTaker {
    /// Pieces received of a large value.
    pieces: Vec<u8>,
}

/// A change of the other side.
struct Theirs<'a> {
    key: Key<'a>,
    version: Version,
    /// The version at which their history diverged; the maximum if nobody has recorded it.
    parted: Version,
    /// `None` if the key was removed there.
    item: Option<NewItem<'a>>,
}

/// The emptying of the slot on the other side.
struct Emptying {
    version: Version,
    /// The version at which their history diverged.
    parted: Version,
}

struct NewItem<'a> {
    value: NewValue<'a>,
    expires_at: Option<store::UnixMillis>,
}

enum MergeDecision {
    /// Both sides have the same.
    Same,
    /// Nobody here has changed it: take theirs.
    Take,
    /// Both sides have changed it, differently; this one wins.
    Conflict(Winner),
    /// The key is missing here, and it is unknown whether it was removed.
    Unsure,
}

/// Returns the version from which on this side lacks the other side's changes to a slot; the maximum if not recorded.
pub fn diverged_at(table: &SlotTable) -> Version {
    table.divergence().map_or(Version(u64::MAX), DivergenceLog::at)
}

impl MergeTaker {
    /// Decides on a batch, and writes the winning changes. Idempotent. `parted` is the version at which the
    /// giver's history of the slot diverged.
    pub fn take(
        &mut self,
        parted: Version,
        batch: ChangeBatch<'_>,
        seed: &Seed,
        ground: &mut impl Ground,
    ) -> Tally {
        let mut tally = Tally::default();
        for change in batch.0 {
            match change {
                MergedChange::Item(item) => {
                    let value = NewItem { value: item.value, expires_at: item.expires_at };
                    let key = seed.key(item.key).in_database(item.database);
                    let version = item.version;
                    let theirs = Theirs { key, version, parted, item: Some(value) };
                    take_one(theirs, seed, ground, &mut tally);
                }
                MergedChange::Whole(item) => {
                    let pieces = core::mem::take(&mut self.pieces);
                    let Some(value) = assembled(&item.value, &pieces) else { continue };
                    let value = NewItem { value, expires_at: item.expires_at };
                    let key = seed.key(item.key).in_database(item.database);
                    let version = item.version;
                    let theirs = Theirs { key, version, parted, item: Some(value) };
                    take_one(theirs, seed, ground, &mut tally);
                }
                MergedChange::Gone { key, version } => {
                    let key = seed.named(key);
                    take_one(Theirs { key, version, parted, item: None }, seed, ground, &mut tally);
                }
                MergedChange::Emptied { version } => {
                    empty(&Emptying { version, parted }, seed, ground, &mut tally);
                }
                MergedChange::Piece(piece) => self.take_piece(piece),
            }
        }
        tally
    }

    fn take_piece(&mut self, piece: &[u8]) {
        if self.pieces.len() + piece.len() <= VALUE_BYTES_MAX {
            self.pieces.extend_from_slice(piece);
        }
    }
}

/// Returns the value whose pieces are complete, of the type of the empty value that was sent with the item. `None` if
/// they are not a container although they should be one: no peer of ours sends that.
fn assembled<'a>(empty: &NewValue<'_>, pieces: &'a [u8]) -> Option<NewValue<'a>> {
    match empty {
        NewValue::Hash(_) => Row::check_fields(pieces).ok().map(|row| NewValue::Hash(row.bytes())),
        NewValue::List(_) => Row::check(pieces, 1).ok().map(|row| NewValue::List(row.bytes())),
        NewValue::SortedSet(_) => {
            ScoredRow::check(pieces).ok().map(|row| NewValue::SortedSet(row.bytes()))
        }
        NewValue::Set(_) => Row::check(pieces, 1).ok().map(|row| NewValue::Set(row.bytes())),
        NewValue::Stream(_) => {
            let records = StreamRecords::check_parts(pieces).ok();
            records.map(|records| NewValue::Stream(records.bytes()))
        }
        NewValue::Plain(_) | NewValue::Raw(_) | NewValue::Integer(_) | NewValue::Shared(_) => {
            Some(NewValue::Shared(std::sync::Arc::new(pieces.to_vec())))
        }
    }
}

fn take_one(theirs: Theirs<'_>, seed: &Seed, ground: &mut impl Ground, tally: &mut Tally) {
    let verdict = judge(ground.table(), &theirs, seed);
    match verdict {
        MergeDecision::Same => tally.same += 1,
        MergeDecision::Take => {
            tally.taken += 1;
            write(theirs, ground);
        }
        MergeDecision::Conflict(winner) => {
            let conflict = describe(ground.table(), &theirs, winner);
            ground.conflict(conflict);
            tally.count_conflict(winner);
            if winner == Winner::Theirs {
                write(theirs, ground);
            }
        }
        MergeDecision::Unsure => {
            let conflict = describe(ground.table(), &theirs, Winner::Unsure);
            ground.conflict(conflict);
            tally.count_conflict(Winner::Unsure);
        }
    }
}

/// Merges the emptying of the slot on the other side.
fn empty(theirs: &Emptying, seed: &Seed, ground: &mut impl Ground, tally: &mut Tally) {
    let mut keys = Vec::new();
    let at = ground.table().divergence().map_or(Version::ZERO, DivergenceLog::at);
    ground.table().for_each(|found| {
        // Later items are not affected.
        if found.item.version() <= at.max(theirs.version) {
            keys.push(found.name().into_owned());
        }
    });
    let Emptying { version, parted } = *theirs;
    for key in keys {
        let removal = Theirs { key: seed.named(&key), version, parted, item: None };
        take_one(removal, seed, ground, tally);
    }
}

fn judge(table: &SlotTable, theirs: &Theirs<'_>, seed: &Seed) -> MergeDecision {
    let divergence = table.divergence();
    let settle = |ours: Version| {
        if theirs.never_went_on() && divergence.is_some() {
            // They stopped before this side went on without them: a change made here since then is later,
            // whatever the clocks say.
            MergeDecision::Conflict(Winner::Ours)
        } else if theirs.is_changed() {
            later(theirs.version, ours)
        } else {
            MergeDecision::Same // A key that they have only kept does not conflict with a change made here.
        }
    };
    match (table.peek(&theirs.key), &theirs.item) {
        (None, None) => MergeDecision::Same,
        (Some(here), Some(there)) if is_same(&here, there, seed) => MergeDecision::Same,
        (Some(here), _) => {
            let version = made_at(table, &here);
            let is_touched = divergence.is_none_or(|it| version > theirs.last_in_common(it.at()));
            if is_touched { settle(version) } else { MergeDecision::Take }
        }
        (None, Some(_)) => match divergence.map(|it| (it, taken_away_at(it, &theirs.key))) {
            Some((_, Some(version))) => settle(version),
            Some((divergence, None)) if divergence.is_complete() => MergeDecision::Take,
            Some((_, None)) | None => MergeDecision::Unsure,
        },
    }
}

impl Theirs<'_> {
    /// Returns whether their side has served nothing since the split: it has not recorded one.
    fn never_went_on(&self) -> bool {
        self.parted == Version(u64::MAX)
    }

    /// Returns whether the key was changed there since the split; true if nobody has recorded the time of the split.
    fn is_changed(&self) -> bool {
        self.never_went_on() || self.version > self.parted
    }

    /// Returns the last version that both sides had, if the history here diverged at `ours`. A side that had
    /// nothing of the slot does not limit it.
    fn last_in_common(&self, ours: Version) -> Version {
        if self.parted == Version::ZERO { ours } else { ours.min(self.parted) }
    }
}

/// Returns the version at which an item was made, possibly on another side that has brought it.
pub(super) fn made_at(table: &SlotTable, found: &Found<'_>) -> Version {
    let version = found.item.version();
    table.divergence().map_or(version, |divergence| divergence.made_at(&found.name(), version))
}

/// Decides a conflict by version. On equal versions this side wins.
fn later(theirs: Version, ours: Version) -> MergeDecision {
    MergeDecision::Conflict(if theirs > ours { Winner::Theirs } else { Winner::Ours })
}

/// Returns the version at which a client here removed the key since the split, as far as that is remembered.
fn taken_away_at(divergence: &DivergenceLog, key: &Key<'_>) -> Option<Version> {
    let tombstone = divergence
        .tombstone(&key.name())
        .filter(|tombstone| !tombstone.by_itself)
        .map(|tombstone| tombstone.version);
    let emptied_at = Some(divergence.emptied_at()).filter(|version| *version > Version::ZERO);
    tombstone.max(emptied_at)
}

fn is_same(here: &Found<'_>, there: &NewItem<'_>, seed: &Seed) -> bool {
    if here.expires_at != there.expires_at {
        return false;
    }
    let ours = match (here.value(), &there.value) {
        (StoredValue::Hash(hash), NewValue::Hash(row)) => return hash.equals_row(row, seed),
        (StoredValue::List(list), NewValue::List(row)) => return list.equals_row(row),
        (StoredValue::SortedSet(set), NewValue::SortedSet(row)) => {
            return set.equals_row(row, seed);
        }
        (StoredValue::Set(set), NewValue::Set(row)) => return set.equals_row(row, seed),
        (StoredValue::Stream(stream), NewValue::Stream(records)) => {
            return stream.to_records() == *records;
        }
        (StoredValue::String(string), _) => string.to_bytes(),
        (
            StoredValue::Hash(_)
            | StoredValue::List(_)
            | StoredValue::SortedSet(_)
            | StoredValue::Set(_)
            | StoredValue::Stream(_),
            _,
        ) => return false,
    };
    match &there.value {
        NewValue::Plain(bytes) | NewValue::Raw(bytes) => *ours == **bytes,
        NewValue::Shared(bytes) => *ours == ***bytes,
        NewValue::Integer(number) => *ours == *number.to_string().as_bytes(),
        NewValue::Hash(_) | NewValue::List(_) | NewValue::SortedSet(_) | NewValue::Set(_) => false,
        NewValue::Stream(_) => false,
    }
}

fn write(theirs: Theirs<'_>, ground: &mut impl Ground) {
    let (key, made) = (theirs.key, theirs.version);
    match theirs.item {
        Some(NewItem { value, expires_at }) => {
            ground.apply(&Effect::Put { key, value, expires_at });
        }
        None => ground.apply(&Effect::Remove { key, cause: Cause::Deleted }),
    }
    ground.brought(&key, made);
}

/// Returns the length of a string, or of a container's elements in a row.
fn stored_len(found: &Found<'_>) -> usize {
    match found.value() {
        StoredValue::String(string) => string.len(),
        StoredValue::Hash(hash) => hash.row_len(),
        StoredValue::List(list) => list.row_len(),
        StoredValue::SortedSet(set) => set.row_len(),
        StoredValue::Set(set) => set.row_len(),
        StoredValue::Stream(stream) => stream.records_len(),
    }
}

fn describe(table: &SlotTable, theirs: &Theirs<'_>, winner: Winner) -> Conflict {
    let here = table.peek(&theirs.key);
    let gone_at =
        || table.divergence().and_then(|divergence| taken_away_at(divergence, &theirs.key));
    let bytes = |len: usize| len as u64;
    let length = |item: &NewItem<'_>| match &item.value {
        NewValue::Plain(value)
        | NewValue::Raw(value)
        | NewValue::Hash(value)
        | NewValue::List(value) => value.len(),
        NewValue::SortedSet(value) | NewValue::Set(value) | NewValue::Stream(value) => value.len(),
        NewValue::Shared(value) => value.len(),
        NewValue::Integer(number) => number.to_string().len(),
    };
    Conflict {
        database: theirs.key.database(),
        key: theirs.key.bytes().to_vec(),
        ours: Side {
            version: here.map(|it| made_at(table, &it)).or_else(gone_at).unwrap_or_default().0,
            bytes: here.map(|it| bytes(stored_len(&it))),
        },
        theirs: Side {
            version: theirs.version.0,
            bytes: theirs.item.as_ref().map(|item| bytes(length(item))),
        },
        winner,
    }
}
