//! State of the simulated cluster, for scenarios that wait for it or assert it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Control, Map, Node, NodeId, World};

impl World {
    pub(in crate::control::tests) fn generation(&self, id: u64) -> (u64, u64) {
        let generation = self.control(id).generation().unwrap();
        (generation.counter, generation.founder.0)
    }

    pub(in crate::control::tests) fn members_by(&self, id: u64) -> Vec<u64> {
        let map = self.control(id).map().unwrap();
        map.members().iter().map(|member| member.id.0).collect()
    }

    pub(in crate::control::tests) fn node(&self, id: u64) -> &Node {
        &self.nodes[&NodeId(id)]
    }

    pub(in crate::control::tests) fn control(&self, id: u64) -> &Control {
        &self.node(id).control
    }

    pub(in crate::control::tests) fn is_member(&self, id: u64) -> bool {
        self.nodes.get(&NodeId(id)).is_some_and(|node| node.control.is_member())
    }

    /// Returns the map of the node that has applied the most.
    pub(in crate::control::tests) fn map(&self) -> Arc<Map> {
        let with_map = self.nodes.values().filter(|node| node.control.map().is_some());
        let latest = with_map.max_by_key(|node| node.control.applied()).expect("somebody has one");
        Arc::clone(latest.control.map().unwrap())
    }

    pub(in crate::control::tests) fn leader(&self) -> Option<u64> {
        let leaders = self.nodes.values().filter(|node| node.control.leads());
        leaders.max_by_key(|node| node.control.consensus.term()).map(|node| node.me.id.0)
    }

    pub(in crate::control::tests) fn voters(&self) -> Vec<u64> {
        let leader = self.leader().expect("somebody leads");
        self.control(leader).configuration().voters.iter().map(|node| node.0).collect()
    }

    /// Returns some member that does not lead.
    pub(in crate::control::tests) fn follower(&self) -> u64 {
        let leader = self.leader();
        self.members().into_iter().find(|id| Some(*id) != leader).unwrap()
    }

    /// Returns how a process ended.
    pub(in crate::control::tests) fn gone(&self, id: u64) -> String {
        self.gone.get(&NodeId(id)).map(|gone| format!("{gone:?}")).unwrap_or_default()
    }

    /// Returns whether a majority of the voters, by every known configuration, exists and runs.
    pub(in crate::control::tests) fn has_majority(&self) -> bool {
        self.majority_without(None)
    }

    /// Returns whether the cluster could go on without this node, at any stage of a change of voters.
    pub(in crate::control::tests) fn can_spare(&self, id: u64) -> bool {
        self.majority_without(Some(NodeId(id)))
    }

    fn majority_without(&self, missing: Option<NodeId>) -> bool {
        let is_there = |node: &&NodeId| Some(**node) != missing && self.nodes.contains_key(node);
        let is_enough = |voters: &BTreeSet<NodeId>| {
            voters.is_empty() || 2 * voters.iter().filter(is_there).count() > voters.len()
        };
        self.nodes.values().all(|node| {
            let configuration = node.control.configuration();
            is_enough(&configuration.voters) && is_enough(&configuration.voters_before)
        })
    }

    pub(in crate::control::tests) fn has_a_map(&self) -> bool {
        self.nodes.values().any(|node| node.control.map().is_some())
    }

    pub(in crate::control::tests) fn has_leases(&self) -> bool {
        self.nodes.values().all(|node| node.has_lease(self.now))
    }

    pub(in crate::control::tests) fn has_lease(&self, id: u64) -> bool {
        self.node(id).has_lease(self.now)
    }

    pub(in crate::control::tests) fn members(&self) -> Vec<u64> {
        self.map().members().iter().map(|member| member.id.0).collect()
    }

    /// Returns whether all nodes have the same map and serve, and nothing is left to move.
    pub(in crate::control::tests) fn is_at_rest(&self) -> bool {
        let map = self.map();
        let has_all = |node: &Node| {
            node.map.as_ref().is_some_and(|known| *known == map)
                && node.has_lease(self.now)
                && node.control.engagement().is_none()
                && node.control.plan().is_none_or(|plan| plan.is_done(&map))
        };
        let members: Vec<NodeId> = map.members().iter().map(|member| member.id).collect();
        self.joining.is_empty()
            && self.nodes.keys().copied().eq(members)
            && self.nodes.values().all(has_all)
            && map.buckets().all(|bucket| bucket.holders.len() == map.copies_wanted())
            && self.seats_are_taken(&map)
    }

    fn seats_are_taken(&self, map: &Map) -> bool {
        let seats = match map.members().len() {
            0..=2 => map.members().len(),
            3 | 4 => 3,
            5.. => 5,
        };
        self.leader().is_some() && self.voters().len() == seats
    }

    /// Returns the load of each member: primaries and backups.
    pub(in crate::control::tests) fn loads(&self) -> Vec<(u32, u32)> {
        self.map().loads().iter().map(|load| (load.primaries, load.backups)).collect()
    }

    pub(in crate::control::tests) fn assert_balanced(&self) {
        let map = self.map();
        map.check_invariants();
        let spread =
            |numbers: Vec<u32>| numbers.iter().max().unwrap() - numbers.iter().min().unwrap();
        let loads = || map.loads().iter().zip(map.members()).filter(|(_, it)| it.weight > 0);
        assert!(spread(loads().map(|(load, _)| load.total()).collect()) <= 1, "{:?}", self.loads());
        assert!(
            spread(loads().map(|(load, _)| load.primaries).collect()) <= 1,
            "{:?}",
            self.loads()
        );
    }
}
