//! Encodes a node's timers, for the data directory and for the next life of the process.
//!
//! A node that stops as the last one saves what it could not hand over: no other node has these timers (`load`).
//! While it runs, it saves its timers again and again, for a crash of all nodes: other nodes may have changed or
//! ended them since, so all of them are in doubt (`load_running`, `doubt.rs`). The wall clock measures the time in
//! between: timers that were due meanwhile are due at once.
//!
//! A process that was declared dead, or that yields to the other side of a split, passes its timers on to its
//! next incarnation in the same format, preceded by a header of its own: since when it was away. They are in doubt,
//! too.
//!
//! ~~~text
//! "OCTM"  version (1)  wall clock (8, little-endian)  records, one after the other  checksum (8)
//! ~~~

use std::fmt;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::core::Timers;
use crate::ids::{MembersEpoch, MonotonicMillis, TimeSpan, TimerId};
use crate::record::{Record, TimerLife};
use crate::resync::Basis;
use crate::table::UpdateContext;

const MAGIC: [u8; 4] = *b"OCTM";
const VERSION: u8 = 1;
const HEAD: usize = 13;
const CHECKSUM: usize = 8;
/// Size at which a page of a snapshot ends.
const PAGE_BYTES: usize = 1 << 20;
/// Length of the header before carried-over timers: since when the process was away, and the last epoch before
/// the split; 0 if there was none.
const ABSENCE: usize = 16;

/// An unusable snapshot. Nothing of it was loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SnapshotError {
    NotASnapshot,
    /// Written by a later version than this.
    TimerVersion(u8),
    /// Cut short, or changed since it was written.
    Damaged,
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotError::NotASnapshot => f.write_str("not a timer snapshot"),
            SnapshotError::TimerVersion(version) => {
                write!(
                    f,
                    "unsupported snapshot format {version}; this version reads up to {VERSION}"
                )
            }
            SnapshotError::Damaged => f.write_str("the snapshot is damaged"),
        }
    }
}

/// The moment at which the network split and this side went on alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parted {
    /// The last epoch that both sides followed.
    pub epoch: MembersEpoch,
    pub at: MonotonicMillis,
}

impl std::error::Error for SnapshotError {}

/// An encoding in progress. Between two pages the node may do other work: every timer is as it was when its page
/// was encoded.
pub struct SnapshotWalk {
    /// The moment from which all due times count.
    at: MonotonicMillis,
    after: Option<TimerId>,
    checksum: Xxh3,
    is_over: bool,
}

impl SnapshotWalk {
    pub fn is_over(&self) -> bool {
        self.is_over
    }
}

impl Timers {
    /// Begins to encode all timers of this node. Returns the first bytes; `snapshot_page` has the others.
    pub fn begin_snapshot(&self) -> (SnapshotWalk, Vec<u8>) {
        let mut head = MAGIC.to_vec();
        head.push(VERSION);
        head.extend(self.now.wall.to_le_bytes());
        let mut checksum = Xxh3::new();
        checksum.update(&head);
        (SnapshotWalk { at: self.now.moment, after: None, checksum, is_over: false }, head)
    }

    /// Encodes the next timers; the last page ends with the checksum. A page may have fewer than `limit` timers if
    /// these are large.
    pub fn snapshot_page(&self, walk: &mut SnapshotWalk, limit: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut entries = self.table.after(walk.after);
        for _ in 0..limit {
            let Some(entry) = entries.next() else {
                walk.is_over = true;
                break;
            };
            walk.after = Some(entry.id());
            let record = entry.record(walk.at);
            bytes = postcard::to_extend(&record, bytes).expect("a record can be written");
            if bytes.len() >= PAGE_BYTES {
                break;
            }
        }
        walk.checksum.update(&bytes);
        if walk.is_over {
            bytes.extend(walk.checksum.digest().to_le_bytes());
        }
        bytes
    }

    /// Encodes all timers of this node at once.
    pub fn snapshot(&self) -> Vec<u8> {
        let (mut walk, mut bytes) = self.begin_snapshot();
        while !walk.is_over() {
            bytes.extend(self.snapshot_page(&mut walk, usize::MAX));
        }
        bytes
    }

    /// Returns a number that differs after any change of what a snapshot contains.
    pub fn changes(&self) -> u64 {
        self.table.changes()
    }

    /// Returns whether nobody else could have this node's timers: it is the only member, or all members leave.
    pub fn is_last_holder(&self) -> bool {
        self.members.nobody_keeps_any() || self.members.all() == [self.me]
    }

    /// Loads the snapshot of an earlier process, and returns the number of pending timers. Must be called
    /// before the node gets its first list of members.
    pub fn load(&mut self, bytes: &[u8]) -> Result<usize, SnapshotError> {
        let (saved_at, records) = decode(bytes)?;
        // Both readings are rounded down: up to a millisecond less may have passed.
        let elapsed = self.now.wall.saturating_sub(saved_at).saturating_sub(1);
        for record in &records {
            let record = later(record, TimeSpan(elapsed));
            let place = self.place(record.id, None);
            let mut clock = UpdateContext { now: self.now.rounded_up, stats: &mut self.stats };
            self.table.put(&record, place, self.era, &mut clock);
        }
        self.resync_start(Basis::Unknown);
        Ok(self.table.pending())
    }
}

// Timers in doubt: from a process that crashed, and for the next incarnation of a process.
impl Timers {
    /// Loads a snapshot that a process saved while it ran, before it crashed. Must be called before the node gets its
    /// first list of members.
    pub fn load_running(&mut self, bytes: &[u8]) -> Result<usize, SnapshotError> {
        let (saved_at, _) = decode(bytes)?;
        let pending = self.load(bytes)?;
        self.set_absent_for(TimeSpan(self.now.wall.saturating_sub(saved_at)));
        self.restarted_at = Some(self.now.moment);
        self.doubt_all();
        Ok(pending)
    }

    /// Encodes all timers of this node for its next incarnation.
    pub fn carried(&self, parted: Option<Parted>) -> Vec<u8> {
        let now = self.now.moment;
        let held = self.lease.last_held(now).unwrap_or_default();
        let away = now - parted.map_or(held, |parted| parted.at);
        let epoch = parted.map_or(MembersEpoch::default(), |parted| parted.epoch);
        let mut bytes = self.now.wall.saturating_sub(away.0).to_le_bytes().to_vec();
        bytes.extend(epoch.0.to_le_bytes());
        bytes.extend(self.snapshot());
        bytes
    }

    /// Loads the timers carried over from the last incarnation. Must be called before the node gets its first
    /// list of members.
    pub fn load_carried(&mut self, bytes: &[u8]) -> Result<usize, SnapshotError> {
        let (absence, snapshot) =
            bytes.split_at_checked(ABSENCE).ok_or(SnapshotError::NotASnapshot)?;
        let (since, epoch) = absence.split_at(ABSENCE / 2);
        let number = |half: &[u8]| u64::from_le_bytes(half.try_into().expect("eight bytes"));
        let pending = self.load(snapshot)?;
        self.set_absent_for(TimeSpan(self.now.wall.saturating_sub(number(since))));
        self.parted_at =
            Some(MembersEpoch(number(epoch))).filter(|epoch| *epoch > MembersEpoch::default());
        self.doubt_all();
        Ok(pending)
    }
}

fn decode(bytes: &[u8]) -> Result<(u64, Vec<Record>), SnapshotError> {
    if bytes.len() < HEAD + CHECKSUM || bytes[..4] != MAGIC {
        return Err(SnapshotError::NotASnapshot);
    }
    if bytes[4] != VERSION {
        return Err(SnapshotError::TimerVersion(bytes[4]));
    }
    let (content, checksum) = bytes.split_at(bytes.len() - CHECKSUM);
    if xxh3_64(content).to_le_bytes() != checksum {
        return Err(SnapshotError::Damaged);
    }
    let saved_at = u64::from_le_bytes(content[5..HEAD].try_into().expect("eight bytes"));
    let mut rest = &content[HEAD..];
    let mut records = Vec::new();
    while !rest.is_empty() {
        let (record, after) =
            postcard::take_from_bytes(rest).map_err(|_| SnapshotError::Damaged)?;
        records.push(record);
        rest = after;
    }
    Ok((saved_at, records))
}

/// Returns a record as it is after some time. A tombstone keeps its whole remaining life: while the cluster was
/// stopped, nobody could have learned of it.
fn later(record: &Record, elapsed: TimeSpan) -> Record {
    let mut record = record.clone();
    if let TimerLife::Pending { due_in, .. } = &mut record.life {
        *due_in = TimeSpan(due_in.0.saturating_sub(elapsed.0));
    }
    record
}
