//! A client that only follows steps has the same map as the nodes.

use placement::{Mask, SplitMix64};

use super::*;
use crate::map::{
    Boot, Change, ClusterSettings, DropReason, Endpoints, LeaveWay, LogIndex, Setting, Zone,
};

fn member(id: u64, name: &str) -> Member {
    Member {
        id: NodeId(id),
        boot: Boot(1),
        name: name.to_owned(),
        weight: 1,
        zone: Zone::default(),
        at: Endpoints { host: "h".to_owned(), client: 7_000, ..Endpoints::default() },
    }
}

fn founded() -> Map {
    Map::found(member(1, "n1"), Mask::M000F, ClusterSettings::default())
}

fn apply(map: &mut Map, change: &Change) -> Arc<Map> {
    map.apply(LogIndex(map.epoch().0 + 1), change);
    Arc::new(map.clone())
}

/// A client's map: what it was told, and nothing else.
#[derive(Clone, PartialEq, Debug, Default)]
struct Client {
    epoch: u64,
    members: BTreeMap<String, (String, u16)>,
    /// For every fourth slot, the size of the smallest bucket here: hashmask, epoch and names of the holders.
    slots: BTreeMap<u16, (Hashmask, Epoch, Vec<String>)>,
}

impl Client {
    fn of(map: &Arc<Map>) -> Client {
        let mut client = Client::default();
        client.take(&MapJournal::new(Arc::clone(map)).since(Epoch(0), None).unwrap());
        client
    }

    fn take(&mut self, step: &MapStep) {
        assert!(step.after.0 <= self.epoch, "{:?} comes after a gap: {}", step.after, self.epoch);
        for name in &step.gone {
            self.members.remove(name);
        }
        for node in &step.members {
            let Member { name, at, .. } = step.map.member(*node).unwrap();
            self.members.insert(name.clone(), (at.host.clone(), at.client));
        }
        for bucket in &step.buckets {
            let bucket = step.map.bucket(*bucket).unwrap();
            let name = |node: &NodeId| step.map.member(*node).unwrap().name.clone();
            let holders: Vec<String> = bucket.holders.iter().map(name).collect();
            for slot in bucket.hashmask.slots().step_by(4) {
                self.slots.insert(slot, (bucket.hashmask, bucket.epoch, holders.clone()));
            }
        }
        self.epoch = step.map.epoch().0;
    }
}

#[test]
fn a_step_has_just_what_changed() {
    let mut map = founded();
    let mut journal = MapJournal::new(Arc::new(map.clone()));
    let joined = journal.follow(&apply(&mut map, &Change::Join(member(2, "n2")))).unwrap();
    assert_eq!((joined.members, joined.buckets.len()), (vec![NodeId(2)], 0));
    let bucket: Hashmask = "000F/0003".parse().unwrap();
    let add = Change::AddBackup { bucket, node: NodeId(2), expected: Epoch(1) };
    let added = journal.follow(&apply(&mut map, &add)).unwrap();
    assert_eq!((added.after, added.buckets), (Epoch(2), vec![bucket]));
    assert!(added.members.is_empty());
    let split = Change::Split(vec![(bucket, Epoch(2))]);
    let split = journal.follow(&apply(&mut map, &split)).unwrap();
    assert_eq!(split.buckets, bucket.split().collect::<Vec<_>>());
    let left = journal
        .follow(&apply(
            &mut map,
            &Change::Leave { node: NodeId(2), boot: Boot(1), way: LeaveWay::Quick },
        ))
        .unwrap();
    assert_eq!((left.gone, left.buckets.len()), (vec!["n2".to_owned()], 16));
}

#[test]
fn a_change_that_concerns_no_client_makes_no_step_and_no_gap() {
    let mut map = founded();
    let mut journal = MapJournal::new(Arc::new(map.clone()));
    let mut client = Client::of(journal.map());
    let set = Change::Set(Setting::Backups(2));
    assert!(journal.follow(&apply(&mut map, &set)).is_none());
    let step = journal.follow(&apply(&mut map, &Change::Join(member(2, "n2")))).unwrap();
    assert_eq!((step.after, step.map.epoch()), (Epoch(1), Epoch(3)));
    client.take(&step);
    assert_eq!(client, Client::of(&Arc::new(map)));
}

#[test]
fn a_member_with_another_name_is_named_anew_wherever_it_holds_something() {
    let mut map = founded();
    let mut journal = MapJournal::new(Arc::new(map.clone()));
    let mut client = Client::of(journal.map());
    let step = journal.follow(&apply(&mut map, &Change::Join(member(1, "other")))).unwrap();
    assert_eq!((step.gone.as_slice(), step.buckets.len()), (&["n1".to_owned()][..], 16));
    client.take(&step);
    assert_eq!(client, Client::of(&Arc::new(map.clone())));
    let mut moved = member(1, "other");
    moved.at.host = "elsewhere".to_owned();
    let step = journal.follow(&apply(&mut map, &Change::Join(moved))).unwrap();
    assert_eq!((step.members.as_slice(), step.buckets.len()), (&[NodeId(1)][..], 0));
}

#[test]
fn a_name_that_is_used_again_is_not_gone() {
    let mut map = founded();
    let mut journal = MapJournal::new(Arc::new(map.clone()));
    for change in [
        Change::Join(member(2, "n2")),
        Change::Dead(BTreeSet::from([NodeId(2)])),
        Change::Join(member(3, "n2")),
    ] {
        journal.follow(&apply(&mut map, &change));
    }
    let step = journal.since(Epoch(2), None).unwrap();
    assert_eq!((step.gone.len(), step.members), (0, vec![NodeId(3)]));
}

#[test]
fn an_epoch_that_is_too_old_or_not_reached_or_of_another_history_is_refused() {
    let mut map = founded();
    apply(&mut map, &Change::Join(member(2, "n2")));
    let mut journal = MapJournal::new(Arc::new(map.clone()));
    let too_old = StepError::TooOld { known_since: Epoch(2) };
    assert_eq!(journal.since(Epoch(1), None).unwrap_err(), too_old);
    assert_eq!(journal.since(Epoch(3), None).unwrap_err(), StepError::Ahead { epoch: Epoch(2) });
    let history = map.generation().history();
    assert!(journal.since(Epoch(2), Some(&history)).unwrap().buckets.is_empty());
    map.take_over(LogIndex(1), NodeId(1));
    journal.follow(&Arc::new(map.clone()));
    let other = StepError::OtherHistory { history: map.generation().history() };
    assert_eq!(journal.since(Epoch(2), Some(&history)).unwrap_err(), other);
    assert!(journal.since(Epoch(2), None).is_err(), "nor is it compared without its history");
    assert!(journal.since(Epoch(0), None).is_ok(), "the whole map can always be had");
}

#[test]
fn forgotten_departures_make_older_epochs_too_old() {
    let mut map = founded();
    let mut journal = MapJournal::new(Arc::new(map.clone()));
    for id in 2..=DEPARTURES_MAX as u64 + 2 {
        let name = format!("n{id}");
        journal.follow(&apply(&mut map, &Change::Join(member(id, &name))));
        journal.follow(&apply(&mut map, &Change::Dead(BTreeSet::from([NodeId(id)]))));
    }
    let known_since = Epoch(3);
    assert_eq!(journal.since(Epoch(2), None).unwrap_err(), StepError::TooOld { known_since });
    assert_eq!(journal.since(known_since, None).unwrap().gone.len(), DEPARTURES_MAX);
}

/// Draws a change that may be anything, possible or not.
fn draw(rng: &mut SplitMix64, map: &Map) -> Change {
    let place = usize::try_from(rng.draw() % map.bucket_count() as u64).unwrap();
    let Bucket { hashmask: bucket, epoch: expected, .. } = map.bucket_at(place).clone();
    let id = 1 + rng.draw() % 7;
    let node = NodeId(id);
    match rng.draw() % 16 {
        0 | 1 => Change::Join(member(id, &format!("n{}", rng.draw() % 2 * 10 + id))),
        2 => Change::Leave { node, boot: Boot(1), way: LeaveWay::Quick },
        3 if id > 1 => Change::Dead(BTreeSet::from([node])),
        4 if map.bucket_count() < 200 => Change::Split(vec![(bucket, expected)]),
        5 => Change::Set(Setting::Backups(1)),
        6..=8 => Change::Promote { bucket, node, expected },
        9 | 10 => Change::DropBackup { bucket, node, expected, because: DropReason::OutOfSync },
        _ => Change::AddBackup { bucket, node, expected },
    }
}

#[test]
fn clients_that_follow_steps_or_fill_gaps_have_the_nodes_map() {
    for seed in 0..20 {
        let mut rng = SplitMix64::new(seed);
        let mut map = founded();
        let mut journal = MapJournal::new(Arc::new(map.clone()));
        let (mut steady, mut absent) = (Client::of(journal.map()), Client::of(journal.map()));
        for _ in 0..300 {
            // Several changes may be one step.
            for _ in 0..=rng.draw() % 3 {
                let change = draw(&mut rng, &map);
                apply(&mut map, &change);
            }
            if let Some(step) = journal.follow(&Arc::new(map.clone())) {
                steady.take(&step);
            }
            if rng.draw().is_multiple_of(20) {
                absent.take(&journal.since(Epoch(absent.epoch), None).unwrap());
                steady.epoch = absent.epoch; // A change may have concerned no client.
                assert_eq!(absent, Client::of(&Arc::new(map.clone())), "seed {seed}");
                assert_eq!(steady, absent, "seed {seed}");
            }
        }
    }
}
