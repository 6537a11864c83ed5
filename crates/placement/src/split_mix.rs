//! SplitMix64: pseudo-random numbers from a seed. Small, fast and repeatable; not for secrets.

const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// A generator of pseudo-random numbers. The same seed gives the same numbers.
#[derive(Clone, Default, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    pub const fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// Returns the next number.
    #[inline]
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// Returns number `number` of a seed, counted from 1: what the draw of that number would return.
    pub const fn nth(seed: u64, number: u64) -> u64 {
        mix(seed.wrapping_add(number.wrapping_mul(GAMMA)))
    }

    /// Returns a number uniform over `0..limit`, by a multiplication instead of a division.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(limit)) >> 64) as u64
    }
}

/// Finalizes a state: inputs that differ little give outputs that differ much.
const fn mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_those_of_the_published_generator() {
        let mut rng = SplitMix64::new(1_234_567);
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!([(); 5].map(|()| rng.draw()), published);
        assert_eq!(SplitMix64::nth(1_234_567, 3), published[2]);
    }

    #[test]
    fn numbers_below_a_limit_reach_every_value_and_not_the_limit() {
        let mut rng = SplitMix64::new(7);
        let mut seen = [false; 10];
        (0..1_000).for_each(|_| seen[rng.below(10) as usize] = true);
        assert_eq!(seen, [true; 10]);
    }
}
