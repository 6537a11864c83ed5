//! Sets scores: ZADD, ZINCRBY. They keep the key's expiry.

use std::collections::BTreeMap;

use settings::NotifyClasses;
use store::{Effect, Element, Score, ScoredMember};

use super::number::parse_float;
use super::sorted_of;
use crate::Error;
use crate::context::Context;

const NOT_A_NUMBER: Error = Error::fixed("ERR resulting score is not a number (NaN)");

/// The options of ZADD.
#[derive(Default)]
pub(crate) struct AddOptions {
    pub(crate) only_new: bool,
    pub(crate) only_present: bool,
    only_greater: bool,
    only_less: bool,
    pub(crate) counts_changed: bool,
    increments: bool,
}

/// The result of setting one score.
enum Added {
    /// The options forbid it.
    Not,
    /// The member has this score already.
    Same(Score),
    New(Score),
    Changed(Score),
}

pub(super) fn zadd(context: &mut Context<'_>) -> Result<(), Error> {
    let (options, first) = AddOptions::parse(context);
    let elements = context.args.len() - first;
    if elements == 0 || !elements.is_multiple_of(2) {
        return Err(Error::SYNTAX);
    }
    options.check(elements / 2)?;
    add(context, &options, first)
}

pub(super) fn zincrby(context: &mut Context<'_>) -> Result<(), Error> {
    add(context, &AddOptions { increments: true, ..AddOptions::default() }, 2)
}

impl AddOptions {
    /// Returns the options, and the index of the first score.
    fn parse(context: &Context<'_>) -> (AddOptions, usize) {
        let mut options = AddOptions::default();
        let mut index = 2;
        while let Some(word) = context.args.get(index) {
            match word.to_ascii_lowercase().as_slice() {
                b"nx" => options.only_new = true,
                b"xx" => options.only_present = true,
                b"gt" => options.only_greater = true,
                b"lt" => options.only_less = true,
                b"ch" => options.counts_changed = true,
                b"incr" => options.increments = true,
                _ => break,
            }
            index += 1;
        }
        (options, index)
    }

    fn check(&self, pairs: usize) -> Result<(), Error> {
        if self.only_new && self.only_present {
            return Err(Error::fixed("ERR XX and NX options at the same time are not compatible"));
        }
        let (greater, less) = (self.only_greater, self.only_less);
        if self.only_new && (greater || less) || greater && less {
            return Err(Error::fixed(
                "ERR GT, LT, and/or NX options at the same time are not compatible",
            ));
        }
        if self.increments && pairs > 1 {
            return Err(Error::fixed("ERR INCR option supports a single increment-element pair"));
        }
        Ok(())
    }

    /// Decides on one score.
    fn decide(&self, old: Option<Score>, given: Score) -> Result<Added, Error> {
        let Some(old) = old else {
            return Ok(if self.only_present { Added::Not } else { Added::New(given) });
        };
        if self.only_new {
            return Ok(Added::Not);
        }
        let sum = if self.increments { given.get() + old.get() } else { given.get() };
        let new = Score::new(sum).ok_or(NOT_A_NUMBER)?;
        if self.only_less && new >= old || self.only_greater && new <= old {
            return Ok(Added::Not);
        }
        Ok(if new == old { Added::Same(new) } else { Added::Changed(new) })
    }
}

/// Scores that are about to be set, in the order of the arguments.
#[derive(Default)]
struct Changes<'a> {
    scores: Vec<(&'a [u8], Score)>,
    /// The index of each member, if there are several arguments: a member may be given twice.
    indices: BTreeMap<&'a [u8], usize>,
    new: usize,
    changed: usize,
    /// The score of the last member that the options allowed.
    last: Option<Score>,
}

impl<'a> Changes<'a> {
    fn score(&self, member: &[u8]) -> Option<Score> {
        self.indices.get(member).map(|index| self.scores[*index].1)
    }

    fn note(&mut self, member: &'a [u8], added: &Added, is_only: bool) {
        let score = match added {
            Added::Not => return,
            Added::Same(score) | Added::New(score) | Added::Changed(score) => *score,
        };
        self.last = Some(score);
        match added {
            Added::Not | Added::Same(_) => return,
            Added::New(_) => self.new += 1,
            Added::Changed(_) => self.changed += 1,
        }
        match self.indices.get(member) {
            Some(index) => self.scores[*index].1 = score,
            None => {
                if !is_only {
                    self.indices.insert(member, self.scores.len());
                }
                self.scores.push((member, score));
            }
        }
    }

    fn to_row(&self) -> Vec<u8> {
        let bytes: usize = self.scores.iter().map(|(member, _)| member.len() + 11).sum();
        let mut row = Vec::with_capacity(bytes);
        for (member, score) in &self.scores {
            ScoredMember { score: *score, member: Element::of(member) }.write(&mut row);
        }
        row
    }
}

/// Sets the scores of the pairs from the argument `first` on.
fn add(context: &mut Context<'_>, options: &AddOptions, first: usize) -> Result<(), Error> {
    let args = context.args;
    let mut scores = Vec::with_capacity((args.len() - first) / 2);
    for index in (first..args.len()).step_by(2) {
        let score = parse_float(args.at(index)).and_then(Score::new).ok_or(Error::NOT_A_FLOAT)?;
        scores.push((args.at(index + 1), score));
    }
    add_scores(context, options, &scores)
}

/// Sets scores of members of the first key.
pub(crate) fn add_scores(
    context: &mut Context<'_>,
    options: &AddOptions,
    scores: &[(&[u8], Score)],
) -> Result<(), Error> {
    let (key, seed) = (context.key(1), &context.keys.env().seed);
    let set = context.keys.find(&key).map(|found| sorted_of(&found)).transpose()?;
    let mut changes = Changes::default();
    for (member, score) in scores {
        let stored = || set.and_then(|set| set.score(member, seed));
        let added = options.decide(changes.score(member).or_else(stored), *score)?;
        changes.note(member, &added, scores.len() == 1);
    }
    if changes.new + changes.changed > 0 {
        context.keys.apply(&Effect::SetScores { key, pairs: &changes.to_row() });
        let event = if options.increments { "zincr" } else { "zadd" };
        context.keys.notify(NotifyClasses::ZSET, event, key.bytes());
    }
    match (options.increments, changes.last) {
        (true, Some(score)) => context.reply.double(score.get()),
        (true, None) => context.reply.null(),
        (false, _) => {
            let changed = if options.counts_changed { changes.changed } else { 0 };
            context.reply.integer((changes.new + changed).cast_signed() as i64);
        }
    }
    Ok(())
}
