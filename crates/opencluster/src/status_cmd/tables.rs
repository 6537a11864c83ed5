//! The status of a cluster as people read it: members, buckets, moves in flight, last changes.

use std::fmt::Write;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use cluster::control::SKEW_MAX;
use cluster::merge::Tally;
use cluster::status::{
    AwayStatus, BUCKETS_MAX, ChangeStatus, LevelsStatus, MemberStatus, MoveStatus, Status,
    SyncStatus, Vote, picture, summary,
};

use super::figures::{ago, bytes, thousands};
use crate::screen;

/// Maximum number of changes shown.
const CHANGES_SHOWN: usize = 10;
/// Maximum number of copies shown that are behind.
const COPIES_SHOWN: usize = 10;

const TITLE: Style = Style::new().bold();
const HEAD: Style = Style::new().dimmed();
const ALARM: Style = AnsiColor::Red.on_default().bold();

/// Returns the whole status with colours; the printing side strips them if there is no terminal. `now` is the
/// time since 1970.
pub(super) fn render(status: &Status, now: Duration) -> String {
    let mut text = head(status);
    text += "\n";
    text += &members(status);
    text += &away(status);
    text += "\n";
    if status.buckets.len() <= BUCKETS_MAX {
        text += &coloured(&picture(status));
    }
    text += &summary(status);
    text += &lost(status);
    text += &single_copies(status);
    text += &sides(status);
    text += &clocks(status);
    text += &format!("\n{TITLE}moves in flight{TITLE:#}\n");
    text += &moves(&status.moves);
    text += &sync(&status.sync);
    text += &format!("\n{TITLE}last changes of the map{TITLE:#}\n");
    text + &changes(&status.changes, now)
}

fn head(status: &Status) -> String {
    let Status { generation, epoch, node, .. } = status;
    let mut text = match status.cluster.as_str() {
        "" => "no cluster".to_owned(),
        id => format!("{TITLE}cluster {id}{TITLE:#}"),
    };
    let _ = write!(text, ", generation {generation}, epoch {epoch}; reported by {node}");
    if let Some(leader) = &status.leader {
        let _ = write!(text, "; leader {leader}");
    }
    text + "\n"
}

fn away(status: &Status) -> String {
    let line = |away: &AwayStatus| {
        let AwayStatus { name, places, seconds } = away;
        format!("{name} is away for up to {seconds} s; {places} places are kept for it\n")
    };
    status.away.iter().map(line).collect()
}

/// The columns of [`member`].
pub(crate) const MEMBER_HEAD: [&str; 10] =
    ["node", "address", "zone", "weight", "primaries", "backups", "ideal", "data", "ops/s", ""];

fn members(status: &Status) -> String {
    let rows: Vec<Vec<String>> = status.members.iter().map(member).collect();
    table(&MEMBER_HEAD, &rows)
}

/// One member in the columns of a table.
pub(crate) fn member(member: &MemberStatus) -> Vec<String> {
    let levels = member.levels;
    vec![
        member.name.clone(),
        format!("{}:{}", member.host, member.client_port),
        member.zone.clone(),
        member.weight.to_string(),
        member.primaries.to_string(),
        member.backups.to_string(),
        member.ideal.to_string(),
        levels.map_or_else(String::new, |levels| bytes(levels.bytes)),
        levels.map_or_else(String::new, |levels| thousands(levels.ops_per_second)),
        marks(member.vote, levels),
    ]
}

fn marks(vote: Vote, levels: Option<LevelsStatus>) -> String {
    let vote = match vote {
        Vote::Voter => "votes",
        Vote::Learner | Vote::Unknown => "",
    };
    let busy = levels.filter(|levels| levels.busy).map_or("", |_| "busy");
    let sick = levels.filter(|levels| levels.sick).map_or("", |_| "sick");
    let full = levels.filter(|levels| levels.full).map_or("", |_| "full");
    let marks = [vote, busy, full, sick];
    marks.into_iter().filter(|mark| !mark.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Returns a line about buckets without a holder.
fn lost(status: &Status) -> String {
    let lost = status.buckets.iter().filter(|bucket| bucket.holders.is_empty());
    let names: Vec<&str> = lost.map(|bucket| bucket.bucket.as_str()).collect();
    match names.as_slice() {
        [] => String::new(),
        [only] => format!("{ALARM}bucket {only} has no holder{ALARM:#}\n"),
        all => format!("{ALARM}{} buckets have no holder: {} ...{ALARM:#}\n", all.len(), all[0]),
    }
}

/// Returns a line about buckets without a backup. A node alone cannot have any: that is no alarm.
fn single_copies(status: &Status) -> String {
    let is_alone = status.members.iter().filter(|member| member.weight > 0).count() < 2;
    let style = if is_alone { Style::new() } else { ALARM };
    match status.single_copies {
        0 => String::new(),
        1 => format!("{style}1 bucket has one copy only{style:#}\n"),
        count => format!("{style}{count} buckets have one copy only{style:#}\n"),
    }
}

/// Returns the copies that are incomplete or behind their primaries; nothing if all are in sync.
fn sync(copies: &[SyncStatus]) -> String {
    if copies.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{TITLE}copies behind their primaries{TITLE:#}\n");
    let row = |copy: &SyncStatus| {
        vec![
            copy.bucket.clone(),
            format!("on {}", copy.node),
            format!("from {}", copy.primary),
            format!("{}% filled", copy.percent),
            format!("{} items behind", thousands(copy.items_behind)),
            bytes(copy.bytes_behind),
        ]
    };
    text += &table(
        &[""; 6],
        &copies.iter().take(COPIES_SHOWN).map(row).map(indented).collect::<Vec<_>>(),
    );
    if let Some(more) = copies.len().checked_sub(COPIES_SHOWN).filter(|more| *more > 0) {
        let _ = writeln!(text, "  and {more} more");
    }
    text
}

/// Returns a line for each clock that differs too much.
fn clocks(status: &Status) -> String {
    let line = |member: &MemberStatus| {
        let millis = member.clock_ahead_millis?;
        let apart = Duration::from_millis(millis.unsigned_abs());
        let side = if millis > 0 { "ahead of" } else { "behind" };
        let (name, node, seconds) = (&member.name, &status.node, apart.as_secs_f64());
        let line = format!(
            "{ALARM}the clock of {name} is {seconds:.1} s {side} that of {node}{ALARM:#}\n"
        );
        (apart > SKEW_MAX).then_some(line)
    };
    status.members.iter().filter_map(line).collect()
}

/// Returns lines about other sides of the cluster.
fn sides(status: &Status) -> String {
    let mut text = String::new();
    if status.yields {
        text += "another side of the cluster won: this one serves no clients and hands over its writes\n";
    }
    if !status.estranged.is_empty() {
        let names = status.estranged.join(", ");
        let _ = writeln!(
            text,
            "taken over without {names}: still searching for them, they may have gone on as well \
             (split brain)"
        );
    }
    if status.awaited > 0 {
        let _ = writeln!(
            text,
            "buckets recreated without their data: {}; it is merged if a node that held them comes \
             back with its data directory",
            status.awaited
        );
    }
    let Tally { taken, same, lost_here, lost_there, unsure } = status.merged;
    if status.merged.all() > 0 {
        let conflicts = status.merged.conflicts();
        let _ = writeln!(
            text,
            "merged with another side, keys: {taken} taken, {same} the same, {conflicts} in conflict \
             (lost: {lost_here} here, {lost_there} there, {unsure} unsure; CLUSTER CONFLICTS names them)"
        );
    }
    text
}

fn moves(moves: &[MoveStatus]) -> String {
    if moves.is_empty() {
        return "  none\n".to_owned();
    }
    table(&[""; 7], &moves.iter().map(move_row).map(indented).collect::<Vec<_>>())
}

/// One move: bucket, kind, giver and taker, source, progress, duration, and reason.
pub(crate) fn move_row(this: &MoveStatus) -> Vec<String> {
    let source = if this.source == this.giver { "" } else { this.source.as_str() };
    let from = if source.is_empty() { String::new() } else { format!("from {source}") };
    vec![
        this.bucket.clone(),
        this.kind.clone(),
        format!("{} -> {}", this.giver, this.taker),
        from,
        progress(this),
        format!("{:.1} s", this.millis as f64 / 1_000.0),
        this.rule.clone(),
    ]
}

fn progress(this: &MoveStatus) -> String {
    match (this.percent, this.sent_bytes) {
        (0, 0) => String::new(),
        (percent, sent) => format!("{percent}% ({})", bytes(sent)),
    }
}

fn changes(changes: &[ChangeStatus], now: Duration) -> String {
    if changes.is_empty() {
        return "  none that this node has seen\n".to_owned();
    }
    let shown = changes.iter().take(CHANGES_SHOWN);
    let rows = shown.map(|change| change_row(change, now)).map(indented);
    table(&[""; 3], &rows.collect::<Vec<_>>())
}

/// One change: time, content and reason.
pub(crate) fn change_row(change: &ChangeStatus, now: Duration) -> Vec<String> {
    let past = now.saturating_sub(Duration::from_millis(change.at));
    vec![ago(past), change.what.clone(), change.why.clone()]
}

fn indented(mut row: Vec<String>) -> Vec<String> {
    row[0].insert_str(0, "  ");
    row
}

/// Returns for each column whether it is right-aligned: columns of numbers are.
pub(crate) fn right_columns(columns: usize, rows: &[Vec<String>]) -> Vec<bool> {
    let is_number = |cell: &str| cell.chars().all(|c| c.is_ascii_digit() || c == ',');
    (0..columns).map(|column| rows.iter().all(|row| is_number(&row[column]))).collect()
}

/// Returns the picture with colours.
fn coloured(picture: &str) -> String {
    let mut text = String::new();
    for line in screen::painted(picture) {
        for (ink, piece) in line {
            let style = ink.ansi();
            let _ = write!(text, "{style}{piece}{style:#}");
        }
        text.push('\n');
    }
    text
}

/// Formats a table with columns as wide as their content, numbers right-aligned. Without a head if it is
/// empty.
fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let head: Vec<String> = head.iter().map(|name| (*name).to_owned()).collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&head).chain(rows).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..head.len()).map(|column| width(column).unwrap_or(0)).collect();
    let right = right_columns(head.len(), rows);
    let mut text = String::new();
    for (number, line) in lines.into_iter().enumerate() {
        let cell = |(column, cell): (usize, &String)| match (widths[column], right[column]) {
            (0, _) => String::new(),
            (width, true) => format!("{cell:>width$}  "),
            (width, false) => format!("{cell:width$}  "),
        };
        let cells: String = line.iter().enumerate().map(cell).collect();
        let _ = match number {
            0 if head.iter().all(String::is_empty) => Ok(()),
            0 => writeln!(text, "{HEAD}{}{HEAD:#}", cells.trim_end()),
            _ => writeln!(text, "{}", with_marks(cells.trim_end())),
        };
    }
    text
}

/// Highlights a sick node.
fn with_marks(line: &str) -> String {
    match line.strip_suffix("sick") {
        Some(rest) => format!("{rest}{ALARM}sick{ALARM:#}"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anstream::adapter::strip_str;
    use cluster::map::{
        Boot, Change, ClusterSettings, Endpoints, LogIndex, Map, Member, NodeId, Zone,
    };
    use placement::Mask;

    fn member(number: u64, name: &str) -> Member {
        let at = Endpoints {
            host: "10.0.0.1".to_owned(),
            client: 6379,
            peer: 16_379,
            http: 7379,
            replica: 0,
        };
        let (id, boot) = (NodeId(number), Boot(1));
        Member { id, boot, name: name.to_owned(), weight: 1, zone: Zone::default(), at }
    }

    fn status(mask: Mask) -> Status {
        let mut map = Map::found(member(1, "A"), mask, ClusterSettings::default());
        map.apply(LogIndex(2), &Change::Join(member(2, "node-b")));
        Status {
            cluster: "c1".to_owned(),
            leader: Some("A".to_owned()),
            ..Status::of(&map, NodeId(1))
        }
    }

    fn plain(status: &Status, now: Duration) -> String {
        strip_str(&render(status, now)).to_string()
    }

    #[test]
    fn what_is_sick_or_lost_is_red_and_a_primary_green() {
        let mut status = status(Mask::M000F);
        let sick = LevelsStatus {
            bytes: 0,
            ops_per_second: 0,
            busy: false,
            sick: true,
            full: true,
            lag_bytes: 0,
        };
        assert_eq!(marks(Vote::Unknown, Some(sick)), "full, sick");
        status.members[1].levels = Some(sick);
        status.buckets[3].holders.clear();
        let text = render(&status, Duration::ZERO);
        for wanted in [
            format!("{ALARM}sick{ALARM:#}\n"),
            format!("{ALARM}bucket 000F/0003 has no holder{ALARM:#}"),
            format!("{0}P{0:#}", screen::Ink::Primary.ansi()),
        ] {
            assert!(text.contains(&wanted), "{wanted:?} in {text:?}");
        }
    }

    #[test]
    fn buckets_with_one_copy_are_an_alarm_if_there_are_other_nodes() {
        let mut status = status(Mask::M000F);
        assert!(render(&status, Duration::ZERO).contains("16 buckets have one copy only"));
        let alarm = format!("{ALARM}1 bucket has one copy only{ALARM:#}");
        status.single_copies = 1;
        assert!(render(&status, Duration::ZERO).contains(&alarm));
        status.members.pop();
        let text = render(&status, Duration::ZERO);
        assert!(text.contains("1 bucket has one copy only") && !text.contains(&alarm), "{text}");
        status.single_copies = 0;
        assert!(!plain(&status, Duration::ZERO).contains("one copy"));
    }

    #[test]
    fn copies_that_are_behind_are_listed() {
        let mut status = status(Mask::M000F);
        assert!(!plain(&status, Duration::ZERO).contains("behind"));
        let copy = SyncStatus {
            bucket: "000F/0003".to_owned(),
            node: "node-b".to_owned(),
            primary: "A".to_owned(),
            percent: 40,
            items_behind: 1_200,
            bytes_behind: 3 << 20,
        };
        status.sync = vec![copy; 12];
        let text = plain(&status, Duration::ZERO);
        let lines = text.lines().filter(|line| line.contains("on node-b"));
        assert_eq!(lines.clone().count(), 10);
        let words: Vec<&str> = lines.flat_map(str::split_whitespace).take(11).collect();
        let wanted = ["000F/0003", "on", "node-b", "from", "A", "40%", "filled", "1,200", "items"];
        assert_eq!(words[..9], wanted);
        assert!(text.contains("and 2 more"), "{text}");
    }

    #[test]
    fn clocks_more_than_a_second_apart_are_told() {
        let mut status = status(Mask::M000F);
        status.members[1].clock_ahead_millis = Some(-900);
        assert!(!plain(&status, Duration::ZERO).contains("clock"));
        status.members[1].clock_ahead_millis = Some(-2_500);
        let text = plain(&status, Duration::ZERO);
        assert!(text.contains("the clock of node-b is 2.5 s behind that of A\n"), "{text}");
    }

    #[test]
    fn what_is_awaited_is_told_until_it_is_there() {
        let mut status = status(Mask::M000F);
        assert!(!plain(&status, Duration::ZERO).contains("recreated"));
        status.awaited = 3;
        let text = plain(&status, Duration::ZERO);
        assert!(text.contains("buckets recreated without their data: 3; it is merged"), "{text}");
    }

    #[test]
    fn a_small_cluster_is_shown_as_a_picture() {
        let mut status = status(Mask::M000F);
        let levels = LevelsStatus {
            bytes: 5 << 20,
            ops_per_second: 12_345,
            busy: true,
            sick: false,
            full: false,
            lag_bytes: 0,
        };
        status.members[0].levels = Some(levels);
        status.members[0].vote = Vote::Voter;
        status.moves.push(MoveStatus {
            bucket: "000F/0000".to_owned(),
            kind: "fill".to_owned(),
            giver: "A".to_owned(),
            source: "A".to_owned(),
            taker: "node-b".to_owned(),
            rule: "too few backups".to_owned(),
            sent_bytes: 1 << 20,
            percent: 25,
            millis: 250,
        });
        status.changes.push(ChangeStatus {
            epoch: 2,
            at: 10_000,
            what: "node-b joins".to_owned(),
            why: "it was started with this cluster's address".to_owned(),
        });
        let text = plain(&status, Duration::from_secs(13));
        let wanted = "\
cluster c1, generation 1, epoch 2; reported by A; leader A

node    address        zone  weight  primaries  backups  ideal  data      ops/s
A       10.0.0.1:6379             1         16        0     16  5.0 MiB  12,345  votes, busy
node-b  10.0.0.1:6379             1          0        0     16

       A      node-b
#0     P        +
";
        assert!(text.starts_with(wanted), "{text}");
        let end = "
    16+0=16   0+0=0
2 nodes, 16 buckets: 0 to 16 copies each, 0 to 16 of them primaries
16 buckets have one copy only

moves in flight
  000F/0000  fill  A -> node-b  25% (1.0 MiB)  0.2 s  too few backups

last changes of the map
  3.0 s ago  node-b joins  it was started with this cluster's address
";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn many_buckets_are_summed_up() {
        let text = plain(&status(Mask::M00FF), Duration::ZERO);
        assert!(!text.contains("#00"), "{text}");
        assert!(text.contains("2 nodes, 256 buckets: 0 to 256 copies each"), "{text}");
        assert!(text.contains("moves in flight\n  none\n"), "{text}");
    }

    #[test]
    fn other_sides_of_the_cluster_are_told_of() {
        let mut status = status(Mask::M00FF);
        status.estranged = vec!["c".to_owned(), "d".to_owned()];
        status.merged = Tally { taken: 7, lost_there: 2, ..Tally::default() };
        let text = render(&status, Duration::ZERO);
        for line in [
            "\ntaken over without c, d: still searching for them",
            "keys: 7 taken, 0 the same, 2 in conflict",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn what_nobody_holds_is_said() {
        let mut status = status(Mask::M00FF);
        status.buckets[3].holders.clear();
        assert!(plain(&status, Duration::ZERO).contains("\nbucket 00FF/0003 has no holder\n"));
        status.buckets[9].holders.clear();
        assert!(
            plain(&status, Duration::ZERO).contains("\n2 buckets have no holder: 00FF/0003 ...\n")
        );
    }
}
