//! Applies a new map: to every slot's replica (`cluster::data::follow`), and to copies that are on their way
//! here. Called by the applier, for one map after the other (`data_plane.rs`).

use std::sync::Arc;
use std::sync::atomic::Ordering::AcqRel;

use cluster::data::MoverInput;
use cluster::map::{Map, Member, Peer};
use commands::Outcome;
use store::AccessTracking;

use super::{Data, apply_context};
use crate::clock;

impl Data {
    /// Returns the other processes that are members by this map.
    pub(crate) fn others_in(&self, map: &Map) -> Vec<Peer> {
        let others = map.members().iter().map(Member::peer);
        others.filter(|peer| peer.id != self.me).collect()
    }

    /// Applies a map to the slots and to what comes from other nodes. The links to its members must exist
    /// ([`super::Links::follow`]).
    pub(crate) fn follow(&self, map: &Arc<Map>, access: AccessTracking) {
        let before = (self.map_number() > 0).then(|| self.map());
        let mut outcome = Outcome::default();
        self.roles_ahead.fetch_add(1, AcqRel);
        cluster::data::follow(self, map, before.as_deref(), |done| outcome.applied(done));
        self.roles_ahead.fetch_sub(1, AcqRel);
        self.follow_intakes(map, access, &mut outcome);
        self.publish_outcome(&mut outcome);
        self.tell_mover(MoverInput::MapChanged);
    }

    fn follow_intakes(&self, map: &Map, access: AccessTracking, outcome: &mut Outcome) {
        let now = clock::now();
        let intakes: Vec<_> = {
            let intakes = self.intakes.lock();
            intakes.iter().map(|(peer, intake)| (*peer, Arc::clone(intake))).collect()
        };
        for (peer, intake) in intakes {
            let mut apply_context = apply_context(self, now, access, outcome);
            let mut intake = intake.lock();
            intake.follow(peer.id, map, &mut apply_context);
            let member = map.member(peer.id).map(Member::peer).filter(|member| *member == peer);
            if intake.is_over(member) {
                intake.end(&mut apply_context);
                self.intakes.lock().remove(&peer);
            }
        }
    }

    fn publish_outcome(&self, outcome: &mut Outcome) {
        self.keyspace.memory.grow(core::mem::take(&mut outcome.grown_bytes));
        for garbage in outcome.garbage.drain(..) {
            self.keyspace.discard(garbage);
        }
    }
}
