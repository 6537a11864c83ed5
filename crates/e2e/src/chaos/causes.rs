//! Causes of outages: a journal of faults and of large requests, with their times, and the longest outage by
//! cause.
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use load::availability::CauseRow;

use super::outages::Outage;

/// The cause of an outage before the first fault.
const NO_CAUSE: &str = "none";

/// Rank of a cause. Of two causes that explain an outage equally well, the fault is chosen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rank {
    LargeRequest,
    Fault,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Entry {
    cause: String,
    rank: Rank,
    begun: Instant,
    /// None while the cause lasts.
    ended: Option<Instant>,
}

#[derive(Debug, Default)]
pub struct Journal(Mutex<Vec<Entry>>);

/// Identifies an entry of the journal that has not ended.
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

/// Returns the cause that overlaps most with the outage, or else the last fault before it.
fn cause_of(entries: &[Entry], outage: &Outage) -> String {
    let most = entries.iter().max_by_key(|entry| (entry.overlap(outage), entry.rank));
    let is_before = |entry: &&Entry| entry.rank == Rank::Fault && entry.begun <= outage.since;
    let found = most
        .filter(|entry| !entry.overlap(outage).is_zero())
        .or_else(|| entries.iter().rfind(is_before));
    found.map_or(NO_CAUSE, |entry| &entry.cause).to_owned()
}

impl Entry {
    /// Returns how long the entry and the outage overlap.
    fn overlap(&self, outage: &Outage) -> Duration {
        let ended = self.ended.map_or(outage.until, |ended| ended.min(outage.until));
        ended.saturating_duration_since(self.begun.max(outage.since))
    }
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
    fn an_outage_belongs_to_what_lasted_for_the_most_of_it_or_to_the_last_fault() {
        let start = Instant::now();
        let entries = [
            entry(start, "kill", Rank::Fault, 2_000, 4_000),
            entry(start, "value", Rank::LargeRequest, 3_000, 9_000),
            entry(start, "cut", Rank::Fault, 12_000, 15_000),
        ];
        let cause = |since, until| {
            let [since, until] = [since, until].map(|at| start + Duration::from_millis(at));
            let bucket = Hashmask::all(Mask::M00FF).next().unwrap();
            cause_of(&entries, &Outage { bucket, since, until })
        };
        assert_eq!(cause(1_000, 1_500), "none");
        assert_eq!(cause(1_900, 2_500), "kill", "the write was under way as it struck");
        assert_eq!(cause(3_500, 4_000), "kill", "a fault comes before a large request");
        assert_eq!(cause(3_500, 8_000), "value");
        assert_eq!(cause(10_000, 11_000), "kill", "the last one that struck");
        assert_eq!(cause(8_900, 13_000), "cut");
    }
}
