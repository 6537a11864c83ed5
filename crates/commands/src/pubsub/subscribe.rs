//! Starting and ending subscriptions: (P|S)SUBSCRIBE, (P|S)UNSUBSCRIBE.

use resp::Reply;

use crate::context::Context;
use crate::glob::checked_pattern;
use crate::{Error, Host, Session, SubscriptionKind};

pub(super) fn subscribe(context: &mut Context<'_>) -> Result<(), Error> {
    add_all(context, SubscriptionKind::Channel)
}

pub(super) fn psubscribe(context: &mut Context<'_>) -> Result<(), Error> {
    add_all(context, SubscriptionKind::Pattern)
}

pub(super) fn ssubscribe(context: &mut Context<'_>) -> Result<(), Error> {
    add_all(context, SubscriptionKind::ShardChannel)
}

pub(super) fn unsubscribe(context: &mut Context<'_>) -> Result<(), Error> {
    remove_all(context, SubscriptionKind::Channel)
}

pub(super) fn punsubscribe(context: &mut Context<'_>) -> Result<(), Error> {
    remove_all(context, SubscriptionKind::Pattern)
}

pub(super) fn sunsubscribe(context: &mut Context<'_>) -> Result<(), Error> {
    remove_all(context, SubscriptionKind::ShardChannel)
}

/// Ends all subscriptions of a connection without messages, as RESET does.
pub(crate) fn silence(session: &mut Session, host: &mut dyn Host) {
    for kind in SubscriptionKind::ALL {
        for name in session.subscriptions.list(kind) {
            session.subscriptions.remove(kind, &name);
            host.unsubscribe(session, kind, &name);
        }
    }
}

/// Ends a connection's subscription to a shard channel whose slot another node serves now, and notifies the client,
/// which then subscribes at the new node.
pub fn dismiss(session: &mut Session, name: &[u8], reply: &mut Reply<'_>) {
    let kind = SubscriptionKind::ShardChannel;
    if session.subscriptions.remove(kind, name) {
        reply.push(3);
        reply.bulk(kind.unsubscribed_word().as_bytes());
        reply.bulk(name);
        reply.integer(session.subscriptions.reported_count(kind) as i64);
    }
}

fn add_all(context: &mut Context<'_>, kind: SubscriptionKind) -> Result<(), Error> {
    if kind == SubscriptionKind::Pattern {
        context.args.from(1).try_for_each(|pattern| checked_pattern(pattern).map(|_| ()))?;
    }
    for name in context.args.from(1) {
        if let Some(kept) = context.session.subscriptions.add(kind, name) {
            context.host.subscribe(context.session, kind, &kept);
        }
        confirm(context, kind, kind.subscribed_word(), Some(name));
    }
    Ok(())
}

/// Ends the named subscriptions. Without names it ends all subscriptions of the kind, each with its own
/// confirmation; if there are none, it sends one confirmation without a name.
fn remove_all(context: &mut Context<'_>, kind: SubscriptionKind) -> Result<(), Error> {
    if context.args.len() > 1 {
        context.args.from(1).for_each(|name| remove(context, kind, name));
        return Ok(());
    }
    let names = context.session.subscriptions.list(kind);
    names.iter().for_each(|name| remove(context, kind, name));
    if names.is_empty() {
        confirm(context, kind, kind.unsubscribed_word(), None);
    }
    Ok(())
}

fn remove(context: &mut Context<'_>, kind: SubscriptionKind, name: &[u8]) {
    if context.session.subscriptions.remove(kind, name) {
        context.host.unsubscribe(context.session, kind, name);
    }
    confirm(context, kind, kind.unsubscribed_word(), Some(name));
}

fn confirm(context: &mut Context<'_>, kind: SubscriptionKind, word: &str, name: Option<&[u8]>) {
    let count = context.session.subscriptions.reported_count(kind);
    context.session.told = true;
    let reply = &mut context.reply;
    reply.push(3);
    reply.bulk(word.as_bytes());
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.integer(count as i64);
}
