//! Commands for manual administration of a Redis cluster, which is not needed here: each replies with an error that
//! says what to do instead.

use super::CLUSTER;
use crate::Error;
use crate::context::Context;
use crate::spec::{Flag, Flags, Spec};

const BY_HAND: Spec = Spec {
    arity: -2,
    flags: Flags::of(&[Flag::Admin, Flag::Stale, Flag::NoScript]),
    run: Some(refuse),
    ..CLUSTER
};

const fn by_hand(name: &'static str, full_name: &'static str, summary: &'static str) -> Spec {
    Spec { name, full_name, summary, ..BY_HAND }
}

const SLOTS: &str = "Refused: the cluster distributes slots automatically; see CLUSTER NODES.";
const JOINING: &str = "Refused: start the new node with --join and the address of any member.";
const LEAVING: &str =
    "Refused: CLUSTER LEAVE removes a node; a dead node is removed automatically.";
const PROMOTING: &str =
    "Refused: backups are promoted automatically; CLUSTER LEAVE empties a node.";
const COPIES: &str = "Refused: every node is primary of some buckets and backup of others, \
     CLUSTER SETTINGS backups N sets the number of backups.";
const EPOCHS: &str = "Refused: every change of the map raises the epoch.";
const SAVING: &str = "Refused: a node with --data-dir keeps the map there.";

pub(super) const ADDSLOTS: Spec = by_hand("addslots", "cluster|addslots", SLOTS);
pub(super) const ADDSLOTSRANGE: Spec = by_hand("addslotsrange", "cluster|addslotsrange", SLOTS);
pub(super) const BUMPEPOCH: Spec = by_hand("bumpepoch", "cluster|bumpepoch", EPOCHS);
pub(super) const DELSLOTS: Spec = by_hand("delslots", "cluster|delslots", SLOTS);
pub(super) const DELSLOTSRANGE: Spec = by_hand("delslotsrange", "cluster|delslotsrange", SLOTS);
pub(super) const FAILOVER: Spec = by_hand("failover", "cluster|failover", PROMOTING);
pub(super) const FLUSHSLOTS: Spec = by_hand("flushslots", "cluster|flushslots", SLOTS);
pub(super) const FORGET: Spec = by_hand("forget", "cluster|forget", LEAVING);
pub(super) const MEET: Spec = by_hand("meet", "cluster|meet", JOINING);
pub(super) const REPLICATE: Spec = by_hand("replicate", "cluster|replicate", COPIES);
pub(super) const RESET: Spec = by_hand("reset", "cluster|reset", LEAVING);
pub(super) const SAVECONFIG: Spec = by_hand("saveconfig", "cluster|saveconfig", SAVING);
pub(super) const SET_CONFIG_EPOCH: Spec =
    by_hand("set-config-epoch", "cluster|set-config-epoch", EPOCHS);
pub(super) const SETSLOT: Spec = by_hand("setslot", "cluster|setslot", SLOTS);

fn refuse(context: &mut Context<'_>) -> Result<(), Error> {
    let name = context.spec.name.to_uppercase();
    let instead = context.spec.summary.trim_start_matches("Refused: ");
    Err(Error::new(format!("ERR CLUSTER {name} is not done by hand: {instead}")))
}
