//! One node of three, with another one that lies to it: for fuzzers that send it any bytes
//! (fuzz/src/peers.rs). It must survive any input, and only it may change the data it serves.
//!
//! Node 1 is the victim, node 2 the liar; each of the three is primary of a third of the buckets.

use std::sync::Arc;
use std::time::Duration;

use cluster::Moment;
use cluster::consensus::{Begin, Configuration, LogPlace, Persist, Saved, SnapshotData, Term};
use cluster::control::{Action, Control, Input, Message, Start};
use cluster::data::Plane;
use cluster::map::{
    Boot, Change, ChangeOutcome, ClusterId, ClusterSettings, DropReason, LogIndex, Map, Member,
    NodeId, Peer,
};
use cluster::replication::Role;
use cluster::serving::ServingPlane;
use placement::{Mask, Slot};
use sim_engine::StreamId;
use store::{Digest, Effect, NewValue, Touch, Version, digest_of};

use super::clock::Clock;
use super::node::Node;

const MEMBERS: u64 = 3;
const VICTIM: NodeId = NodeId(1);
const LIAR: NodeId = NodeId(2);
const STREAM: StreamId = StreamId(1);
/// Time between two messages.
const STEP: Duration = Duration::from_millis(50);
/// Number of keys to store, as far as the victim serves their slots.
const ITEMS: u16 = 64;

pub struct Victim {
    node: Node,
    now: Moment,
    actions: Vec<Action>,
}

impl Default for Victim {
    fn default() -> Victim {
        let map = map_of_three();
        let me = member(VICTIM.0);
        let start = Start {
            me: me.clone(),
            cluster: ClusterId(77),
            seed: 1,
            begin: Begin::Resume(saved(&map)),
            welcome: None,
        };
        let now = Moment::START + Duration::from_secs(1);
        let clock = Clock { rate: 1000, wall_off: 0 };
        let mut node = Node::new(&me, clock, now, Control::new(now, start), Saved::default());
        node.follow(&Arc::new(map));
        node.accept(member(LIAR.0).peer(), STREAM);
        let mut victim = Victim { node, now, actions: Vec::new() };
        victim.fill();
        victim
    }
}

impl Victim {
    /// Delivers bytes on the liar's data link. Returns whether the link is still open; invalid bytes close
    /// it, and nothing more is read from it.
    pub fn frames(&mut self, bytes: &[u8]) -> bool {
        if self.node.broken.is_none() {
            self.node.on_frames(STREAM, liar(), bytes);
        }
        self.node.broken.is_none()
    }

    /// Delivers a message on the liar's control link, and lets a moment pass. Maps that result must be sound.
    pub fn message(&mut self, message: Message) {
        self.now += STEP;
        let input = Input::Message { from: liar(), message };
        for input in [input, Input::Tick] {
            self.node.control.handle(self.now, input, &mut self.actions);
        }
        for action in self.actions.drain(..) {
            if let Action::MapChanged(changed) = action {
                changed.map.check_invariants();
            }
        }
    }

    /// Returns the fingerprint of all data that the victim serves.
    pub fn served(&self) -> Digest {
        self.sum(|role| role == Role::Serving)
    }

    /// Returns the fingerprint of all data that it holds.
    pub fn held(&self) -> Digest {
        self.sum(|_| true)
    }

    fn sum(&self, counts: impl Fn(Role) -> bool) -> Digest {
        let mut sum = Digest::default();
        for slot in Slot::all() {
            self.node.plane.with_slot(slot, |state| {
                if counts(state.replica().role()) {
                    sum.add(digest_of(state.table()));
                }
            });
        }
        sum
    }

    /// Stores items to lose.
    fn fill(&mut self) {
        let plane = &self.node.plane;
        let keys = (0_u32..).map(|number| format!("k{number}"));
        for key in keys.take(usize::from(ITEMS)) {
            let key = plane.seed().key(key.as_bytes());
            let value = NewValue::Raw(b"mine");
            let put = Effect::Put { key, value, expires_at: None };
            plane.with_slot(Slot::of(key.bytes()), |state| {
                if state.replica().is_serving() {
                    let _ = state.parts_for_tests().0.apply(
                        &put,
                        Version(1),
                        Touch::Nothing,
                        plane.seed(),
                    );
                }
            });
        }
    }
}

fn liar() -> Peer {
    member(LIAR.0).peer()
}

fn member(id: u64) -> Member {
    super::world::member(id, Boot(id * 10))
}

/// Returns a map in which bucket b has node b mod 3 + 1 as primary and the next as backup.
fn map_of_three() -> Map {
    let mut map = Map::found(member(1), Mask::M000F, ClusterSettings::default());
    let mut index = 1;
    let mut apply = |map: &mut Map, change: Change| {
        index += 1;
        assert_eq!(map.apply(LogIndex(index), &change), ChangeOutcome::Applied, "{change:?}");
    };
    (2..=MEMBERS).for_each(|id| apply(&mut map, Change::Join(member(id))));
    for place in 0..map.bucket_count() {
        let bucket = map.bucket_at(place).hashmask;
        let expected = |map: &Map| map.bucket_at(place).epoch;
        let primary = NodeId(place as u64 % MEMBERS + 1);
        let backup = NodeId((place as u64 + 1) % MEMBERS + 1);
        for node in [primary, backup].into_iter().filter(|node| *node != VICTIM) {
            let expected = expected(&map);
            apply(&mut map, Change::AddBackup { bucket, node, expected });
        }
        if primary != VICTIM {
            let expected = expected(&map);
            apply(&mut map, Change::Promote { bucket, node: primary, expected });
        }
        if primary != VICTIM && backup != VICTIM {
            let (expected, because) = (expected(&map), DropReason::Balance);
            apply(&mut map, Change::DropBackup { bucket, node: VICTIM, expected, because });
        }
    }
    map.check_invariants();
    map
}

/// Returns the saved state of a node that was in this map.
fn saved(map: &Map) -> Saved {
    let voters = map.members().iter().map(|member| member.id).collect();
    let configuration = Configuration { voters, ..Configuration::default() };
    let at = LogPlace { index: LogIndex(100), term: Term(1) };
    let snapshot = SnapshotData { at, configuration, map: map.clone() };
    let mut saved = Saved::default();
    saved.write(Persist { snapshot: Some(snapshot), ..Persist::default() });
    saved
}

#[cfg(test)]
mod tests {
    use cluster::balance::MoveId;
    use cluster::replication::{FillSize, Frame, Position};
    use placement::Hashmask;
    use store::{Seed, SlotTable, encode_item};

    use super::*;

    #[test]
    fn the_victim_serves_something_and_stands_among_three() {
        let victim = Victim::default();
        assert_ne!(victim.served(), Digest::default());
        let map = victim.node.map().expect("it has followed one");
        assert_eq!(map.members().len(), 3);
        assert_eq!(map.bucket_at(0).holders[..], [NodeId(1), NodeId(2)]);
        assert_eq!(map.bucket_at(1).holders[..], [NodeId(2), NodeId(3)]);
        assert_eq!(map.bucket_at(2).holders[..], [NodeId(3), NodeId(1)]);
    }

    /// Returns all frames of a fill of one bucket with one item.
    fn fill_of(bucket: Hashmask, number: u64) -> Vec<u8> {
        let fill = MoveId { giver: LIAR, number };
        let slot = Slot::new(bucket.slots().start).unwrap();
        let reign = map_of_three().bucket(bucket).unwrap().reign;
        let epoch = map_of_three().bucket(bucket).unwrap().epoch;
        let (mut table, seed) = (SlotTable::default(), Seed::new(1));
        let put =
            Effect::Put { key: seed.key(b"theirs"), value: NewValue::Raw(b"x"), expires_at: None };
        let _ = table.apply(&put, Version(5), Touch::Nothing, &seed);
        let mut items = Vec::new();
        table.for_each(|found| encode_item(&found, &mut items));
        let position = Position { reign, version: Version(5) };
        let mut bytes = Vec::new();
        for frame in [
            Frame::FillStart { fill, bucket, reign, size: FillSize::default() },
            Frame::FillSlot { fill, slot, position },
            Frame::FillItems { fill, slot, items: &items },
            Frame::FillSlotEnd { fill, slot },
            Frame::FillEnd { fill, epoch },
        ] {
            frame.write(&mut bytes);
        }
        bytes
    }

    #[test]
    fn what_a_fill_has_brought_is_kept_until_the_map_says_what_it_is() {
        let mut victim = Victim::default();
        let map = map_of_three();
        let buckets = map.buckets().filter(|bucket| bucket.holders[..] == [LIAR, NodeId(3)]);
        let buckets: Vec<Hashmask> = buckets.map(|bucket| bucket.hashmask).take(2).collect();
        let mine = victim.held();
        assert!(victim.frames(&fill_of(buckets[0], 1)));
        let with_one = victim.held();
        assert_ne!(with_one, mine);
        // The sender already knows the outcome from the map, and goes on.
        assert!(victim.frames(&fill_of(buckets[1], 2)));
        let first = Slot::new(buckets[0].slots().start).unwrap();
        let len = victim.node.plane.with_slot(first, |state| state.table().len());
        assert_eq!(len, 1, "an acknowledged copy may be the only one");
    }

    #[test]
    fn a_frame_that_is_none_closes_the_link() {
        let mut victim = Victim::default();
        let mut bytes = Vec::new();
        Frame::Pubsub { bytes: b"hello" }.write(&mut bytes);
        assert!(victim.frames(&bytes));
        assert!(!victim.frames(&[1, 0, 0, 0, 99]));
    }
}
