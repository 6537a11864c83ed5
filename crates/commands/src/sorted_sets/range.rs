//! Ranges of members: ZRANGE, its older forms, ZRANGESTORE.

use core::ops::Range;

use store::SortedSetValue;

use super::bounds::{MemberRange, RangeKind};
use super::{check_size, reply_members, sorted_of, store_row};
use crate::Error;
use crate::context::Context;

/// The parts of a range command that its name decides.
#[derive(Clone, Copy)]
struct RangeForm {
    /// The index of the key.
    key_at: usize,
    /// `None` if an option decides.
    kind: Option<RangeKind>,
    /// `None` if an option decides.
    is_reverse: Option<bool>,
    stores: bool,
}

const OPEN: RangeForm = RangeForm { key_at: 1, kind: None, is_reverse: None, stores: false };

pub(super) fn zrange(context: &mut Context<'_>) -> Result<(), Error> {
    range(context, OPEN)
}

pub(super) fn zrevrange(context: &mut Context<'_>) -> Result<(), Error> {
    older(context, RangeKind::Ranks, true)
}

pub(super) fn zrangebyscore(context: &mut Context<'_>) -> Result<(), Error> {
    older(context, RangeKind::Scores, false)
}

pub(super) fn zrevrangebyscore(context: &mut Context<'_>) -> Result<(), Error> {
    older(context, RangeKind::Scores, true)
}

pub(super) fn zrangebylex(context: &mut Context<'_>) -> Result<(), Error> {
    older(context, RangeKind::Texts, false)
}

pub(super) fn zrevrangebylex(context: &mut Context<'_>) -> Result<(), Error> {
    older(context, RangeKind::Texts, true)
}

fn older(context: &mut Context<'_>, kind: RangeKind, is_reverse: bool) -> Result<(), Error> {
    range(context, RangeForm { kind: Some(kind), is_reverse: Some(is_reverse), ..OPEN })
}

fn range(context: &mut Context<'_>, form: RangeForm) -> Result<(), Error> {
    let query = RangeQuery::parse(context, form)?;
    let key = context.key(form.key_at);
    let Some(set) = context.keys.read(&key).map(|found| sorted_of(&found)).transpose()? else {
        context.reply.array(0);
        return Ok(());
    };
    let ranks = query.ranks(set);
    let count = ranks.len();
    if query.is_reverse {
        let members = set.iter_back_from(ranks.end).take(count);
        reply_members(&mut context.reply, members, count, query.with_scores);
    } else {
        let members = set.iter_from(ranks.start).take(count);
        reply_members(&mut context.reply, members, count, query.with_scores);
    }
    Ok(())
}

pub(super) fn zrangestore(context: &mut Context<'_>) -> Result<(), Error> {
    let query = RangeQuery::parse(context, RangeForm { key_at: 2, stores: true, ..OPEN })?;
    let (destination, source) = (context.key(1), context.key(2));
    let set = context.keys.read(&source).map(|found| sorted_of(&found)).transpose()?;
    let (mut row, mut count) = (Vec::new(), 0);
    if let Some(set) = set {
        let ranks = query.ranks(set);
        count = ranks.len();
        set.iter_from(ranks.start).take(count).for_each(|it| it.write(&mut row));
        check_size(row.len(), "stored")?;
    }
    store_row(context, destination, &row, "zrangestore");
    context.reply.integer(count.cast_signed() as i64);
    Ok(())
}

/// A range with its options.
struct RangeQuery<'a> {
    range: MemberRange<'a>,
    is_reverse: bool,
    with_scores: bool,
    /// Members to leave out at the beginning; negative: all of them.
    offset: i64,
    /// Maximum number of members; negative: no maximum.
    limit: i64,
}

impl<'a> RangeQuery<'a> {
    fn parse(context: &Context<'a>, form: RangeForm) -> Result<RangeQuery<'a>, Error> {
        let args = context.args;
        let (mut kind, mut is_reverse, mut with_scores) = (form.kind, form.is_reverse, false);
        let (mut offset, mut limit) = (0, -1);
        let mut index = form.key_at + 3;
        while index < args.len() {
            let has_two_more = args.len() - index > 2;
            match args.at(index).to_ascii_lowercase().as_slice() {
                b"withscores" if !form.stores => with_scores = true,
                b"limit" if has_two_more => {
                    (offset, limit) = (context.integer(index + 1)?, context.integer(index + 2)?);
                    index += 2;
                }
                b"rev" if is_reverse.is_none() => is_reverse = Some(true),
                b"bylex" if kind.is_none() => kind = Some(RangeKind::Texts),
                b"byscore" if kind.is_none() => kind = Some(RangeKind::Scores),
                _ => return Err(Error::SYNTAX),
            }
            index += 1;
        }
        let (kind, is_reverse) = (kind.unwrap_or(RangeKind::Ranks), is_reverse.unwrap_or(false));
        if kind == RangeKind::Ranks && limit != -1 {
            return Err(Error::fixed(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or \
                 BYLEX",
            ));
        }
        if kind == RangeKind::Texts && with_scores {
            return Err(Error::fixed(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        let (first, second) = (form.key_at + 1, form.key_at + 2);
        let is_swapped = is_reverse && kind != RangeKind::Ranks;
        let limits = if is_swapped { (second, first) } else { (first, second) };
        let range = MemberRange::parse(context, kind, limits)?;
        let offset = if kind == RangeKind::Ranks { 0 } else { offset };
        Ok(RangeQuery { range, is_reverse, with_scores, offset, limit })
    }

    /// Returns the ranks of the selected members, in ascending order whatever the direction is.
    fn ranks(&self, set: SortedSetValue<'_>) -> Range<usize> {
        let Range { start, end } = self.range.ranks(set, self.is_reverse);
        let skipped = usize::try_from(self.offset).unwrap_or(usize::MAX).min(end - start);
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let count = (end - start - skipped).min(limit);
        if self.is_reverse {
            let end = end - skipped;
            end - count..end
        } else {
            let start = start + skipped;
            start..start + count
        }
    }
}
