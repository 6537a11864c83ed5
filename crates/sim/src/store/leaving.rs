//! Checks of planned leaves, made without the arithmetic of the code under test: a node that leaves takes no
//! copy with it that the settings ask for, and goes the quick way only if an operator asked for that, or if
//! the safe way took too long.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster::Moment;
use cluster::control::{MapChanged, OperatorRequest};
use cluster::map::{Change, ChangeOutcome, LeaveWay, Map, NodeId};

use super::world::World;

/// The requests to leave, by node.
#[derive(Default)]
pub(super) struct Leaves(BTreeMap<NodeId, Asked>);

#[derive(Clone, Copy)]
struct Asked {
    /// Time of the first request.
    at: Moment,
    is_quick: bool,
}

impl Leaves {
    pub(super) fn note(&mut self, node: NodeId, now: Moment, ask: &OperatorRequest) {
        let way = match ask {
            OperatorRequest::Leave(way) | OperatorRequest::LeaveFor { way, .. } => *way,
            OperatorRequest::Split(_)
            | OperatorRequest::Set(_)
            | OperatorRequest::Write(_)
            | OperatorRequest::Takeover
            | OperatorRequest::Join(_)
            | OperatorRequest::Recreate(_) => return,
        };
        let asked = self.0.entry(node).or_insert(Asked { at: now, is_quick: false });
        asked.is_quick |= way == LeaveWay::Quick;
    }

    /// Forgets the requests to an earlier process of this node.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.0.remove(&node);
    }

    fn permits_quick(&self, node: NodeId, now: Moment, timeout: Duration) -> bool {
        // A node's clock may run a tenth too fast.
        let is_late = |asked: &Asked| asked.at + timeout * 9 / 10 <= now;
        self.0.get(&node).is_some_and(|asked| asked.is_quick || is_late(asked))
    }
}

/// Returns the nodes that have left by this change of the map, each with the way it left.
fn leavers(changed: &MapChanged) -> impl Iterator<Item = (NodeId, LeaveWay)> {
    let changes = changed.entry.iter().flat_map(|entry| &entry.changes);
    changes.zip(&changed.outcomes).filter_map(|(change, outcome)| {
        let (Change::Leave { node, way, .. } | Change::Away { node, way, .. }) = change else {
            return None;
        };
        (*outcome == ChangeOutcome::Applied).then_some((*node, *way))
    })
}

/// Checks that every bucket a node held when it left safely has all its copies on nodes that stay.
pub(super) fn leaves_copies(before: &Map, changed: &MapChanged) -> Result<(), String> {
    let map = &changed.map;
    let stays = |node: &&NodeId| map.member(**node).is_some_and(|member| member.weight > 0);
    let members = map.members().iter().filter(|member| member.weight > 0).count();
    let wanted = (1 + usize::from(map.settings().backups)).min(members);
    for (node, _) in leavers(changed).filter(|(_, way)| *way == LeaveWay::Safe) {
        for held in before.buckets().filter(|bucket| bucket.holders.contains(&node)) {
            let hashmask = held.hashmask;
            let left = map.bucket(hashmask).map_or(0, |it| it.holders.iter().filter(stays).count());
            if left < wanted {
                return Err(format!(
                    "{hashmask} has {left} of {wanted} copies after {node} has left safely"
                ));
            }
        }
    }
    Ok(())
}

/// Checks that no node leaves the quick way by itself.
pub(super) fn leaves_as_asked(world: &World, changed: &MapChanged) -> Result<(), String> {
    let timeout = changed.map.settings().leave_timeout;
    let is_wrong = |(node, way): &(NodeId, LeaveWay)| {
        *way == LeaveWay::Quick && !world.leaves.permits_quick(*node, world.now, timeout)
    };
    match leavers(changed).find(is_wrong) {
        Some((node, _)) => Err(format!("{node} left the quick way, which nobody had asked for")),
        None => Ok(()),
    }
}
