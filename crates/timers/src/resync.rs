//! Hands timers over when members change. Every holder goes through its timers in pages, makes sure that the
//! nodes which now keep each of them have it, and releases those it no longer keeps itself.
//!
//! Started by `follow.rs` with each new list. A page names ids with their progress; the receiver asks only for
//! the timers it lacks, so two holders that offer the same timer send it once. A round is over when all its
//! pages are acknowledged, and only then are timers released. A silent node holds a round up until it is out of
//! the map; the next list starts anew.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::Timers;
use crate::ids::{MonotonicMillis, TimerId, TimerPeer};
use crate::input::{AGAIN_AFTER, TimerRule};
use crate::members::Members;
use crate::message::{Fill, Filled, ResyncOffer, ResyncWanted, Stage, TimerMessage};
use crate::pop::Pop;
use crate::record::{Record, TimerState};
use crate::table::{ReplicaRank, STAGGER, TimerEntry};

/// Number of timers per round.
const ROUND: usize = 512;
/// Maximum number of rounds per input: the node has other things to do.
const ROUNDS_AT_ONCE: usize = 4;
/// Maximum size of the clients' data in one answer to a page of ids; the rest is offered again.
const FILL_BYTES_MAX: usize = 1 << 20;

/// Maximum numbers of timers checked for doubts at once, and asked about at once.
const DOUBTS_SEEN: usize = 20_000;
const DOUBTS_ASKED: usize = 512;

/// The state that a new list can build on.
pub(crate) enum Basis {
    /// Every timer is at its replicas, and stays there.
    Same,
    /// Every replica by that list has its timers.
    List(Members),
    /// Unknown: the last change of members was still in progress.
    Unknown,
}

#[derive(Default)]
pub(crate) struct Resync {
    pass: Option<Pass>,
    /// Timers handed over, but not released until a callback in progress has ended.
    handed: BTreeSet<TimerId>,
    next_page: u64,
    /// Set while there may be timers in doubt from before an absence.
    doubts: Option<DoubtWalk>,
}

/// A walk through all timers, looking for those in doubt.
#[derive(Default)]
struct DoubtWalk {
    after: Option<TimerId>,
    found_some: bool,
}

/// A walk through all timers to hand them over.
struct Pass {
    /// The list by which replicas already have their timers. Without one, no replica is assumed to have any.
    basis: Option<Members>,
    after: Option<TimerId>,
    round: Option<ResyncRound>,
}

#[derive(Default)]
struct ResyncRound {
    /// Pages that are not acknowledged yet.
    pages: BTreeMap<u64, ResyncPage>,
    /// Timers that this node no longer keeps; released when all pages are acknowledged.
    letting_go: Vec<TimerId>,
}

struct ResyncPage {
    to: TimerPeer,
    ids: Vec<TimerId>,
    again_at: MonotonicMillis,
    /// True if not all wanted timers could be sent at once.
    is_partial: bool,
}

impl Resync {
    pub(crate) fn stage(&self) -> Stage {
        match (&self.pass, &self.doubts) {
            (Some(_), _) => Stage::HandsOver,
            (None, Some(_)) => Stage::Doubts,
            (None, None) => Stage::Settled,
        }
    }

    /// Puts all timers in doubt after an absence of this node.
    pub(crate) fn doubt_all(&mut self) {
        self.doubts = Some(DoubtWalk::default());
    }

    /// Returns whether there is work that waits for no other node.
    pub(crate) fn can_go_on(&self) -> bool {
        self.pass
            .as_ref()
            .is_some_and(|pass| pass.round.as_ref().is_none_or(|round| round.pages.is_empty()))
    }
}

// The holder.
impl Timers {
    pub(crate) fn resync_start(&mut self, basis: Basis) {
        self.resync.handed.clear();
        self.resync.pass = match basis {
            Basis::Same => None,
            Basis::List(list) => Some(Pass { basis: Some(list), after: None, round: None }),
            Basis::Unknown => Some(Pass { basis: None, after: None, round: None }),
        };
    }

    /// Continues until a round waits for another node, enough was done for now, or all is done.
    pub(crate) fn resync_go_on(&mut self) {
        for _ in 0..ROUNDS_AT_ONCE {
            if !self.resync.can_go_on() {
                return;
            }
            let round = self.resync.pass.as_mut().and_then(|pass| pass.round.take());
            for id in round.into_iter().flat_map(|round| round.letting_go) {
                self.let_go(id);
            }
            if !self.begin_round() {
                self.resync.pass = None;
                self.greet();
            }
        }
    }

    /// Offers the next timers to the nodes that may lack them. Returns false if there are no more.
    fn begin_round(&mut self) -> bool {
        let Some(pass) = &self.resync.pass else { return false };
        let ids: Vec<TimerId> =
            self.table.after(pass.after).take(ROUND).map(TimerEntry::id).collect();
        let Some(last) = ids.last().copied() else { return false };
        let mut round = ResyncRound::default();
        let mut offers: BTreeMap<TimerPeer, Vec<TimerId>> = BTreeMap::new();
        for id in ids {
            self.rank(id);
            let entry = self.table.get(id).expect("just listed");
            if entry.era.stay != self.era.stay {
                continue; // In doubt: other nodes know better, or this node asks when the timer is due.
            }
            // If no member keeps timers, there is nobody to release them to.
            if matches!(entry.place, ReplicaRank::Former(_))
                && !self.members.replicas(id).is_empty()
            {
                round.letting_go.push(id);
            }
            for node in self.may_lack(id) {
                offers.entry(node).or_default().push(id);
            }
        }
        if !self.keeps(TimerRule::LetGoAfterAck) {
            std::mem::take(&mut round.letting_go).into_iter().for_each(|id| self.let_go(id));
        }
        for (to, ids) in offers {
            let number = self.resync.next_page;
            self.resync.next_page += 1;
            let again_at = self.moment() + AGAIN_AFTER;
            let page = ResyncPage { to, ids, again_at, is_partial: false };
            self.offer(number, to, &page.ids);
            round.pages.insert(number, page);
        }
        let pass = self.resync.pass.as_mut().expect("begun above");
        pass.after = Some(last);
        pass.round = Some(round);
        true
    }

    /// Returns the replicas that may lack a timer.
    fn may_lack(&self, id: TimerId) -> Vec<TimerPeer> {
        let mut replicas = self.others(id);
        if let Some(Pass { basis: Some(basis), .. }) = &self.resync.pass {
            let before = basis.replicas(id);
            replicas.retain(|node| !before.contains(node));
        }
        replicas
    }

    fn offer(&mut self, page: u64, to: TimerPeer, ids: &[TimerId]) {
        let progress = |id: &TimerId| Some((*id, self.table.get(*id)?.progress()));
        let items: Vec<(TimerId, TimerState)> = ids.iter().filter_map(progress).collect();
        let epoch = self.members.epoch();
        self.send(to, TimerMessage::Offer(ResyncOffer { epoch, page, items }));
    }

    pub(crate) fn on_wanted(&mut self, from: TimerPeer, wanted: ResyncWanted) {
        let ResyncWanted { epoch, page, ids, newer } = wanted;
        if !self.is_open(from, page) || epoch != self.members.epoch() {
            return;
        }
        newer.iter().for_each(|record| self.adopt(record));
        if ids.is_empty() {
            return self.page_done(page);
        }
        let mut bytes = 0;
        let mut records: Vec<Record> = Vec::new();
        for id in ids {
            bytes += self.table.get(id).map_or(0, TimerEntry::bytes);
            records.extend(self.record(id));
            self.give_way(from, id);
            if bytes > FILL_BYTES_MAX {
                break;
            }
        }
        self.page_mut(page).expect("it is open").is_partial = bytes > FILL_BYTES_MAX;
        self.send(from, TimerMessage::Fill(Fill { epoch, page: Some(page), records }));
    }

    /// Postpones our own turn for a timer that is being given to a node that ranks before us: it has the first
    /// turn, even if the timer is due and our turn was about to come.
    fn give_way(&mut self, to: TimerPeer, id: TimerId) {
        let replicas = self.members.replicas(id);
        let place = |wanted: TimerPeer| replicas.iter().position(|node| *node == wanted);
        let (Some(theirs), Some(ours)) = (place(to), place(self.me)) else { return };
        let Some(entry) = self.table.get(id).filter(|entry| entry.is_pending()) else { return };
        let places = ours.saturating_sub(theirs) as u64;
        let turn = entry.due.max(self.moment()) + STAGGER.times(places);
        let is_earlier = self.table.moment_of(id).is_some_and(|moment| moment < turn);
        if is_earlier && !self.pops.contains_key(&id) {
            self.table.postpone(id, turn);
        }
    }

    pub(crate) fn on_filled(&mut self, from: TimerPeer, filled: &Filled) {
        if !self.is_open(from, filled.page) || filled.epoch != self.members.epoch() {
            return;
        }
        let page = self.page_mut(filled.page).expect("it is open");
        if page.is_partial {
            let (to, ids) = (page.to, page.ids.clone());
            self.offer(filled.page, to, &ids);
        } else {
            self.page_done(filled.page);
        }
    }

    fn page_mut(&mut self, page: u64) -> Option<&mut ResyncPage> {
        self.resync.pass.as_mut()?.round.as_mut()?.pages.get_mut(&page)
    }

    fn is_open(&self, from: TimerPeer, page: u64) -> bool {
        let Some(Pass { round: Some(round), .. }) = &self.resync.pass else { return false };
        round.pages.get(&page).is_some_and(|page| page.to == from)
    }

    fn page_done(&mut self, page: u64) {
        if let Some(Pass { round: Some(round), .. }) = &mut self.resync.pass {
            round.pages.remove(&page);
        }
    }

    /// Releases a timer that every replica has. A callback in progress ends first: no other node knows of it.
    fn let_go(&mut self, id: TimerId) {
        let is_former = |place: ReplicaRank| matches!(place, ReplicaRank::Former(_));
        if !self.table.get(id).is_some_and(|entry| is_former(entry.place)) {
            return;
        }
        if self.pops.get(&id).is_some_and(Pop::is_calling) {
            self.resync.handed.insert(id);
        } else {
            self.forget(id);
        }
    }

    pub(crate) fn let_go_if_handed(&mut self, id: TimerId) {
        if self.resync.handed.remove(&id) {
            self.let_go(id);
        }
    }

    pub(crate) fn resync_again(&mut self) {
        let now = self.moment();
        let Some(Pass { round: Some(round), .. }) = &mut self.resync.pass else { return };
        let mut silent = Vec::new();
        for (number, page) in &mut round.pages {
            if page.again_at <= now {
                page.again_at = now + AGAIN_AFTER;
                silent.push((*number, page.to, page.ids.clone()));
            }
        }
        for (number, to, ids) in silent {
            self.offer(number, to, &ids);
        }
    }
}

// A node that was out of the map.
impl Timers {
    /// Asks about timers in doubt, once all other nodes have handed over, so that each has all its timers.
    /// Confirmed timers are then handed over like all others.
    pub(crate) fn resolve_doubts(&mut self) {
        // A node that is not in the map does not know whom to ask.
        let is_quiet = self.members.contains(self.me) && self.all_handed_over();
        let Some(walk) = self.resync.doubts.as_mut().filter(|_| is_quiet) else { return };
        let stay = self.era.stay;
        let mut open: Vec<TimerId> = Vec::new();
        let mut seen = 0;
        for entry in self.table.after(walk.after).take(DOUBTS_SEEN) {
            seen += 1;
            walk.after = Some(entry.id());
            if entry.era.stay != stay {
                open.push(entry.id());
            }
            if open.len() == DOUBTS_ASKED {
                break;
            }
        }
        walk.found_some |= !open.is_empty();
        let is_over = seen < DOUBTS_SEEN && open.len() < DOUBTS_ASKED;
        let is_resolved = is_over && !walk.found_some;
        if is_resolved {
            self.resync.doubts = None;
            self.parted_at = None;
            self.resync_start(Basis::Unknown);
        } else if is_over {
            self.resync.doubts = Some(DoubtWalk::default());
        }
        open.retain(|id| !self.pops.contains_key(id));
        open.into_iter().for_each(|id| self.resolve_doubt(id));
    }

    fn resolve_doubt(&mut self, id: TimerId) {
        let is_pending = self.table.get(id).is_some_and(TimerEntry::is_pending);
        // A tombstone stays valid.
        if is_pending { self.doubt(id) } else { self.confirm(id) }
    }
}

// The new replica.
impl Timers {
    pub(crate) fn on_offer(&mut self, from: TimerPeer, offer: &ResyncOffer) {
        if offer.epoch != self.members.epoch() {
            return; // One of us does not have the latest list yet; the timers are offered again.
        }
        let (mut ids, mut newer, mut bytes) = (Vec::new(), Vec::new(), 0);
        for (id, progress) in &offer.items {
            match self.table.get(*id) {
                Some(entry) if entry.progress() > *progress => {
                    // Beyond the limit, the sender learns of it when the timer pops.
                    bytes += entry.bytes();
                    newer.extend(self.record(*id).filter(|_| bytes < FILL_BYTES_MAX));
                }
                Some(entry) if entry.progress() == *progress => self.confirm(*id),
                Some(_) | None => ids.push(*id),
            }
        }
        let wanted = ResyncWanted { epoch: offer.epoch, page: offer.page, ids, newer };
        self.send(from, TimerMessage::Wanted(wanted));
    }

    /// Confirms a timer kept through an absence: another node holds the same state.
    fn confirm(&mut self, id: TimerId) {
        self.table.confirm(id, self.era.stay);
    }

    pub(crate) fn on_fill(&mut self, from: TimerPeer, fill: Fill) {
        let Fill { epoch, page, records } = fill;
        if epoch != self.members.epoch() {
            return;
        }
        records.iter().for_each(|record| self.adopt(record));
        if let Some(page) = page {
            self.send(from, TimerMessage::Filled(Filled { epoch, page }));
        }
    }
}
