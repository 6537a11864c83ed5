//! Looking: one timer, a page of them, numbers, dead letters. Any node can be asked; it gathers what
//! the others have to say, and after a while answers with what it got.

use std::collections::BTreeSet;

use crate::core::Timers;
use crate::dead::DeadLetter;
use crate::ids::{Moment, NodeId, TimerId};
use crate::input::{Answer, LOOK_WITHIN, PAGE_MAX, Refusal, Seen};
use crate::message::{Look, Message, Part, RequestId, Seen as SeenBy, Sight};
use crate::record::{Life, Record};
use crate::stats::Stats;
use crate::table::{Entry, Place};

/// Clients' words in one node's part of a page.
const PART_BYTES_MAX: usize = 1 << 20;

/// A question under way.
pub(crate) struct Looking {
    at: Sight,
    waiting: BTreeSet<NodeId>,
    found: Found,
    deadline: Moment,
}

#[derive(Default)]
struct Found {
    timers: Vec<Record>,
    stats: Stats,
    dead: Vec<DeadLetter>,
}

impl Timers {
    pub(crate) fn look(&mut self, request: RequestId, at: Sight) {
        if self.looking.len() >= self.settings.requests_max {
            return self.refuse(request, Refusal::Busy);
        }
        let asked = match &at {
            Sight::Timer(id) => self.others(*id),
            Sight::Page { .. } | Sight::Stats | Sight::Dead => self.members.all().to_vec(),
        };
        let waiting: BTreeSet<NodeId> = asked.into_iter().filter(|node| *node != self.me).collect();
        for node in &waiting {
            self.send(*node, Message::Look(Look { request, at: at.clone() }));
        }
        let mut found = Found::default();
        found.add(self.part(&at));
        let deadline = self.moment() + LOOK_WITHIN;
        self.looking.insert(request, Looking { at, waiting, found, deadline });
        self.finish_look(request);
    }

    pub(crate) fn on_look(&mut self, from: NodeId, look: &Look) {
        let part = self.part(&look.at);
        self.send(from, Message::Seen(SeenBy { request: look.request, part }));
    }

    pub(crate) fn on_seen(&mut self, from: NodeId, seen: SeenBy) {
        let Some(looking) = self.looking.get_mut(&seen.request) else { return };
        if looking.waiting.remove(&from) {
            looking.found.add(seen.part);
            self.finish_look(seen.request);
        }
    }

    /// What this node can contribute.
    fn part(&self, at: &Sight) -> Part {
        let now = self.moment();
        match at {
            Sight::Timer(id) => Part::Timers(
                self.table.get(*id).map(|entry| entry.record(now)).into_iter().collect(),
            ),
            Sight::Page { after, limit } => Part::Timers(self.page(*after, *limit)),
            Sight::Stats => Part::Stats(Box::new(self.stats())),
            Sight::Dead => Part::Dead(self.dead.all()),
        }
    }

    /// Pending timers of which this node is the primary, so that each is shown once.
    fn page(&self, after: Option<TimerId>, limit: u32) -> Vec<Record> {
        let is_ours = |entry: &&Entry| entry.is_pending() && entry.place == Place::Replica(0);
        let mut bytes = 0;
        let fits = |entry: &&Entry| {
            bytes += entry.bytes();
            bytes < PART_BYTES_MAX || bytes == entry.bytes()
        };
        let limit = limit.min(PAGE_MAX) as usize;
        let entries = self.table.after(after).filter(is_ours).take(limit).take_while(fits);
        entries.map(|entry| entry.record(self.moment())).collect()
    }

    fn finish_look(&mut self, request: RequestId) {
        let now = self.moment();
        let Some(looking) = self.looking.get(&request) else { return };
        let is_found = matches!(looking.at, Sight::Timer(_)) && !looking.found.timers.is_empty();
        if !looking.waiting.is_empty() && !is_found && now < looking.deadline {
            return;
        }
        let Looking { at, waiting, found, .. } = self.looking.remove(&request).expect("just seen");
        let silent = waiting.len();
        let answer = match at {
            Sight::Timer(_) if found.timers.is_empty() && silent > 0 => {
                Answer::Refused(Refusal::Unknown)
            }
            Sight::Timer(_) => Answer::Timer(found.latest().map(Box::new)),
            Sight::Page { limit, .. } => {
                Answer::Page(Seen { found: found.first(limit.min(PAGE_MAX) as usize), silent })
            }
            Sight::Stats => Answer::Stats(Seen { found: Box::new(found.stats), silent }),
            Sight::Dead => Answer::Dead(Seen { found: found.dead, silent }),
        };
        self.answer(request, answer);
    }

    pub(crate) fn look_again(&mut self) {
        let requests: Vec<RequestId> = self.looking.keys().copied().collect();
        requests.into_iter().for_each(|request| self.finish_look(request));
    }
}

impl Found {
    fn add(&mut self, part: Part) {
        match part {
            Part::Timers(timers) => self.timers.extend(timers),
            Part::Stats(stats) => self.stats.merge(&stats),
            Part::Dead(dead) => self.dead.extend(dead),
        }
    }

    /// The state that has come furthest, unless that is the end.
    fn latest(self) -> Option<Record> {
        let latest = self.timers.into_iter().max_by_key(Record::progress)?;
        matches!(latest.life, Life::Pending { .. }).then_some(latest)
    }

    /// While members change, two nodes may both be primary of a timer in their own eyes.
    fn first(mut self, limit: usize) -> Vec<Record> {
        self.timers.sort_by_key(|record| record.id);
        self.timers.dedup_by_key(|record| record.id);
        self.timers.truncate(limit);
        self.timers
    }
}
