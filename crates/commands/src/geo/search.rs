//! Searches: GEOSEARCH, GEOSEARCHSTORE, GEORADIUS, GEORADIUSBYMEMBER and their read-only forms. They look only at the
//! scores of a few cells of the grid, so the time depends on what lies there, not on the size of the set.

use store::{Element, Score, ScoredMember, SortedSetValue};

use super::cell::Position;
use super::cover;
use super::query::{Destination, Order, Query, SearchForm};
use super::shape::Shape;
use super::{reply_distance, reply_position};
use crate::Error;
use crate::context::Context;
use crate::sorted_sets::{check_size, sorted_of, store_row};

pub(super) fn georadius(context: &mut Context<'_>) -> Result<(), Error> {
    search(context, SearchForm::AROUND_POSITION)
}

pub(super) fn georadius_ro(context: &mut Context<'_>) -> Result<(), Error> {
    search(context, SearchForm::AROUND_POSITION.without_store())
}

pub(super) fn georadiusbymember(context: &mut Context<'_>) -> Result<(), Error> {
    search(context, SearchForm::AROUND_MEMBER)
}

pub(super) fn georadiusbymember_ro(context: &mut Context<'_>) -> Result<(), Error> {
    search(context, SearchForm::AROUND_MEMBER.without_store())
}

pub(super) fn geosearch(context: &mut Context<'_>) -> Result<(), Error> {
    search(context, SearchForm::SEARCH)
}

pub(super) fn geosearchstore(context: &mut Context<'_>) -> Result<(), Error> {
    search(context, SearchForm::SEARCH_AND_STORE)
}

/// A member in the area.
struct FoundMember {
    member: Vec<u8>,
    score: Score,
    position: Position,
    /// From the centre, in metres.
    distance: f64,
}

fn search(context: &mut Context<'_>, form: SearchForm) -> Result<(), Error> {
    let (key, seed) = (context.key(form.source_at), &context.keys.env().seed);
    let set = context.keys.read(&key).map(|found| sorted_of(&found)).transpose()?;
    let query = Query::parse(context.args, form, set, seed)?;
    let found = match (set, query.shape()) {
        (Some(set), Some(shape)) => find(set, &shape, &query),
        (None, _) | (_, None) => Vec::new(),
    };
    match query.destination {
        Some(destination) => store(context, &query, destination, form, &found),
        None => {
            reply(context, &query, &found);
            Ok(())
        }
    }
}

/// Returns the members in the area: sorted and limited as the query says.
fn find(set: SortedSetValue<'_>, shape: &Shape, query: &Query) -> Vec<FoundMember> {
    let limit = if query.takes_any { query.count } else { None };
    let mut found = Vec::new();
    for cell in cover::cells(shape) {
        let (first, end) = cell.scores();
        let rank = set.partition_point(|it| it.score.get() < first);
        let members = set.iter_from(rank).take_while(|it| it.score.get() < end);
        let room = limit.map_or(usize::MAX, |limit| limit - found.len());
        found.extend(members.filter_map(|it| found_in(shape, it)).take(room));
        if limit == Some(found.len()) {
            break;
        }
    }
    // The nearest come first if only some are wanted.
    let is_limited = query.count.is_some() && !query.takes_any;
    match query.order.or(is_limited.then_some(Order::Ascending)) {
        Some(Order::Ascending) => found.sort_by(|a, b| a.distance.total_cmp(&b.distance)),
        Some(Order::Descending) => found.sort_by(|a, b| b.distance.total_cmp(&a.distance)),
        None => {}
    }
    found.truncate(query.count.unwrap_or(usize::MAX));
    found
}

fn found_in(shape: &Shape, it: ScoredMember<'_>) -> Option<FoundMember> {
    let position = Position::of_score(it.score.get());
    let distance = shape.distance(position)?;
    let member = it.member.to_text().into_owned();
    Some(FoundMember { member, score: it.score, position, distance })
}

fn reply(context: &mut Context<'_>, query: &Query, found: &[FoundMember]) {
    let reply = &mut context.reply;
    reply.array(found.len());
    for it in found {
        if query.reply_parts() > 0 {
            reply.array(1 + query.reply_parts());
        }
        reply.bulk(&it.member);
        if query.with_distance {
            reply_distance(reply, query.in_unit(it.distance));
        }
        if query.with_hash {
            reply.integer(it.score.get() as i64);
        }
        if query.with_position {
            reply_position(reply, it.position);
        }
    }
}

fn store(
    context: &mut Context<'_>,
    query: &Query,
    destination: Destination,
    form: SearchForm,
    found: &[FoundMember],
) -> Result<(), Error> {
    let score = |it: &FoundMember| match destination.as_distances {
        true => Score::new(query.in_unit(it.distance)),
        false => Some(it.score),
    };
    let mut members: Vec<ScoredMember<'_>> = found
        .iter()
        .filter_map(|it| Some(ScoredMember { score: score(it)?, member: Element::of(&it.member) }))
        .collect();
    members.sort_unstable();
    let mut row = Vec::new();
    members.iter().for_each(|it| it.write(&mut row));
    check_size(row.len(), "stored")?;
    let key = context.key(destination.key_at);
    let event = if form.is_search() { "geosearchstore" } else { "georadiusstore" };
    store_row(context, key, &row, event);
    context.reply.integer(members.len().cast_signed() as i64);
    Ok(())
}
