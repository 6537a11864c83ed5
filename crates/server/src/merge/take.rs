//! The surviving side: the slot's primary judges the changes of another side, and writes those that win as it
//! would a client's write: it sends them to the backups, and does not answer before they have them.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use cluster::merge::{
    ChangeBatch, Conflict, MergeReply, MergeRequest, MergeTaker, ServedGround, Tally, diverged_at,
};
use cluster::serving::{Access, EffectLog, LockedSlots, ReplyVerdict, ServedSlots, Tickets};
use commands::LockSet;
use placement::Slot;
use store::{UnixMillis, Version};

use super::Merging;
use super::report::report_conflicts;
use crate::data::{Data, judge_all};

/// Interval between two checks whether the backups have the write.
const LOOK: Duration = Duration::from_micros(300);
/// Timeout after which the other side asks again: a backup that does not answer is dropped before that.
const SAFE_WITHIN: Duration = Duration::from_secs(15);

impl Merging {
    /// Answers a question of a node of the other side. `None` if it makes no sense. Conflicts are also written to
    /// a file in `directory`.
    pub(crate) fn answer(
        &self,
        data: &Data,
        directory: Option<&Path>,
        question: MergeRequest,
        taker: &mut MergeTaker,
    ) -> Option<MergeReply> {
        if !data.lease.is_valid() {
            return Some(MergeReply::NotNow);
        }
        match question {
            MergeRequest::Since { first, count } => {
                let first = Slot::new(first)?;
                let slots =
                    (first.number()..first.number().saturating_add(count)).map_while(Slot::new);
                let since: Vec<u64> = slots.map_while(|slot| since(data, slot)).collect();
                let known = !since.is_empty();
                Some(if known { MergeReply::Since(since) } else { elsewhere(data, first) })
            }
            MergeRequest::Changes { slot, parted, changes } => {
                let batch = ChangeBatch::read(&changes).ok()?;
                let slot = Slot::new(slot)?;
                let Some(taken) = take(data, slot, Version(parted), batch, taker) else {
                    return Some(elsewhere(data, slot));
                };
                self.note(directory, taken.tally, taken.conflicts);
                let is_safe = wait_until_safe(data, taken.tickets);
                Some(if is_safe { MergeReply::Merged(taken.tally) } else { MergeReply::NotNow })
            }
        }
    }

    fn note(&self, directory: Option<&Path>, tally: Tally, conflicts: Vec<Conflict>) {
        if tally.all() > 0 {
            report_conflicts(directory, &conflicts);
            self.ledger.lock().note(tally, conflicts);
        }
    }
}

/// Returns the version from which on this side knows nothing of the other side's changes to the slot, if the
/// slot is served here.
fn since(data: &Data, slot: Slot) -> Option<u64> {
    let state = data.keyspace.lock_one(slot);
    state.replica().is_serving().then(|| diverged_at(state.table()).0)
}

/// Returns the address of the slot's primary, if that is known and not this node; else `NotNow`.
fn elsewhere(data: &Data, slot: Slot) -> MergeReply {
    let map = data.map();
    let primary = map.bucket_of(slot).primary().filter(|node| *node != data.me);
    let member = primary.and_then(|node| map.member(node));
    member.map_or(MergeReply::NotNow, |member| MergeReply::Elsewhere(member.at.clone()))
}

/// A batch of changes that was judged and applied.
struct Taken {
    tally: Tally,
    conflicts: Vec<Conflict>,
    /// The acknowledgements that the reply waits for.
    tickets: Tickets,
}

/// Judges and applies changes to a slot. `None` if the slot is not served here.
fn take(
    data: &Data,
    slot: Slot,
    parted: Version,
    batch: ChangeBatch<'_>,
    taker: &mut MergeTaker,
) -> Option<Taken> {
    // The write must have a later version than the change it comes from: otherwise the same change, handed over
    // again, would win over what clients have written since. But it must be no later than necessary, whatever
    // the time is now: changes that a third side made in between are newer.
    let now = UnixMillis(batch.latest().time().0 + 1);
    let mut effects = EffectLog::default();
    let locked = LockedSlots::lock(data, LockSet::One(slot));
    // `min-copies` is ignored: the missing copy may be on the very node that hands over.
    let mut slots = ServedSlots::open(data, locked, Access::WRITE, &mut effects).ok()?;
    let mut ground = ServedGround::new(slot, &mut slots, now);
    let tally = taker.take(parted, batch, &data.keyspace.seed, &mut ground);
    let ServedGround { applied, conflicts, .. } = ground;
    let tickets = slots.finish().tickets;
    data.have_links_written();
    for done in applied {
        data.keyspace.memory.grow(done.grown_bytes);
        done.garbage.into_iter().for_each(|garbage| data.keyspace.discard(garbage));
    }
    Some(Taken { tally, conflicts, tickets })
}

/// Waits until the backups have the write. Returns false if it is not certain that the write stays; then the
/// other side hands it over again.
fn wait_until_safe(data: &Data, mut tickets: Tickets) -> bool {
    let begun = Instant::now();
    loop {
        match judge_all(data, &mut tickets) {
            ReplyVerdict::Release => return data.lease.is_valid(),
            ReplyVerdict::Abort => return false,
            ReplyVerdict::Wait if begun.elapsed() > SAFE_WITHIN || data.is_stopping() => {
                return false;
            }
            ReplyVerdict::Wait => thread::sleep(LOOK),
        }
    }
}
