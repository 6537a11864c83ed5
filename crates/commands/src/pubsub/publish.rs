//! Publishing messages, and listing subscriptions: PUBLISH, SPUBLISH, PUBSUB.

use crate::context::Context;
use crate::host::Post;
use crate::{Announcement, Error, Space};

pub(super) fn publish(context: &mut Context<'_>) -> Result<(), Error> {
    publish_to(context, Space::Global)
}

pub(super) fn spublish(context: &mut Context<'_>) -> Result<(), Error> {
    publish_to(context, Space::Sharded)
}

fn publish_to(context: &mut Context<'_>, space: Space) -> Result<(), Error> {
    let post = Post { space, channel: context.args.at(1), payload: context.args.at(2) };
    let before = context.keys.announcements();
    let receivers = if before.is_empty() {
        context.host.publish(context.session, post)
    } else {
        // Inside EXEC: the message leaves behind the events of earlier commands.
        before.push(Announcement::of_message(post));
        context.host.count_receivers(post)
    };
    context.reply.integer(receivers as i64);
    Ok(())
}

pub(super) fn channels(context: &mut Context<'_>) -> Result<(), Error> {
    list_channels(context, Space::Global)
}

pub(super) fn shardchannels(context: &mut Context<'_>) -> Result<(), Error> {
    list_channels(context, Space::Sharded)
}

fn list_channels(context: &mut Context<'_>, space: Space) -> Result<(), Error> {
    if context.args.len() > 3 {
        return Err(Error::wrong_subcommand_arity("PUBSUB", context.args.at(1)));
    }
    let channels = context.host.channels(space, context.args.get(2));
    context.reply.array(channels.len());
    channels.iter().for_each(|channel| context.reply.bulk(channel));
    Ok(())
}

pub(super) fn numsub(context: &mut Context<'_>) -> Result<(), Error> {
    count_subscribers(context, Space::Global)
}

pub(super) fn shardnumsub(context: &mut Context<'_>) -> Result<(), Error> {
    count_subscribers(context, Space::Sharded)
}

fn count_subscribers(context: &mut Context<'_>, space: Space) -> Result<(), Error> {
    let channels = context.args.from(2);
    // A flat array in both protocols: Redis never made it a map.
    context.reply.array(channels.len() * 2);
    for channel in channels {
        context.reply.bulk(channel);
        context.reply.integer(context.host.subscribers(space, channel) as i64);
    }
    Ok(())
}

pub(super) fn numpat(context: &mut Context<'_>) -> Result<(), Error> {
    context.reply.integer(context.host.pattern_count() as i64);
    Ok(())
}
