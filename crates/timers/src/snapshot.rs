//! Timers through a graceful stop of the whole cluster: what a node could not hand over, as bytes.
//!
//! Written by the shell to the data directory when the node stops, read when it starts. A node that
//! leaves others behind has handed everything over and writes nothing; so what is in a snapshot is
//! nobody else's. The calendar bridges the time between: what was due meanwhile is due at once.
//!
//! A process that was counted as dead, or that yields to another side of a split, carries its timers over
//! into its next life in the same bytes, with a head of its own: since when it was away. Others may have
//! changed or ended them since; so all of them are in doubt (`doubt.rs`).
//!
//! ~~~text
//! "OCTM"  version (1)  calendar (8, little-endian)  records, one after the other  checksum (8)
//! ~~~

use std::fmt;

use xxhash_rust::xxh3::xxh3_64;

use crate::core::Timers;
use crate::ids::{Epoch, Moment, Span};
use crate::record::{Life, Record};
use crate::resync::Basis;
use crate::table::Clock;

const MAGIC: [u8; 4] = *b"OCTM";
const VERSION: u8 = 1;
const HEAD: usize = 13;
const CHECKSUM: usize = 8;
/// Before the snapshot in what is carried over: since when the process was away, and under which epoch
/// the sides parted; 0 if they did not.
const ABSENCE: usize = 16;

/// A snapshot that cannot be used. Nothing of it was taken in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SnapshotError {
    NotASnapshot,
    /// Written by a later version than this.
    Version(u8),
    /// Cut short, or changed since it was written.
    Damaged,
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotError::NotASnapshot => f.write_str("this is no snapshot of timers"),
            SnapshotError::Version(version) => {
                write!(
                    f,
                    "the snapshot has format {version}, and this version reads up to {VERSION}"
                )
            }
            SnapshotError::Damaged => f.write_str("the snapshot is damaged"),
        }
    }
}

/// When the network fell apart, and this side went on alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parted {
    /// The last that both sides followed.
    pub epoch: Epoch,
    pub at: Moment,
}

impl std::error::Error for SnapshotError {}

impl Timers {
    /// All that this node holds.
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

    /// Takes in what an earlier process has written, and returns how many timers there were. To be
    /// called before the node is told its first list of members.
    pub fn load(&mut self, bytes: &[u8]) -> Result<usize, SnapshotError> {
        let (saved_at, records) = decode(bytes)?;
        let elapsed = self.now.wall.saturating_sub(saved_at);
        for record in &records {
            let record = later(record, Span(elapsed));
            let place = self.place(record.id, None);
            let mut clock = Clock { now: self.now.moment, stats: &mut self.stats };
            self.table.put(&record, place, self.era, &mut clock);
        }
        self.resync_start(Basis::Unknown);
        Ok(self.table.pending())
    }
}

// From one life of a process to the next.
impl Timers {
    /// All that this node holds, for its next life.
    pub fn carried(&self, parted: Option<Parted>) -> Vec<u8> {
        let now = self.now.moment;
        let held = self.lease.last_held(now).unwrap_or_default();
        let away = now - parted.map_or(held, |parted| parted.at);
        let epoch = parted.map_or(Epoch::default(), |parted| parted.epoch);
        let mut bytes = self.now.wall.saturating_sub(away.0).to_le_bytes().to_vec();
        bytes.extend(epoch.0.to_le_bytes());
        bytes.extend(self.snapshot());
        bytes
    }

    /// Takes in what the last life has carried over. To be called before the node is told its first
    /// list of members.
    pub fn load_carried(&mut self, bytes: &[u8]) -> Result<usize, SnapshotError> {
        let (absence, snapshot) =
            bytes.split_at_checked(ABSENCE).ok_or(SnapshotError::NotASnapshot)?;
        let (since, epoch) = absence.split_at(ABSENCE / 2);
        let number = |half: &[u8]| u64::from_le_bytes(half.try_into().expect("eight bytes"));
        let pending = self.load(snapshot)?;
        let away = Span(self.now.wall.saturating_sub(number(since)));
        self.departed = Moment(self.now.moment.0.saturating_sub(away.0));
        self.parted_at = Some(Epoch(number(epoch))).filter(|epoch| *epoch > Epoch::default());
        self.doubt_all();
        Ok(pending)
    }
}

fn decode(bytes: &[u8]) -> Result<(u64, Vec<Record>), SnapshotError> {
    if bytes.len() < HEAD + CHECKSUM || bytes[..4] != MAGIC {
        return Err(SnapshotError::NotASnapshot);
    }
    if bytes[4] != VERSION {
        return Err(SnapshotError::Version(bytes[4]));
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

/// A record after some time. A tombstone keeps all of its own: while the cluster stood still, nobody
/// could have heard of it.
fn later(record: &Record, elapsed: Span) -> Record {
    let mut record = record.clone();
    if let Life::Pending { due_in, .. } = &mut record.life {
        *due_in = Span(due_in.0.saturating_sub(elapsed.0));
    }
    record
}
