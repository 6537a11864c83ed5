//! Saves timers over a graceful stop of the whole cluster: encodes those that a node could not hand over.
//!
//! The shell writes it to the data directory when the node stops, and reads it when the node starts. A node
//! that leaves others behind has handed everything over and writes nothing; so no other node has the timers of
//! a snapshot. The wall clock measures the time in between: timers that were due meanwhile are due at once.
//!
//! A process that was declared dead, or that yields to the other side of a split, passes its timers on to its
//! next incarnation in the same format, preceded by a header of its own: since when it was away. Other nodes
//! may have changed or ended them since; so all of them are in doubt (`doubt.rs`).
//!
//! ~~~text
//! "OCTM"  version (1)  wall clock (8, little-endian)  records, one after the other  checksum (8)
//! ~~~

use std::fmt;

use xxhash_rust::xxh3::xxh3_64;

use crate::core::Timers;
use crate::ids::{MembersEpoch, MonotonicMillis, TimeSpan};
use crate::record::{Record, TimerLife};
use crate::resync::Basis;
use crate::table::UpdateContext;

const MAGIC: [u8; 4] = *b"OCTM";
const VERSION: u8 = 1;
const HEAD: usize = 13;
const CHECKSUM: usize = 8;
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

impl Timers {
    /// Encodes all timers of this node.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(VERSION);
        bytes.extend(self.now.wall.to_le_bytes());
        for entry in self.table.after(None) {
            let record = entry.record(self.now.moment);
            bytes = postcard::to_extend(&record, bytes).expect("a record can be written");
        }
        let checksum = xxh3_64(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes
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

// Passing timers on to the next incarnation of a process.
impl Timers {
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
        let away = TimeSpan(self.now.wall.saturating_sub(number(since)));
        self.departed = MonotonicMillis(self.now.moment.0.saturating_sub(away.0));
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
