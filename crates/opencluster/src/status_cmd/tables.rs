//! The status of a cluster as people read it: members, buckets, moves in flight, what changed last.

use std::fmt::Write;
use std::time::Duration;

use cluster::status::{
    BUCKETS_MAX, ChangeStatus, LevelsStatus, MemberStatus, MoveStatus, Status, Vote, picture,
    summary,
};

/// Of what has changed, this much is shown.
const CHANGES_SHOWN: usize = 10;

/// All of it. `now` is the time since 1970.
pub(super) fn told(status: &Status, now: Duration) -> String {
    let mut text = head(status);
    text += "\n";
    text += &members(status);
    text += "\n";
    if status.buckets.len() <= BUCKETS_MAX {
        text += &picture(status);
    }
    text += &summary(status);
    text += &lost(status);
    text += "\nmoves in flight\n";
    text += &moves(&status.moves);
    text += "\nlast changes of the map\n";
    text + &changes(&status.changes, now)
}

fn head(status: &Status) -> String {
    let Status { generation, epoch, node, .. } = status;
    let mut text = match status.cluster.as_str() {
        "" => "no cluster".to_owned(),
        id => format!("cluster {id}"),
    };
    let _ = write!(text, ", generation {generation}, epoch {epoch}; told by {node}");
    if let Some(leader) = &status.leader {
        let _ = write!(text, "; {leader} keeps the log");
    }
    text + "\n"
}

const MEMBER_HEAD: [&str; 10] =
    ["node", "address", "zone", "weight", "primaries", "backups", "ideal", "data", "ops/s", ""];

fn members(status: &Status) -> String {
    let rows: Vec<Vec<String>> = status.members.iter().map(member).collect();
    table(&MEMBER_HEAD, &rows)
}

fn member(member: &MemberStatus) -> Vec<String> {
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
    let marks = [vote, busy, sick];
    marks.into_iter().filter(|mark| !mark.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Those without a holder are worth a line of their own.
fn lost(status: &Status) -> String {
    let lost = status.buckets.iter().filter(|bucket| bucket.holders.is_empty());
    let names: Vec<&str> = lost.map(|bucket| bucket.bucket.as_str()).collect();
    match names.as_slice() {
        [] => String::new(),
        [only] => format!("nobody holds {only}\n"),
        all => format!("nobody holds {} buckets: {} ...\n", all.len(), all[0]),
    }
}

fn moves(moves: &[MoveStatus]) -> String {
    if moves.is_empty() {
        return "  none\n".to_owned();
    }
    let row = |this: &MoveStatus| {
        let source = if this.source == this.giver { "" } else { this.source.as_str() };
        let from = if source.is_empty() { String::new() } else { format!("from {source}") };
        vec![
            format!("  {}", this.bucket),
            this.kind.clone(),
            format!("{} -> {}", this.giver, this.taker),
            from,
            progress(this),
            format!("{:.1} s", this.millis as f64 / 1_000.0),
            this.rule.clone(),
        ]
    };
    table(&[""; 7], &moves.iter().map(row).collect::<Vec<_>>())
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
    let row = |change: &ChangeStatus| {
        let past = now.saturating_sub(Duration::from_millis(change.at));
        vec![format!("  {}", ago(past)), change.what.clone(), change.why.clone()]
    };
    let shown = changes.iter().take(CHANGES_SHOWN);
    table(&[""; 3], &shown.map(row).collect::<Vec<_>>())
}

/// Columns as wide as what is in them, numbers to the right. Without a head if it is empty.
fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let head: Vec<String> = head.iter().map(|name| (*name).to_owned()).collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&head).chain(rows).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..head.len()).map(|column| width(column).unwrap_or(0)).collect();
    let is_number = |column: usize| {
        rows.iter().all(|row| row[column].chars().all(|c| c.is_ascii_digit() || c == ','))
    };
    let right: Vec<bool> = (0..head.len()).map(is_number).collect();
    let mut text = String::new();
    for line in lines.into_iter().skip(usize::from(head.iter().all(String::is_empty))) {
        let cell = |(column, cell): (usize, &String)| match (widths[column], right[column]) {
            (0, _) => String::new(),
            (width, true) => format!("{cell:>width$}  "),
            (width, false) => format!("{cell:width$}  "),
        };
        let cells: String = line.iter().enumerate().map(cell).collect();
        text += cells.trim_end();
        text.push('\n');
    }
    text
}

fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut number = bytes as f64;
    while number >= 1024.0 && unit + 1 < UNITS.len() {
        number /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{number:.1} {}", UNITS[unit]) }
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn ago(past: Duration) -> String {
    match past.as_secs() {
        0..60 => format!("{:.1} s ago", past.as_secs_f64()),
        seconds @ 60..3_600 => format!("{} min ago", seconds / 60),
        seconds @ 3_600..172_800 => format!("{} h ago", seconds / 3_600),
        seconds => format!("{} days ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::map::{Boot, Change, Endpoints, LogIndex, Map, Member, NodeId, Settings, Zone};
    use placement::Mask;

    fn member(number: u64, name: &str) -> Member {
        let at = Endpoints { host: "10.0.0.1".to_owned(), client: 6379, peer: 16_379, http: 7379 };
        let (id, boot) = (NodeId(number), Boot(1));
        Member { id, boot, name: name.to_owned(), weight: 1, zone: Zone::default(), at }
    }

    fn status(mask: Mask) -> Status {
        let mut map = Map::found(member(1, "A"), mask, Settings::default());
        map.apply(LogIndex(2), &Change::Join(member(2, "node-b")));
        Status {
            cluster: "c1".to_owned(),
            leader: Some("A".to_owned()),
            ..Status::of(&map, NodeId(1))
        }
    }

    #[test]
    fn a_small_cluster_is_shown_as_a_picture() {
        let mut status = status(Mask::M000F);
        let levels =
            LevelsStatus { bytes: 5 << 20, ops_per_second: 12_345, busy: true, sick: false };
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
            why: "it was started with our address".to_owned(),
        });
        let text = told(&status, Duration::from_secs(13));
        let wanted = "\
cluster c1, generation 1, epoch 2; told by A; A keeps the log

node    address        zone  weight  primaries  backups  ideal  data      ops/s
A       10.0.0.1:6379             1         16        0     16  5.0 MiB  12,345  votes, busy
node-b  10.0.0.1:6379             1          0        0     16

       A      node-b
#0     P        .
";
        assert!(text.starts_with(wanted), "{text}");
        let end = "
    16+0=16   0+0=0
2 nodes, 16 buckets: 0 to 16 copies each, 0 to 16 of them primaries

moves in flight
  000F/0000  fill  A -> node-b  25% (1.0 MiB)  0.2 s  too few backups

last changes of the map
  3.0 s ago  node-b joins  it was started with our address
";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn many_buckets_are_summed_up() {
        let text = told(&status(Mask::M00FF), Duration::ZERO);
        assert!(!text.contains("#00"), "{text}");
        assert!(text.contains("2 nodes, 256 buckets: 0 to 256 copies each"), "{text}");
        assert!(text.contains("moves in flight\n  none\n"), "{text}");
    }

    #[test]
    fn what_nobody_holds_is_said() {
        let mut status = status(Mask::M00FF);
        status.buckets[3].holders.clear();
        assert!(told(&status, Duration::ZERO).contains("\nnobody holds 00FF/0003\n"));
        status.buckets[9].holders.clear();
        assert!(
            told(&status, Duration::ZERO).contains("\nnobody holds 2 buckets: 00FF/0003 ...\n")
        );
    }

    #[test]
    fn numbers_and_times_are_told_as_people_do() {
        assert_eq!(
            (bytes(0), bytes(1023), bytes(1536)),
            ("0 B".into(), "1023 B".into(), "1.5 KiB".into())
        );
        assert_eq!((thousands(7), thousands(1_234_567)), ("7".into(), "1,234,567".into()));
        assert_eq!(ago(Duration::from_secs(125)), "2 min ago");
        assert_eq!(ago(Duration::from_secs(300_000)), "3 days ago");
    }
}
