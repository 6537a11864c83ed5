//! Random samples without repetition, for HRANDFIELD, SRANDMEMBER and SPOP.

use std::collections::BTreeSet;

use placement::SplitMix64;

/// Draws until there are `count` different elements. Only for a few among many: `draw` may repeat elements.
pub(crate) fn draw_different<T: Ord>(
    count: usize,
    mut draw: impl FnMut() -> Option<T>,
) -> BTreeSet<T> {
    let mut drawn = BTreeSet::new();
    while drawn.len() < count {
        drawn.extend(draw());
    }
    drawn
}

/// A decision about each of `left` elements, after which `wanted` of them are selected; all selections are equally likely.
pub(crate) struct Selection<'r> {
    pub(crate) wanted: usize,
    pub(crate) left: usize,
    pub(crate) rng: &'r mut SplitMix64,
}

impl Selection<'_> {
    /// Returns whether the next element is selected.
    pub(crate) fn takes_next(&mut self) -> bool {
        let is_taken = self.rng.draw() % (self.left as u64) < self.wanted as u64;
        self.left -= 1;
        self.wanted -= usize::from(is_taken);
        is_taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_selected_as_often_as_any_other() {
        let mut rng = SplitMix64::new(1);
        let mut counts = [0; 10];
        for _ in 0..10_000 {
            let mut selection = Selection { wanted: 3, left: 10, rng: &mut rng };
            let selected: Vec<usize> = (0..10).filter(|_| selection.takes_next()).collect();
            assert_eq!(selected.len(), 3);
            selected.into_iter().for_each(|index| counts[index] += 1);
        }
        // 3,000 are expected; six standard deviations are 280.
        assert!(counts.iter().all(|count| (2_720..3_280).contains(count)), "{counts:?}");
    }

    #[test]
    fn drawn_elements_differ() {
        let mut rng = SplitMix64::new(1);
        let drawn = draw_different(5, || Some(rng.draw() % 20));
        assert_eq!(drawn.len(), 5);
        assert!(drawn.iter().all(|number| *number < 20));
    }
}
