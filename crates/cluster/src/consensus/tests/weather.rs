//! Many random histories: messages are lost, delayed and doubled, nodes restart, voters change. In
//! every history no two nodes ever disagree about an entry, and the same seed gives the same history.

use std::collections::BTreeMap;

use sim_engine::Rng;

use super::net::{self, A, B, C, D, Net};
use crate::consensus::{Begin, Committed, RaftMessage};
use crate::map::{LogIndex, NodeId};

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
    let mut rng = Rng::new(seed);
    let mut net = Net::seeded(A, seed);
    for node in [B, C, D] {
        net.start(node, Begin::Join);
    }
    let mut history = History::default();
    let (loss, delay) = (rng.below(30), rng.below(50));
    for step in 0..400 {
        let any = *rng.choose(&NODES).unwrap();
        let leader = net.leader_among(NODES).filter(|_| rng.chance(30, 100));
        let node = leader.unwrap_or(any);
        match rng.below(40) {
            0 => net.restart(node),
            1..=4 => drop(net.node(node).propose(&net::entry(&step.to_string()))),
            5 | 6 => reconfigure(&mut net, node, &mut rng),
            7 => net.node(node).transfer_leadership(*rng.choose(&NODES).unwrap()),
            8 => net.node(node).compact(),
            _ => net.node(node).tick(),
        }
        net.take(node);
        for _ in 0..rng.below(12) {
            let Some((from, to, message)) = net.wire.pop_front() else { break };
            if rng.chance(loss, 100) {
                continue;
            }
            if rng.chance(delay, 100) {
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

fn reconfigure(net: &mut Net, node: NodeId, rng: &mut Rng) {
    let mut choose = |percent| {
        let chosen = NODES.into_iter().filter(|_| rng.chance(percent, 100));
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
