//! Many buckets on a small screen: a band of cells for each node, in the order of the slots. A cell is one
//! bucket while they fit; otherwise it stands for several, and its shade shows how many of them the node
//! holds.

use cluster::status::{BucketStatus, MemberStatus, Status, role};

use super::ink::Ink;

/// Maximum cells of a line: narrower bands can be compared from node to node at a glance.
const CELLS_A_LINE_MAX: usize = 64;

/// Returns the lines of each node, in the order of the members; every cell with its ink.
pub(crate) fn bands(status: &Status, width: usize, lines: usize) -> Vec<Vec<Vec<(Ink, char)>>> {
    let a_line = width.clamp(1, CELLS_A_LINE_MAX);
    let group = status.buckets.len().div_ceil(a_line * lines.max(1)).max(1);
    let band = |member: &MemberStatus| {
        let groups = status.buckets.chunks(group);
        let cells: Vec<(Ink, char)> = groups.map(|group| cell(status, group, member)).collect();
        cells.chunks(a_line).map(<[_]>::to_vec).collect()
    };
    status.members.iter().map(band).collect()
}

fn cell(status: &Status, group: &[BucketStatus], member: &MemberStatus) -> (Ink, char) {
    let roles: Vec<char> = group.iter().map(|bucket| role(status, bucket, member)).collect();
    let count = |wanted: char| roles.iter().filter(|role| **role == wanted).count();
    let (primaries, backups, coming) = (count('P'), count('S') + count('s'), count('+'));
    let ink = match (primaries, backups) {
        _ if coming > 0 => Ink::Fresh,
        (0, 0) => Ink::Faint,
        _ if primaries >= backups => Ink::Primary,
        _ => Ink::Backup,
    };
    if let [role] = roles.as_slice() {
        return (ink, *role);
    }
    let shade = match (primaries + backups) * 4 / roles.len() {
        _ if coming > 0 => '+',
        0 if primaries + backups == 0 => '.',
        0 => '░',
        1 => '▒',
        2 | 3 => '▓',
        _ => '█',
    };
    (ink, shade)
}

#[cfg(test)]
mod tests {
    use super::super::testing::two_nodes;
    use super::*;
    use placement::Mask;

    fn text(line: &[(Ink, char)]) -> String {
        line.iter().map(|(_, letter)| *letter).collect()
    }

    #[test]
    fn two_hundred_buckets_are_a_cell_each() {
        let bands = bands(&two_nodes(Mask::M00FF), 80, 4);
        assert_eq!((bands.len(), bands[0].len(), bands[0][0].len()), (2, 4, 64));
        assert_eq!(text(&bands[0][0]), "P".repeat(64));
        assert_eq!(text(&bands[1][0]), format!("+{}", ".".repeat(63)));
        assert_eq!(bands[1][0][0].0, Ink::Fresh);
    }

    #[test]
    fn thousands_of_buckets_are_shades() {
        let mut status = two_nodes(Mask::M0FFF);
        for bucket in &mut status.buckets[16..32] {
            bucket.holders = vec!["B".to_owned(), "A".to_owned()];
        }
        let bands = bands(&status, 64, 4);
        assert_eq!((bands[0].len(), bands[0][0].len()), (4, 64));
        assert_eq!(text(&bands[0][0]), "█".repeat(64));
        assert_eq!((bands[0][0][0].0, bands[0][0][1].0), (Ink::Primary, Ink::Backup));
        assert_eq!(text(&bands[1][0]), format!("+█{}", ".".repeat(62)));
    }
}
