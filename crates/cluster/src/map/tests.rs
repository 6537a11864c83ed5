//! The map and its changes, one claim per test.

use super::*;
use std::collections::BTreeSet;
use std::time::Duration;

const A: NodeId = NodeId(1);
const B: NodeId = NodeId(2);
const C: NodeId = NodeId(3);

fn member(id: NodeId) -> Member {
    Member {
        id,
        boot: Boot(1),
        name: format!("n{id}"),
        weight: 1,
        zone: Zone::default(),
        at: Endpoints::default(),
    }
}

fn bucket(text: &str) -> Hashmask {
    text.parse().unwrap()
}

/// A map that assigns log indices by itself and is checked after every change.
struct Log {
    map: Map,
    index: LogIndex,
}

impl Log {
    fn new() -> Log {
        let map = Map::found(member(A), Mask::M000F, ClusterSettings::default());
        Log { map, index: LogIndex::FIRST }
    }

    fn of_three() -> Log {
        let mut log = Log::new();
        log.commit(&Change::Join(member(B)));
        log.commit(&Change::Join(member(C)));
        log
    }

    fn commit(&mut self, change: &Change) -> ChangeOutcome {
        self.index.0 += 1;
        let outcome = self.map.apply(self.index, change);
        self.map.check_invariants();
        outcome
    }

    fn epoch_of(&self, text: &str) -> Epoch {
        self.map.bucket(bucket(text)).unwrap().epoch
    }

    fn add(&mut self, text: &str, node: NodeId) -> ChangeOutcome {
        let expected = self.epoch_of(text);
        self.commit(&Change::AddBackup { bucket: bucket(text), node, expected })
    }

    fn promote(&mut self, text: &str, node: NodeId) -> ChangeOutcome {
        let expected = self.epoch_of(text);
        self.commit(&Change::Promote { bucket: bucket(text), node, expected })
    }

    fn drop_backup(&mut self, text: &str, node: NodeId) -> ChangeOutcome {
        let (expected, because) = (self.epoch_of(text), DropReason::Balance);
        self.commit(&Change::DropBackup { bucket: bucket(text), node, expected, because })
    }

    fn holders(&self, text: &str) -> Vec<u64> {
        self.map.bucket(bucket(text)).unwrap().holders.iter().map(|node| node.0).collect()
    }

    fn load(&self, node: NodeId) -> (u32, u32) {
        let load = self.map.load(node);
        (load.primaries, load.backups)
    }
}

#[test]
fn the_first_node_owns_everything() {
    let log = Log::new();
    log.map.check_invariants();
    assert_eq!(log.map.bucket_count(), 16);
    assert_eq!(log.load(A), (16, 0));
    assert_eq!(log.map.copies_wanted(), 1);
}

#[test]
fn a_primary_is_given_away_in_three_changes() {
    let mut log = Log::of_three();
    log.add("000F/0003", C);
    assert_eq!(log.add("000F/0003", B), ChangeOutcome::Applied);
    assert_eq!(log.holders("000F/0003"), [1, 3, 2]);
    assert_eq!(log.promote("000F/0003", B), ChangeOutcome::Applied);
    assert_eq!(log.holders("000F/0003"), [2, 3, 1]);
    assert_eq!(log.drop_backup("000F/0003", A), ChangeOutcome::Applied);
    assert_eq!(log.holders("000F/0003"), [2, 3]);
    assert_eq!((log.load(A), log.load(B), log.load(C)), ((15, 0), (1, 0), (0, 1)));
}

#[test]
fn only_a_new_primary_begins_a_reign() {
    let mut log = Log::of_three();
    let reign = |log: &Log| log.map.bucket(bucket("000F/0003")).unwrap().reign;
    log.add("000F/0003", B);
    assert_eq!(reign(&log), LogIndex::FIRST);
    log.promote("000F/0003", B);
    assert_eq!(reign(&log), log.index);
    let before = reign(&log);
    log.drop_backup("000F/0003", A);
    assert_eq!(reign(&log), before);
}

#[test]
fn a_stale_change_does_nothing_at_all() {
    let mut log = Log::of_three();
    let expected = log.epoch_of("000F/0000");
    log.add("000F/0000", B);
    let before = log.map.clone();
    let late = Change::AddBackup { bucket: bucket("000F/0000"), node: C, expected };
    assert_eq!(log.commit(&late), ChangeOutcome::Stale);
    assert_eq!(log.map, before);
}

#[test]
fn a_matching_change_raises_the_epoch_even_if_it_changes_nothing_else() {
    let mut log = Log::of_three();
    let before = log.epoch_of("000F/0000");
    assert_eq!(log.drop_backup("000F/0000", C), ChangeOutcome::Void);
    assert_eq!(log.epoch_of("000F/0000"), before.next());
    assert_eq!(log.promote("000F/0000", C), ChangeOutcome::Void);
    assert_eq!(log.add("000F/0000", A), ChangeOutcome::Void);
    assert_eq!(log.holders("000F/0000"), [1]);
}

#[test]
fn a_primary_cannot_be_dropped() {
    let mut log = Log::of_three();
    log.add("000F/0000", B);
    assert_eq!(log.drop_backup("000F/0000", A), ChangeOutcome::Void);
    assert_eq!(log.holders("000F/0000"), [1, 2]);
}

#[test]
fn the_dead_are_replaced_by_their_first_surviving_backup() {
    let mut log = Log::of_three();
    log.add("000F/0000", B);
    log.add("000F/0000", C);
    log.add("000F/0001", C);
    log.commit(&Change::Dead(BTreeSet::from([A, B])));
    assert_eq!(log.holders("000F/0000"), [3]);
    assert_eq!(log.holders("000F/0001"), [3]);
    assert_eq!(log.map.bucket(bucket("000F/0000")).unwrap().reign, log.index);
    assert_eq!(log.map.members().len(), 1);
    let lost: Vec<Hashmask> = log.map.lost().map(|(hashmask, _)| hashmask).collect();
    assert_eq!(lost.len(), 14);
    assert!(log.map.lost().all(|(_, holders)| holders == [A]));
}

#[test]
fn a_lost_bucket_can_be_recreated_and_only_a_lost_one() {
    let mut log = Log::of_three();
    log.add("000F/0000", B);
    log.commit(&Change::Dead(BTreeSet::from([A])));
    let recreate = |log: &mut Log, text: &str| {
        let expected = log.epoch_of(text);
        let (bucket, from) = (bucket(text), RecreateSource::Empty);
        log.commit(&Change::Recreate { bucket, node: C, from, expected })
    };
    assert_eq!(recreate(&mut log, "000F/0001"), ChangeOutcome::Applied);
    assert_eq!(recreate(&mut log, "000F/0000"), ChangeOutcome::Void);
    assert_eq!((log.holders("000F/0000"), log.holders("000F/0001")), (vec![2], vec![3]));
    assert_eq!(log.map.lost().count(), 14);
}

#[test]
fn a_bucket_that_began_again_is_awaited_from_its_last_holders_until_each_has_settled() {
    let mut log = Log::of_three();
    log.add("000F/0001", B);
    log.commit(&Change::Dead(BTreeSet::from([A, B])));
    let mut recreate = |text: &str, from: RecreateSource| {
        let (bucket, expected) = (bucket(text), log.epoch_of(text));
        log.commit(&Change::Recreate { bucket, node: C, from, expected })
    };
    assert_eq!(recreate("000F/0001", RecreateSource::Empty), ChangeOutcome::Applied);
    assert_eq!(recreate("000F/0002", RecreateSource::OwnData), ChangeOutcome::Applied);
    assert_eq!(recreate("000F/0003", RecreateSource::Snapshot), ChangeOutcome::Applied);
    let awaited = |log: &Log| -> Vec<(String, Vec<NodeId>)> {
        log.map.begun_anew().map(|(it, last)| (it.to_string(), last.to_vec())).collect()
    };
    let (first, other) = ("000F/0001".to_owned(), "000F/0003".to_owned());
    assert_eq!(awaited(&log), [(first, vec![A, B]), (other.clone(), vec![A])]);
    let settled = |node: NodeId, text: &str| {
        let buckets = vec![bucket(text)];
        Change::KeptCopiesHandedOver { node, buckets }
    };
    let expected = log.epoch_of("000F/0001");
    log.commit(&Change::Split(vec![(bucket("000F/0001"), expected)]));
    assert_eq!(log.map.begun_anew().count(), 17, "its parts are awaited one by one");
    for part in bucket("000F/0001").split() {
        let text = part.to_string();
        assert_eq!(log.commit(&settled(A, &text)), ChangeOutcome::Applied);
        assert_eq!(log.commit(&settled(A, &text)), ChangeOutcome::Void, "once is enough");
        assert!(!log.map.may_bring(A, part) && log.map.may_bring(B, part));
        assert_eq!(log.commit(&settled(B, &text)), ChangeOutcome::Applied);
    }
    assert_eq!(awaited(&log), [(other, vec![A])]);
}

#[test]
fn a_new_boot_of_a_known_node_holds_nothing() {
    let mut log = Log::of_three();
    log.add("000F/0000", B);
    log.commit(&Change::Join(Member { boot: Boot(2), ..member(A) }));
    assert_eq!(log.holders("000F/0000"), [2]);
    assert_eq!(log.load(A), (0, 0));
    assert_eq!(log.map.lost().count(), 15);
    assert_eq!(log.map.members().len(), 3);
}

#[test]
fn a_join_with_the_same_boot_only_changes_what_is_known_of_the_node() {
    let mut log = Log::of_three();
    log.commit(&Change::Join(Member { weight: 0, ..member(A) }));
    assert_eq!(log.load(A), (16, 0));
    assert_eq!(log.map.member(A).unwrap().weight, 0);
    assert_eq!(log.map.copies_wanted(), 2);
}

#[test]
fn a_process_that_comes_in_again_is_a_member_since_then() {
    let mut log = Log::of_three();
    let first = log.map.member_since(member(B).peer());
    log.commit(&Change::Join(Member { weight: 0, ..member(B) }));
    assert_eq!(log.map.member_since(member(B).peer()), first, "it has never been away");
    log.commit(&Change::Dead(BTreeSet::from([B])));
    assert_eq!(log.map.member_since(member(B).peer()), None);
    log.commit(&Change::Join(member(B)));
    assert!(log.map.member_since(member(B).peer()) > first);
}

fn leave(node: NodeId, way: LeaveWay) -> Change {
    Change::Leave { node, boot: member(node).boot, way }
}

#[test]
fn a_node_leaves_safely_only_when_the_others_have_all_copies() {
    let mut log = Log::of_three();
    for hashmask in Hashmask::all(Mask::M000F) {
        log.add(&hashmask.to_string(), B);
        log.promote(&hashmask.to_string(), B);
    }
    log.commit(&Change::Join(Member { weight: 0, ..member(A) }));
    let needed =
        |hashmask: &str| ChangeOutcome::Refused(ChangeRefusal::StillNeeded(bucket(hashmask)));
    assert_eq!(log.commit(&leave(A, LeaveWay::Safe)), needed("000F/0000"));
    let absence = Duration::from_secs(60);
    let away = Change::Away { node: A, boot: member(A).boot, absence, way: LeaveWay::Safe };
    assert_eq!(log.commit(&away), needed("000F/0000"));
    for hashmask in Hashmask::all(Mask::M000F).take(15) {
        log.add(&hashmask.to_string(), C);
    }
    assert_eq!(log.commit(&leave(A, LeaveWay::Safe)), needed("000F/000F"));
    log.add("000F/000F", C);
    // A copy on a node that leaves as well does not count, unless nobody else could have it.
    log.commit(&Change::Join(member(NodeId(4))));
    log.commit(&Change::Join(Member { weight: 0, ..member(C) }));
    assert_eq!(log.commit(&leave(A, LeaveWay::Safe)), needed("000F/0000"));
    log.commit(&Change::Dead(BTreeSet::from([NodeId(4)])));
    assert_eq!(log.commit(&leave(A, LeaveWay::Safe)), ChangeOutcome::Applied, "B alone stays");
    assert_eq!((log.load(B), log.load(C)), ((16, 0), (0, 16)));
}

#[test]
fn with_fewer_backups_wanted_fewer_copies_are_needed_to_leave() {
    let mut log = Log::of_three();
    for hashmask in Hashmask::all(Mask::M000F) {
        log.add(&hashmask.to_string(), B);
        log.promote(&hashmask.to_string(), B);
    }
    log.commit(&Change::Set(Setting::Backups(0)));
    assert_eq!(log.commit(&leave(A, LeaveWay::Safe)), ChangeOutcome::Applied);
}

#[test]
fn only_a_node_that_serves_nothing_may_leave() {
    let mut log = Log::of_three();
    for hashmask in Hashmask::all(Mask::M000F) {
        log.add(&hashmask.to_string(), B);
    }
    for hashmask in Hashmask::all(Mask::M000F).skip(1) {
        log.promote(&hashmask.to_string(), B);
    }
    let refusal = ChangeRefusal::StillServes(bucket("000F/0000"));
    assert_eq!(log.commit(&leave(A, LeaveWay::Quick)), ChangeOutcome::Refused(refusal));
    log.promote("000F/0000", B);
    assert_eq!(log.commit(&leave(A, LeaveWay::Quick)), ChangeOutcome::Applied);
    assert_eq!((log.load(B), log.load(C)), ((16, 0), (0, 0)));
    assert_eq!(
        log.commit(&leave(A, LeaveWay::Quick)),
        ChangeOutcome::Refused(ChangeRefusal::UnknownNode(A))
    );
}

#[test]
fn a_leave_of_an_earlier_process_does_not_remove_its_successor() {
    let mut log = Log::of_three();
    for hashmask in Hashmask::all(Mask::M000F) {
        log.add(&hashmask.to_string(), B);
        log.promote(&hashmask.to_string(), B);
    }
    log.commit(&Change::Join(Member { boot: Boot(2), ..member(A) }));
    let refused = ChangeOutcome::Refused(ChangeRefusal::UnknownNode(A));
    assert_eq!(log.commit(&leave(A, LeaveWay::Quick)), refused);
    let (boot, absence) = (member(A).boot, Duration::from_secs(60));
    let away = Change::Away { node: A, boot, absence, way: LeaveWay::Quick };
    assert_eq!(log.commit(&away), refused);
    assert!(log.map.member(A).is_some() && log.map.away().count() == 0);
}

/// Returns a log in which A held and handed on everything and is away for a minute; B and C are
/// members.
fn with_a_away() -> Log {
    let mut log = Log::of_three();
    for hashmask in Hashmask::all(Mask::M000F) {
        log.add(&hashmask.to_string(), B);
        log.promote(&hashmask.to_string(), B);
    }
    let (boot, absence) = (member(A).boot, Duration::from_secs(60));
    let away = Change::Away { node: A, boot, absence, way: LeaveWay::Quick };
    assert_eq!(log.commit(&away), ChangeOutcome::Applied);
    log
}

#[test]
fn the_places_of_a_node_that_is_away_are_kept_until_it_holds_them_again() {
    let mut log = with_a_away();
    assert!(log.map.member(A).is_none());
    assert!(log.map.keeps_place(A, bucket("000F/0000")));
    log.commit(&Change::Join(Member { boot: Boot(2), ..member(A) }));
    log.add("000F/0000", A);
    assert!(!log.map.keeps_place(A, bucket("000F/0000")));
    assert!(log.map.keeps_place(A, bucket("000F/0001")));
    log.commit(&Change::Forget(A));
    assert_eq!(log.map.away().count(), 0);
    assert_eq!(log.commit(&Change::Forget(A)), ChangeOutcome::Void);
}

#[test]
fn places_are_split_with_their_buckets_and_written_down() {
    let mut log = with_a_away();
    let parent = bucket("000F/0004");
    let epoch = log.map.bucket(parent).unwrap().epoch;
    log.commit(&Change::Split(vec![(parent, epoch)]));
    assert!(parent.split().all(|child| log.map.keeps_place(A, child)));
    log.map.check_invariants();
    let bytes = postcard::to_allocvec(&log.map).unwrap();
    assert_eq!(postcard::from_bytes::<Map>(&bytes).unwrap(), log.map);
}

#[test]
fn a_node_that_dies_after_it_came_back_has_no_places_any_more() {
    let mut log = with_a_away();
    log.commit(&Change::Join(Member { boot: Boot(2), ..member(A) }));
    log.commit(&Change::Join(Member { boot: Boot(3), ..member(A) }));
    assert_eq!(log.map.away().count(), 1, "what it has kept is on its disk");
    log.commit(&Change::Dead(BTreeSet::from([A])));
    assert_eq!(log.map.away().count(), 0);
}

#[test]
fn after_a_split_every_slot_is_where_it_was() {
    let mut log = Log::of_three();
    log.add("000F/0004", B);
    log.promote("000F/0004", B);
    let before = log.map.clone();
    let everything = before.buckets().map(|bucket| (bucket.hashmask, bucket.epoch)).collect();
    assert_eq!(log.commit(&Change::Split(everything)), ChangeOutcome::Applied);
    assert_eq!(log.map.bucket_count(), 256);
    for slot in Slot::all() {
        let (old, new) = (before.bucket_of(slot), log.map.bucket_of(slot));
        assert_eq!((&old.holders, old.reign), (&new.holders, new.reign));
        assert!(new.epoch > old.epoch, "a fill or a promotion of the parent is void");
    }
    assert_eq!(log.holders("00FF/00F4"), [2, 1]);
}

#[test]
fn one_bucket_alone_can_be_split() {
    let mut log = Log::of_three();
    log.add("000F/0004", B);
    let epoch = log.epoch_of("000F/0004");
    log.commit(&Change::Split(vec![(bucket("000F/0004"), epoch)]));
    assert_eq!(log.map.bucket_count(), 31);
    assert!(log.map.bucket(bucket("000F/0004")).is_none());
    assert_eq!(log.add("00FF/0014", C), ChangeOutcome::Applied);
    assert_eq!(log.holders("00FF/0014"), [1, 2, 3]);
    assert_eq!(log.holders("00FF/0024"), [1, 2]);
    assert_eq!(log.holders("000F/0005"), [1]);
    assert_eq!(log.map.load(B).last_received, None, "a split forgets the mark");
    // The parent no longer exists: a proposal for it is stale.
    let late = Change::AddBackup { bucket: bucket("000F/0004"), node: C, expected: epoch };
    assert_eq!(log.commit(&late), ChangeOutcome::Stale);
}

#[test]
fn a_slot_cannot_be_split() {
    let mut log = Log::new();
    for _ in 0..3 {
        let all = log.map.buckets().map(|bucket| (bucket.hashmask, bucket.epoch)).collect();
        assert_eq!(log.commit(&Change::Split(all)), ChangeOutcome::Applied);
    }
    assert_eq!(log.map.bucket_count(), 16_384);
    let all = log.map.buckets().map(|bucket| (bucket.hashmask, bucket.epoch)).collect();
    assert_eq!(log.commit(&Change::Split(all)), ChangeOutcome::Stale);
}

#[test]
fn steps_of_balancing_do_not_move_the_basis_and_all_else_does() {
    let mut log = Log::of_three();
    let basis = log.map.basis();
    log.add("000F/0000", B);
    log.promote("000F/0000", B);
    log.drop_backup("000F/0000", A);
    assert_eq!(log.map.basis(), basis);
    log.add("000F/0001", B);
    let (bucket, expected) = (bucket("000F/0001"), log.epoch_of("000F/0001"));
    let because = DropReason::OutOfSync;
    log.commit(&Change::DropBackup { bucket, node: B, expected, because });
    assert_eq!(log.map.basis(), log.map.epoch());
    log.commit(&Change::Set(Setting::Backups(2)));
    assert_eq!(log.map.basis(), log.map.epoch());
    assert_eq!(log.map.copies_wanted(), 3);
}

#[test]
fn a_generation_that_has_yielded_changes_no_more() {
    let mut log = Log::of_three();
    let greater = Generation { counter: 2, founder: C };
    assert_eq!(log.commit(&Change::Yield(greater)), ChangeOutcome::Applied);
    let before = log.map.clone();
    assert_eq!(
        log.commit(&leave(B, LeaveWay::Quick)),
        ChangeOutcome::Refused(ChangeRefusal::Yielded(greater))
    );
    assert_eq!(log.map, before);
}

#[test]
fn a_takeover_begins_a_generation_and_the_first_join_makes_it_greater() {
    let mut log = Log::of_three();
    log.add("000F/0000", B);
    let first = log.map.generation();
    log.map.take_over(LogIndex(99), B);
    log.map.check_invariants();
    let alone = log.map.generation();
    assert_eq!((alone.counter, alone.founder), (2, B));
    assert_eq!((log.holders("000F/0000"), log.map.lost().count()), (vec![2], 15));
    assert!(!alone.is_one_with(first));
    log.commit(&Change::Join(Member { boot: Boot(7), ..member(B) }));
    assert_eq!(log.map.generation(), alone, "nobody has come");
    log.commit(&Change::Join(member(C)));
    let grown = log.map.generation();
    assert!(grown > Generation { founder: NodeId(u64::MAX), ..alone });
    assert!(grown.is_one_with(alone));
    log.commit(&Change::Join(member(A)));
    assert_eq!(log.map.generation(), grown);
}

#[test]
fn the_bucket_received_last_is_marked_on_its_receiver() {
    let mut log = Log::of_three();
    log.add("000F/0000", B);
    log.add("000F/0008", B);
    log.promote("000F/0000", B);
    assert_eq!(log.map.load(B).last_received, Some(bucket("000F/0008")));
    assert_eq!(log.map.load(A).last_received, None);
}

#[test]
fn the_changes_of_a_bucket_end_with_the_first_that_comes_to_nothing() {
    let mut log = Log::of_three();
    log.add("000F/0000", B);
    let (bucket, expected) = (bucket("000F/0000"), log.epoch_of("000F/0000"));
    let because = DropReason::Balance;
    let give = [
        Change::AddBackup { bucket, node: C, expected },
        Change::DropBackup { bucket, node: B, expected: expected.next(), because },
    ];
    // C dies before it is added: B must keep its copy.
    log.commit(&Change::Dead(BTreeSet::from([C])));
    let outcomes = [ChangeOutcome::Void, ChangeOutcome::Stale];
    assert_eq!(log.map.apply_entry(LogIndex(99), None, &give), outcomes);
    assert_eq!(log.holders("000F/0000"), [1, 2]);
    // If another change came first, the second one would otherwise find the epoch it expects.
    assert_eq!(log.map.apply_entry(LogIndex(100), None, &give), [ChangeOutcome::Stale; 2]);
    assert_eq!(log.holders("000F/0000"), [1, 2]);
}

#[test]
fn the_changes_of_other_buckets_in_an_entry_take_effect() {
    let mut log = Log::of_three();
    let names = ["000F/0000", "000F/0008", "000F/0004"];
    for name in names {
        log.add(name, B);
    }
    let because = DropReason::Balance;
    let give: Vec<Change> = names
        .iter()
        .flat_map(|name| {
            let (bucket, expected) = (bucket(name), log.epoch_of(name));
            [
                Change::AddBackup { bucket, node: C, expected },
                Change::DropBackup { bucket, node: B, expected: expected.next(), because },
            ]
        })
        .collect();
    // The second bucket has changed since.
    log.promote("000F/0008", B);
    let (done, late) = (ChangeOutcome::Applied, ChangeOutcome::Stale);
    let outcomes = log.map.apply_entry(LogIndex(99), None, &give);
    assert_eq!(outcomes, [done, done, late, late, done, done]);
    assert_eq!(names.map(|name| log.holders(name)), [vec![1, 3], vec![2, 1], vec![1, 3]]);
    log.map.check_invariants();
}

#[test]
fn a_copy_too_many_is_dropped_only_if_it_still_is_one() {
    let mut log = Log::of_three();
    log.add("000F/0000", B);
    log.add("000F/0000", C);
    let drop = |log: &mut Log, node| {
        let (bucket, expected) = (bucket("000F/0000"), log.epoch_of("000F/0000"));
        log.commit(&Change::DropBackup { bucket, node, expected, because: DropReason::Balance })
    };
    assert_eq!(drop(&mut log, B), ChangeOutcome::Applied);
    assert_eq!(drop(&mut log, C), ChangeOutcome::Void);
    assert_eq!(log.holders("000F/0000"), [1, 3]);
}

#[test]
fn a_step_of_an_older_plan_makes_everybody_plan_anew() {
    let mut log = Log::of_three();
    let basis = log.map.basis();
    let add = |log: &Log, node| {
        let (bucket, expected) = (bucket("000F/0000"), log.epoch_of("000F/0000"));
        [Change::AddBackup { bucket, node, expected }]
    };
    let in_time = add(&log, B);
    log.map.apply_entry(LogIndex(50), Some(basis), &in_time);
    assert_eq!(log.map.basis(), basis);
    let late = add(&log, C);
    log.map.apply_entry(LogIndex(51), Some(Epoch(1)), &late);
    assert_eq!(log.map.basis(), log.map.epoch());
}

#[test]
fn a_write_of_documents_that_is_in_the_log_twice_takes_effect_once() {
    let mut log = Log::new();
    let expected = log.map.documents().version();
    let one = Change::Write { documents: vec![DocumentWrite::put("a", *b"1")], expected };
    assert_eq!(log.commit(&one), ChangeOutcome::Applied);
    let expected = log.map.documents().version();
    let two = Change::Write { documents: vec![DocumentWrite::put("a", *b"2")], expected };
    assert_eq!(log.commit(&two), ChangeOutcome::Applied);
    let (epoch, basis) = (log.map.epoch(), log.map.basis());
    assert_eq!(log.commit(&one), ChangeOutcome::Stale);
    assert_eq!(&*log.map.documents().get("a").unwrap().content, b"2");
    assert_eq!((log.map.epoch(), log.map.basis()), (epoch, basis));
}

#[test]
fn documents_do_not_disturb_the_plan() {
    let mut log = Log::of_three();
    let (basis, expected) = (log.map.basis(), log.map.documents().version());
    log.commit(&Change::Write { documents: vec![DocumentWrite::put("a", *b"1")], expected });
    assert_eq!(log.map.basis(), basis);
}
