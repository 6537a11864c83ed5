//! The side that yields: this node serves nobody any more, and hands over what the other side lacks before
//! it goes. It does not give up: as long as nobody takes it, it keeps it. `bring.rs` hands over likewise.

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

/// Between two attempts to reach somebody.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// Before the same is asked again: a handover takes milliseconds.
const LATER: Duration = Duration::from_millis(10);
/// After so many times another node is tried.
const LATER_MAX: u32 = 500;

/// Hands everything over. Returns when that is done, or the node stops.
pub(crate) fn give(shared: &Shared, to: Generation) {
    let mut giver = Giver::new(&shared.map(), shared.data.me);
    let told = format!(
        "another side of the cluster stands (generation {}); this one serves nobody any more and hands \
         over what it wrote since they parted",
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

/// Goes on until all is handed over. False if it is not to go on before that.
pub(super) fn hand_over(shared: &Shared, giver: &mut Giver, goes_on: impl Fn() -> bool) -> bool {
    let mut places = places(shared);
    // Without anything to hand over nobody has to be reached.
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

/// Says what became of what was handed over.
pub(super) fn tell(tally: Tally) {
    let told = format!(
        "handed over, keys: {} taken, {} the same on both sides, {} in conflict, of which \
         the other side's stood in {}",
        tally.taken,
        tally.same,
        tally.conflicts(),
        tally.lost_there + tally.unsure
    );
    log::info("merge", &told);
}

/// Where nodes of the other side may be reached: where they were met, whoever was a member before the sides
/// parted, and those whom this process still takes for members.
fn places(shared: &Shared) -> VecDeque<Endpoints> {
    let map = shared.map();
    let others = map.members().iter().filter(|member| member.id != shared.data.me);
    let others = others.map(|member| member.at.clone());
    shared.merging.other_sides(&map).into_iter().chain(others).collect()
}

/// Goes on until all is handed over, the link breaks, or another node is to be asked: that one.
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
