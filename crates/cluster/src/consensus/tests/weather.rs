//! Many random histories: messages are lost, delayed and doubled, nodes restart, voters change. In
//! every history no two nodes ever disagree about an entry, and the same seed gives the same history.

use std::collections::BTreeMap;

use super::net::{self, A, B, C, D, Net};
use crate::consensus::{Begin, Committed, RaftMessage};
use crate::map::{LogIndex, NodeId};

struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// The part of a history that must depend on the seed alone, and the entries committed in it.
#[derive(PartialEq, Debug, Default)]
struct History {
    messages: u64,
    digest: u64,
    decided: BTreeMap<LogIndex, Committed>,
}

impl History {
    fn note(&mut self, from: NodeId, to: NodeId, message: &RaftMessage) {
        let bytes = postcard::to_allocvec(&(from, to, message)).unwrap();
        let digest = bytes.iter().fold(self.digest, |digest, byte| {
            (digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
        });
        (self.messages, self.digest) = (self.messages + 1, digest);
    }

    /// Checks that all nodes agree on the entries that any of them takes for committed.
    fn agree(&mut self, net: &mut Net) {
        for (index, committed) in net.taken.values_mut().flat_map(|taken| taken.committed.drain(..))
        {
            let known = self.decided.entry(index).or_insert_with(|| committed.clone());
            assert_eq!(*known, committed, "entry {index}");
        }
    }
}

const NODES: [NodeId; 4] = [A, B, C, D];

fn history(seed: u64) -> History {
    let mut chance = Chance(seed);
    let mut net = Net::seeded(A, seed);
    for node in [B, C, D] {
        net.start(node, Begin::Join);
    }
    let mut history = History::default();
    let (loss, delay) = (chance.below(30), chance.below(50));
    for step in 0..400 {
        let any = NODES[chance.below(4) as usize];
        let leader = net.leader_among(NODES).filter(|_| chance.percent(30));
        let node = leader.unwrap_or(any);
        match chance.below(40) {
            0 => net.restart(node),
            1..=4 => drop(net.node(node).propose(&net::entry(&step.to_string()))),
            5 | 6 => reconfigure(&mut net, node, &mut chance),
            7 => net.node(node).transfer_leadership(NODES[chance.below(4) as usize]),
            8 => net.node(node).compact(),
            _ => net.node(node).tick(),
        }
        net.take(node);
        for _ in 0..chance.below(12) {
            let Some((from, to, message)) = net.wire.pop_front() else { break };
            if chance.percent(loss) {
                continue;
            }
            if chance.percent(delay) {
                net.wire.push_back((from, to, message));
                continue;
            }
            history.note(from, to, &message);
            net.arrive(from, to, &message);
        }
        history.agree(&mut net);
    }
    settle(&mut net, &mut history);
    history
}

fn reconfigure(net: &mut Net, node: NodeId, chance: &mut Chance) {
    let mut choose = |percent| {
        let chosen = NODES.into_iter().filter(|_| chance.percent(percent));
        chosen.collect::<std::collections::BTreeSet<NodeId>>()
    };
    let (voters, learners) = (choose(60), choose(60));
    net.node(node).reconfigure(&voters, &learners);
}

/// Runs the net without faults: everything comes to rest, and all members of the configuration have the
/// same map.
fn settle(net: &mut Net, history: &mut History) {
    net.run(60);
    let leader = net.leader_among(NODES).expect("in good weather there is a leader");
    net.node(leader).propose(&net::entry("last")).expect("a leader at rest takes proposals");
    net.run(60);
    let configuration = net[leader].configuration().clone();
    assert!(!configuration.is_joint(), "a joint configuration is left");
    for node in NODES.into_iter().filter(|node| configuration.contains(*node)) {
        assert_eq!(net[node].map(), net[leader].map(), "{node} has the leader's map");
    }
    history.agree(net);
}

#[test]
fn no_two_nodes_disagree_in_any_weather() {
    let mut decided = 0;
    for seed in 0..1_000 {
        decided += history(seed).decided.len();
    }
    assert!(decided > 20_000, "{decided} entries were decided: the weather was too bad to tell");
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for seed in 0..20 {
        let once = history(seed);
        assert!(once.messages > 20, "seed {seed}: {} messages", once.messages);
        assert_eq!(once, history(seed), "seed {seed}");
    }
    assert_ne!(history(1).digest, history(2).digest);
}
