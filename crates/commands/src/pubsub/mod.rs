//! Publish and subscribe. The session has the subscriptions of a connection; the host has the subscribers of a
//! name, and delivers the messages to the connections (`server/src/pubsub`).
mod subscriptions; // The subscriptions of one connection.
mod subscribe; //     SUBSCRIBE, UNSUBSCRIBE and their variants.
mod publish; //       PUBLISH, SPUBLISH, PUBSUB.
mod events; //        Keyspace notifications as messages.
#[cfg(test)]
mod tests;

pub use subscribe::dismiss;
pub(crate) use subscribe::silence;
pub use subscriptions::{Space, SubscriptionKind, Subscriptions};

use crate::help::help;
use crate::spec::{BLANK, Flag, Flags, Group, KeySpec, Spec};

const LISTENING: Flags =
    Flags::of(&[Flag::PubSub, Flag::NoScript, Flag::Loading, Flag::Stale, Flag::InSubscribed]);
const PUBLISHING: Flags = Flags::of(&[Flag::PubSub, Flag::Loading, Flag::Stale, Flag::Fast]);
const SHARD_LISTENING: Flags = Flags::of(&[
    Flag::PubSub,
    Flag::NoScript,
    Flag::Loading,
    Flag::Stale,
    Flag::InSubscribed,
    Flag::NotKeys,
]);
const SHARD_PUBLISHING: Flags =
    Flags::of(&[Flag::PubSub, Flag::Loading, Flag::Stale, Flag::Fast, Flag::NotKeys]);
const ASKING: Flags = Flags::of(&[Flag::PubSub, Flag::Loading, Flag::Stale]);

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "subscribe",
        full_name: "subscribe",
        summary: "Listens to channels.",
        syntax: "channel [channel ...]",
        since: "2.0.0",
        complexity: "O(N) where N is the number of channels named",
        arity: -2,
        flags: LISTENING,
        run: Some(subscribe::subscribe),
        ..OF_PUBSUB
    },
    Spec {
        name: "psubscribe",
        full_name: "psubscribe",
        summary: "Subscribes to all channels whose names match one of the patterns.",
        syntax: "pattern [pattern ...]",
        since: "2.0.0",
        complexity: "O(N) where N is the number of patterns named",
        arity: -2,
        flags: LISTENING,
        run: Some(subscribe::psubscribe),
        ..OF_PUBSUB
    },
    Spec {
        name: "ssubscribe",
        full_name: "ssubscribe",
        summary: "Subscribes to shard channels, which belong to the slots of their names.",
        syntax: "shardchannel [shardchannel ...]",
        since: "7.0.0",
        complexity: "O(N) where N is the number of shard channels named",
        arity: -2,
        flags: SHARD_LISTENING,
        keys: KeySpec::ALL,
        run: Some(subscribe::ssubscribe),
        ..OF_PUBSUB
    },
    Spec {
        name: "unsubscribe",
        full_name: "unsubscribe",
        summary: "Unsubscribes from channels; from all of them if none is named.",
        syntax: "[channel [channel ...]]",
        since: "2.0.0",
        complexity: "O(N) where N is the number of channels left",
        arity: -1,
        flags: LISTENING,
        run: Some(subscribe::unsubscribe),
        ..OF_PUBSUB
    },
    Spec {
        name: "punsubscribe",
        full_name: "punsubscribe",
        summary: "Unsubscribes from patterns; from all of them if none is named.",
        syntax: "[pattern [pattern ...]]",
        since: "2.0.0",
        complexity: "O(N) where N is the number of patterns left",
        arity: -1,
        flags: LISTENING,
        run: Some(subscribe::punsubscribe),
        ..OF_PUBSUB
    },
    Spec {
        name: "sunsubscribe",
        full_name: "sunsubscribe",
        summary: "Unsubscribes from shard channels; from all of them if none is named.",
        syntax: "[shardchannel [shardchannel ...]]",
        since: "7.0.0",
        complexity: "O(N) where N is the number of shard channels left",
        arity: -1,
        flags: SHARD_LISTENING,
        keys: KeySpec::ALL,
        run: Some(subscribe::sunsubscribe),
        ..OF_PUBSUB
    },
    Spec {
        name: "publish",
        full_name: "publish",
        summary: "Sends a message to all subscribers of a channel.",
        syntax: "channel message",
        since: "2.0.0",
        complexity: "O(N+M) where N is the number of listeners and M the number of patterns in use",
        arity: 3,
        flags: PUBLISHING,
        run: Some(publish::publish),
        ..OF_PUBSUB
    },
    Spec {
        name: "spublish",
        full_name: "spublish",
        summary: "Sends a message to all subscribers of a shard channel.",
        syntax: "shardchannel message",
        since: "7.0.0",
        complexity: "O(N) where N is the number of listeners",
        arity: 3,
        flags: SHARD_PUBLISHING,
        keys: KeySpec::FIRST,
        run: Some(publish::spublish),
        ..OF_PUBSUB
    },
    Spec {
        name: "pubsub",
        full_name: "pubsub",
        summary: "Shows the subscriptions of the node.",
        since: "2.8.0",
        complexity: "Depends on the subcommand",
        arity: -2,
        subcommands: QUESTIONS,
        ..OF_PUBSUB
    },
];

const QUESTIONS: &[Spec] = &[
    Spec {
        name: "channels",
        full_name: "pubsub|channels",
        summary: "Lists the channels that have subscribers.",
        syntax: "[pattern]",
        complexity: "O(N) where N is the number of such channels",
        arity: -2,
        run: Some(publish::channels),
        ..A_QUESTION
    },
    Spec {
        name: "numsub",
        full_name: "pubsub|numsub",
        summary: "Counts the subscribers of each of the channels, without patterns.",
        syntax: "[channel [channel ...]]",
        complexity: "O(N) where N is the number of channels named",
        arity: -2,
        run: Some(publish::numsub),
        ..A_QUESTION
    },
    Spec {
        name: "numpat",
        full_name: "pubsub|numpat",
        summary: "Counts the different patterns that have subscribers.",
        arity: 2,
        run: Some(publish::numpat),
        ..A_QUESTION
    },
    Spec {
        name: "shardchannels",
        full_name: "pubsub|shardchannels",
        summary: "Lists the shard channels that have subscribers.",
        syntax: "[pattern]",
        since: "7.0.0",
        complexity: "O(N) where N is the number of such shard channels",
        arity: -2,
        run: Some(publish::shardchannels),
        ..A_QUESTION
    },
    Spec {
        name: "shardnumsub",
        full_name: "pubsub|shardnumsub",
        summary: "Counts the subscribers of each of the shard channels.",
        syntax: "[shardchannel [shardchannel ...]]",
        since: "7.0.0",
        complexity: "O(N) where N is the number of shard channels named",
        arity: -2,
        run: Some(publish::shardnumsub),
        ..A_QUESTION
    },
    Spec {
        name: "help",
        full_name: "pubsub|help",
        summary: "Lists the subcommands.",
        since: "6.2.0",
        arity: 2,
        flags: Flags::of(&[Flag::Loading, Flag::Stale]),
        run: Some(help),
        ..A_QUESTION
    },
];

const OF_PUBSUB: Spec = Spec { group: Group::PubSub, ..BLANK };
const A_QUESTION: Spec = Spec { since: "2.8.0", flags: ASKING, ..OF_PUBSUB };
