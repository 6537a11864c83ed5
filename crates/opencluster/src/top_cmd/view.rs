//! The screen of `top`, drawn from values only.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster::status::{MemberStatus, Severity, Status, summary};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::latency::Latency;
use crate::screen;
use crate::status_cmd::figures::thousands;

/// Age at which a status is out of date.
const OLD_AFTER: Duration = Duration::from_secs(3);
const MEMBERS_MAX: u16 = 14;
/// Height of the picture of 16 buckets with names, totals and a border.
const PICTURE_HEIGHT: u16 = 20;

pub(super) struct View<'a> {
    pub(super) status: &'a Status,
    /// Age of the status.
    pub(super) age: Duration,
    /// Operations of each member in each of the last seconds.
    pub(super) ops: &'a BTreeMap<String, Vec<u64>>,
    pub(super) latencies: &'a BTreeMap<String, Latency>,
    /// Time since 1970.
    pub(super) now: Duration,
}

pub(super) fn draw(frame: &mut Frame<'_>, view: &View<'_>) {
    let count = u16::try_from(view.status.members.len()).unwrap_or(u16::MAX);
    let members = count.saturating_add(3).min(MEMBERS_MAX);
    let rows = [
        Constraint::Length(1),
        Constraint::Length(members),
        Constraint::Max(PICTURE_HEIGHT),
        Constraint::Min(4),
        Constraint::Length(1),
    ];
    let [head, members, middle, changes, foot] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(head_line(view), head);
    frame.render_widget(screen::members(view.status).block(screen::panel("members")), members);
    draw_middle(frame, view, middle);
    let list = screen::changes(view.status, view.now);
    frame.render_widget(list.block(screen::panel("last changes of the map")), changes);
    let dim = Style::new().add_modifier(Modifier::DIM);
    frame.render_widget(Line::styled("q quits", dim), foot);
}

/// Returns the cluster's name and its verdict: what is wrong comes first, because a narrow screen cuts the rest off.
fn head_line(view: &View<'_>) -> Line<'static> {
    let Status { cluster, generation, epoch, node, health, .. } = view.status;
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let name = Span::styled(format!("cluster {cluster}"), bold);
    let facts =
        Span::raw(format!("   generation {generation}, epoch {epoch}; reported by {node}   "));
    if view.age > OLD_AFTER {
        let text = format!("no node has answered for {} s   ", view.age.as_secs());
        return Line::from(vec![Span::styled(text, bold.fg(Color::Red)), name, facts]);
    }
    let Some(worst) = health.problems.first() else {
        let summary = summary(view.status).trim_end().to_owned();
        return Line::from(vec![name, facts, Span::raw(summary)]);
    };
    let colour = match worst.kind.severity() {
        Severity::Failing => Color::Red,
        Severity::Warning | Severity::Ok => Color::Yellow,
    };
    let more = match health.problems.len() - 1 {
        0 => String::new(),
        others => format!(" (and {others} more)"),
    };
    let text = format!("{}{more}   ", worst.what);
    Line::from(vec![Span::styled(text, bold.fg(colour)), name, facts])
}

fn draw_middle(frame: &mut Frame<'_>, view: &View<'_>, area: Rect) {
    let columns = [Constraint::Percentage(55), Constraint::Min(0)];
    let [left, right] = Layout::horizontal(columns).areas(area);
    let frame_of = screen::panel("buckets: P primary, S backup, + being filled");
    let picture = screen::picture(view.status, frame_of.inner(left));
    frame.render_widget(Paragraph::new(picture).block(frame_of), left);
    let rows = [Constraint::Percentage(50), Constraint::Min(0)];
    let [moves, ops] = Layout::vertical(rows).areas(right);
    let table = screen::moves(view.status);
    frame.render_widget(table.block(screen::panel("moves in flight")), moves);
    draw_ops(frame, view, ops);
}

/// Draws a line for each member: its name, its operations per second, their latency, and the last minutes.
fn draw_ops(frame: &mut Frame<'_>, view: &View<'_>, area: Rect) {
    let block = screen::panel("operations per second, and their latency");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let label = view.status.members.iter().map(|member| member.name.len()).max().unwrap_or(0);
    for (row, member) in inner.rows().zip(&view.status.members) {
        let past = view.ops.get(&member.name).map(Vec::as_slice).unwrap_or_default();
        let latency = view.latencies.get(&member.name).map_or_else(String::new, took);
        let ops = thousands(now(member));
        let words = format!("{:label$} {ops:>11}  {latency:31} ", member.name);
        let width = u16::try_from(words.len()).unwrap_or(u16::MAX);
        let columns = [Constraint::Length(width), Constraint::Min(0)];
        let [name, chart] = Layout::horizontal(columns).areas(row);
        frame.render_widget(Line::from(words), name);
        frame.render_widget(screen::sparkline(past, chart.width), chart);
    }
}

fn took(latency: &Latency) -> String {
    let Latency { command, p50, p99 } = latency;
    format!("{command}: p50 {p50:.1} us, p99 {p99:.1} us")
}

fn now(member: &MemberStatus) -> u64 {
    member.levels.map_or(0, |levels| levels.ops_per_second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::testing::{drawn, two_nodes};
    use cluster::status::{Health, NodeFacts};
    use placement::Mask;

    fn shown(status: &Status, age: Duration) -> String {
        let ops = BTreeMap::from([("A".to_owned(), vec![1, 5, 12_345])]);
        let get = Latency { command: "get".to_owned(), p50: 1.5, p99: 12.0 };
        let latencies = BTreeMap::from([("A".to_owned(), get)]);
        let now = Duration::from_secs(13);
        let view = View { status, age, ops: &ops, latencies: &latencies, now };
        drawn(120, 40, |frame| draw(frame, &view))
    }

    #[test]
    fn everything_worth_a_look_is_on_one_screen() {
        let text = shown(&two_nodes(Mask::M000F), Duration::ZERO);
        for wanted in [
            "cluster c1   generation 1, epoch 2; reported by A   2 nodes, 16 buckets: 0 to 16 copies each",
            "node  address        weight  primaries  backups  ideal  data      ops/s",
            "A     10.0.0.1:6379       1         16        0     16  5.0 MiB  12,345  votes, busy",
            "│#0     P        +",
            "000F/0000  fill  A -> B",
            "│A      12,345  get: p50 1.5 us, p99 12.0 us",
            "3.0 s ago  B joins  it was started with this cluster's address",
            "q quits",
        ] {
            assert!(text.contains(wanted), "{wanted:?} is missing in\n{text}");
        }
    }

    #[test]
    fn the_worst_problem_comes_first() {
        let mut status = two_nodes(Mask::M000F);
        let facts = NodeFacts { not_serving: None, has_lease: false, stalled: None };
        status.health = Health::of(&status, &facts);
        let text = shown(&status, Duration::ZERO);
        let line =
            "node A has no lease: no leader with a majority renews it (and 1 more)   cluster c1";
        assert!(text.starts_with(line), "{text}");
    }

    #[test]
    fn what_is_old_is_said_to_be_old() {
        let text = shown(&two_nodes(Mask::M0FFF), Duration::from_secs(9));
        assert!(text.contains("no node has answered for 9 s"), "{text}");
    }
}
