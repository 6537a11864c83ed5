//! The losing side: this node serves no client any more, and hands over the data that the other side lacks
//! before it stops. It does not give up: it keeps the data until a node takes it. `bring.rs` hands over likewise.

use core::sync::atomic::Ordering;
use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use cluster::control::Input;
use cluster::map::{Endpoints, Generation};
use cluster::merge::{Course, Giver, Tally};

use super::Merging;
use crate::data::Data;
use crate::log;
use crate::peer::{ControlHandle, MergeLink};

/// Back-off between two attempts to reach a node.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// Delay before the same question is asked again: a handover takes milliseconds.
const LATER: Duration = Duration::from_millis(10);
/// Maximum number of such delays in a row; after that another node is tried.
const LATER_MAX: u32 = 500;

impl Merging {
    /// Hands everything over. Returns when that is done, or the node stops.
    pub(crate) fn give(&self, data: &Data, control: &ControlHandle, to: Generation) {
        let mut giver = Giver::new(&data.map(), data.me);
        let told = format!(
            "split brain: the other side of the cluster survives (generation {}); this node stops \
             serving and hands over what it wrote since the split",
            to.counter
        );
        log::warn("merge", &told);
        if !self.hand_over(data, &mut giver, || !data.is_stopping()) {
            return;
        }
        tell(giver.tally());
        self.is_given.store(true, Ordering::Release);
        control.tell(Input::Merged);
    }

    /// Continues until everything is handed over. Returns false if `goes_on` ends it before.
    pub(super) fn hand_over(
        &self,
        data: &Data,
        giver: &mut Giver,
        goes_on: impl Fn() -> bool,
    ) -> bool {
        let mut places = self.places(data);
        // With nothing to hand over, no node has to be reached.
        while giver.question(data).is_some() {
            if !goes_on() {
                return false;
            }
            let Some(at) = places.pop_front() else {
                thread::sleep(AGAIN_AFTER);
                places = self.places(data);
                continue;
            };
            let links = self.links.get();
            match links.and_then(|links| links.for_merging(&at).ok()) {
                Some(link) => {
                    if let Some(elsewhere) = talk(data, giver, &link) {
                        places.push_front(elsewhere);
                    }
                    giver.interrupted();
                }
                None => thread::sleep(AGAIN_AFTER),
            }
        }
        true
    }

    /// Returns the addresses where nodes of the other side may be reached: where they were met, those of the
    /// members before the split, and those of the members by this process's own map.
    fn places(&self, data: &Data) -> VecDeque<Endpoints> {
        let map = data.map();
        let others = map.members().iter().filter(|member| member.id != data.me);
        let others = others.map(|member| member.at.clone());
        self.other_sides(&map).into_iter().chain(others).collect()
    }
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

/// Continues until all is handed over, the link breaks, or another node is to be asked. Returns that node.
fn talk(data: &Data, giver: &mut Giver, link: &MergeLink) -> Option<Endpoints> {
    let mut put_off = 0;
    while let Some(question) = giver.question(data).filter(|_| !data.is_stopping()) {
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
