//! Decides which nodes keep a timer: the map's members at one epoch, ranked for every id.
//!
//! Set by the shell whenever members change; used by the whole crate.

use placement::Ranking;

use crate::ids::{MembersEpoch, TimerId, TimerPeer};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimerMember {
    pub id: TimerPeer,
    /// The name by which it is ranked. By default its host and port.
    pub name: String,
    /// A member with weight 0 keeps no timers: a witness, or a node about to leave.
    pub weight: u32,
}

/// All members of one epoch, in the order of the map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Members {
    epoch: MembersEpoch,
    all: Vec<TimerPeer>,
    /// The members that keep timers, in the order of `ranking`.
    holders: Vec<TimerPeer>,
    ranking: Ranking,
}

impl Members {
    pub fn new(epoch: MembersEpoch, members: &[TimerMember]) -> Members {
        let holders: Vec<&TimerMember> =
            members.iter().filter(|member| member.weight > 0).collect();
        let names: Vec<&str> = holders.iter().map(|member| member.name.as_str()).collect();
        Members {
            epoch,
            ranking: Ranking::new(&names),
            all: members.iter().map(|member| member.id).collect(),
            holders: holders.iter().map(|member| member.id).collect(),
        }
    }

    /// Returns an empty list, for the time before the first map is known.
    pub fn nobody() -> Members {
        Members::new(MembersEpoch(0), &[])
    }

    pub fn epoch(&self) -> MembersEpoch {
        self.epoch
    }

    pub fn all(&self) -> &[TimerPeer] {
        &self.all
    }

    pub fn contains(&self, node: TimerPeer) -> bool {
        self.all.contains(&node)
    }

    /// Returns whether all members are witnesses or about to leave.
    pub(crate) fn nobody_keeps_any(&self) -> bool {
        self.holders.is_empty()
    }

    /// Returns the nodes that keep a timer, the primary first. Fewer than its factor if there are fewer holders.
    pub fn replicas(&self, id: TimerId) -> Vec<TimerPeer> {
        let places = self.ranking.replicas(id.number, id.factor.count());
        places.into_iter().map(|place| self.holders[place]).collect()
    }

    /// Returns whether every timer has the same replicas as in `earlier`.
    pub(crate) fn places_as(&self, earlier: &Members) -> bool {
        (&self.holders, &self.ranking) == (&earlier.holders, &earlier.ranking)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ReplicationFactor;

    fn member(id: u64, weight: u32) -> TimerMember {
        TimerMember { id: TimerPeer { id, boot: 1 }, name: format!("10.0.0.{id}:6379"), weight }
    }

    #[test]
    fn a_witness_is_a_member_and_keeps_nothing() {
        let members = Members::new(MembersEpoch(1), &[member(1, 1), member(2, 0), member(3, 1)]);
        let witness = TimerPeer { id: 2, boot: 1 };
        assert!(members.contains(witness));
        for number in 0..1000 {
            let factor = ReplicationFactor::new(3).unwrap();
            let replicas = members.replicas(TimerId { number, factor });
            assert_eq!(replicas.len(), 2);
            assert!(!replicas.contains(&witness));
        }
    }

    #[test]
    fn a_new_boot_is_another_holder_in_the_same_place() {
        let before = Members::new(MembersEpoch(1), &[member(1, 1), member(2, 1)]);
        let mut reborn = member(2, 1);
        reborn.id.boot = 2;
        let after = Members::new(MembersEpoch(2), &[member(1, 1), reborn]);
        assert!(!after.places_as(&before));
        assert!(before.places_as(&Members::new(MembersEpoch(9), &[member(1, 1), member(2, 1)])));
    }
}
