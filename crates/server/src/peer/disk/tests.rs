//! A directory that is opened again, torn, and shared.

use cluster::consensus::{Payload, Term};
use cluster::map::{Boot, Endpoints, Map, Member, Settings, Zone};
use placement::Mask;

use super::*;

/// A directory of its own for a test, gone with it.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        let name = format!("opencluster-disk-{:016x}", super::super::draw_number());
        Directory(std::env::temp_dir().join(name))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn entry(index: u64) -> Entry {
    Entry { index: LogIndex(index), term: Term(1), payload: Payload::Nothing }
}

fn snapshot(index: u64) -> SnapshotData {
    let (at, zone, boot) = (Endpoints::default(), Zone::default(), Boot(2));
    let founder = Member { id: NodeId(1), boot, name: "n".to_owned(), weight: 1, zone, at };
    let map = Map::found(founder, Mask::M00FF, Settings::default());
    let configuration = cluster::consensus::Configuration {
        voters: [NodeId(1)].into(),
        ..cluster::consensus::Configuration::default()
    };
    let at = cluster::consensus::LogPlace { index: LogIndex(index), term: Term(1) };
    SnapshotData { at, configuration, map }
}

fn begun() -> Persist {
    let hard_state = HardState { term: Term(1), vote: Some(NodeId(1)), commit: LogIndex(1) };
    let (snapshot, hard_state) = (Some(snapshot(1)), Some(hard_state));
    Persist { snapshot, hard_state, ..Persist::default() }
}

fn entries(indexes: std::ops::RangeInclusive<u64>) -> Persist {
    let from = LogIndex(*indexes.start());
    let entries = indexes.map(entry).collect();
    Persist { truncate_from: Some(from), entries, ..Persist::default() }
}

fn indexes(saved: &Saved) -> Vec<u64> {
    saved.entries().iter().map(|entry| entry.index.0).collect()
}

#[test]
fn what_was_written_is_found_again() {
    let directory = Directory::new();
    let (mut disk, identity, saved) = Disk::open(&directory.0).expect("a new directory");
    assert!(identity.is_none() && saved.is_blank());
    disk.keep_identity(NodeId(7), ClusterId(8)).expect("written");
    disk.write(begun());
    disk.write(entries(2..=5));
    disk.write(entries(4..=4));
    drop(disk);
    let (_, identity, saved) = Disk::open(&directory.0).expect("the same directory");
    let identity = identity.expect("it was kept");
    assert_eq!((identity.id, identity.cluster), (NodeId(7), ClusterId(8)));
    assert_eq!(indexes(&saved), [2, 3, 4]);
    assert_eq!(saved.hard_state().vote, Some(NodeId(1)));
    assert_eq!(saved.snapshot(), Some(&snapshot(1)));
}

#[test]
fn a_snapshot_makes_the_log_short_and_keeps_what_is_behind_it() {
    let directory = Directory::new();
    let (mut disk, ..) = Disk::open(&directory.0).expect("a new directory");
    disk.write(begun());
    disk.write(entries(2..=900));
    let long = fs::metadata(directory.0.join(LOG)).expect("there").len();
    disk.write(Persist { snapshot: Some(snapshot(890)), ..Persist::default() });
    disk.write(entries(901..=902));
    let short = fs::metadata(directory.0.join(LOG)).expect("there").len();
    assert!(short < long, "{short} bytes after, {long} before");
    drop(disk);
    let (_, _, saved) = Disk::open(&directory.0).expect("the same directory");
    assert_eq!(indexes(&saved), (891..=902).collect::<Vec<_>>());
}

#[test]
fn wherever_a_crash_tears_the_log_the_whole_records_before_it_count() {
    let directory = Directory::new();
    let (mut disk, ..) = Disk::open(&directory.0).expect("a new directory");
    disk.write(begun());
    let start = fs::metadata(directory.0.join(LOG)).expect("there").len();
    disk.write(entries(2..=9));
    drop(disk);
    let path = directory.0.join(LOG);
    let whole = fs::read(&path).expect("there");
    let mut last = 9;
    for cut in (usize::try_from(start).expect("short")..whole.len()).rev() {
        fs::write(&path, &whole[..cut]).expect("written");
        let (mut disk, _, saved) = Disk::open(&directory.0).expect("a torn end is no fault");
        let found = saved.entries().last().map_or(1, |entry| entry.index.0);
        assert!(found == last || found + 1 == last, "{found} after {last}");
        last = found;
        // What is written next is found behind what was whole.
        disk.write(entries(found + 1..=found + 1));
        drop(disk);
        let (_, _, saved) = Disk::open(&directory.0).expect("whole again");
        assert_eq!(saved.entries().last().map(|entry| entry.index.0), Some(found + 1));
    }
    assert_eq!(last, 1);
}

#[test]
fn two_processes_never_share_a_directory() {
    let directory = Directory::new();
    let first = Disk::open(&directory.0).expect("a new directory");
    let second = Disk::open(&directory.0).map(|_| ()).expect_err("it is taken");
    assert!(second.to_string().contains("is in use by another process"), "{second}");
    drop(first);
    Disk::open(&directory.0).expect("it is free again");
}

#[test]
fn a_strange_file_is_named_and_left_alone() {
    let directory = Directory::new();
    fs::create_dir_all(&directory.0).expect("made");
    fs::write(directory.0.join(NODE), b"something else").expect("written");
    let error = Disk::open(&directory.0).map(|_| ()).expect_err("not ours");
    assert!(error.to_string().contains("no file of this version"), "{error}");
    assert_eq!(fs::read(directory.0.join(NODE)).expect("there"), b"something else");
}
