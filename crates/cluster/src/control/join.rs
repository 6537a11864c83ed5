//! Admission of joining processes: all checks, and the reasons for a refusal.

use std::time::Duration;

use super::recreate::reader;
use super::{JoinRequest, ProtocolRange};
use crate::map::{ClusterId, Map, Member, NodeId};

/// Maximum clock difference of a joining node. Beyond it, one node's writes would lie in the other's
/// future.
const SKEW_MAX: Duration = Duration::from_secs(60);
const MEMBERS_MAX: usize = 1000;
const NAME_BYTES_MAX: usize = 64;
const WEIGHT_MAX: u32 = 1_000_000;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum JoinDecision {
    Admit,
    /// The process is a member already: the answer was lost.
    Member,
    /// Not yet, for this reason.
    Wait(String),
    /// Never, for this reason.
    Refuse(String),
}

impl JoinRequest {
    /// Returns the request of a process that finds its id in the map it has kept.
    pub(super) fn of_returning(member: Member, cluster: ClusterId) -> JoinRequest {
        JoinRequest {
            versions: ProtocolRange::OURS,
            member,
            cluster: Some(cluster),
            skew: Duration::ZERO,
            is_loading: false,
        }
    }

    /// Returns whether the process was a member before and may hold copies from that time.
    pub(super) fn has_kept_copies(&self) -> bool {
        self.cluster.is_some()
    }
}

/// Decides on a join request. `renewed` returns whether a node has renewed its lease since this process
/// first asked, `is_last` is true if this surely is the latest process of its node.
pub(super) fn judge(
    map: &Map,
    cluster: ClusterId,
    request: &JoinRequest,
    renewed: impl Fn(NodeId) -> bool,
    is_last: bool,
) -> JoinDecision {
    if let Some(reason) = misfit(cluster, request) {
        return JoinDecision::Refuse(reason);
    }
    if map.yielded_to().is_some() {
        // Its nodes are about to belong to that one.
        let reason = "this side of the split cluster has ended in favour of another";
        return JoinDecision::Wait(reason.into());
    }
    let joining = &request.member;
    let known = map.member(joining.id);
    if known.is_some_and(|member| member.peer() == joining.peer()) {
        return JoinDecision::Member;
    }
    if known.is_some() && !is_last {
        return JoinDecision::Wait(
            "an earlier process of this node may still be the member".into(),
        );
    }
    if reader(map).is_some_and(|node| node != joining.id) {
        // With a second member, the first one could no longer bring the lost buckets back.
        return JoinDecision::Wait("the only member is still loading its data from disk".into());
    }
    let mut others = map.members().iter().filter(|member| member.id != joining.id);
    if let Some(namesake) = others.find(|member| member.name == joining.name) {
        let Member { name, at, .. } = namesake;
        return if renewed(namesake.id) {
            let place = format!("{}:{}", at.host, at.client);
            JoinDecision::Refuse(format!(
                "the name {name} is in use by a live node at {place}; choose another --name"
            ))
        } else {
            JoinDecision::Wait(format!(
                "the lease of the previous node named {name} may still be valid"
            ))
        };
    }
    if known.is_none() && map.members().len() >= MEMBERS_MAX {
        return JoinDecision::Refuse(format!(
            "the cluster is full: it has the maximum of {MEMBERS_MAX} members"
        ));
    }
    JoinDecision::Admit
}

/// Returns the reason a process does not fit this cluster, whatever its members are.
fn misfit(cluster: ClusterId, request: &JoinRequest) -> Option<String> {
    let JoinRequest { versions, member, cluster: theirs, skew, .. } = request;
    let ours = ProtocolRange::OURS;
    if ours.common(*versions).is_none() {
        return Some(format!(
            "protocol version mismatch: the cluster speaks {ours}, the joining node {versions}"
        ));
    }
    if theirs.is_some_and(|theirs| theirs != cluster) {
        return Some("its data directory belongs to another cluster".into());
    }
    if *skew > SKEW_MAX {
        let seconds = skew.as_secs();
        return Some(format!(
            "its clock differs from the cluster's by {seconds} s; at most 60 s are allowed"
        ));
    }
    ill_named(member)
}

fn ill_named(member: &Member) -> Option<String> {
    if member.id == NodeId(0) {
        return Some("a node's id cannot be 0".into());
    }
    if member.name.is_empty() || member.name.len() > NAME_BYTES_MAX {
        return Some(format!("a node's name must have 1 to {NAME_BYTES_MAX} bytes"));
    }
    (member.weight > WEIGHT_MAX).then(|| format!("a node's weight must be at most {WEIGHT_MAX}"))
}
