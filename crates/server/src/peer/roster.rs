//! Who is who, as far as links are concerned: published by the control thread at every map, read by
//! those who accept and dial.

use std::collections::BTreeMap;

use cluster::map::{Boot, ClusterId, Endpoints, Generation, LogIndex, Member, NodeId, Peer};

use super::hello::{Hello, Purpose, Refusal, Standing};

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Roster {
    pub me: Peer,
    pub cluster: ClusterId,
    pub generation: Generation,
    /// How far the log was applied when this was so.
    index: LogIndex,
    others: BTreeMap<NodeId, Known>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Known {
    boot: Boot,
    at: Endpoints,
}

/// A process that links are to be made to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Neighbour {
    pub peer: Peer,
    pub at: Endpoints,
}

impl Roster {
    pub(crate) fn new(
        me: Peer,
        cluster: ClusterId,
        generation: Generation,
        members: &[Member],
    ) -> Roster {
        let others = members.iter().filter(|member| member.id != me.id);
        let known = |member: &Member| Known { boot: member.boot, at: member.at.clone() };
        let others = others.map(|member| (member.id, known(member))).collect();
        Roster { me, cluster, generation, index: LogIndex(0), others }
    }

    pub(super) fn has_same_members(&self, other: &Roster) -> bool {
        self.generation == other.generation && self.others == other.others
    }

    /// As the map says with the log applied up to `index`.
    pub(crate) fn at(self, index: LogIndex) -> Roster {
        Roster { index, ..self }
    }

    pub(crate) fn neighbours(&self) -> impl Iterator<Item = Neighbour> {
        self.others.iter().map(|(id, known)| Neighbour {
            peer: Peer { id: *id, boot: known.boot },
            at: known.at.clone(),
        })
    }

    /// What a link from here to `to` begins with.
    pub(super) fn hello(&self, purpose: Purpose, to: NodeId) -> Hello {
        let (cluster, generation) = (Some(self.cluster), Some(self.generation));
        Hello { purpose, from: self.me, to: Some(to), cluster, generation }
    }

    /// Whether a link is wanted that begins with these words.
    pub(super) fn judge(&self, hello: &Hello) -> Result<Standing, Refusal> {
        let Hello { purpose, from, to, cluster, generation } = hello;
        if cluster.is_some_and(|cluster| cluster != self.cluster) {
            return Err(Refusal::OtherCluster);
        }
        if to.is_some_and(|to| to != self.me.id) {
            return Err(Refusal::OtherNode(self.me.id));
        }
        let (cluster, generation) = match (purpose, *generation) {
            (Purpose::Join, _) => (self.cluster, self.generation),
            (_, Some(theirs)) if !theirs.is_one_with(self.generation) => {
                return Err(Refusal::OtherGeneration(self.generation));
            }
            (Purpose::Control | Purpose::Data | Purpose::Timers, _) => {
                (self.cluster, self.generation)
            }
        };
        self.judge_dialer(*purpose, *from)?;
        Ok(Standing { me: self.me, cluster, generation, expects: 0 })
    }

    fn judge_dialer(&self, purpose: Purpose, from: Peer) -> Result<(), Refusal> {
        match (purpose, self.others.get(&from.id)) {
            (Purpose::Join, _) => Ok(()),
            (Purpose::Control | Purpose::Data | Purpose::Timers, None) => {
                Err(Refusal::NoMember(self.index))
            }
            // One that has kept its vote takes part in decisions before it is a member again.
            (Purpose::Control, Some(_)) => Ok(()),
            (Purpose::Data | Purpose::Timers, Some(known)) if known.boot == from.boot => Ok(()),
            (Purpose::Data | Purpose::Timers, Some(_)) => Err(Refusal::OtherBoot),
        }
    }
}

#[cfg(test)]
mod tests {
    use cluster::map::Zone;

    use super::*;

    fn peer(id: u64, boot: u64) -> Peer {
        Peer { id: NodeId(id), boot: Boot(boot) }
    }

    fn roster() -> Roster {
        let member = |id: u64| Member {
            id: NodeId(id),
            boot: Boot(id * 10),
            name: format!("n{id}"),
            weight: 1,
            zone: Zone::default(),
            at: Endpoints::default(),
        };
        let generation = Generation { counter: 1, founder: NodeId(1) };
        Roster::new(peer(1, 10), ClusterId(7), generation, &[member(1), member(2)])
    }

    fn hello(purpose: Purpose, from: Peer) -> Hello {
        Hello { from, ..roster().hello(purpose, NodeId(1)) }
    }

    #[test]
    fn members_come_in_and_others_do_not() {
        let judge = |hello: Hello| roster().judge(&hello).map(|standing| standing.me.id);
        let here = Ok(NodeId(1));
        assert_eq!(judge(hello(Purpose::Control, peer(2, 20))), here);
        assert_eq!(judge(hello(Purpose::Data, peer(2, 20))), here);
        assert_eq!(judge(hello(Purpose::Data, peer(3, 30))), Err(Refusal::NoMember(LogIndex(0))));
        assert_eq!(
            judge(hello(Purpose::Control, peer(3, 30))),
            Err(Refusal::NoMember(LogIndex(0)))
        );
        assert_eq!(judge(hello(Purpose::Join, peer(3, 30))), here);
    }

    #[test]
    fn a_restarted_node_may_vote_but_brings_no_data_before_it_is_a_member_again() {
        let judge = |hello: Hello| roster().judge(&hello).map(|standing| standing.me.id);
        assert_eq!(judge(hello(Purpose::Control, peer(2, 21))), Ok(NodeId(1)));
        assert_eq!(judge(hello(Purpose::Data, peer(2, 21))), Err(Refusal::OtherBoot));
    }

    #[test]
    fn other_clusters_generations_and_nodes_are_named() {
        let good = hello(Purpose::Control, peer(2, 20));
        let judge = |hello: Hello| roster().judge(&hello).map(|_| ());
        let other = Hello { cluster: Some(ClusterId(8)), ..good.clone() };
        assert_eq!(judge(other), Err(Refusal::OtherCluster));
        let other = Hello { to: Some(NodeId(5)), ..good.clone() };
        assert_eq!(judge(other), Err(Refusal::OtherNode(NodeId(1))));
        let ours = roster().generation;
        let theirs = Generation { counter: 2, founder: NodeId(2) };
        let other = Hello { generation: Some(theirs), ..good };
        assert_eq!(judge(other), Err(Refusal::OtherGeneration(ours)));
    }
}
