//! Invariants, checked without knowledge of the code. Each checker examines the requests of clients and their
//! answers, and the calls and their times.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use timers::TimerId;

use super::history::{Asked, Called, History, Outcome, Story, Time, What};

/// A promise that was not kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BrokenRule {
    pub promise: &'static str,
    pub what: String,
}

impl fmt::Display for BrokenRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.what)
    }
}

type Admission = Result<(), BrokenRule>;

/// Maximum delay of a pop: turns of all replicas, a doubt, a death, a slow call, a link to heal.
const LATENESS_MAX: Time = 30_000;

/// No timer pops before its interval has passed since its client asked for it; the second pop not
/// before two intervals, and so on.
pub fn never_early(history: &History) -> Admission {
    for (id, story) in history.stories() {
        let sets: Vec<(Time, u64)> = story.asked.iter().filter_map(|asked| set(asked)).collect();
        if sets.is_empty() {
            continue; // Its client never received the id: the answer was lost with its node.
        }
        for called in &story.called {
            // A request that took longer than the interval may have been carried out twice, with a
            // pop in between.
            let is_plain = |from, i| story.asked[0].done_at().is_some_and(|at| at < from + i);
            let earliest = match sets[..] {
                [(from, interval)] if is_plain(from, interval) => {
                    from + interval * (u64::from(called.sequence.0) + 1)
                }
                _ => sets.iter().map(|(from, interval)| from + interval).min().unwrap_or(Time::MAX),
            };
            if called.at < earliest {
                return broken("never early", id, &story, called);
            }
        }
    }
    Ok(())
}

/// After a client has received the answer that its timer is deleted, or set anew, the old one does not pop.
pub fn not_after_its_end(history: &History) -> Admission {
    for (id, story) in history.stories() {
        for called in &story.called {
            // The last change that was surely over when this pop began...
            let Some((place, asked)) = last_done_before(&story, called.at) else { continue };
            // ...decides, unless another one may have come after it.
            let others = story.asked.iter().enumerate().filter(|(other, _)| *other != place);
            let may_allow = others.filter(|(_, other)| may_follow(other, asked));
            let mut allowed = may_allow.map(|(_, other)| *other).chain([asked]);
            if !allowed.any(|asked| set(asked).is_some_and(|(from, i)| from + i <= called.at)) {
                return broken("not after its end", id, &story, called);
            }
        }
    }
    Ok(())
}

/// A timer whose client has received the answer that it is kept, and which nobody has changed since, is
/// called at least once for every sequence number up to its last, and it runs to its end.
pub fn at_least_once(history: &History, end: Time) -> Admission {
    for (id, story) in history.stories() {
        let [asked] = story.asked[..] else { continue };
        let (Outcome::Done { at: done }, What::Set { interval, pops }) =
            (asked.outcome, asked.what)
        else {
            continue;
        };
        let numbers: BTreeSet<u32> = story.called.iter().map(|called| called.sequence.0).collect();
        let is_without_gaps = numbers.iter().copied().eq(0..numbers.len() as u32);
        let last = story.called.iter().map(|called| called.at).max().unwrap_or(0);
        let last_due = asked.from + interval * u64::from(pops);
        // A late pop may have stood for several.
        let is_to_the_end = last + interval >= last_due && !numbers.is_empty();
        let is_over = done + interval * u64::from(pops) + LATENESS_MAX < end;
        if is_over && !(is_without_gaps && is_to_the_end) {
            let what = format!("{id} of {asked:?} was called {:?}", story.called);
            return Err(BrokenRule { promise: "at least once", what });
        }
    }
    Ok(())
}

/// Without faults, every sequence number is called exactly once.
pub fn exactly_once(history: &History) -> Admission {
    let mut seen = BTreeMap::new();
    for called in &history.called {
        if let Some(first) = seen.insert((called.id, called.sequence), called) {
            let asked = history.stories().remove(&called.id).map(|story| story.asked);
            let what = format!("{first:?} and {called:?} after {asked:?}");
            return Err(BrokenRule { promise: "exactly once", what });
        }
    }
    Ok(())
}

/// Without faults, every request is answered, and with "done".
pub fn always_done(history: &History) -> Admission {
    match history.asked.iter().find(|asked| asked.done_at().is_none()) {
        Some(asked) => Err(BrokenRule { promise: "always done", what: format!("{asked:?}") }),
        None => Ok(()),
    }
}

/// Returns the number of calls that carried a sequence number called before.
pub fn duplicates(history: &History) -> usize {
    let different: BTreeSet<_> = history.called.iter().map(|c| (c.id, c.sequence)).collect();
    history.called.len() - different.len()
}

fn set(asked: &Asked) -> Option<(Time, u64)> {
    match asked.what {
        What::Set { interval, .. } if asked.outcome != Outcome::Refused => {
            Some((asked.from, interval))
        }
        What::Set { .. } | What::Delete => None,
    }
}

fn last_done_before<'a>(story: &Story<'a>, time: Time) -> Option<(usize, &'a Asked)> {
    let done = story.asked.iter().enumerate().filter_map(|(place, asked)| {
        asked.done_at().filter(|at| *at < time).map(|at| (at, place, *asked))
    });
    done.max_by_key(|(at, place, _)| (*at, *place)).map(|(_, place, asked)| (place, asked))
}

/// Returns whether a request may have been carried out after another one: it was not over when that began.
fn may_follow(request: &Asked, other: &Asked) -> bool {
    match request.outcome {
        Outcome::Open => true,
        Outcome::Done { at } => at >= other.from,
        Outcome::Refused => false,
    }
}

fn broken(promise: &'static str, id: TimerId, story: &Story<'_>, called: &Called) -> Admission {
    Err(BrokenRule { promise, what: format!("{id}: {called:?} after {:?}", story.asked) })
}
