//! The log read back is the log written, whatever happened to the last write.

use cluster::consensus::{Begin, Consensus, LogEntry};
use cluster::map::{Boot, Change, ClusterSettings, Endpoints, Map, Member, NodeId, Setting, Zone};
use placement::Mask;

use super::super::memory::Memory;
use super::*;

fn founding_map() -> Map {
    let founder = Member {
        id: NodeId(1),
        boot: Boot(1),
        name: "founder".to_owned(),
        weight: 1,
        zone: Zone::default(),
        at: Endpoints::default(),
    };
    Map::found(founder, Mask::M000F, ClusterSettings::default())
}

/// Starts a node with its log in `files`, from the state found there.
fn begin(files: &Memory) -> (Consensus, KeptLog) {
    let (log, saved) = match KeptLog::read(files).expect("what we wrote can be read") {
        Some(found) => found,
        None => (KeptLog::create(files).unwrap(), Saved::default()),
    };
    let begin = if saved.is_blank() { Begin::Found(founding_map()) } else { Begin::Resume(saved) };
    (Consensus::new(NodeId(1), 7, begin), log)
}

/// Proposes a change and writes the result to the log.
fn change(node: &mut Consensus, log: &mut KeptLog, files: &Memory, to: u32) -> io::Result<()> {
    let entry = LogEntry { planned_at: None, changes: vec![Change::Set(Setting::MinBuckets(to))] };
    node.propose(&entry).expect("the only voter leads");
    log.write(files, node.ready().persist)
}

fn min_buckets(node: &Consensus) -> u32 {
    node.map().expect("a founder has a map").settings().min_buckets
}

#[test]
fn a_node_comes_back_with_what_was_written() {
    let files = Memory::default();
    let (mut node, mut log) = begin(&files);
    for to in 1..=10 {
        change(&mut node, &mut log, &files, to).unwrap();
    }
    let (again, _) = begin(&files);
    assert_eq!(min_buckets(&again), 10);
    assert!(again.term() > node.term(), "it has voted anew");
}

#[test]
fn what_is_decided_is_not_written_by_itself() {
    let files = Memory::default();
    let (mut node, mut log) = begin(&files);
    change(&mut node, &mut log, &files, 1).unwrap();
    let before = files.content(FILE);
    let hard_state = log.saved.hard_state();
    let later = HardState { commit: LogIndex(hard_state.commit.0 + 1), ..hard_state };
    let commit = Persist { hard_state: Some(later), ..Persist::default() };
    log.write(&files, commit).unwrap();
    assert_eq!(files.content(FILE), before);
    let vote = HardState { vote: Some(NodeId(2)), ..later };
    log.write(&files, Persist { hard_state: Some(vote), ..Persist::default() }).unwrap();
    assert_ne!(files.content(FILE), before, "a vote is a promise");
}

#[test]
fn a_torn_end_was_promised_to_nobody() {
    let files = Memory::default();
    let (mut node, mut log) = begin(&files);
    change(&mut node, &mut log, &files, 1).unwrap();
    let before = files.content(FILE).unwrap().len();
    change(&mut node, &mut log, &files, 2).unwrap();
    let whole = files.content(FILE).unwrap();
    for end in before..whole.len() {
        let torn = files.copy();
        torn.set_content(FILE, whole[..end].to_vec());
        let (mut again, mut log) = begin(&torn);
        assert_eq!(min_buckets(&again), 1, "torn at {end}");
        log.write(&torn, again.ready().persist).unwrap();
        change(&mut again, &mut log, &torn, 3).unwrap();
        assert_eq!(min_buckets(&begin(&torn).0), 3, "and goes on after {end}");
    }
}

#[test]
fn a_last_record_that_came_to_the_disk_in_parts_is_torn_too() {
    let files = Memory::default();
    let (mut node, mut log) = begin(&files);
    change(&mut node, &mut log, &files, 1).unwrap();
    let before = files.content(FILE).unwrap().len();
    change(&mut node, &mut log, &files, 2).unwrap();
    let mut content = files.content(FILE).unwrap();
    content[before + 10..].fill(0);
    files.set_content(FILE, content);
    assert_eq!(min_buckets(&begin(&files).0), 1);
}

#[test]
fn damage_before_the_end_is_not_passed_over() {
    let files = Memory::default();
    let (mut node, mut log) = begin(&files);
    for to in 1..=3 {
        change(&mut node, &mut log, &files, to).unwrap();
    }
    let whole = files.content(FILE).unwrap();
    let first = MAGIC.len() + 8;
    for place in [first, first + 40] {
        let mut content = whole.clone();
        content[place] ^= 1;
        files.set_content(FILE, content);
        assert!(KeptLog::read(&files).is_err(), "byte {place}");
    }
    files.set_content(FILE, b"OCLOG_99".to_vec());
    assert!(KeptLog::read(&files).is_err(), "another version");
}

#[test]
fn a_long_log_stays_short_on_disk() {
    let files = Memory::default();
    let (mut node, mut log) = begin(&files);
    let mut longest = 0;
    for to in 0..5_000 {
        change(&mut node, &mut log, &files, to).unwrap();
        longest = longest.max(files.content(FILE).unwrap().len());
    }
    assert!(longest < 200_000, "{longest} bytes");
    assert_eq!(min_buckets(&begin(&files).0), 4_999);
}

#[test]
fn a_full_disk_loses_nothing_that_was_written() {
    for room in 0..60 {
        let files = Memory::default();
        let (mut node, mut log) = begin(&files);
        change(&mut node, &mut log, &files, 1).unwrap();
        files.leave_room(room);
        let written = change(&mut node, &mut log, &files, 2).is_ok();
        files.make_room();
        let found = min_buckets(&begin(&files).0);
        assert!(found == 2 || (found == 1 && !written), "{found} with room for {room}");
    }
}

#[test]
fn what_could_not_be_appended_is_written_with_the_whole_file() {
    let files = Memory::default();
    let (mut node, mut log) = begin(&files);
    change(&mut node, &mut log, &files, 1).unwrap();
    files.remove(FILE).unwrap(); // Makes the append fail.
    change(&mut node, &mut log, &files, 2).unwrap();
    assert_eq!(min_buckets(&begin(&files).0), 2);
}
