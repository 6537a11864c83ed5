//! The verdict about a cluster's health, as one node sees it: each problem with what it means for clients and what to
//! do. It is computed here only. `status`, `top`, the console, `CLUSTER INFO`, `/readyz`, `/metrics` and the log show
//! it.

use core::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{MemberStatus, Status, Vote};

/// Clocks further apart than this are reported.
pub const SKEW_MAX: Duration = Duration::from_secs(1);
/// Maximum number of names or buckets that one sentence lists.
const LISTED_MAX: usize = 4;

/// Severity of a problem. The order is that of the exit codes of `status --check`: 0, 1, 2.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    #[default]
    Ok,
    /// Clients are served; a further fault may harm them.
    Warning,
    /// Some commands are refused, or data is missing.
    Failing,
}

/// The kinds of problems, by the names that metrics and alerts use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemKind {
    /// The reporting node does not serve yet, or no longer.
    NotServing,
    /// The reporting node has no valid lease.
    LeaseLost,
    /// This side of a split cluster ends in favour of another.
    Yielding,
    BucketsLost,
    OutOfMemory,
    Sick,
    Silent,
    NoLeader,
    CopiesMissing,
    MemoryShort,
    ClockSkew,
    SplitBrain,
    DataAwaited,
    Away,
}

impl ProblemKind {
    pub const ALL: [ProblemKind; 14] = [
        ProblemKind::NotServing,
        ProblemKind::LeaseLost,
        ProblemKind::Yielding,
        ProblemKind::BucketsLost,
        ProblemKind::OutOfMemory,
        ProblemKind::Sick,
        ProblemKind::Silent,
        ProblemKind::NoLeader,
        ProblemKind::CopiesMissing,
        ProblemKind::MemoryShort,
        ProblemKind::ClockSkew,
        ProblemKind::SplitBrain,
        ProblemKind::DataAwaited,
        ProblemKind::Away,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ProblemKind::NotServing => "not-serving",
            ProblemKind::LeaseLost => "lease-lost",
            ProblemKind::Yielding => "yielding",
            ProblemKind::BucketsLost => "buckets-lost",
            ProblemKind::OutOfMemory => "out-of-memory",
            ProblemKind::Sick => "sick",
            ProblemKind::Silent => "silent",
            ProblemKind::NoLeader => "no-leader",
            ProblemKind::CopiesMissing => "copies-missing",
            ProblemKind::MemoryShort => "memory-short",
            ProblemKind::ClockSkew => "clock-skew",
            ProblemKind::SplitBrain => "split-brain",
            ProblemKind::DataAwaited => "data-awaited",
            ProblemKind::Away => "away",
        }
    }

    pub fn severity(self) -> Severity {
        match self {
            ProblemKind::NotServing
            | ProblemKind::LeaseLost
            | ProblemKind::Yielding
            | ProblemKind::BucketsLost
            | ProblemKind::OutOfMemory => Severity::Failing,
            ProblemKind::Sick
            | ProblemKind::Silent
            | ProblemKind::NoLeader
            | ProblemKind::CopiesMissing
            | ProblemKind::MemoryShort
            | ProblemKind::ClockSkew
            | ProblemKind::SplitBrain
            | ProblemKind::DataAwaited
            | ProblemKind::Away => Severity::Warning,
        }
    }

    /// Returns whether `CLUSTER INFO` reports the cluster as failed: keys cannot be reached.
    fn fails_cluster(self) -> bool {
        self.severity() == Severity::Failing && self != ProblemKind::OutOfMemory
    }
}

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Problem {
    pub kind: ProblemKind,
    /// The node that has the problem; `None` if it is the cluster's.
    pub node: Option<String>,
    /// The fact: "node b has been silent for 4.0 s".
    pub what: String,
    /// The meaning for clients: "its buckets are not served until ...".
    pub effect: String,
    /// The remedy.
    pub advice: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { what, effect, advice, .. } = self;
        write!(f, "{what}: {effect}; {advice}")
    }
}

/// All problems, the worst first.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Health {
    pub severity: Severity,
    pub problems: Vec<Problem>,
}

/// Facts about the reporting node that are not in its map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeFacts {
    /// Reason why the node does not serve: it is starting, stopping, or has left. `None` if it serves.
    pub not_serving: Option<String>,
    /// True while its lease is valid, or if it needs none.
    pub has_lease: bool,
    /// The thread or disk of the node that stalls.
    pub stalled: Option<String>,
}

impl Health {
    /// Judges the cluster by a node's status and the facts about that node.
    pub fn of(status: &Status, facts: &NodeFacts) -> Health {
        let mut problems: Vec<Problem> = own(status, facts).into_iter().collect();
        problems.extend(lost(status));
        problems.extend(status.members.iter().flat_map(|member| of_member(status, facts, member)));
        problems.extend(no_leader(status, facts));
        problems.extend(copies_missing(status));
        problems.extend(sides(status));
        problems.extend(status.away.iter().map(|away| Problem {
            kind: ProblemKind::Away,
            node: Some(away.name.clone()),
            what: format!("node {} is away; {} places are kept for it", away.name, away.places),
            effect: "until it returns, its buckets have one copy fewer".to_owned(),
            advice: format!("start it within {} s, or its places go to other nodes", away.seconds),
        }));
        Health::sorted(problems)
    }

    fn sorted(mut problems: Vec<Problem>) -> Health {
        problems.sort_by_key(|problem| (core::cmp::Reverse(problem.kind.severity()), problem.kind));
        let severity = problems.iter().map(|problem| problem.kind.severity()).max();
        Health { severity: severity.unwrap_or_default(), problems }
    }

    /// Adds the problems that another node reports and this one does not.
    pub fn add(&mut self, other: Health) {
        let is_new = |mine: &[Problem], problem: &Problem| {
            !mine.iter().any(|it| it.kind == problem.kind && it.node == problem.node)
        };
        let mut problems = core::mem::take(&mut self.problems);
        for problem in other.problems {
            if is_new(&problems, &problem) {
                problems.push(problem);
            }
        }
        *self = Health::sorted(problems);
    }

    /// Returns whether keys cannot be reached, for `cluster_state` of `CLUSTER INFO`.
    pub fn fails_cluster(&self) -> bool {
        self.problems.iter().any(|problem| problem.kind.fails_cluster())
    }

    /// Returns the problem for which this node should get no clients.
    pub fn unready(&self, node: &str) -> Option<&Problem> {
        self.problems.iter().find(|problem| {
            let is_own = problem.node.as_deref() == Some(node);
            let stops = matches!(
                problem.kind,
                ProblemKind::NotServing
                    | ProblemKind::LeaseLost
                    | ProblemKind::Yielding
                    | ProblemKind::Sick
            );
            is_own && stops
        })
    }

    pub fn has(&self, kind: ProblemKind) -> bool {
        self.problems.iter().any(|problem| problem.kind == kind)
    }
}

/// Returns the reasons why the reporting node itself refuses all commands.
fn own(status: &Status, facts: &NodeFacts) -> Option<Problem> {
    let node = &status.node;
    let refuses = "it refuses all commands on keys".to_owned();
    let (kind, what, advice) = if let Some(why) = &facts.not_serving {
        let advice = "if this lasts, check that it reaches the peer ports of the other nodes";
        (ProblemKind::NotServing, format!("node {node} does not serve: {why}"), advice.to_owned())
    } else if status.yields {
        let what = format!("node {node} belongs to a side of the cluster that ends");
        let advice = "wait until it has handed over its writes and joined the other side";
        (ProblemKind::Yielding, what, advice.to_owned())
    } else if !facts.has_lease {
        (ProblemKind::LeaseLost, no_lease(status), lease_advice(status))
    } else {
        return None;
    };
    Some(Problem { kind, node: Some(node.clone()), what, effect: refuses, advice })
}

/// Returns the voters, and those of them that do not answer the reporting node.
fn voters(status: &Status) -> (usize, Vec<&str>) {
    let voters = status.members.iter().filter(|member| member.vote == Vote::Voter);
    let silent = voters.clone().filter(|it| it.silent_millis.is_some() && it.name != status.node);
    (voters.count(), silent.map(|member| member.name.as_str()).collect())
}

fn no_lease(status: &Status) -> String {
    let node = &status.node;
    match voters(status) {
        (count, silent) if 2 * silent.len() >= count && !silent.is_empty() => format!(
            "node {node} has no lease: {} of {count} voters do not answer ({})",
            silent.len(),
            listed(&silent)
        ),
        _ => format!("node {node} has no lease: no leader with a majority renews it"),
    }
}

fn lease_advice(status: &Status) -> String {
    let how = "restart the nodes that do not answer, or repair their network";
    let is_alone = voters(status).1.len() + 1 >= status.members.len();
    let takeover = "; if they are gone for good, run opencluster takeover on a survivor";
    if is_alone || status.leader.is_none() { format!("{how}{takeover}") } else { how.to_owned() }
}

fn lost(status: &Status) -> Option<Problem> {
    if status.lost == 0 {
        return None;
    }
    let names = status.buckets.iter().filter(|bucket| bucket.holders.is_empty());
    let names: Vec<&str> = names.map(|bucket| bucket.bucket.as_str()).collect();
    let names = if names.is_empty() { String::new() } else { format!(" ({})", listed(&names)) };
    let (verb, those) = if status.lost == 1 { ("has", "it") } else { ("have", "them") };
    Some(Problem {
        kind: ProblemKind::BucketsLost,
        node: None,
        what: format!("{} {verb} no holder{names}", count(status.lost, "bucket")),
        effect: "their keys are refused".to_owned(),
        advice: format!(
            "start a node that held {those} with its data directory; after lost-after they are recreated from an \
             older copy, or empty"
        ),
    })
}

/// Returns the problems of one member.
fn of_member(status: &Status, facts: &NodeFacts, member: &MemberStatus) -> Vec<Problem> {
    let name = &member.name;
    let problem = |kind, what: String, effect: &str, advice: &str| Problem {
        kind,
        node: Some(name.clone()),
        what,
        effect: effect.to_owned(),
        advice: advice.to_owned(),
    };
    let mut problems = Vec::new();
    if let Some(millis) = member.silent_millis {
        problems.push(problem(
            ProblemKind::Silent,
            format!("node {name} has been silent for {}", seconds(millis)),
            "commands on its buckets wait or fail until it answers or its backups take over",
            "check its process and its network",
        ));
    }
    let levels = member.levels;
    if levels.is_some_and(|levels| levels.out_of_memory) {
        problems.push(problem(
            ProblemKind::OutOfMemory,
            format!("node {name} is out of memory"),
            "writes that need memory on its buckets are refused (OOM)",
            "add a node, raise maxmemory, or set an eviction policy",
        ));
    } else if levels.is_some_and(|levels| levels.full) {
        problems.push(problem(
            ProblemKind::MemoryShort,
            format!("node {name} is near its limit of memory"),
            "it takes no more copies; soon writes are refused, or keys evicted",
            "add a node or raise maxmemory",
        ));
    }
    if levels.is_some_and(|levels| levels.sick) {
        let stalled = facts.stalled.as_ref().filter(|_| *name == status.node);
        let why = stalled.map_or_else(String::new, |why| format!(": {why}"));
        problems.push(problem(
            ProblemKind::Sick,
            format!("node {name} is sick{why}"),
            "commands there may hang; it hands its buckets over to healthy nodes",
            "look into its log; check its CPU, its disk and its links, or restart it",
        ));
    }
    if let Some(millis) = member.clock_ahead_millis.filter(|it| is_skewed(*it)) {
        let side = if millis > 0 { "ahead of" } else { "behind" };
        let (apart, node) = (seconds(millis.unsigned_abs()), &status.node);
        problems.push(problem(
            ProblemKind::ClockSkew,
            format!("the clock of {name} is {apart} {side} that of {node}"),
            "keys whose bucket moves between them may expire early or late by that",
            "synchronise the clocks of all machines (NTP)",
        ));
    }
    problems
}

fn is_skewed(millis: i64) -> bool {
    Duration::from_millis(millis.unsigned_abs()) > SKEW_MAX
}

/// Returns a problem if the log of map changes has no leader; without a lease that is said already, and a node whose
/// control plane has reported nothing yet does not know.
fn no_leader(status: &Status, facts: &NodeFacts) -> Option<Problem> {
    let is_known = status.members.iter().any(|member| member.vote != Vote::Unknown);
    let is_calm =
        status.leader.is_some() || !facts.has_lease || facts.not_serving.is_some() || !is_known;
    (!is_calm).then(|| Problem {
        kind: ProblemKind::NoLeader,
        node: None,
        what: "the cluster has no leader just now".to_owned(),
        effect: "commands are served while leases last; buckets do not move".to_owned(),
        advice: "wait for the election; if it lasts, check that a majority of the voters runs"
            .to_owned(),
    })
}

/// Returns a problem if buckets have fewer copies than they should. A node alone cannot have more than one.
fn copies_missing(status: &Status) -> Option<Problem> {
    let (short, single) = (status.short_of_copies, status.single_copies);
    if short == 0 {
        return None;
    }
    let single = if single > 0 { format!(", {single} have one only") } else { String::new() };
    let cost = if single.is_empty() { "further deaths" } else { "the death of their node" };
    Some(Problem {
        kind: ProblemKind::CopiesMissing,
        node: None,
        what: format!("{short} of {} lack copies{single}", count(status.bucket_count, "bucket")),
        effect: format!("they are served, but {cost} would lose them"),
        advice: "wait until they are copied; do not stop a node until then".to_owned(),
    })
}

fn sides(status: &Status) -> Vec<Problem> {
    let problem = |kind, what: String, effect: &str, advice: &str| Problem {
        kind,
        node: None,
        what,
        effect: effect.to_owned(),
        advice: advice.to_owned(),
    };
    let mut problems = Vec::new();
    if !status.estranged.is_empty() {
        let names: Vec<&str> = status.estranged.iter().map(String::as_str).collect();
        let names = listed(&names);
        problems.push(problem(
            ProblemKind::SplitBrain,
            format!("this side took over without {names}"),
            "if they went on serving (split brain), both sides took writes; they are merged when they meet",
            "repair the network between them, or make sure that they are gone",
        ));
    }
    if status.awaited > 0 {
        problems.push(problem(
            ProblemKind::DataAwaited,
            format!("{} recreated without their data", count(status.awaited, "bucket")),
            "their former keys are missing",
            "start a node that held them with its data directory: the data is merged",
        ));
    }
    problems
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

fn listed(names: &[&str]) -> String {
    match names.len().checked_sub(LISTED_MAX) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..LISTED_MAX].join(", ")),
    }
}

fn seconds(millis: u64) -> String {
    format!("{:.1} s", millis as f64 / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::{Condition, MemoryLevel, Vitals};
    use crate::map::{
        Boot, Change, ClusterSettings, Endpoints, LogIndex, Map, Member, NodeId, Zone,
    };
    use crate::status::{AwayStatus, Sight};
    use placement::Mask;

    fn member(number: u64) -> Member {
        Member {
            id: NodeId(number),
            boot: Boot(1),
            name: format!("n{number}"),
            weight: 1,
            zone: Zone::default(),
            at: Endpoints::default(),
        }
    }

    /// Returns the status of a cluster of three voters, led by n1, whose buckets have all their copies.
    fn three() -> Status {
        let mut map = Map::found(member(1), Mask::M000F, ClusterSettings::default());
        map.apply(LogIndex(2), &Change::Join(member(2)));
        map.apply(LogIndex(3), &Change::Join(member(3)));
        let mut status = Status::of(&map, NodeId(1));
        status.members.iter_mut().for_each(|member| member.vote = Vote::Voter);
        status.leader = Some("n1".to_owned());
        status.single_copies = 0;
        status.short_of_copies = 0;
        status
    }

    fn well() -> NodeFacts {
        NodeFacts { not_serving: None, has_lease: true, stalled: None }
    }

    fn report(condition: Condition, memory: MemoryLevel) -> Sight {
        Sight { vitals: Vitals { condition, memory, ..Vitals::default() }, moving: None }
    }

    fn kinds(health: &Health) -> Vec<ProblemKind> {
        health.problems.iter().map(|problem| problem.kind).collect()
    }

    #[test]
    fn a_whole_cluster_and_a_node_alone_are_well() {
        assert_eq!(Health::of(&three(), &well()), Health::default());
        let map = Map::found(member(1), Mask::M000F, ClusterSettings::default());
        let mut alone = Status::of(&map, NodeId(1));
        alone.leader = Some("n1".to_owned());
        assert_eq!((alone.single_copies, alone.short_of_copies), (16, 0));
        assert_eq!(Health::of(&alone, &well()), Health::default());
        alone.leader = None; // It has just started: nothing is known about votes either.
        assert_eq!(Health::of(&alone, &well()), Health::default());
    }

    #[test]
    fn buckets_with_one_copy_are_told_apart_from_those_with_too_few() {
        let mut map = Map::found(member(1), Mask::M000F, ClusterSettings::default());
        map.apply(LogIndex(2), &Change::Join(member(2)));
        let mut status = Status::of(&map, NodeId(1));
        status.leader = Some("n1".to_owned());
        let health = Health::of(&status, &well());
        assert_eq!(kinds(&health), [ProblemKind::CopiesMissing]);
        assert_eq!(health.problems[0].what, "16 of 16 buckets lack copies, 16 have one only");
    }

    #[test]
    fn a_node_without_a_majority_says_who_is_silent_and_what_to_do() {
        let mut status = three();
        status.members[1].silent_millis = Some(4_000);
        status.members[2].silent_millis = Some(4_000);
        status.leader = None;
        let health = Health::of(&status, &NodeFacts { has_lease: false, ..well() });
        assert_eq!(health.severity, Severity::Failing);
        let expected = [ProblemKind::LeaseLost, ProblemKind::Silent, ProblemKind::Silent];
        assert_eq!(kinds(&health), expected);
        let worst = &health.problems[0];
        assert_eq!(worst.what, "node n1 has no lease: 2 of 3 voters do not answer (n2, n3)");
        assert_eq!(worst.effect, "it refuses all commands on keys");
        assert!(worst.advice.contains("opencluster takeover"), "{}", worst.advice);
        assert!(health.fails_cluster());
        assert_eq!(health.unready("n1"), Some(worst));
    }

    #[test]
    fn a_silent_minority_is_a_warning_and_no_reason_for_a_takeover() {
        let mut status = three();
        status.members[2].silent_millis = Some(1_500);
        let health = Health::of(&status, &well());
        assert_eq!(
            (health.severity, kinds(&health)),
            (Severity::Warning, vec![ProblemKind::Silent])
        );
        assert_eq!(health.problems[0].what, "node n3 has been silent for 1.5 s");
        assert!(!health.fails_cluster());
        let cut_off = Health::of(&status, &NodeFacts { has_lease: false, ..well() });
        let worst = &cut_off.problems[0];
        assert_eq!(worst.what, "node n1 has no lease: no leader with a majority renews it");
        assert!(!worst.advice.contains("takeover"), "{}", worst.advice);
    }

    #[test]
    fn one_reason_is_named_for_a_node_that_does_not_serve() {
        let mut status = three();
        status.yields = true;
        let facts = NodeFacts {
            not_serving: Some("it is stopping".to_owned()),
            has_lease: false,
            ..well()
        };
        let stopping = Health::of(&status, &facts);
        assert_eq!(kinds(&stopping), [ProblemKind::NotServing]);
        assert_eq!(stopping.problems[0].what, "node n1 does not serve: it is stopping");
        let yielding = Health::of(&status, &NodeFacts { has_lease: false, ..well() });
        assert_eq!(kinds(&yielding), [ProblemKind::Yielding]);
        assert!(yielding.unready("n1").is_some() && yielding.unready("n2").is_none());
    }

    #[test]
    fn lost_buckets_are_counted_and_named_if_the_status_lists_them() {
        let mut status = three();
        status.buckets[3].holders.clear();
        status.lost = 1;
        let health = Health::of(&status, &well());
        assert_eq!(kinds(&health), [ProblemKind::BucketsLost]);
        assert_eq!(health.problems[0].what, "1 bucket has no holder (000F/0003)");
        assert!(health.fails_cluster() && health.unready("n1").is_none());
        status.buckets.iter_mut().for_each(|bucket| bucket.holders.clear());
        status.lost = 16;
        let all = Health::of(&status, &well());
        let names = "(000F/0000, 000F/0001, 000F/0002, 000F/0003 and 12 more)";
        assert_eq!(all.problems[0].what, format!("16 buckets have no holder {names}"));
        status.buckets.clear();
        let unnamed = Health::of(&status, &well());
        assert_eq!(unnamed.problems[0].what, "16 buckets have no holder");
    }

    #[test]
    fn full_memory_fails_where_nothing_may_be_evicted() {
        let mut status = three();
        let level = |used, evicts| MemoryLevel { used, max: 1_000, evicts };
        let mut judged = |used, evicts| {
            status.add_sight(NodeId(2), &report(Condition::Well, level(used, evicts)));
            Health::of(&status, &well())
        };
        assert_eq!(kinds(&judged(1_001, false)), [ProblemKind::OutOfMemory]);
        let health = judged(1_001, false);
        assert_eq!(health.problems[0].what, "node n2 is out of memory");
        assert_eq!((health.severity, health.fails_cluster()), (Severity::Failing, false));
        assert_eq!(kinds(&judged(1_001, true)), [ProblemKind::MemoryShort]);
        assert_eq!(kinds(&judged(1_000, false)), [ProblemKind::MemoryShort]);
        assert_eq!(kinds(&judged(100, false)), []);
    }

    #[test]
    fn a_sick_node_says_why_if_it_is_the_one_that_is_asked() {
        let mut status = three();
        status.add_sight(NodeId(1), &report(Condition::Sick, MemoryLevel::default()));
        status.add_sight(NodeId(2), &report(Condition::Sick, MemoryLevel::default()));
        let facts = NodeFacts { stalled: Some("the disk does not finish".to_owned()), ..well() };
        let health = Health::of(&status, &facts);
        let told: Vec<&str> = health.problems.iter().map(|problem| problem.what.as_str()).collect();
        assert_eq!(told, ["node n1 is sick: the disk does not finish", "node n2 is sick"]);
        assert_eq!(health.unready("n1").map(|problem| problem.kind), Some(ProblemKind::Sick));
    }

    #[test]
    fn warnings_name_what_a_further_fault_would_cost() {
        let mut status = three();
        status.leader = None;
        status.short_of_copies = 5;
        status.members[1].clock_ahead_millis = Some(-2_500);
        status.members[2].clock_ahead_millis = Some(1_000);
        status.estranged = vec!["n9".to_owned()];
        status.awaited = 1;
        status.away = vec![AwayStatus { name: "n7".to_owned(), places: 4, seconds: 300 }];
        let health = Health::of(&status, &well());
        assert_eq!(health.severity, Severity::Warning);
        let told: Vec<&str> = health.problems.iter().map(|problem| problem.what.as_str()).collect();
        assert_eq!(
            told,
            [
                "the cluster has no leader just now",
                "5 of 16 buckets lack copies",
                "the clock of n2 is 2.5 s behind that of n1",
                "this side took over without n9",
                "1 bucket recreated without their data",
                "node n7 is away; 4 places are kept for it",
            ]
        );
    }

    #[test]
    fn two_views_are_joined_without_repeating_a_problem() {
        let mut status = three();
        status.members[2].silent_millis = Some(2_000);
        let mut mine = Health::of(&status, &well());
        status.members[2].silent_millis = Some(9_000);
        status.lost = 2;
        mine.add(Health::of(&status, &well()));
        assert_eq!(kinds(&mine), [ProblemKind::BucketsLost, ProblemKind::Silent]);
        assert_eq!(mine.severity, Severity::Failing);
        assert_eq!(mine.problems[1].what, "node n3 has been silent for 2.0 s");
    }
}
