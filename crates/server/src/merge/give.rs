//! The losing side: this node serves no client any more, and hands over the data that the other side lacks
//! before it stops. It does not give up: it keeps the data until a node takes it. `bring.rs` hands over likewise.

use core::sync::atomic::Ordering;
use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use cluster::control::Input;
use cluster::map::{Endpoints, Generation};
use cluster::merge::{Course, Giver, Tally};

use crate::log;
use crate::peer::MergeLink;
use crate::shared::Shared;

/// Back-off between two attempts to reach a node.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// Delay before the same question is asked again: a handover takes milliseconds.
const LATER: Duration = Duration::from_millis(10);
/// Maximum number of such delays in a row; after that another node is tried.
const LATER_MAX: u32 = 500;

/// Hands everything over. Returns when that is done, or the node stops.
pub(crate) fn give(shared: &Shared, to: Generation) {
    let mut giver = Giver::new(&shared.map(), shared.data.me);
    let told = format!(
        "split brain: the other side of the cluster survives (generation {}); this node stops \
         serving and hands over what it wrote since the split",
        to.counter
    );
    log::warn("merge", &told);
    if !hand_over(shared, &mut giver, || !shared.is_stopping()) {
        return;
    }
    tell(giver.tally());
    shared.merging.is_given.store(true, Ordering::Release);
    shared.control.tell(Input::Merged);
}

/// Continues until everything is handed over. Returns false if `goes_on` ends it before.
pub(super) fn hand_over(shared: &Shared, giver: &mut Giver, goes_on: impl Fn() -> bool) -> bool {
    let mut places = places(shared);
    // With nothing to hand over, no node has to be reached.
    while giver.question(shared).is_some() {
        if !goes_on() {
            return false;
        }
        let Some(at) = places.pop_front() else {
            thread::sleep(AGAIN_AFTER);
            places = self::places(shared);
            continue;
        };
        let links = shared.merging.links.get();
        match links.and_then(|links| links.for_merging(&at).ok()) {
            Some(link) => {
                if let Some(elsewhere) = talk(shared, giver, &link) {
                    places.push_front(elsewhere);
                }
                giver.interrupted();
            }
            None => thread::sleep(AGAIN_AFTER),
        }
    }
    true
}

/// Logs the result of a handover.
pub(super) fn tell(tally: Tally) {
    let told = format!(
        "handover done; keys: {} taken, {} equal on both sides, {} in conflict, of which \
         the other side's version won {}",
        tally.taken,
        tally.same,
        tally.conflicts(),
        tally.lost_there + tally.unsure
    );
    log::info("merge", &told);
}

/// Returns the addresses where nodes of the other side may be reached: where they were met, those of the
/// members before the split, and those of the members by this process's own map.
fn places(shared: &Shared) -> VecDeque<Endpoints> {
    let map = shared.map();
    let others = map.members().iter().filter(|member| member.id != shared.data.me);
    let others = others.map(|member| member.at.clone());
    shared.merging.other_sides(&map).into_iter().chain(others).collect()
}

/// Continues until all is handed over, the link breaks, or another node is to be asked. Returns that node.
fn talk(shared: &Shared, giver: &mut Giver, link: &MergeLink) -> Option<Endpoints> {
    let mut put_off = 0;
    while let Some(question) = giver.question(shared).filter(|_| !shared.is_stopping()) {
        match giver.answered(link.ask(&question).ok()?) {
            Course::On => put_off = 0,
            Course::Elsewhere(at) => return Some(at),
            Course::Later if put_off < LATER_MAX => {
                put_off += 1;
                thread::sleep(LATER);
            }
            Course::Later => return None,
        }
    }
    None
}
