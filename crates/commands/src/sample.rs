//! Random samples, for HRANDFIELD, ZRANDMEMBER, SRANDMEMBER and SPOP.

use std::collections::BTreeSet;

use placement::SplitMix64;

use crate::Error;
use crate::context::Context;

/// Maximum number of elements that one call may repeat: they are not limited by the size of the container.
pub(crate) const REPEATED_MAX: i64 = 1 << 24;

/// The options of HRANDFIELD and ZRANDMEMBER with a count.
pub(crate) struct SampleOptions {
    /// Negative: elements may be repeated.
    pub(crate) count: i64,
    /// True if values or scores are wanted.
    pub(crate) with_values: bool,
}

impl SampleOptions {
    /// Parses the count and the word that asks for values, if there is a count.
    pub(crate) fn parse(
        context: &Context<'_>,
        with_values: &[u8],
    ) -> Result<Option<SampleOptions>, Error> {
        let args = context.args;
        if args.len() < 3 {
            return Ok(None);
        }
        let count = context.integer(2)?;
        if count == i64::MIN {
            return Err(Error::fixed(
                "ERR value is out of range, value must between -9223372036854775807 and \
                 9223372036854775807",
            ));
        }
        let with_values = match args.get(3) {
            None => false,
            Some(word) if args.len() == 4 && word.eq_ignore_ascii_case(with_values) => true,
            Some(_) => return Err(Error::SYNTAX),
        };
        let is_too_many = with_values && count.unsigned_abs() > i64::MAX.unsigned_abs() / 2;
        if is_too_many || count < -REPEATED_MAX {
            return Err(Error::OUT_OF_RANGE);
        }
        Ok(Some(SampleOptions { count, with_values }))
    }
}

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
