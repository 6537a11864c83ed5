//! A table of the cluster: nodes as columns, buckets as rows, P for primary, S for backup, `s` for a
//! backup that is pending on the reporting node, `+` for a copy in flight, `*` on the bucket a node
//! received last, and totals as `5+6=11`. Drawn by `opencluster status`, `top`, `demo` and `sim grow`.

use std::fmt::Write;

use placement::Hashmask;

use super::{BucketStatus, MemberStatus, Status};

/// Maximum number of buckets in a table. Beyond this a summary says more.
pub const BUCKETS_MAX: usize = 16;

/// Draws the table of a cluster.
pub fn picture(status: &Status) -> String {
    let names: Vec<String> = status.members.iter().map(|member| member.name.clone()).collect();
    let total = |member: &MemberStatus| total(member.primaries, member.backups);
    let totals: Vec<String> = status.members.iter().map(total).collect();
    let width = names.iter().chain(&totals).map(String::len).max().unwrap_or(0).max(4);
    let labels: Vec<String> = status.buckets.iter().map(|bucket| label(status, bucket)).collect();
    let label = labels.iter().map(String::len).max().unwrap_or(0);
    let mut text = line(&format!("{:label$}", ""), &names, width);
    for (bucket, name) in status.buckets.iter().zip(&labels) {
        let marks = status.members.iter().map(|member| mark(status, bucket, member));
        let marks: Vec<String> = marks.collect();
        text += &line(&format!("{name:label$}"), &marks, width);
    }
    text + &line(&format!("{:label$}", ""), &totals, width)
}

/// Returns one line about a cluster that is too large for a table.
pub fn summary(status: &Status) -> String {
    let spread = |numbers: &dyn Fn(&MemberStatus) -> u32| {
        let weighted = status.members.iter().filter(|member| member.weight > 0);
        let numbers: Vec<u32> = weighted.map(numbers).collect();
        let (least, most) =
            (numbers.iter().min().unwrap_or(&0), numbers.iter().max().unwrap_or(&0));
        if least == most { least.to_string() } else { format!("{least} to {most}") }
    };
    let nodes = match status.members.len() {
        1 => "1 node".to_owned(),
        count => format!("{count} nodes"),
    };
    format!(
        "{nodes}, {} buckets: {} copies each, {} of them primaries\n",
        status.buckets.len(),
        spread(&MemberStatus::copies),
        spread(&|member| member.primaries)
    )
}

/// Formats a node's load: primaries, backups and both.
pub fn total(primaries: u32, backups: u32) -> String {
    format!("{primaries}+{backups}={}", primaries + backups)
}

/// Returns a bucket's label. With one mask the last digits distinguish buckets; with several the whole
/// name is needed.
fn label(status: &Status, bucket: &BucketStatus) -> String {
    let hashmask: Result<Hashmask, _> = bucket.bucket.parse();
    match hashmask {
        Ok(hashmask) if status.buckets.len() == usize::from(hashmask.mask().buckets()) => {
            let digits = format!("{:X}", hashmask.mask().bits()).len();
            format!("#{:0digits$X}", hashmask.value())
        }
        Ok(_) | Err(_) => bucket.bucket.clone(),
    }
}

/// Returns a node's role for a bucket, as a letter.
pub fn role(status: &Status, bucket: &BucketStatus, member: &MemberStatus) -> char {
    match bucket.holders.iter().position(|holder| *holder == member.name) {
        Some(0) => 'P',
        Some(_) if bucket.pending && member.name == status.node => 's',
        Some(_) => 'S',
        None if is_filled(status, bucket, member) => '+',
        None => '.',
    }
}

fn is_filled(status: &Status, bucket: &BucketStatus, member: &MemberStatus) -> bool {
    status.moves.iter().any(|this| this.bucket == bucket.bucket && this.taker == member.name)
}

fn mark(status: &Status, bucket: &BucketStatus, member: &MemberStatus) -> String {
    let role = role(status, bucket, member);
    let last = if member.last_received.as_ref() == Some(&bucket.bucket) { "*" } else { "" };
    format!("{role}{last}")
}

fn line(label: &str, cells: &[String], width: usize) -> String {
    let mut text = label.to_owned();
    for cell in cells {
        // The `*` beside a mark does not shift it from the centre.
        let left = (width + 1 - cell.trim_end_matches('*').len()) / 2;
        let padded = format!("{:left$}{cell}", "");
        let _ = write!(text, "  {padded:width$}");
    }
    text.trim_end().to_owned() + "\n"
}
