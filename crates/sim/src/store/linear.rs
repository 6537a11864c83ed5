//! Linearizability of the history of one key: is there an order in which each operation happens at one moment
//! between its call and its answer, and each answer follows from the operations before it? (The search of
//! Wing and Gong, with Lowe's memory of the states already visited.)

use std::collections::BTreeSet;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Op {
    Get,
    Set(String),
    Del,
    Append(String),
    Incr,
    /// Sets a value that expires.
    Lend(String),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    Value(Option<String>),
    Done,
    Count(i64),
    /// A lock was granted, in this reign of its slot.
    Granted(u64),
}

/// One operation on the key. Without an answer it may have happened at any time since, or never.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Call {
    pub op: Op,
    pub called: u64,
    pub answered: Option<(u64, Answer)>,
}

/// Returns the value after an operation, and the answer.
fn applied(value: Option<&str>, op: &Op) -> (Option<String>, Answer) {
    match op {
        Op::Get => (value.map(str::to_owned), Answer::Value(value.map(str::to_owned))),
        Op::Set(new) | Op::Lend(new) => (Some(new.clone()), Answer::Done),
        Op::Del => (None, Answer::Count(i64::from(value.is_some()))),
        Op::Append(tail) => {
            let whole = value.unwrap_or_default().to_owned() + tail;
            let length = i64::try_from(whole.len()).expect("short");
            (Some(whole), Answer::Count(length))
        }
        Op::Incr => {
            let next = value.map_or(0, |value| value.parse::<i64>().expect("a number")) + 1;
            (Some(next.to_string()), Answer::Count(next))
        }
    }
}

/// Maximum number of states that the search visits.
const STATES_MAX: usize = 100_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Admission {
    Linear,
    Not,
    /// The search took too long.
    Unknown,
}

pub(super) fn judge(calls: &[Call]) -> Admission {
    let mut calls: Vec<&Call> = calls.iter().collect();
    calls.sort_by_key(|call| call.called);
    // An unanswered read proves nothing and changes nothing.
    calls.retain(|call| call.answered.is_some() || call.op != Op::Get);
    Search { calls, seen: BTreeSet::new() }.run()
}

/// Bit set of the calls that have their place already.
type Done = [u64; 5];

/// Maximum number of calls that clients make for one key; the search can judge some more.
pub(super) const CALLS_MAX: usize = 250;
pub(super) const JUDGED_MAX: usize = 64 * 5;

fn is_done(done: &Done, place: usize) -> bool {
    done[place / 64] >> (place % 64) & 1 == 1
}

struct Search<'a> {
    /// Calls in the order in which they were made.
    calls: Vec<&'a Call>,
    seen: BTreeSet<(Done, Option<String>)>,
}

impl Search<'_> {
    fn run(&mut self) -> Admission {
        let mut stack = vec![(Done::default(), None::<String>)];
        while let Some((done, value)) = stack.pop() {
            let open: Vec<usize> =
                (0..self.calls.len()).filter(|place| !is_done(&done, *place)).collect();
            if open.iter().all(|place| self.calls[*place].answered.is_none()) {
                return Admission::Linear;
            }
            if self.seen.len() > STATES_MAX {
                return Admission::Unknown;
            }
            for place in self.candidates(&open).into_iter().rev() {
                let call = self.calls[place];
                let (next, answer) = applied(value.as_deref(), &call.op);
                if call.answered.as_ref().is_none_or(|(_, told)| *told == answer) {
                    let mut done = done;
                    done[place / 64] |= 1 << (place % 64);
                    if self.seen.insert((done, next.clone())) {
                        stack.push((done, next));
                    }
                }
            }
        }
        Admission::Not
    }

    /// Returns the calls that may come next: those made before the first answer that is still to be
    /// explained. Answered calls come before unanswered ones, which may never have happened.
    fn candidates(&self, open: &[usize]) -> Vec<usize> {
        let answered = |place: &usize| self.calls[*place].answered.as_ref().map(|(at, _)| *at);
        let first = open.iter().filter_map(answered).min().unwrap_or(u64::MAX);
        let may = open.iter().take_while(|place| self.calls[**place].called < first);
        let (known, unknown): (Vec<usize>, Vec<usize>) =
            may.partition(|place| answered(place).is_some());
        known.into_iter().chain(unknown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(op: Op, called: u64, answered: Option<(u64, Answer)>) -> Call {
        Call { op, called, answered }
    }

    fn set(value: &str, called: u64, at: Option<u64>) -> Call {
        call(Op::Set(value.into()), called, at.map(|at| (at, Answer::Done)))
    }

    fn get(value: Option<&str>, called: u64, at: u64) -> Call {
        call(Op::Get, called, Some((at, Answer::Value(value.map(Into::into)))))
    }

    #[test]
    fn what_came_before_is_seen_after() {
        assert_eq!(judge(&[set("a", 1, Some(2)), get(Some("a"), 3, 4)]), Admission::Linear);
        assert_eq!(judge(&[set("a", 1, Some(2)), get(None, 3, 4)]), Admission::Not);
    }

    #[test]
    fn what_overlaps_may_come_either_way_but_not_both_ways() {
        let either = [set("a", 1, Some(9)), get(None, 2, 3), get(Some("a"), 4, 5)];
        assert_eq!(judge(&either), Admission::Linear);
        let back = [set("a", 1, Some(9)), get(Some("a"), 2, 3), get(None, 4, 5)];
        assert_eq!(judge(&back), Admission::Not, "a value that was seen does not go away");
    }

    #[test]
    fn what_was_never_answered_may_have_happened_late_or_never() {
        let late = [set("a", 1, None), get(None, 2, 3), get(Some("a"), 4, 5)];
        assert_eq!(judge(&late), Admission::Linear);
        assert_eq!(judge(&[set("a", 1, None), get(None, 2, 3)]), Admission::Linear);
        let gone = [set("a", 1, None), get(Some("a"), 2, 3), get(None, 4, 5)];
        assert_eq!(judge(&gone), Admission::Not);
    }

    #[test]
    fn a_counter_counts_every_answer_once() {
        let incr = |n, called, at| call(Op::Incr, called, Some((at, Answer::Count(n))));
        assert_eq!(judge(&[incr(1, 1, 5), incr(2, 2, 6), incr(3, 3, 7)]), Admission::Linear);
        assert_eq!(judge(&[incr(1, 1, 5), incr(1, 2, 6)]), Admission::Not);
        assert_eq!(judge(&[incr(2, 1, 2), incr(1, 3, 4)]), Admission::Not);
    }
}
