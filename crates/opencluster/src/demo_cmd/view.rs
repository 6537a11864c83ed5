//! The screen of a demo. Drawn from values only, so that a test can check it; `play.rs` collects them.

use std::time::Duration;

use cluster::status::Status;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{List, ListItem, Paragraph};

use super::herd::State;
use super::load::{Counts, Latency};
use crate::screen;
use crate::status_cmd::figures::thousands;

const GOOD: Style = Style::new().fg(Color::Green).add_modifier(Modifier::BOLD);
const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
const WARN: Style = Style::new().fg(Color::Yellow);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
/// Height of the picture of 16 buckets with names, totals and a border.
const PICTURE_HEIGHT: u16 = 20;
const KEYS: [(&str, &str); 6] = [
    ("a", "add a node"),
    ("l", "let it leave"),
    ("k", "kill -9"),
    ("s", "stop/continue"),
    ("up down", "choose"),
    ("q", "quit"),
];

/// State of the demo at one moment.
pub(super) struct View<'a> {
    pub(super) status: Option<&'a Status>,
    pub(super) nodes: &'a [Shown],
    /// Index of the node that the keys act on.
    pub(super) chosen: usize,
    pub(super) counts: Counts,
    pub(super) latency: Latency,
    /// Writes in each of the last seconds.
    pub(super) writes: &'a [u64],
    pub(super) notice: &'a str,
    /// Time since 1970.
    pub(super) now: Duration,
}

/// A node of the demo.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) state: State,
}

pub(super) fn draw(frame: &mut Frame<'_>, view: &View<'_>) {
    let rows = [
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(PICTURE_HEIGHT),
        Constraint::Length(1),
        Constraint::Length(1),
    ];
    let [head, counts, middle, speed, keys] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(head_line(view), head);
    frame.render_widget(counts_line(view), counts);
    draw_middle(frame, view, middle);
    draw_speed(frame, view, speed);
    frame.render_widget(keys_line(view), keys);
}

fn head_line(view: &View<'_>) -> Line<'static> {
    let title = Span::styled("OpenCluster demo", Style::new().add_modifier(Modifier::BOLD));
    let Some(status) = view.status else {
        return Line::from(vec![title, Span::styled("   no node answers", WARN)]);
    };
    let (nodes, buckets) = (status.members.len(), status.buckets.len());
    let facts = format!("   {nodes} members, {buckets} buckets, epoch {}   ", status.epoch);
    let safety = match without_backup(status) {
        0 => Span::styled("every bucket has its backup", GOOD),
        1 => Span::styled("1 bucket without a backup", WARN),
        count => Span::styled(format!("{count} buckets without a backup"), WARN),
    };
    Line::from(vec![title, Span::raw(facts), safety])
}

/// Returns the number of buckets that one more death would lose.
fn without_backup(status: &Status) -> usize {
    status.buckets.iter().filter(|bucket| bucket.holders.len() < 2).count()
}

fn counts_line(view: &View<'_>) -> Line<'static> {
    let Counts { acknowledged, reads, lost, errors } = view.counts;
    let count = |number: u64, style: Style| Span::styled(thousands(number), style);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    Line::from(vec![
        Span::raw("acknowledged "),
        count(acknowledged, bold),
        Span::raw("   lost "),
        count(lost, if lost == 0 { GOOD } else { BAD }),
        Span::raw("   errors "),
        count(errors, if errors == 0 { GOOD } else { WARN }),
        Span::styled(format!("   read back {}", thousands(reads)), DIM),
    ])
}

fn draw_middle(frame: &mut Frame<'_>, view: &View<'_>, area: Rect) {
    let Some(status) = view.status else { return };
    let width = picture_width(status).min(area.width * 3 / 5);
    let columns = [Constraint::Length(width), Constraint::Min(0)];
    let [left, right] = Layout::horizontal(columns).areas(area);
    let frame_of = screen::panel("buckets: P primary, S backup, + being filled");
    let picture = screen::picture(status, frame_of.inner(left));
    frame.render_widget(Paragraph::new(picture).block(frame_of), left);
    let nodes = u16::try_from(view.nodes.len()).unwrap_or(u16::MAX).saturating_add(2);
    let rows = [Constraint::Length(nodes), Constraint::Length(5), Constraint::Min(0)];
    let [nodes, moves, changes] = Layout::vertical(rows).areas(right);
    frame.render_widget(node_list(view).block(screen::panel("nodes")), nodes);
    frame.render_widget(screen::moves(status).block(screen::panel("moves in flight")), moves);
    let list = screen::changes(status, view.now);
    frame.render_widget(list.block(screen::panel("last changes")), changes);
}

/// Returns the width of the picture, or a width for bands of cells if there are many buckets.
fn picture_width(status: &Status) -> u16 {
    if status.buckets.len() > cluster::status::BUCKETS_MAX {
        return 72;
    }
    let picture = cluster::status::picture(status);
    let width = picture.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    u16::try_from(width + 3).unwrap_or(u16::MAX).max(42)
}

fn node_list(view: &View<'_>) -> List<'static> {
    let items = view.nodes.iter().enumerate().map(|(index, node)| {
        let (word, style) = match node.state {
            State::Starting => ("starting", WARN),
            State::Running => ("running", GOOD),
            State::Stopped => ("stopped", WARN),
            State::Leaving => ("leaving", WARN),
            State::Killed => ("killed", BAD),
        };
        let chosen = if index == view.chosen { "> " } else { "  " };
        let place = format!("{chosen}{:3} {:16} ", node.name, node.address);
        ListItem::new(Line::from(vec![Span::raw(place), Span::styled(word, style)]))
    });
    List::new(items.collect::<Vec<_>>())
}

fn draw_speed(frame: &mut Frame<'_>, view: &View<'_>, area: Rect) {
    let millis = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1_000.0);
    let Latency { median, p99, longest } = view.latency;
    let text = format!(
        "{} writes/s   median {} ms, p99 {} ms, longest {} ms  ",
        thousands(view.writes.last().copied().unwrap_or(0)),
        millis(median),
        millis(p99),
        millis(longest)
    );
    let width = u16::try_from(text.chars().count()).unwrap_or(u16::MAX);
    let columns = [Constraint::Length(width), Constraint::Min(0)];
    let [words, chart] = Layout::horizontal(columns).areas(area);
    frame.render_widget(Line::from(text), words);
    frame.render_widget(screen::sparkline(view.writes, chart.width), chart);
}

fn keys_line(view: &View<'_>) -> Line<'static> {
    if !view.notice.is_empty() {
        return Line::from(Span::styled(view.notice.to_owned(), WARN));
    }
    let key = |(key, what): &(&'static str, &'static str)| {
        [
            Span::styled(*key, Style::new().add_modifier(Modifier::BOLD)),
            Span::raw(format!(" {what}   ")),
        ]
    };
    Line::from(KEYS.iter().flat_map(key).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::testing::{drawn, two_nodes};
    use placement::Mask;

    fn shown(name: &str, state: State) -> Shown {
        Shown { name: name.to_owned(), address: "127.0.0.1:7001".to_owned(), state }
    }

    fn view<'a>(status: &'a Status, nodes: &'a [Shown]) -> View<'a> {
        View {
            status: Some(status),
            nodes,
            chosen: 1,
            counts: Counts { acknowledged: 12_345, reads: 12_000, lost: 0, errors: 0 },
            latency: Latency { p99: Duration::from_micros(1_500), ..Latency::default() },
            writes: &[10, 20, 2_000],
            notice: "",
            now: Duration::from_secs(13),
        }
    }

    #[test]
    fn a_small_terminal_shows_the_whole_picture_and_all_counts() {
        let status = two_nodes(Mask::M000F);
        let nodes = [shown("A", State::Running), shown("B", State::Killed)];
        let text = drawn(100, 24, |frame| draw(frame, &view(&status, &nodes)));
        for wanted in [
            "OpenCluster demo   2 members, 16 buckets, epoch 2   16 buckets without a backup",
            "acknowledged 12,345   lost 0   errors 0   read back 12,000",
            "│#0     P        +",
            "│#F     P        .",
            "16+0=16   0+0=0",
            "│  A   127.0.0.1:7001   running",
            "│> B   127.0.0.1:7001   killed",
            "000F/0000  fill  A -> B",
            "3.0 s ago  B joins",
            "2,000 writes/s   median 0.0 ms, p99 1.5 ms",
            "a add a node   l let it leave   k kill -9   s stop/continue   up down choose   q quit",
        ] {
            assert!(text.contains(wanted), "{wanted:?} is missing in\n{text}");
        }
    }

    #[test]
    fn a_notice_takes_the_place_of_the_keys() {
        let status = two_nodes(Mask::M00FF);
        let view = View { notice: "the last node stays", ..view(&status, &[]) };
        let text = drawn(100, 40, |frame| draw(frame, &view));
        assert!(text.ends_with("the last node stays\n"), "{text}");
        assert!(text.contains("│A  PPPPPPPP"), "{text}");
    }

    #[test]
    fn before_any_node_answers_that_is_said() {
        let status = two_nodes(Mask::M000F);
        let view = View { status: None, ..view(&status, &[]) };
        let text = drawn(60, 24, |frame| draw(frame, &view));
        assert!(text.starts_with("OpenCluster demo   no node answers"), "{text}");
    }
}
