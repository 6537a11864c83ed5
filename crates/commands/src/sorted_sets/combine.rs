//! Combines several sorted sets: ZUNION, ZINTER, ZDIFF, their storing forms, ZINTERCARD.
//!
//! Only one input is borrowed at a time: keys of different slots may be locked, but not read together.

use std::collections::BTreeMap;

use store::{
    Element, Found, Score, ScoredMember, Seed, SetValue, SortedSetValue, StoredValue, TablePosition,
};

use super::number::parse_float;
use super::{check_size, reply_members, store_row};
use crate::Error;
use crate::context::Context;
use crate::keys::Keys;

/// Number of members that ZINTERCARD looks up in the other inputs at a time.
const CHUNK_LEN: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

#[derive(Clone, Copy)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    /// Combines two scores. As in Redis, a sum that is no number is 0, and `other` may be none (infinity times 0).
    fn of(self, one: f64, other: f64) -> f64 {
        match self {
            Aggregate::Sum => number_or_zero(one + other),
            Aggregate::Min if other < one => other,
            Aggregate::Max if other > one => other,
            Aggregate::Min | Aggregate::Max => one,
        }
    }
}

fn number_or_zero(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// The use of the result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    Reply,
    Store(&'static str),
    Count,
}

pub(super) fn zunion(context: &mut Context<'_>) -> Result<(), Error> {
    combine(context, Operation::Union, Output::Reply)
}

pub(super) fn zunionstore(context: &mut Context<'_>) -> Result<(), Error> {
    combine(context, Operation::Union, Output::Store("zunionstore"))
}

pub(super) fn zinter(context: &mut Context<'_>) -> Result<(), Error> {
    combine(context, Operation::Intersection, Output::Reply)
}

pub(super) fn zinterstore(context: &mut Context<'_>) -> Result<(), Error> {
    combine(context, Operation::Intersection, Output::Store("zinterstore"))
}

pub(super) fn zintercard(context: &mut Context<'_>) -> Result<(), Error> {
    combine(context, Operation::Intersection, Output::Count)
}

pub(super) fn zdiff(context: &mut Context<'_>) -> Result<(), Error> {
    combine(context, Operation::Difference, Output::Reply)
}

pub(super) fn zdiffstore(context: &mut Context<'_>) -> Result<(), Error> {
    combine(context, Operation::Difference, Output::Store("zdiffstore"))
}

fn combine(context: &mut Context<'_>, operation: Operation, output: Output) -> Result<(), Error> {
    let mut inputs = read_inputs(context)?;
    let options = CombineOptions::parse(context, operation, output, &mut inputs)?;
    if operation != Operation::Difference {
        // The smallest first, as in Redis: the order decides how sums are rounded.
        inputs.sort_by_key(|input| input.len);
    }
    let keys = &mut context.keys;
    if output == Output::Count {
        let count = intersection_len(keys, &inputs, options.limit);
        context.reply.integer(count.cast_signed() as i64);
        return Ok(());
    }
    let members = match operation {
        Operation::Union => union(keys, &inputs, options.aggregate),
        Operation::Intersection => intersection(keys, &inputs, options.aggregate)?,
        Operation::Difference => difference(keys, &inputs)?,
    };
    let scored = |(member, score): &(Vec<u8>, f64)| -> Option<(Score, Vec<u8>)> {
        Some((Score::new(*score)?, member.clone()))
    };
    let mut sorted: Vec<(Score, Vec<u8>)> = members.iter().filter_map(scored).collect();
    sorted.sort_unstable();
    let count = sorted.len();
    let members = sorted
        .iter()
        .map(|(score, text)| ScoredMember { score: *score, member: Element::of(text) });
    if let Output::Store(event) = output {
        let mut row = Vec::new();
        members.for_each(|it| it.write(&mut row));
        check_size(row.len(), "stored")?;
        let destination = context.key(1);
        store_row(context, destination, &row, event);
        context.reply.integer(count.cast_signed() as i64);
    } else {
        reply_members(&mut context.reply, members, count, options.with_scores);
    }
    Ok(())
}

/// One of the sets to combine.
struct Input<'a> {
    key: &'a [u8],
    len: usize,
    weight: f64,
}

/// Looks up all inputs, and counts their members.
fn read_inputs<'a>(context: &mut Context<'a>) -> Result<Vec<Input<'a>>, Error> {
    if context.integer(context.spec.key_count_at)? < 1 {
        return Err(Error::new(format!(
            "ERR at least 1 input key is needed for '{}' command",
            context.spec.full_name
        )));
    }
    let indices = context.spec.counted_keys(context.args);
    if indices.is_empty() {
        return Err(Error::SYNTAX);
    }
    let mut inputs = Vec::with_capacity(indices.len());
    for index in indices {
        let key = context.key(index);
        let found = context.keys.read(&key);
        let members = found.map(|found| InputMembers::of(&found)).transpose()?;
        let len = members.map_or(0, InputMembers::len);
        inputs.push(Input { key: context.args.at(index), len, weight: 1.0 });
    }
    Ok(inputs)
}

/// The members of an input, borrowed while its slot is locked. Those of a plain set have the score 1.
#[derive(Clone, Copy)]
enum InputMembers<'a> {
    Sorted(SortedSetValue<'a>),
    Plain(SetValue<'a>),
}

impl<'a> InputMembers<'a> {
    fn of(found: &Found<'a>) -> Result<InputMembers<'a>, Error> {
        match found.value() {
            StoredValue::SortedSet(set) => Ok(InputMembers::Sorted(set)),
            StoredValue::Set(set) => Ok(InputMembers::Plain(set)),
            StoredValue::String(_)
            | StoredValue::Hash(_)
            | StoredValue::List(_)
            | StoredValue::Stream(_) => Err(Error::WRONG_TYPE),
        }
    }

    fn len(self) -> usize {
        match self {
            InputMembers::Sorted(set) => set.len(),
            InputMembers::Plain(set) => set.len(),
        }
    }

    fn score(self, member: &[u8], seed: &Seed) -> Option<f64> {
        match self {
            InputMembers::Sorted(set) => set.score(member, seed).map(Score::get),
            InputMembers::Plain(set) => set.contains(Element::of(member), seed).then_some(1.0),
        }
    }

    /// Returns some members, and the position of those after them. The first position is 0.
    fn chunk(self, seed: &Seed, from: u64) -> (Vec<Vec<u8>>, Option<u64>) {
        let mut texts = Vec::new();
        match self {
            InputMembers::Sorted(set) => {
                let rank = usize::try_from(from).unwrap_or(usize::MAX);
                let members = set.iter_from(rank).take(CHUNK_LEN);
                texts.extend(members.map(|it| it.member.to_text().into_owned()));
                let next = (texts.len() == CHUNK_LEN).then_some(from + CHUNK_LEN as u64);
                (texts, next)
            }
            InputMembers::Plain(set) => {
                let next = set.scan(seed, TablePosition(from), |member| {
                    texts.push(member.to_text().into_owned());
                    texts.len() < CHUNK_LEN
                });
                (texts, next.map(|position| position.0))
            }
        }
    }

    fn for_each(self, mut visit: impl FnMut(Element<'_>, f64)) {
        match self {
            InputMembers::Sorted(set) => {
                set.iter_from(0).for_each(|it| visit(it.member, it.score.get()));
            }
            InputMembers::Plain(set) => set.members().for_each(|member| visit(member, 1.0)),
        }
    }
}

/// Returns the members of an input again; `None` if the key is missing. Its type was checked.
fn members_of<'k>(keys: &'k mut Keys<'_>, input: &Input<'_>) -> Option<InputMembers<'k>> {
    let key = keys.key(input.key);
    keys.peek(&key).and_then(|found| InputMembers::of(&found).ok())
}

/// Members with their combined scores.
type Combined = Vec<(Vec<u8>, f64)>;

fn union(keys: &mut Keys<'_>, inputs: &[Input<'_>], aggregate: Aggregate) -> Combined {
    let mut scores: BTreeMap<Vec<u8>, f64> = BTreeMap::new();
    for input in inputs {
        let Some(members) = members_of(keys, input) else { continue };
        members.for_each(|member, score| {
            let score = number_or_zero(score * input.weight);
            member.with_text(|text| match scores.get_mut(text) {
                Some(sum) => *sum = aggregate.of(*sum, score),
                None => {
                    scores.insert(text.to_vec(), score);
                }
            });
        });
    }
    scores.into_iter().collect()
}

fn intersection(
    keys: &mut Keys<'_>,
    inputs: &[Input<'_>],
    aggregate: Aggregate,
) -> Result<Combined, Error> {
    let (mut combined, others) = weighted_first(keys, inputs)?;
    let seed = &keys.env().seed;
    for input in others {
        let Some(members) = members_of(keys, input) else { return Ok(Vec::new()) };
        combined.retain_mut(|(member, sum)| match members.score(member, seed) {
            Some(score) => {
                *sum = aggregate.of(*sum, score * input.weight);
                true
            }
            None => false,
        });
    }
    Ok(combined)
}

/// Returns the number of members that are in all inputs, but not more than `limit`. Looks at the first input in chunks, and
/// ends when enough are found.
fn intersection_len(keys: &mut Keys<'_>, inputs: &[Input<'_>], limit: usize) -> usize {
    let Some((first, others)) = inputs.split_first() else { return 0 };
    let seed = &keys.env().seed;
    let (mut count, mut from) = (0, Some(0));
    while let Some(position) = from.filter(|_| count < limit) {
        let chunk = members_of(keys, first).map(|members| members.chunk(seed, position));
        let Some((mut texts, next)) = chunk else { return 0 };
        for input in others {
            let Some(members) = members_of(keys, input) else { return 0 };
            texts.retain(|text| members.score(text, seed).is_some());
        }
        count += texts.len();
        from = next;
    }
    count.min(limit)
}

fn difference(keys: &mut Keys<'_>, inputs: &[Input<'_>]) -> Result<Combined, Error> {
    let (mut combined, others) = weighted_first(keys, inputs)?;
    let seed = &keys.env().seed;
    for input in others {
        if let Some(members) = members_of(keys, input) {
            combined.retain(|(member, _)| members.score(member, seed).is_none());
        }
    }
    Ok(combined)
}

/// Returns the members of the first input with their weighted scores, and the other inputs.
fn weighted_first<'i, 'a>(
    keys: &mut Keys<'_>,
    inputs: &'i [Input<'a>],
) -> Result<(Combined, &'i [Input<'a>]), Error> {
    let (first, others) = inputs.split_first().ok_or(Error::SYNTAX)?;
    let mut combined = Vec::with_capacity(first.len);
    if let Some(members) = members_of(keys, first) {
        members.for_each(|member, score| {
            combined.push((member.to_text().into_owned(), number_or_zero(score * first.weight)));
        });
    }
    Ok((combined, others))
}

/// The options behind the keys, except the weights, which go to their inputs.
struct CombineOptions {
    aggregate: Aggregate,
    with_scores: bool,
    /// Maximum count of ZINTERCARD.
    limit: usize,
}

impl CombineOptions {
    fn parse(
        context: &Context<'_>,
        operation: Operation,
        output: Output,
        inputs: &mut [Input<'_>],
    ) -> Result<CombineOptions, Error> {
        let args = context.args;
        let (is_counted, is_stored) = (output == Output::Count, matches!(output, Output::Store(_)));
        let has_weights = operation != Operation::Difference && !is_counted;
        let mut options =
            CombineOptions { aggregate: Aggregate::Sum, with_scores: false, limit: usize::MAX };
        let mut index = context.spec.counted_keys(args).end;
        while index < args.len() {
            let left = args.len() - index;
            index += match args.at(index).to_ascii_lowercase().as_slice() {
                b"weights" if has_weights && left > inputs.len() => {
                    for (input, text) in inputs.iter_mut().zip(args.from(index + 1)) {
                        input.weight = parse_float(text)
                            .ok_or(const { Error::fixed("ERR weight value is not a float") })?;
                    }
                    inputs.len() + 1
                }
                b"aggregate" if has_weights && left >= 2 => {
                    options.aggregate = parse_aggregate(args.at(index + 1))?;
                    2
                }
                b"withscores" if !is_stored && !is_counted => {
                    options.with_scores = true;
                    1
                }
                b"limit" if is_counted && left >= 2 => {
                    options.limit = parse_limit(args.at(index + 1))?;
                    2
                }
                _ => return Err(Error::SYNTAX),
            };
        }
        Ok(options)
    }
}

fn parse_aggregate(word: &[u8]) -> Result<Aggregate, Error> {
    match word.to_ascii_lowercase().as_slice() {
        b"sum" => Ok(Aggregate::Sum),
        b"min" => Ok(Aggregate::Min),
        b"max" => Ok(Aggregate::Max),
        _ => Err(Error::SYNTAX),
    }
}

/// Parses the limit of ZINTERCARD; 0 means none.
fn parse_limit(text: &[u8]) -> Result<usize, Error> {
    let limit = resp::parse_integer(text).and_then(|limit| usize::try_from(limit).ok());
    match limit.ok_or(const { Error::fixed("ERR LIMIT can't be negative") })? {
        0 => Ok(usize::MAX),
        limit => Ok(limit),
    }
}
