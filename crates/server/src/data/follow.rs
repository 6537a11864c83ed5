//! A new map: every slot's duty becomes what it says, bucket by bucket, under the slots' locks. Called
//! by the control thread, for one map after the other.

use core::sync::atomic::Ordering;
use std::sync::Arc;

use cluster::map::{Bucket, Epoch, Map, Peer};
use cluster::replication::{LinkId, Role};
use commands::Outcome;
use commands::cluster::View;
use placement::Slot;
use store::Version;

use super::intake::Surface;
use super::{Data, Order};
use crate::pubsub::introduce;
use crate::shared::Shared;
use crate::surroundings::surroundings;

/// Takes over a map.
pub(crate) fn follow(shared: &Shared, map: Arc<Map>) {
    let data = &shared.data;
    let others: Vec<Peer> = map.members().iter().map(cluster::map::Member::peer).collect();
    let others: Vec<Peer> = others.into_iter().filter(|peer| peer.id != data.me).collect();
    for link in data.links.follow(&others) {
        introduce(shared, &link);
    }
    shared.exchange.afar.keep(&others);
    let before = shared.map();
    let first = data.map_number() == 0;
    let mut outcome = Outcome::default();
    for bucket in map.buckets() {
        if first || before.bucket(bucket.hashmask) != Some(bucket) {
            data.follow_bucket(shared, bucket, &mut outcome);
        }
    }
    shared.cluster.store(Arc::new(View::new(Arc::clone(&map), data.me)));
    data.map_number.fetch_add(1, Ordering::AcqRel);
    follow_intakes(shared, &map, &mut outcome);
    carry_off(shared, &mut outcome);
    data.order(Order::MapChanged);
    shared.mailboxes.iter().for_each(|mailbox| mailbox.wake());
}

impl Data {
    fn follow_bucket(&self, shared: &Shared, bucket: &Bucket, outcome: &mut Outcome) {
        let slots = bucket.hashmask.slots();
        for link in self.links.all().iter() {
            link.forget_refusals(&slots);
        }
        let fill = self.feed_to_keep(bucket);
        for slot in slots.filter_map(Slot::new) {
            let mut state = shared.keyspace.lock_one(slot);
            state.duty.follow(bucket, self.me, |node| self.links.to_node(node));
            if state.duty.is_primary() {
                let backups = bucket.backups().iter();
                let wanted: Vec<LinkId> =
                    backups.filter_map(|node| self.links.to_node(*node)).chain(fill).collect();
                state.duty.feeds.retain(|feed| wanted.contains(&feed.link));
            } else if state.duty.role == Role::Absent {
                let seed = &shared.seed;
                outcome.applied(state.table.begin_copy(Version::ZERO, seed));
                state.duty.written_in = cluster::map::LogIndex(0);
            }
            shared.keyspace.note(slot, &state);
        }
    }

    /// The link of a fill of this bucket that is still under way, or undecided.
    fn feed_to_keep(&self, bucket: &Bucket) -> Option<LinkId> {
        let outgoing = self.outgoing.lock();
        let outgoing = outgoing.as_ref().filter(|outgoing| outgoing.bucket == bucket.hashmask)?;
        let undecided = |ended: Epoch| bucket.epoch <= ended;
        let same_reign = bucket.reign == outgoing.reign;
        (same_reign && outgoing.ended_at.is_none_or(undecided)).then_some(outgoing.link)
    }
}

fn follow_intakes(shared: &Shared, map: &Map, outcome: &mut Outcome) {
    let data = &shared.data;
    let around = surroundings(shared);
    let intakes: Vec<_> = {
        let mut intakes = data.intakes.lock();
        let all = intakes.iter().map(|(peer, intake)| (*peer, Arc::clone(intake))).collect();
        intakes.retain(|peer, _| map.members().iter().any(|member| member.peer() == *peer));
        all
    };
    for (peer, intake) in intakes {
        let mut back = Vec::new(); // A fill that is refused here is seen to fail by its source's map.
        let mut surface = Surface { shared, around: &around, outcome, back: &mut back };
        let mut intake = intake.lock();
        intake.follow(map, data.me, &mut surface);
        if !map.members().iter().any(|member| member.peer() == peer) {
            intake.end(&mut surface);
        }
    }
}

fn carry_off(shared: &Shared, outcome: &mut Outcome) {
    shared.memory.grow(core::mem::take(&mut outcome.grown_bytes));
    for garbage in outcome.garbage.drain(..) {
        shared.discard(garbage);
    }
}
