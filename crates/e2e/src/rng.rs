//! Random numbers that are repeatable from a seed.
use placement::SplitMix64;

#[derive(Clone, Debug)]
pub struct Rng(SplitMix64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(SplitMix64::new(seed))
    }

    /// Returns the random numbers of one part of a run. They do not depend on the other parts.
    pub fn named(seed: u64, name: &str) -> Rng {
        let mix = |state: u64, byte: u8| SplitMix64::new(state ^ u64::from(byte)).draw();
        Rng::new(name.bytes().fold(seed, mix))
    }

    pub fn draw(&mut self) -> u64 {
        self.0.draw()
    }

    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below 0");
        self.draw() % bound
    }

    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("below a usize")
    }

    /// Returns true once in `n` times on average.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.index(from.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_seeds_give_chance_of_their_own_that_can_be_repeated() {
        let first = |seed, name| Rng::named(seed, name).draw();
        assert_eq!(first(1, "writer 0"), first(1, "writer 0"));
        assert_ne!(first(1, "writer 0"), first(1, "writer 1"));
        assert_ne!(first(1, "writer 0"), first(2, "writer 0"));
    }
}
