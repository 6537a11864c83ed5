//! The changes of the map as text, for clients that follow it: CLUSTER WATCH, CLUSTER HASHMASKS SINCE. Both have the
//! same form, so a client needs one parser. docs/protocol.md describes it.

use core::fmt::Write as _;
use std::sync::Arc;

use cluster::map::{Epoch, MapStep, StepError};
use cluster::status::name;
use resp::Protocol;

use super::format_node_id;
use super::ours::number;
use crate::context::Context;
use crate::{Error, SubscriptionKind};

/// The channel on which every change of the map is published.
pub const MAP_CHANNEL: &str = "__cluster__:map";

/// Writes a step of the map as text. The first line has the epoch, the epoch that the step follows on, and the
/// history that both belong to. Each further line is about one name, node or bucket; slots stand beside a bucket, so
/// that a client with a table of slots need not understand hashmasks.
pub fn describe(step: &MapStep) -> String {
    let map = &step.map;
    let (epoch, after, history) = (map.epoch(), step.after, map.generation().history());
    let mut text = format!("{epoch} {after} {history}\n");
    for name in &step.gone {
        let _ = writeln!(text, "gone {name}");
    }
    for member in step.members.iter().filter_map(|node| map.member(*node)) {
        let host = if member.at.host.is_empty() { "-" } else { &member.at.host };
        let (name, port, id) = (&member.name, member.at.client, format_node_id(member.id));
        let _ = writeln!(text, "node {name} {host} {port} {id}");
    }
    for bucket in step.buckets.iter().filter_map(|bucket| map.bucket(*bucket)) {
        let (hashmask, slots, epoch) = (bucket.hashmask, bucket.hashmask.slots(), bucket.epoch);
        let _ = write!(text, "bucket {hashmask} {} {} {epoch}", slots.start, slots.end - 1);
        for holder in &bucket.holders {
            let _ = write!(text, " {}", name(map, *holder));
        }
        text.push('\n');
    }
    text
}

/// Subscribes to changes of the map, and replies with its epoch.
pub(super) fn watch(context: &mut Context<'_>) -> Result<(), Error> {
    if context.session.protocol == Protocol::Resp2 {
        return Err(Error::new(format!(
            "ERR CLUSTER WATCH needs RESP3: send HELLO 3 first, or SUBSCRIBE {MAP_CHANNEL}"
        )));
    }
    let channel = MAP_CHANNEL.as_bytes();
    if let Some(kept) = context.session.subscriptions.add(SubscriptionKind::Channel, channel) {
        context.host.subscribe(context.session, SubscriptionKind::Channel, &kept);
    }
    // Read after the subscription: what has changed since is pushed.
    context.reply.integer(number(context.host.map_epoch().0));
    Ok(())
}

/// Replies with the changes since an epoch, which may be given with its history.
pub(super) fn hashmasks_since(context: &mut Context<'_>) -> Result<(), Error> {
    let epoch = u64::try_from(context.integer(3)?)
        .map_err(|_| Error::fixed("ERR an epoch is a number from 0 on"))?;
    let history = context.args.get(4).map(String::from_utf8_lossy);
    let step = context.host.map_since(Epoch(epoch), history.as_deref());
    let step = step.map_err(|refused| refusal(epoch, &refused))?;
    context.reply.bulk_shared(&Arc::new(describe(&step).into_bytes()));
    Ok(())
}

fn refusal(asked: u64, refused: &StepError) -> Error {
    Error::new(match refused {
        StepError::TooOld { known_since } => format!(
            "TOOOLD this node knows changes only since epoch {known_since}, not since {asked}; read all with CLUSTER \
             HASHMASKS SINCE 0"
        ),
        StepError::Ahead { epoch } => {
            format!("TRYAGAIN this node is at epoch {epoch}, and has not reached {asked} yet")
        }
        StepError::OtherHistory { history } => format!(
            "TOOOLD this node's map belongs to another history, {history}; read all with CLUSTER HASHMASKS SINCE 0"
        ),
    })
}

/// Makes the connection's subscriptions hear events of all keys.
pub(super) fn events(context: &mut Context<'_>) -> Result<(), Error> {
    if !context.args.at(2).eq_ignore_ascii_case(b"all") {
        return Err(Error::SYNTAX);
    }
    if !context.session.hears_all && !context.session.subscriptions.is_empty() {
        return Err(Error::fixed("ERR CLUSTER EVENTS ALL must come before the first subscription"));
    }
    context.session.hears_all = true;
    context.reply.ok();
    Ok(())
}

#[cfg(test)]
mod tests;
