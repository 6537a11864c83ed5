//! Past changes of the map and their reasons, in words. The reason of a change is derived from the map
//! before it, so that every node reports the same, independent of the proposer.

use std::collections::VecDeque;

use placement::Hashmask;

use super::{ChangeStatus, Going, GoneStatus, name};
use crate::map::{
    Change, ChangeOutcome, DocumentWrite, DropReason, LeaveWay, Map, Member, NodeId,
    RecreateSource, SETTING_PREFIX,
};

/// Maximum number of changes in a chronicle.
pub const CHANGES_KEPT: usize = 256;
/// Maximum number of departed members in it.
const GONE_KEPT: usize = 16;

#[derive(Default, Debug)]
pub struct Chronicle {
    /// The oldest first.
    changes: VecDeque<ChangeStatus>,
    /// The latest first.
    gone: VecDeque<GoneStatus>,
}

impl Chronicle {
    /// Records the changes of one entry that took effect. `before` and `after` are the map around that
    /// entry, `at` is now, in milliseconds since 1970.
    pub fn note(
        &mut self,
        before: &Map,
        after: &Map,
        changes: &[Change],
        outcomes: &[ChangeOutcome],
        at: u64,
    ) {
        let applied = changes.iter().zip(outcomes).filter(|(_, is)| **is == ChangeOutcome::Applied);
        for (change, _) in applied {
            self.note_gone(before, change, at);
            let (what, why) = describe(before, after, change);
            self.changes.push_back(ChangeStatus { epoch: after.epoch().0, at, what, why });
        }
        let surplus = self.changes.len().saturating_sub(CHANGES_KEPT);
        self.changes.drain(..surplus);
    }

    fn note_gone(&mut self, before: &Map, change: &Change, at: u64) {
        let mut note = |node: NodeId, how| {
            let (name, load) = (name(before, node), before.load(node));
            let (primaries, backups) = (load.primaries, load.backups);
            self.gone.retain(|gone| gone.name != name);
            self.gone.push_front(GoneStatus { name, at, how, primaries, backups });
        };
        if let Change::Leave { node, .. } = change {
            note(*node, Going::Left);
        } else if let Change::Dead(nodes) = change {
            nodes.iter().for_each(|node| note(*node, Going::Dead));
        }
        self.gone.truncate(GONE_KEPT);
    }

    /// Returns the members that have left or died since this moment and have not come back, the latest
    /// first.
    pub fn gone(&self, map: &Map, since: u64) -> Vec<GoneStatus> {
        let is_back =
            |gone: &GoneStatus| map.members().iter().any(|member| member.name == gone.name);
        self.gone.iter().filter(|gone| gone.at >= since && !is_back(gone)).cloned().collect()
    }

    /// Returns the latest changes, the newest first.
    pub fn latest(&self, count: usize) -> Vec<ChangeStatus> {
        self.changes.iter().rev().take(count).cloned().collect()
    }
}

fn describe(before: &Map, after: &Map, change: &Change) -> (String, String) {
    // A joining node is only in the later map, a departing one only in the earlier.
    let of = |node: NodeId| {
        let map = if before.member(node).is_some() { before } else { after };
        name(map, node)
    };
    match change {
        Change::Join(member) => describe_join(before, member),
        Change::Leave { node, way, .. } => (format!("{} leaves", of(*node)), why_leave(*way)),
        Change::Away { node, absence, way, .. } => {
            (format!("{} leaves for {} s", of(*node), absence.as_secs()), why_leave(*way))
        }
        Change::Forget(node) => {
            let name = before.away().find(|(away, _)| away == node).map(|(_, away)| &away.name);
            let name = name.map_or("", String::as_str);
            let what = format!("the reserved places of {name} are released");
            let is_back = before.member(*node).is_some();
            let why = if is_back { "it is back" } else { "it was away too long" };
            (what, why.to_owned())
        }
        Change::Dead(nodes) => {
            let names: Vec<String> = nodes.iter().map(|node| of(*node)).collect();
            describe_dead(&names)
        }
        Change::AddBackup { bucket, node, .. } => {
            (format!("{} becomes backup of {bucket}", of(*node)), why_add(before, *bucket))
        }
        Change::Promote { bucket, node, .. } => {
            (format!("{} becomes primary of {bucket}", of(*node)), why_promote(before, *bucket))
        }
        Change::DropBackup { bucket, node, because, .. } => {
            let why = match because {
                DropReason::Balance => "the bucket has enough copies",
                DropReason::OutOfSync => "its copy fell out of sync",
            };
            (format!("{} drops {bucket}", of(*node)), why.to_owned())
        }
        Change::Split(buckets) => describe_split(before, buckets.iter().map(|(bucket, _)| *bucket)),
        Change::Recreate { bucket, node, from, .. } => {
            let from = match from {
                RecreateSource::OwnData => "from its own data",
                RecreateSource::Snapshot => "from an older copy",
                RecreateSource::Empty => "empty",
            };
            let what = format!("{} recreates {bucket}, {from}", of(*node));
            (what, "all its holders were gone".to_owned())
        }
        Change::Set(setting) => {
            let (name, value) = super::settings::format_setting(setting);
            (format!("{name} is set to {value}"), "requested by an operator".to_owned())
        }
        Change::Yield(generation) => {
            let what = format!("this side ends in favour of generation {}", generation.counter);
            (what, "two sides of a split cluster have met".to_owned())
        }
        Change::KeptCopiesHandedOver { node, buckets } => {
            let (count, from) = (buckets.len(), of(*node));
            let what = format!("old copies of {count} buckets are no longer awaited from {from}");
            (what, "it has handed over its old copies, or has none".to_owned())
        }
        Change::Write { documents, .. } => {
            let writes: Vec<String> = documents.iter().map(describe_write).collect();
            (writes.join(", "), "requested by a client".to_owned())
        }
    }
}

fn describe_dead(names: &[String]) -> (String, String) {
    let (are, why) = match names.len() {
        1 => ("is", "its lease has expired"),
        _ => ("are", "their leases have expired"),
    };
    (format!("{} {are} declared dead", names.join(", ")), why.to_owned())
}

fn why_leave(way: LeaveWay) -> String {
    match way {
        LeaveWay::Safe => "others have copies of all its buckets".to_owned(),
        LeaveWay::Quick => {
            "it has handed over the buckets it served; its backups are filled elsewhere now"
                .to_owned()
        }
    }
}

/// Describes a written document. Only settings are shown with their content: others may be long, or secret.
fn describe_write(write: &DocumentWrite) -> String {
    let DocumentWrite { name, content } = write;
    match (content, name.strip_prefix(SETTING_PREFIX)) {
        (None, _) => format!("{name} is removed"),
        (Some(content), Some(setting)) => {
            format!("{setting} is set to '{}'", String::from_utf8_lossy(content))
        }
        (Some(content), None) => format!("{name} is written, {} bytes", content.len()),
    }
}

fn describe_join(before: &Map, member: &Member) -> (String, String) {
    let name = &member.name;
    match before.member(member.id) {
        Some(known) if known.boot == member.boot && member.weight == 0 => {
            (format!("{name} is about to leave"), "it hands over what it holds".to_owned())
        }
        Some(known) if known.boot == member.boot => (
            format!("the entry of {name} is written again"),
            "all nodes plan again from this map".to_owned(),
        ),
        Some(_) => (format!("{name} joins again"), "it was restarted".to_owned()),
        None => (format!("{name} joins"), "it was started with this cluster's address".to_owned()),
    }
}

fn describe_split(
    before: &Map,
    buckets: impl ExactSizeIterator<Item = Hashmask>,
) -> (String, String) {
    let (count, all) = (buckets.len(), before.bucket_count());
    if count < all {
        let names: Vec<String> = buckets.take(3).map(|bucket| bucket.to_string()).collect();
        let more = if count > names.len() { ", ..." } else { "" };
        let what = format!("{}{more} split", names.join(", "));
        let why = "much larger than the other buckets, or requested by an operator";
        return (what, why.to_owned());
    }
    let why = format!("fewer than {} copies per node", before.settings().min_buckets);
    (format!("all {all} buckets are split"), why)
}

fn why_add(before: &Map, bucket: Hashmask) -> String {
    let Some(bucket) = before.bucket(bucket) else { return String::new() };
    let leaving = bucket.holders.iter().find(|holder| is_leaving(before, **holder));
    if let Some(leaving) = leaving {
        return format!("{} is leaving", name(before, *leaving));
    }
    if bucket.holders.len() < before.copies_wanted() {
        return format!("it had {} of {} copies", bucket.holders.len(), before.copies_wanted());
    }
    "to balance the number of copies".to_owned()
}

fn why_promote(before: &Map, bucket: Hashmask) -> String {
    let primary = before.bucket(bucket).and_then(|bucket| bucket.primary());
    let Some(primary) = primary else { return String::new() };
    if is_leaving(before, primary) {
        return format!("{} is leaving", name(before, primary));
    }
    format!("{} had {} primaries", name(before, primary), before.load(primary).primaries)
}

fn is_leaving(map: &Map, node: NodeId) -> bool {
    map.member(node).is_some_and(|member| member.weight == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{Boot, ClusterSettings, Endpoints, LogIndex, Member, Setting, Zone};
    use placement::Mask;

    fn member(number: u64, name: &str) -> Member {
        Member {
            id: NodeId(number),
            boot: Boot(1),
            name: name.to_owned(),
            weight: 1,
            zone: Zone::default(),
            at: Endpoints::default(),
        }
    }

    #[test]
    fn changes_are_told_with_their_reasons_the_newest_first() {
        let mut map = Map::found(member(1, "A"), Mask::M000F, ClusterSettings::default());
        let mut chronicle = Chronicle::default();
        let bucket: Hashmask = "000F/0004".parse().unwrap();
        let node = NodeId(2);
        let expected = |map: &Map| map.bucket(bucket).unwrap().epoch;
        for step in 0..6 {
            let change = match step {
                0 => Change::Join(member(2, "B")),
                1 => Change::AddBackup { bucket, node, expected: expected(&map) },
                2 => Change::Promote { bucket, node, expected: expected(&map) },
                3 => Change::Set(Setting::Backups(2)),
                4 => Change::Split(vec![(bucket, expected(&map))]),
                _ => Change::Dead([node].into()),
            };
            let before = map.clone();
            let outcomes = map.apply_entry(LogIndex(step + 2), None, std::slice::from_ref(&change));
            chronicle.note(&before, &map, &[change], &outcomes, 1_000 + step);
        }
        let describe: Vec<String> = chronicle
            .latest(10)
            .iter()
            .map(|change| format!("{} {}: {}", change.at, change.what, change.why))
            .collect();
        assert_eq!(
            describe,
            [
                "1005 B is declared dead: its lease has expired",
                "1004 000F/0004 split: much larger than the other buckets, or requested by an operator",
                "1003 backups is set to 2: requested by an operator",
                "1002 B becomes primary of 000F/0004: A had 16 primaries",
                "1001 B becomes backup of 000F/0004: it had 1 of 2 copies",
                "1000 B joins: it was started with this cluster's address",
            ]
        );
        assert_eq!(chronicle.latest(1).len(), 1);
        let gone = chronicle.gone(&map, 1_005);
        let held: Vec<_> = gone.iter().map(|it| (&*it.name, it.how, it.primaries)).collect();
        assert_eq!(held, [("B", Going::Dead, 16)], "the bucket it served had been split");
        assert!(chronicle.gone(&map, 1_006).is_empty());
        map.apply_entry(LogIndex(9), None, &[Change::Join(member(3, "B"))]);
        assert!(chronicle.gone(&map, 0).is_empty(), "it is back under its name");
    }

    #[test]
    fn a_node_that_is_about_to_leave_is_not_taken_for_one_that_was_restarted() {
        let map = Map::found(member(1, "A"), Mask::M000F, ClusterSettings::default());
        let leaving = Member { weight: 0, ..member(1, "A") };
        assert_eq!(describe_join(&map, &leaving).0, "A is about to leave");
        let restarted = Member { boot: Boot(2), ..member(1, "A") };
        assert_eq!(describe_join(&map, &restarted).0, "A joins again");
    }

    #[test]
    fn what_came_to_nothing_is_not_told() {
        let map = Map::found(member(1, "A"), Mask::M000F, ClusterSettings::default());
        let mut chronicle = Chronicle::default();
        chronicle.note(
            &map,
            &map,
            &[Change::Leave { node: NodeId(9), boot: Boot(1), way: LeaveWay::Safe }],
            &[ChangeOutcome::Stale],
            0,
        );
        assert!(chronicle.latest(10).is_empty());
    }
}
