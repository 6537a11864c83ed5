//! The picture everybody asks for: nodes as columns, buckets as rows, P for primary, S for backup, `*`
//! on the bucket a node received last, and totals as `5+6=11`.

use std::fmt::Write;

use cluster::map::{Bucket, Load, Map, Member};

/// Beyond this a summary says more.
pub const BUCKETS_MAX: usize = 16;

/// The picture of a map.
pub fn picture(map: &Map) -> String {
    let names: Vec<String> = map.members().iter().map(|member| member.name.clone()).collect();
    let totals: Vec<String> = map.loads().iter().map(total).collect();
    let width = names.iter().chain(&totals).map(String::len).max().unwrap_or(0).max(4);
    let label = map.buckets().map(|bucket| label(map, bucket).len()).max().unwrap_or(0);
    let mut text = line(&format!("{:label$}", ""), &names, width);
    for bucket in map.buckets() {
        let marks: Vec<String> = map
            .members()
            .iter()
            .zip(map.loads())
            .map(|(member, load)| mark(bucket, member, load))
            .collect();
        text += &line(&format!("{:label$}", self::label(map, bucket)), &marks, width);
    }
    text + &line(&format!("{:label$}", ""), &totals, width)
}

/// One line about a map that is too large for a picture.
pub fn summary(map: &Map) -> String {
    let spread = |numbers: &dyn Fn(&Load) -> u32| {
        let weighted =
            map.members().iter().zip(map.loads()).filter(|(member, _)| member.weight > 0);
        let numbers: Vec<u32> = weighted.map(|(_, load)| numbers(load)).collect();
        let (least, most) =
            (numbers.iter().min().unwrap_or(&0), numbers.iter().max().unwrap_or(&0));
        if least == most { least.to_string() } else { format!("{least} to {most}") }
    };
    format!(
        "{} nodes, {} buckets: {} copies each, {} of them primaries\n",
        map.members().len(),
        map.bucket_count(),
        spread(&Load::total),
        spread(&|load| load.primaries)
    )
}

pub fn total(load: &Load) -> String {
    format!("{}+{}={}", load.primaries, load.backups, load.total())
}

/// With one mask the last digit tells buckets apart; with several the whole name is needed.
fn label(map: &Map, bucket: &Bucket) -> String {
    let mask = bucket.hashmask.mask();
    if map.bucket_count() == usize::from(mask.buckets()) {
        let digits = format!("{:X}", mask.bits()).len();
        format!("#{:0digits$X}", bucket.hashmask.value())
    } else {
        bucket.hashmask.to_string()
    }
}

fn mark(bucket: &Bucket, member: &Member, load: &Load) -> String {
    let role = if bucket.primary() == Some(member.id) {
        "P"
    } else if bucket.is_held_by(member.id) {
        "S"
    } else {
        "."
    };
    let last = if load.last_received == Some(bucket.hashmask) { "*" } else { "" };
    format!("{role}{last}")
}

fn line(label: &str, cells: &[String], width: usize) -> String {
    let mut text = label.to_owned();
    for cell in cells {
        // The `*` beside a mark does not move it out of the middle.
        let left = (width + 1 - cell.trim_end_matches('*').len()) / 2;
        let padded = format!("{:left$}{cell}", "");
        let _ = write!(text, "  {padded:width$}");
    }
    text.trim_end().to_owned() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Weather;
    use crate::grow::{Growth, Newcomer};
    use cluster::map::Settings;
    use placement::Mask;

    #[test]
    fn two_nodes_look_like_this() {
        let start = (Mask::M000F, Settings::default());
        let mut growth = Growth::start(1, Weather::calm(), Newcomer::default(), start);
        let step = growth.join(Newcomer::default());
        let wanted = "\
            \x20      A       B\n\
            #0     S       P\n\
            #1     S       P\n\
            #2     S       P\n\
            #3     S       P\n\
            #4     S       P\n\
            #5     S       P\n\
            #6     S       P\n\
            #7     S       P\n\
            #8     P       S\n\
            #9     P       S\n\
            #A     P       S\n\
            #B     P       S\n\
            #C     P       S\n\
            #D     P       S\n\
            #E     P       S\n\
            #F     P       S*\n\
            \x20   8+8=16  8+8=16\n";
        assert_eq!(picture(&step.map), wanted);
        assert_eq!(
            summary(&step.map),
            "2 nodes, 16 buckets: 16 copies each, 8 of them primaries\n"
        );
    }
}
