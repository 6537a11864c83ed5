//! The status of a cluster as people read it: members, buckets, moves in flight, last changes.

use std::fmt::Write;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use cluster::merge::Tally;
use cluster::status::{
    BUCKETS_MAX, ChangeStatus, Health, LevelsStatus, MemberStatus, MoveStatus, Problem, Severity,
    Status, SyncStatus, Vote, picture, summary,
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
const CAUTION: Style = AnsiColor::Yellow.on_default().bold();

/// Returns the whole status with colours; the printing side strips them if there is no terminal. `now` is the
/// time since 1970.
pub(super) fn render(status: &Status, now: Duration) -> String {
    let mut text = head(status);
    text += &health(&status.health);
    text += "\n";
    text += &members(status);
    text += "\n";
    if status.buckets.len() <= BUCKETS_MAX {
        text += &coloured(&picture(status));
    }
    text += &summary(status);
    text += &merged(&status.merged);
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

/// Returns the verdict: a line for each problem with its effect and the remedy below it, or one line if all is well.
pub(super) fn health(health: &Health) -> String {
    if health.problems.is_empty() {
        return "healthy\n".to_owned();
    }
    let mut text = String::new();
    for Problem { kind, what, effect, advice, .. } in &health.problems {
        let (style, word) = match kind.severity() {
            Severity::Failing => (ALARM, "failing"),
            Severity::Warning | Severity::Ok => (CAUTION, "warning"),
        };
        let _ = writeln!(text, "{style}{word}: {what}{style:#}");
        let _ = writeln!(text, "  for clients: {effect}");
        let _ = writeln!(text, "  what to do: {advice}");
    }
    text
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

/// Returns a line about the keys that were merged with another side of the cluster.
fn merged(tally: &Tally) -> String {
    if tally.all() == 0 {
        return String::new();
    }
    let Tally { taken, same, lost_here, lost_there, unsure } = tally;
    let conflicts = tally.conflicts();
    format!(
        "merged with another side, keys: {taken} taken, {same} the same, {conflicts} in conflict \
         (lost: {lost_here} here, {lost_there} there, {unsure} unsure; CLUSTER CONFLICTS names them)\n"
    )
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
    use cluster::status::NodeFacts;
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

    fn judge(status: &mut Status) {
        let facts = NodeFacts { not_serving: None, has_lease: true, stalled: None };
        status.health = Health::of(status, &facts);
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
            out_of_memory: false,
            lag_bytes: 0,
        };
        assert_eq!(marks(Vote::Unknown, Some(sick)), "full, sick");
        status.members[1].levels = Some(sick);
        status.buckets[3].holders.clear();
        status.lost = 1;
        judge(&mut status);
        let text = render(&status, Duration::ZERO);
        for wanted in [
            format!("{ALARM}sick{ALARM:#}\n"),
            format!(
                "\n{ALARM}failing: 1 bucket has no holder (000F/0003){ALARM:#}\n  for clients: "
            ),
            format!("{CAUTION}warning: node node-b is sick{CAUTION:#}\n"),
            format!("{0}P{0:#}", screen::Ink::Primary.ansi()),
        ] {
            assert!(text.contains(&wanted), "{wanted:?} in {text:?}");
        }
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
    fn a_small_cluster_is_shown_as_a_picture() {
        let mut status = status(Mask::M000F);
        let levels = LevelsStatus {
            bytes: 5 << 20,
            ops_per_second: 12_345,
            busy: true,
            sick: false,
            full: false,
            out_of_memory: false,
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
healthy

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
    fn a_merge_is_told_by_its_outcomes() {
        let mut status = status(Mask::M00FF);
        assert!(!plain(&status, Duration::ZERO).contains("merged"));
        status.merged = Tally { taken: 7, lost_there: 2, ..Tally::default() };
        let text = plain(&status, Duration::ZERO);
        assert!(
            text.contains("\nmerged with another side, keys: 7 taken, 0 the same, 2 in conflict")
        );
    }
}
