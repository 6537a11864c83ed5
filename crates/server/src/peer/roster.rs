//! The members of the cluster, as links need them. The control thread publishes the roster at every map;
//! the threads that accept and dial read it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use cluster::map::{Boot, ClusterId, Endpoints, Generation, LogIndex, Member, NodeId, Peer};

use super::hello::{AcceptorState, HandshakeRefusal, Hello, Purpose};

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Roster {
    pub me: Peer,
    pub cluster: ClusterId,
    pub generation: Generation,
    /// The address of this node.
    at: Endpoints,
    /// The log index up to which the map was applied.
    index: LogIndex,
    others: BTreeMap<NodeId, KnownPeer>,
    /// Voters that are no members any more, at their last known address.
    former_voters: BTreeMap<NodeId, KnownPeer>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct KnownPeer {
    boot: Boot,
    at: Endpoints,
}

impl KnownPeer {
    fn neighbour((id, known): (&NodeId, &KnownPeer)) -> Neighbour {
        Neighbour { peer: Peer { id: *id, boot: known.boot }, at: known.at.clone() }
    }
}

/// A process to which links are made.
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
        let mine = members.iter().find(|member| member.id == me.id);
        let at = mine.map(|member| member.at.clone()).unwrap_or_default();
        let others = members.iter().filter(|member| member.id != me.id);
        let known = |member: &Member| KnownPeer { boot: member.boot, at: member.at.clone() };
        let others = others.map(|member| (member.id, known(member))).collect();
        let former_voters = BTreeMap::new();
        Roster { me, cluster, generation, at, index: LogIndex(0), others, former_voters }
    }

    /// Adds the voters that are no members here but are known from the roster before: they were declared
    /// dead, and while their processes run, decisions may need their votes.
    pub(super) fn with_former_voters(
        mut self,
        before: &Roster,
        is_voter: impl Fn(NodeId) -> bool,
    ) -> Roster {
        let known = before.others.iter().chain(&before.former_voters);
        let is_former =
            |node: NodeId| node != self.me.id && is_voter(node) && !self.others.contains_key(&node);
        let former = known.filter(|(node, _)| is_former(**node));
        self.former_voters = former.map(|(node, known)| (*node, known.clone())).collect();
        self
    }

    pub(super) fn knows(&self, node: NodeId) -> bool {
        self.others.contains_key(&node)
    }

    /// Returns whether another member has this address. One that is known by a name is not recognised.
    pub(super) fn has_host(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.others.values().any(|known| known.at.host.parse() == Ok(ip))
    }

    /// Returns whether the same links are to be made for both.
    pub(super) fn has_same_links(&self, other: &Roster) -> bool {
        self.generation == other.generation
            && self.others == other.others
            && self.former_voters == other.former_voters
    }

    /// Sets the log index up to which the map was applied.
    pub(crate) fn at(self, index: LogIndex) -> Roster {
        Roster { index, ..self }
    }

    pub(crate) fn neighbours(&self) -> impl Iterator<Item = Neighbour> {
        self.others.iter().map(KnownPeer::neighbour)
    }

    pub(super) fn former_voters(&self) -> impl Iterator<Item = Neighbour> {
        self.former_voters.iter().map(KnownPeer::neighbour)
    }

    /// Returns the hello that begins a link from here to `to`.
    pub(super) fn hello(&self, purpose: Purpose, to: NodeId) -> Hello {
        let (cluster, generation) = (Some(self.cluster), Some(self.generation));
        let at = Some(self.at.clone()).filter(|_| purpose == Purpose::Meet);
        Hello { purpose, from: self.me, to: Some(to), cluster, generation, at }
    }

    /// Decides whether to accept a link that begins with this hello.
    pub(super) fn judge(&self, hello: &Hello) -> Result<AcceptorState, HandshakeRefusal> {
        let Hello { purpose, from, to, cluster, generation, at: _ } = hello;
        if cluster.is_some_and(|cluster| cluster != self.cluster) {
            return Err(HandshakeRefusal::OtherCluster);
        }
        if to.is_some_and(|to| to != self.me.id) {
            return Err(HandshakeRefusal::OtherNode(self.me.id));
        }
        let (cluster, generation) = match (purpose, *generation) {
            (Purpose::Join, _) => (self.cluster, self.generation),
            // Only if this is the surviving side, or for a member of this side that returns late.
            (Purpose::Merge, Some(theirs))
                if self.has_outlived(theirs) || self.has_back(*from, theirs) =>
            {
                (self.cluster, self.generation)
            }
            (Purpose::Merge, _) => return Err(HandshakeRefusal::OtherGeneration(self.generation)),
            (_, Some(theirs)) if !theirs.is_one_with(self.generation) => {
                return Err(HandshakeRefusal::OtherGeneration(self.generation));
            }
            (Purpose::Control | Purpose::Data | Purpose::Timers | Purpose::Meet, _) => {
                (self.cluster, self.generation)
            }
        };
        self.judge_dialer(*purpose, *from)?;
        Ok(AcceptorState { me: self.me, cluster, generation, expects: 0 })
    }

    /// Returns whether this is another generation, and the surviving one of the two.
    fn has_outlived(&self, theirs: Generation) -> bool {
        self.generation > theirs && !self.generation.is_one_with(theirs)
    }

    /// Returns whether the dialer is a member of this very generation.
    fn has_back(&self, from: Peer, theirs: Generation) -> bool {
        let is_member = self.others.get(&from.id).is_some_and(|known| known.boot == from.boot);
        is_member && theirs.is_one_with(self.generation)
    }

    fn judge_dialer(&self, purpose: Purpose, from: Peer) -> Result<(), HandshakeRefusal> {
        match (purpose, self.others.get(&from.id)) {
            (Purpose::Join | Purpose::Merge, _) => Ok(()),
            // A process that was declared dead votes, and asks to come back, before it is a member again.
            (Purpose::Control, _) | (Purpose::Meet, Some(_)) => Ok(()),
            (Purpose::Data | Purpose::Timers | Purpose::Meet, None) => {
                Err(HandshakeRefusal::NoMember(self.index))
            }
            (Purpose::Data | Purpose::Timers, Some(known)) if known.boot == from.boot => Ok(()),
            (Purpose::Data | Purpose::Timers, Some(_)) => Err(HandshakeRefusal::OtherBoot),
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
        assert_eq!(
            judge(hello(Purpose::Data, peer(3, 30))),
            Err(HandshakeRefusal::NoMember(LogIndex(0)))
        );
        assert_eq!(
            judge(hello(Purpose::Timers, peer(3, 30))),
            Err(HandshakeRefusal::NoMember(LogIndex(0)))
        );
        assert_eq!(judge(hello(Purpose::Join, peer(3, 30))), here);
    }

    #[test]
    fn a_restarted_node_may_vote_but_brings_no_data_before_it_is_a_member_again() {
        let judge = |hello: Hello| roster().judge(&hello).map(|standing| standing.me.id);
        assert_eq!(judge(hello(Purpose::Control, peer(3, 30))), Ok(NodeId(1)), "it was given up");
        assert_eq!(judge(hello(Purpose::Control, peer(2, 21))), Ok(NodeId(1)));
        assert_eq!(judge(hello(Purpose::Data, peer(2, 21))), Err(HandshakeRefusal::OtherBoot));
    }

    #[test]
    fn a_voter_that_was_declared_dead_is_still_dialed_and_brings_no_data() {
        let before = roster();
        let (cluster, generation) = (before.cluster, before.generation);
        let alone = || Roster::new(before.me, cluster, generation, &[]);
        let now = alone().with_former_voters(&before, |_| true);
        assert_eq!(now.neighbours().count(), 0);
        let dialed: Vec<Peer> = now.former_voters().map(|it| it.peer).collect();
        assert_eq!(dialed, [peer(2, 20)]);
        let later = alone().with_former_voters(&now, |_| true);
        assert!(later.has_same_links(&now), "also after the next map");
        assert!(now.judge(&hello(Purpose::Control, peer(2, 20))).is_ok());
        assert!(now.judge(&hello(Purpose::Data, peer(2, 20))).is_err());
        let without_vote = alone().with_former_voters(&before, |_| false);
        assert_eq!(without_vote.former_voters().count(), 0);
    }

    #[test]
    fn a_side_that_yields_hands_over_only_to_one_that_stands() {
        let of = |counter: u64| {
            let generation = Some(Generation { counter, founder: NodeId(1) });
            let hello = Hello { generation, ..hello(Purpose::Merge, peer(9, 9)) };
            Roster { generation: Generation { counter: 4, founder: NodeId(2) }, ..roster() }
                .judge(&hello)
                .is_ok()
        };
        assert_eq!([2, 3, 4, 5, 6].map(of), [true, true, true, false, false]);
    }

    #[test]
    fn of_one_history_only_members_bring_what_they_have_kept() {
        let is_welcome = |from: Peer| roster().judge(&hello(Purpose::Merge, from)).is_ok();
        assert!(is_welcome(peer(2, 20)));
        assert!(!is_welcome(peer(2, 21)), "an earlier process of it");
        assert!(!is_welcome(peer(9, 9)), "nobody knows it");
    }

    #[test]
    fn other_clusters_generations_and_nodes_are_named() {
        let good = hello(Purpose::Control, peer(2, 20));
        let judge = |hello: Hello| roster().judge(&hello).map(|_| ());
        let other = Hello { cluster: Some(ClusterId(8)), ..good.clone() };
        assert_eq!(judge(other), Err(HandshakeRefusal::OtherCluster));
        let other = Hello { to: Some(NodeId(5)), ..good.clone() };
        assert_eq!(judge(other), Err(HandshakeRefusal::OtherNode(NodeId(1))));
        let ours = roster().generation;
        let theirs = Generation { counter: 2, founder: NodeId(2) };
        let other = Hello { generation: Some(theirs), ..good };
        assert_eq!(judge(other), Err(HandshakeRefusal::OtherGeneration(ours)));
    }
}
