//! Queries: one timer, a page of them, statistics, dead letters. Any node can be asked; it collects the parts
//! of the other nodes, and after a timeout answers with those it has.

use std::collections::BTreeSet;

use crate::core::Timers;
use crate::dead::DeadLetter;
use crate::ids::{MonotonicMillis, TimerId, TimerPeer};
use crate::input::{LOOK_WITHIN, PAGE_MAX, Page, Seen, TimerAnswer, TimerRefusal};
use crate::message::{ListRest, Look, LookPart, LookReply, RequestId, TimerMessage, TimerQuery};
use crate::record::{Record, TimerLife};
use crate::stats::Stats;
use crate::table::{ReplicaRank, TimerEntry};

/// Maximum size of the clients' data in one node's part of a page.
const PART_BYTES_MAX: usize = 1 << 20;

/// A query in progress.
pub(crate) struct Looking {
    at: TimerQuery,
    waiting: BTreeSet<TimerPeer>,
    found: LookResult,
    asked_at: MonotonicMillis,
}

impl Looking {
    /// Returns since when a client waits for one timer. `None` for lists and statistics, which tools query, too.
    pub(crate) fn for_one_since(&self) -> Option<MonotonicMillis> {
        matches!(self.at, TimerQuery::Timer(_)).then_some(self.asked_at)
    }
}

#[derive(Default)]
struct LookResult {
    timers: Vec<Record>,
    /// The last id up to which all nodes sent their timers; some node has more after it.
    known_up_to: Option<TimerId>,
    stats: Stats,
    dead: Vec<DeadLetter>,
}

impl Timers {
    pub(crate) fn look(&mut self, request: RequestId, at: TimerQuery) {
        if self.looking.len() >= self.settings.requests_max {
            return self.refuse(request, TimerRefusal::Busy);
        }
        let asked = match &at {
            TimerQuery::Timer(id) => self.others(*id),
            TimerQuery::Page { .. } | TimerQuery::Stats | TimerQuery::Dead => {
                self.members.all().to_vec()
            }
        };
        let waiting: BTreeSet<TimerPeer> =
            asked.into_iter().filter(|node| *node != self.me).collect();
        for node in &waiting {
            self.send(*node, TimerMessage::Look(Look { request, at: at.clone() }));
        }
        let mut found = LookResult::default();
        found.add(self.part(&at));
        let asked_at = self.moment();
        self.looking.insert(request, Looking { at, waiting, found, asked_at });
        self.finish_look(request);
    }

    /// Restarts queries for one timer after a new list of members: asks its present replicas, and waits for no
    /// node that is gone. Queries over all nodes continue as they began, or some parts would be counted twice.
    pub(crate) fn look_anew(&mut self) {
        let for_one = |(request, looking): (&RequestId, &Looking)| match looking.at {
            TimerQuery::Timer(id) => Some((*request, id)),
            TimerQuery::Page { .. } | TimerQuery::Stats | TimerQuery::Dead => None,
        };
        let open: Vec<(RequestId, TimerId)> = self.looking.iter().filter_map(for_one).collect();
        for (request, id) in open {
            let waiting: BTreeSet<TimerPeer> = self.others(id).into_iter().collect();
            for node in &waiting {
                self.send(*node, TimerMessage::Look(Look { request, at: TimerQuery::Timer(id) }));
            }
            self.looking.get_mut(&request).expect("just listed").waiting = waiting;
            self.finish_look(request);
        }
    }

    pub(crate) fn on_look(&mut self, from: TimerPeer, look: &Look) {
        let part = self.part(&look.at);
        self.send(from, TimerMessage::LookReply(LookReply { request: look.request, part }));
    }

    pub(crate) fn on_seen(&mut self, from: TimerPeer, seen: LookReply) {
        let Some(looking) = self.looking.get_mut(&seen.request) else { return };
        if looking.waiting.remove(&from) {
            looking.found.add(seen.part);
            self.finish_look(seen.request);
        }
    }

    /// Returns this node's part of the result.
    fn part(&self, at: &TimerQuery) -> LookPart {
        let now = self.moment();
        match at {
            TimerQuery::Timer(id) => {
                let found = self.table.get(*id).map(|entry| entry.record(now));
                LookPart::Timers(found.into_iter().collect(), ListRest::None)
            }
            TimerQuery::Page { after, limit } => self.page(*after, *limit),
            TimerQuery::Stats => LookPart::Stats(Box::new(self.stats())),
            TimerQuery::Dead => LookPart::Dead(self.dead.all()),
        }
    }

    /// Returns the pending timers of which this node is the primary, so that each is shown once.
    fn page(&self, after: Option<TimerId>, limit: u32) -> LookPart {
        let is_ours =
            |entry: &&TimerEntry| entry.is_pending() && entry.place == ReplicaRank::Replica(0);
        let limit = limit.min(PAGE_MAX) as usize;
        let (mut records, mut bytes) = (Vec::new(), 0);
        for entry in self.table.after(after).filter(is_ours) {
            bytes += entry.bytes();
            let is_full = bytes > PART_BYTES_MAX && !records.is_empty();
            if records.len() == limit || is_full {
                return LookPart::Timers(records, ListRest::More);
            }
            records.push(entry.record(self.moment()));
        }
        LookPart::Timers(records, ListRest::None)
    }

    fn finish_look(&mut self, request: RequestId) {
        let now = self.moment();
        let Some(looking) = self.looking.get(&request) else { return };
        let is_found =
            matches!(looking.at, TimerQuery::Timer(_)) && !looking.found.timers.is_empty();
        if !looking.waiting.is_empty() && !is_found && now < looking.asked_at + LOOK_WITHIN {
            return;
        }
        let Looking { at, waiting, found, .. } = self.looking.remove(&request).expect("just seen");
        let silent = waiting.len();
        let answer = match at {
            TimerQuery::Timer(_) if found.timers.is_empty() && silent > 0 => {
                TimerAnswer::Refused(TimerRefusal::Unseen)
            }
            TimerQuery::Timer(_) => TimerAnswer::Timer(found.latest().map(Box::new)),
            TimerQuery::Page { limit, .. } => {
                TimerAnswer::Page(Seen { found: found.page(limit.min(PAGE_MAX) as usize), silent })
            }
            TimerQuery::Stats => TimerAnswer::Stats(Seen { found: Box::new(found.stats), silent }),
            TimerQuery::Dead => TimerAnswer::Dead(Seen { found: found.latest_dead(), silent }),
        };
        self.answer(request, answer);
    }

    pub(crate) fn look_again(&mut self) {
        let requests: Vec<RequestId> = self.looking.keys().copied().collect();
        requests.into_iter().for_each(|request| self.finish_look(request));
    }
}

impl LookResult {
    fn add(&mut self, part: LookPart) {
        match part {
            LookPart::Timers(timers, rest) => {
                if rest == ListRest::More {
                    let last = timers.last().map(|record| record.id);
                    self.known_up_to = [self.known_up_to, last].into_iter().flatten().min();
                }
                self.timers.extend(timers);
            }
            LookPart::Stats(stats) => self.stats.merge(&stats),
            LookPart::Dead(dead) => self.dead.extend(dead),
        }
    }

    /// Returns the state with the most progress, unless the timer has ended there.
    fn latest(self) -> Option<Record> {
        let latest = self.timers.into_iter().max_by_key(Record::progress)?;
        matches!(latest.life, TimerLife::Pending { .. }).then_some(latest)
    }

    /// Returns the page. Duplicates are removed: while members change, two nodes may both consider themselves
    /// primary.
    fn page(mut self, limit: usize) -> Page {
        self.timers.sort_by_key(|record| record.id);
        self.timers.dedup_by_key(|record| record.id);
        // Timers after a gap are shown on the next page.
        let known_up_to = self.known_up_to;
        self.timers.retain(|record| known_up_to.is_none_or(|last| record.id <= last));
        let is_over = known_up_to.is_none() && self.timers.len() <= limit;
        self.timers.truncate(limit);
        let next = self.timers.last().map(|record| record.id).filter(|_| !is_over);
        Page { timers: self.timers, next }
    }

    /// Returns the dead letters of all nodes, the latest first.
    fn latest_dead(mut self) -> Vec<DeadLetter> {
        self.dead.sort_by_key(|letter| std::cmp::Reverse(letter.at));
        self.dead
    }
}
