//! Random numbers from a seed: the same seed gives the same run.

use std::ops::Range;
use std::time::Duration;

use placement::SplitMix64;

/// Random numbers to shuffle messages and draw faults with.
#[derive(Clone, Debug)]
pub struct Rng(SplitMix64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(SplitMix64::new(seed))
    }

    pub fn draw(&mut self) -> u64 {
        self.0.draw()
    }

    /// Returns a number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit)
    }

    /// Returns true with a probability of `times` in `total`.
    pub fn chance(&mut self, times: u64, total: u64) -> bool {
        self.below(total) < times
    }

    /// Returns a span within the range, or its start if it is empty.
    pub fn within(&mut self, range: &Range<Duration>) -> Duration {
        let width = (range.end - range.start).as_nanos() as u64;
        range.start + Duration::from_nanos(self.below(width.max(1)))
    }

    pub fn choose<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        if list.is_empty() { None } else { list.get(self.below(list.len() as u64) as usize) }
    }

    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_itself_and_another_does_not() {
        let draw = |seed| {
            let mut rng = Rng::new(seed);
            (0..8).map(|_| rng.below(1000)).collect::<Vec<u64>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn a_chance_is_taken_about_as_often_as_it_says() {
        let mut rng = Rng::new(3);
        let taken = (0..10_000).filter(|_| rng.chance(30, 100)).count();
        assert!((2_800..3_200).contains(&taken), "{taken}");
        assert!((0..100).all(|_| !rng.chance(0, 1000) && rng.chance(1000, 1000)));
    }

    #[test]
    fn a_span_is_within_its_range() {
        let (least, most) = (Duration::from_nanos(5), Duration::from_nanos(8));
        let mut rng = Rng::new(4);
        let mut seen: Vec<u128> = (0..100).map(|_| rng.within(&(least..most)).as_nanos()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [5, 6, 7]);
        assert_eq!(rng.within(&(least..least)), least);
    }

    #[test]
    fn a_shuffle_loses_nothing() {
        let mut list: Vec<u32> = (0..50).collect();
        Rng::new(1).shuffle(&mut list);
        assert!(!list.is_sorted());
        list.sort_unstable();
        assert!(list.into_iter().eq(0..50));
    }
}
