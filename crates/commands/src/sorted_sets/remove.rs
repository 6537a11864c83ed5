//! Removes members: ZREM, ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZREMRANGEBYLEX.

use std::collections::BTreeSet;

use core::ops::Range;

use settings::NotifyClasses;
use store::{Cause, Effect, Element, Key, SortedSetValue};

use super::bounds::{MemberRange, RangeKind};
use super::{check_size, sorted_of};
use crate::Error;
use crate::context::Context;
use crate::keys::Keys;

pub(super) fn zrem(context: &mut Context<'_>) -> Result<(), Error> {
    let (key, seed) = (context.key(1), &context.keys.env().seed);
    let Some(set) = context.keys.find(&key).map(|found| sorted_of(&found)).transpose()? else {
        context.reply.integer(0);
        return Ok(());
    };
    let present = context.args.from(2).filter(|member| set.score(member, seed).is_some());
    let present: BTreeSet<&[u8]> = present.collect();
    if !present.is_empty() {
        let mut removal = Removal { members: Vec::new(), is_emptied: present.len() == set.len() };
        present.iter().for_each(|member| Element::of(member).write(&mut removal.members));
        removal.apply(&mut context.keys, key, "zrem");
    }
    context.reply.integer(present.len().cast_signed() as i64);
    Ok(())
}

pub(super) fn zremrangebyrank(context: &mut Context<'_>) -> Result<(), Error> {
    remove_range(context, RangeKind::Ranks, "zremrangebyrank")
}

pub(super) fn zremrangebyscore(context: &mut Context<'_>) -> Result<(), Error> {
    remove_range(context, RangeKind::Scores, "zremrangebyscore")
}

pub(super) fn zremrangebylex(context: &mut Context<'_>) -> Result<(), Error> {
    remove_range(context, RangeKind::Texts, "zremrangebylex")
}

fn remove_range(
    context: &mut Context<'_>,
    kind: RangeKind,
    event: &'static str,
) -> Result<(), Error> {
    let range = MemberRange::parse(context, kind, (2, 3))?;
    let key = context.key(1);
    let set = context.keys.find(&key).map(|found| sorted_of(&found)).transpose()?;
    let mut removed = 0;
    if let Some(set) = set {
        let ranks = range.ranks(set, false);
        removed = ranks.len();
        if removed > 0 {
            let removal = Removal::of_ranks(set, ranks)?;
            removal.apply(&mut context.keys, key, event);
        }
    }
    context.reply.integer(removed.cast_signed() as i64);
    Ok(())
}

/// Members that are about to be removed.
pub(super) struct Removal {
    /// The members in a row.
    members: Vec<u8>,
    /// True if these are all members of the set.
    is_emptied: bool,
}

impl Removal {
    /// Returns the removal of a range of ranks. Fails if it is too large for one effect.
    pub(super) fn of_ranks(set: SortedSetValue<'_>, ranks: Range<usize>) -> Result<Removal, Error> {
        let is_emptied = ranks.len() == set.len();
        let mut members = Vec::new();
        if !is_emptied {
            let ranked = set.iter_from(ranks.start).take(ranks.len());
            ranked.for_each(|it| it.member.write(&mut members));
            check_size(members.len(), "removed")?;
        }
        Ok(Removal { members, is_emptied })
    }

    /// Removes the members, and publishes the event.
    pub(super) fn apply(&self, keys: &mut Keys<'_>, key: Key<'_>, event: &'static str) {
        if self.is_emptied {
            keys.apply(&Effect::Remove { key, cause: Cause::Deleted });
        } else {
            keys.apply(&Effect::RemoveScored { key, members: &self.members });
        }
        keys.notify(NotifyClasses::ZSET, event, key.bytes());
        if self.is_emptied {
            keys.notify(NotifyClasses::GENERIC, "del", key.bytes());
        }
    }
}
