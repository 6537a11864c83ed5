//! Boxes of a screen: the picture, and tables with the rows of `opencluster status`.

use std::time::Duration;

use cluster::status::{BUCKETS_MAX, Status};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, BorderType, Paragraph, Sparkline};

use super::{bands, painted};
use crate::status_cmd::tables;

/// A box with a title.
pub(crate) fn panel(title: &str) -> Block<'_> {
    let title = Span::styled(format!(" {title} "), Style::new().add_modifier(Modifier::BOLD));
    let border = Style::new().fg(Color::DarkGray);
    Block::bordered().border_type(BorderType::Rounded).border_style(border).title(title)
}

/// Returns buckets and their holders, drawn to fit into this area.
pub(crate) fn picture(status: &Status, area: Rect) -> Text<'static> {
    if status.buckets.len() <= BUCKETS_MAX {
        let lines = painted(&cluster::status::picture(status)).into_iter().map(|line| {
            let spans = line.into_iter().map(|(ink, text)| Span::styled(text, ink.style()));
            Line::from(spans.collect::<Vec<_>>())
        });
        return lines.collect();
    }
    let nodes = status.members.len().max(1);
    let label = status.members.iter().map(|member| member.name.len()).max().unwrap_or(0);
    let width = usize::from(area.width).saturating_sub(label + 2);
    let lines = (usize::from(area.height) / nodes).max(1);
    let mut text = Text::default();
    for (member, band) in status.members.iter().zip(bands(status, width, lines)) {
        for (number, cells) in band.into_iter().enumerate() {
            let name = if number == 0 { member.name.as_str() } else { "" };
            let mut spans = vec![Span::raw(format!("{name:label$}  "))];
            spans.extend(
                cells.iter().map(|(ink, cell)| Span::styled(cell.to_string(), ink.style())),
            );
            text.push_line(Line::from(spans));
        }
    }
    text
}

/// Returns the table of members, with the columns of `status`.
pub(crate) fn members(status: &Status) -> Paragraph<'static> {
    table(&tables::MEMBER_HEAD, &status.members.iter().map(tables::member).collect::<Vec<_>>())
}

/// Returns the table of moves in flight and their reasons.
pub(crate) fn moves(status: &Status) -> Paragraph<'static> {
    const HEAD: [&str; 7] = ["bucket", "what", "from -> to", "", "done", "for", "why"];
    table(&HEAD, &status.moves.iter().map(tables::move_row).collect::<Vec<_>>())
}

/// Returns the table of the last changes and their reasons. `now` is the time since 1970.
pub(crate) fn changes(status: &Status, now: Duration) -> Paragraph<'static> {
    let rows = status.changes.iter().map(|change| tables::change_row(change, now));
    table(&["when", "what", "why"], &rows.collect::<Vec<_>>())
}

/// Returns a table as wide as its content: text that does not fit is cut at the right, and empty columns are
/// left out.
fn table(head: &[&str], rows: &[Vec<String>]) -> Paragraph<'static> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().filter(|width| *width > 0).map(|width| width.max(head[column].len()))
    };
    let widths: Vec<Option<usize>> = (0..head.len()).map(width).collect();
    let right = tables::right_columns(head.len(), rows);
    let line = |row: &[String]| {
        let mut text = String::new();
        for (column, cell) in row.iter().enumerate() {
            match (widths[column], right[column]) {
                (None, _) => {}
                (Some(width), true) => text += &format!("{cell:>width$}  "),
                (Some(width), false) => text += &format!("{cell:width$}  "),
            }
        }
        text.trim_end().to_owned()
    };
    let titles: Vec<String> = head.iter().map(|title| (*title).to_owned()).collect();
    let header = Line::styled(line(&titles), Style::new().add_modifier(Modifier::DIM));
    let lines = rows.iter().map(|row| Line::from(line(row)));
    Paragraph::new(std::iter::once(header).chain(lines).collect::<Vec<_>>())
}

/// Returns a chart of the last values, the newest at the right edge.
pub(crate) fn sparkline(values: &[u64], width: u16) -> Sparkline<'static> {
    let shown = &values[values.len().saturating_sub(usize::from(width))..];
    Sparkline::default().data(shown.to_vec()).style(Style::new().fg(Color::Green))
}
