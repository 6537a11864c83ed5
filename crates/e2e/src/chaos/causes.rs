//! Causes of outages: a journal of faults and of large requests, with their times, and the longest outage by
//! cause.
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use load::availability::CauseRow;

use super::outages::Outage;

/// A write that was sent this long before a fault struck was under way when it did.
const UNDER_WAY: Duration = Duration::from_millis(500);
/// The cause of an outage before the first fault.
const NO_CAUSE: &str = "none";

/// Causes of the second rank count only while no fault does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rank {
    Fault,
    LargeRequest,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Entry {
    cause: String,
    rank: Rank,
    begun: Instant,
    /// None while it lasts.
    ended: Option<Instant>,
}

#[derive(Debug, Default)]
pub struct Journal(Mutex<Vec<Entry>>);

/// An entry of the journal that has not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryId(usize);

impl Journal {
    pub fn begin(&self, cause: String, rank: Rank) -> EntryId {
        let mut entries = self.0.lock().expect("it is only read and written");
        entries.push(Entry { cause, rank, begun: Instant::now(), ended: None });
        EntryId(entries.len() - 1)
    }

    pub fn end(&self, EntryId(index): EntryId) {
        let mut entries = self.0.lock().expect("it is only read and written");
        entries[index].ended = Some(Instant::now());
    }

    /// Returns every cause with its number of occurrences and its longest outage, the longest first.
    pub fn table(&self, outages: &[Outage]) -> Vec<CauseRow> {
        let entries = self.0.lock().expect("it is only read and written").clone();
        let mut rows: BTreeMap<String, (usize, f64)> = BTreeMap::new();
        for entry in &entries {
            rows.entry(entry.cause.clone()).or_default().0 += 1;
        }
        for outage in outages {
            let row = rows.entry(cause_of(&entries, outage)).or_default();
            row.1 = row.1.max(outage.lasted().as_secs_f64());
        }
        let row = |(cause, (times, longest))| CauseRow { cause, times, longest };
        let mut rows: Vec<CauseRow> = rows.into_iter().map(row).collect();
        rows.sort_by(|a, b| b.longest.total_cmp(&a.longest));
        rows
    }
}

/// The fault under way as the outage began; else the large request under way; else the last fault.
fn cause_of(entries: &[Entry], outage: &Outage) -> String {
    let began_before = |entry: &&Entry| entry.begun <= outage.since + UNDER_WAY;
    let before: Vec<&Entry> = entries.iter().filter(began_before).collect();
    let is_under_way = |entry: &&&Entry| entry.ended.is_none_or(|ended| ended >= outage.since);
    let is_fault = |entry: &&&Entry| entry.rank == Rank::Fault;
    let under_way: Vec<&&Entry> = before.iter().filter(is_under_way).collect();
    let found = under_way
        .iter()
        .rev()
        .find(|entry| entry.rank == Rank::Fault)
        .or(under_way.last())
        .copied()
        .or(before.iter().rev().find(is_fault));
    found.map_or(NO_CAUSE, |entry| &entry.cause).to_owned()
}

#[cfg(test)]
mod tests {
    use placement::{Hashmask, Mask};

    use super::*;

    fn entry(start: Instant, cause: &str, rank: Rank, from: u64, to: u64) -> Entry {
        let at = |millis| start + Duration::from_millis(millis);
        Entry { cause: cause.to_owned(), rank, begun: at(from), ended: Some(at(to)) }
    }

    #[test]
    fn an_outage_belongs_to_the_fault_under_way_or_the_last_one() {
        let start = Instant::now();
        let entries = [
            entry(start, "kill", Rank::Fault, 2_000, 4_000),
            entry(start, "value", Rank::LargeRequest, 3_000, 9_000),
            entry(start, "cut", Rank::Fault, 12_000, 15_000),
        ];
        let cause = |since| {
            let since = start + Duration::from_millis(since);
            let bucket = Hashmask::all(Mask::M00FF).next().unwrap();
            cause_of(&entries, &Outage { bucket, since, until: since })
        };
        assert_eq!(cause(1_000), "none");
        assert_eq!(cause(1_900), "kill", "the write was under way");
        assert_eq!(cause(3_500), "kill", "a fault comes before a large request");
        assert_eq!(cause(5_000), "value");
        assert_eq!(cause(10_000), "kill", "the last one that struck");
        assert_eq!(cause(13_000), "cut");
    }
}
