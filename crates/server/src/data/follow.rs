//! Applies a new map: to the links to its members, to every slot's replica (`cluster::data::follow`), to copies
//! that are on their way here. Called by the applier, for one map after the other.

use std::sync::Arc;

use cluster::data::MoverInput;
use cluster::map::{Map, Member, Peer};
use commands::Outcome;

use super::intake::apply_context;
use crate::command_env::command_env;
use crate::pubsub::introduce;
use crate::shared::Shared;

/// Applies a map.
pub(crate) fn follow(shared: &Shared, map: &Arc<Map>) {
    let data = &shared.data;
    let others: Vec<Peer> = map.members().iter().map(Member::peer).collect();
    let others: Vec<Peer> = others.into_iter().filter(|peer| peer.id != data.me).collect();
    for link in data.links.follow(&others) {
        introduce(&shared.exchange, &link);
    }
    shared.exchange.afar.keep(&others);
    let before = (data.map_number() > 0).then(|| shared.map());
    let mut outcome = Outcome::default();
    cluster::data::follow(shared, map, before.as_deref(), |done| outcome.applied(done));
    follow_intakes(shared, map, &mut outcome);
    carry_off(shared, &mut outcome);
    data.tell_mover(MoverInput::MapChanged);
}

fn follow_intakes(shared: &Shared, map: &Map, outcome: &mut Outcome) {
    let data = &shared.data;
    let env = command_env(shared);
    let intakes: Vec<_> = {
        let intakes = data.intakes.lock();
        intakes.iter().map(|(peer, intake)| (*peer, Arc::clone(intake))).collect()
    };
    for (peer, intake) in intakes {
        let mut apply_context = apply_context(shared, &env, outcome);
        let mut intake = intake.lock();
        intake.follow(peer.id, map, &mut apply_context);
        let member = map.member(peer.id).map(Member::peer).filter(|member| *member == peer);
        if intake.is_over(member) {
            intake.end(&mut apply_context);
            data.intakes.lock().remove(&peer);
        }
    }
}

fn carry_off(shared: &Shared, outcome: &mut Outcome) {
    shared.data.keyspace.memory.grow(core::mem::take(&mut outcome.grown_bytes));
    for garbage in outcome.garbage.drain(..) {
        shared.data.keyspace.discard(garbage);
    }
}
