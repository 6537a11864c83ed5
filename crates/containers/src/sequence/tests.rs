//! Tests of `sequence.rs`. Random operations are in `list.rs` and `sorted.rs`; they call [`Sequence::check`].

use super::*;
use crate::element::Element;

impl Sequence {
    /// Checks the counts and the memory by counting again.
    pub(crate) fn check(&self) {
        let mut bytes = 0;
        let mut len = 0;
        for group in &self.groups {
            assert!(!group.leaves.is_empty() && group.leaves.len() <= GROUP_LEAVES_MAX);
            assert_eq!(group.len, group.leaves.iter().map(|leaf| leaf.len).sum::<usize>());
            for leaf in &group.leaves {
                assert!(leaf.len > 0);
                assert_eq!(leaf.len, leaf.row(self.width).len());
                assert!(leaf.len == 1 || leaf.entries.len() <= LEAF_BYTES_MAX);
                bytes += leaf.bytes();
            }
            bytes += group.array_bytes();
            len += group.len;
        }
        assert_eq!((self.bytes, self.len), (bytes, len));
    }
}

fn number(number: i64) -> Vec<u8> {
    let mut entry = Vec::new();
    Element::Integer(number).write(&mut entry);
    entry
}

#[test]
fn the_leaves_of_a_queue_are_full() {
    for at_front in [false, true] {
        let mut sequence = Sequence::new(1);
        for value in 0..100_000 {
            let index = if at_front { 0 } else { sequence.len() };
            sequence.insert(index, &number(1_000_000 + value));
        }
        sequence.check();
        let per_entry = sequence.bytes() as f64 / 100_000.0;
        assert!(per_entry < 5.5, "{per_entry} bytes for each entry of five");
    }
}

#[test]
fn the_partition_point_is_that_of_a_sorted_slice() {
    let mut sequence = Sequence::new(1);
    let numbers: Vec<i64> = (0..20_000).map(|value| value * 3 / 2).collect();
    for (index, value) in numbers.iter().enumerate() {
        sequence.insert(index, &number(*value));
    }
    for probe in (-5..30_010).step_by(7) {
        let found = sequence.partition_point(|entry| {
            Element::read(entry).map(|it| it.0) < Some(Element::Integer(probe))
        });
        assert_eq!(found, numbers.partition_point(|value| *value < probe));
    }
    assert_eq!(Sequence::new(1).partition_point(|_| true), 0);
}
