//! A cluster's growth as a drawing: one panel a step (nodes x buckets, primaries dark, backups light),
//! and the copies made at each step as bars beside the fewest possible.

use std::fmt::Write;

use crate::grow::{Event, Step};

const PANEL: f64 = 180.0;
const GAP: f64 = 40.0;
const COLUMNS: usize = 5;
const PRIMARY: &str = "#1f4e79";
const BACKUP: &str = "#9dc3e6";
const EMPTY: &str = "#f2f2f2";

pub fn draw(steps: &[Step]) -> String {
    let rows = steps.len().div_ceil(COLUMNS).max(1);
    let width = COLUMNS as f64 * (PANEL + GAP) + GAP;
    let bars_top = rows as f64 * (PANEL + 2.0 * GAP) + GAP;
    let height = bars_top + PANEL + 2.0 * GAP;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (number, step) in steps.iter().enumerate() {
        let left = GAP + (number % COLUMNS) as f64 * (PANEL + GAP);
        let top = GAP + (number / COLUMNS) as f64 * (PANEL + 2.0 * GAP);
        panel(&mut svg, step, (left, top));
    }
    bars(&mut svg, steps, (GAP, bars_top), width - 2.0 * GAP);
    svg + "</svg>\n"
}

fn title(event: &Event) -> String {
    match event {
        Event::Start(name) => format!("{name} starts"),
        Event::Join(name) => format!("{name} joins"),
        Event::Leave(name) => format!("{name} leaves"),
    }
}

fn panel(svg: &mut String, step: &Step, (left, top): (f64, f64)) {
    let map = &step.map;
    let wide = PANEL / map.members().len().max(1) as f64;
    let high = PANEL / map.bucket_count() as f64;
    text(
        svg,
        (left, top - 6.0),
        &format!("{}: {} copies made", title(&step.event), step.moved.copies),
    );
    rect(svg, (left, top), (PANEL, PANEL), EMPTY);
    for (row, bucket) in map.buckets().enumerate() {
        for (rank, holder) in bucket.holders.iter().enumerate() {
            let column = map.place_of(*holder).expect("a holder is a member");
            let at = (left + column as f64 * wide, top + row as f64 * high);
            rect(svg, at, (wide * 0.92, high * 0.92), if rank == 0 { PRIMARY } else { BACKUP });
        }
    }
    if map.members().len() <= 12 {
        for (column, member) in map.members().iter().enumerate() {
            let at = (left + (column as f64 + 0.3) * wide, top + PANEL + 14.0);
            text(svg, at, &member.name);
        }
    }
}

fn bars(svg: &mut String, steps: &[Step], (left, top): (f64, f64), width: f64) {
    let most = steps.iter().map(|step| step.moved.copies.max(step.lower_bound)).max().unwrap_or(1);
    let wide = width / steps.len().max(1) as f64;
    text(
        svg,
        (left, top - 6.0),
        "copies made at each step (dark) beside the fewest possible (light)",
    );
    for (number, step) in steps.iter().enumerate() {
        let at = left + number as f64 * wide;
        let bars = [(0.1, step.moved.copies, PRIMARY), (0.5, step.lower_bound, BACKUP)];
        for (offset, copies, colour) in bars {
            let high = PANEL * copies as f64 / most.max(1) as f64;
            let corner = (at + offset * wide, top + PANEL - high);
            rect(svg, corner, (wide * 0.38, high), colour);
        }
        if steps.len() <= 40 {
            let copies = step.moved.copies.to_string();
            text(svg, (at + 0.1 * wide, top + PANEL + 14.0), &copies);
        }
    }
}

fn rect(svg: &mut String, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str) {
    let _ = writeln!(
        svg,
        "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"{fill}\"/>"
    );
}

fn text(svg: &mut String, (x, y): (f64, f64), words: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.2}\" y=\"{y:.2}\">{words}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Weather;
    use crate::grow::{Growth, Newcomer};
    use cluster::map::ClusterSettings;
    use placement::Mask;

    #[test]
    fn every_copy_is_drawn_once_in_each_step() {
        let (mask, settings) = (Mask::M000F, ClusterSettings::default());
        let mut growth = Growth::start(1, Weather::calm(), Newcomer::default(), mask, settings);
        growth.join(Newcomer::default());
        growth.join(Newcomer::default());
        let svg = draw(growth.steps());
        let drawn = |colour: &str| svg.matches(&format!("fill=\"{colour}\"")).count();
        // 16 primaries in each of three panels and a bar a step; 0, 16 and 16 backups, and a bar.
        assert_eq!((drawn(PRIMARY), drawn(BACKUP)), (3 * 16 + 3, 2 * 16 + 3));
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("C joins: 10 copies made"));
    }
}
