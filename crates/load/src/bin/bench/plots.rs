//! The plots in docs/benchmarks.md, as SVG: bars beside each other, a colour for each server. Plain
//! text, and the same from the same results, so that a diff shows what changed.
use std::fmt::Write as _;

use crate::memory::MemoryResults;
use crate::node::NodeResults;
use crate::servers::Kind;

const WIDTH: f64 = 760.0;
const LABELS: f64 = 210.0;
/// Space for the number behind the longest bar.
const NUMBERS: f64 = 70.0;
const BAR: f64 = 13.0;
const GAP: f64 = 12.0;
const HEAD: f64 = 62.0;
const KINDS: [Kind; 3] = [Kind::Ours, Kind::Valkey, Kind::Redis];

/// A group of adjacent bars: a label, and a length for each server that was measured.
struct Group {
    label: String,
    lengths: Vec<(Kind, f64)>,
}

/// Plots CPU per operation of the cases that have a target of their own.
pub(crate) fn node(results: &NodeResults) -> String {
    let rows = results
        .rows
        .iter()
        .filter(|row| row.case.keys == 1_000_000 && row.case.value_bytes == 64 && !row.case.zipf);
    let groups = rows.map(|row| Group {
        label: row.case.to_string(),
        lengths: lengths(|kind| row.servers.get(&kind).map(|figures| figures.cpu_micros_per_op)),
    });
    let groups: Vec<Group> = groups.collect();
    // Cases with and without pipelining are a factor of ten apart: each case is scaled to its longest bar.
    bars("Server CPU for an operation, of the most expensive server's", &relative(groups))
}

/// Plots bytes per key, with and without a time to live.
pub(crate) fn memory(results: &MemoryResults) -> String {
    let of = |expiring: bool| {
        lengths(|kind| {
            let row = results.rows.iter().find(|row| row.server == kind)?;
            Some(if expiring { row.expiring.resident_bytes } else { row.plain.resident_bytes })
        })
    };
    let group = |label: &str, expiring| Group { label: label.to_owned(), lengths: of(expiring) };
    bars("Bytes a key", &[group("plain", false), group("with a time to live", true)])
}

fn lengths(of: impl Fn(Kind) -> Option<f64>) -> Vec<(Kind, f64)> {
    KINDS.into_iter().filter_map(|kind| Some((kind, of(kind)?))).collect()
}

fn relative(groups: Vec<Group>) -> Vec<Group> {
    let share = |mut group: Group| {
        let most = group.lengths.iter().map(|(_, length)| *length).fold(0.0, f64::max);
        for (_, length) in &mut group.lengths {
            *length /= most.max(f64::MIN_POSITIVE);
        }
        group
    };
    groups.into_iter().map(share).collect()
}

fn bars(title: &str, groups: &[Group]) -> String {
    let most = groups.iter().flat_map(|group| &group.lengths).map(|(_, length)| *length);
    let most = most.fold(f64::MIN_POSITIVE, f64::max);
    let count: usize = groups.iter().map(|group| group.lengths.len()).sum();
    let height = HEAD + count as f64 * BAR + groups.len() as f64 * GAP;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    text(&mut svg, (GAP, 20.0), &format!("{title}; shorter is better"));
    legend(&mut svg);
    let mut top = HEAD;
    for group in groups {
        text(&mut svg, (GAP, top + BAR), &group.label);
        for (kind, length) in &group.lengths {
            let wide = length / most * (WIDTH - LABELS - NUMBERS);
            rect(&mut svg, (LABELS, top), wide, colour(*kind));
            let number = if most > 10.0 { format!("{length:.0}") } else { format!("{length:.2}") };
            text(&mut svg, (LABELS + wide + 5.0, top + BAR - 3.0), &number);
            top += BAR;
        }
        top += GAP;
    }
    svg + "</svg>\n"
}

fn legend(svg: &mut String) {
    for (place, kind) in KINDS.into_iter().enumerate() {
        let left = LABELS + place as f64 * 110.0;
        rect(svg, (left, 34.0), 11.0, colour(kind));
        text(svg, (left + 16.0, 44.0), kind.name());
    }
}

fn colour(kind: Kind) -> &'static str {
    match kind {
        Kind::Ours => "#1f4e79",
        Kind::Valkey => "#9dc3e6",
        Kind::Redis => "#c9c9c9",
    }
}

fn rect(svg: &mut String, (left, top): (f64, f64), wide: f64, colour: &str) {
    let high = BAR - 2.0;
    let _ = writeln!(
        svg,
        "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{high}\" fill=\"{colour}\"/>"
    );
}

fn text(svg: &mut String, (left, top): (f64, f64), words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(svg, "<text x=\"{left:.1}\" y=\"{top:.1}\">{words}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_fills_the_room_and_the_others_are_in_proportion() {
        let lengths = vec![(Kind::Ours, 40.0), (Kind::Valkey, 80.0)];
        let svg = bars("Bytes <a> key", &[Group { label: "plain".to_owned(), lengths }]);
        assert!(svg.contains("width=\"480.0\" height=\"11\" fill=\"#9dc3e6\""), "{svg}");
        assert!(svg.contains("width=\"240.0\" height=\"11\" fill=\"#1f4e79\""), "{svg}");
        assert!(svg.contains(">40</text>") && svg.contains("Bytes &lt;a> key"), "{svg}");
        assert!(
            !svg.contains("fill=\"#c9c9c9\"/>\n<text x=\"215"),
            "a server that was not measured"
        );
    }

    #[test]
    fn each_case_is_measured_by_its_own_longest() {
        let group = |ours: f64, theirs: f64| Group {
            label: String::new(),
            lengths: vec![(Kind::Ours, ours), (Kind::Redis, theirs)],
        };
        let shares = relative(vec![group(5.0, 10.0), group(0.3, 1.2)]);
        let of = |place: usize| shares[place].lengths.iter().map(|(_, it)| *it).collect::<Vec<_>>();
        assert_eq!((of(0), of(1)), (vec![0.5, 1.0], vec![0.25, 1.0]));
    }
}
