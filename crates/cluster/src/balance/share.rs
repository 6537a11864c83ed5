//! A node's share of all copies, and how many copies it may hold in the end.
//!
//! Share = `buckets x copies x weight / sum of weights`, but no node can hold a bucket twice: the
//! excess of a heavy node is shared out among the others. The planner ends with every node at the floor
//! or the ceiling of its share, and its primaries at the floor or the ceiling of `share / copies`.

use std::ops::RangeInclusive;

/// A node's share as a fraction: exact, because all nodes must compute the same result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    numerator: u128,
    denominator: u128,
}

impl Share {
    fn over(self, parts: u128) -> RangeInclusive<u32> {
        let denominator = self.denominator * parts;
        let floor = self.numerator / denominator;
        let ceiling = self.numerator.div_ceil(denominator);
        let small = |number: u128| u32::try_from(number).expect("a share is at most all buckets");
        small(floor)..=small(ceiling)
    }

    /// Returns whether the node shall hold nothing: it has no weight.
    pub(super) fn is_nothing(self) -> bool {
        self.numerator == 0
    }

    /// Returns the floor and the ceiling of the share. The floor is the *ideal*.
    pub fn totals(self) -> RangeInclusive<u32> {
        self.over(1)
    }

    /// Returns the number of primaries the node may have if each bucket has `copies` copies.
    pub fn primaries(self, copies: usize) -> RangeInclusive<u32> {
        self.over(copies.max(1) as u128)
    }
}

/// Returns the shares of nodes with these weights in `buckets` buckets of `copies` copies each.
pub fn shares(weights: &[u32], buckets: usize, copies: usize) -> Vec<Share> {
    let full = Share { numerator: buckets as u128, denominator: 1 };
    let mut shares = vec![None; weights.len()];
    loop {
        let open = |place: &usize| shares[*place].is_none();
        let weight: u128 = (0..weights.len()).filter(open).map(|at| u128::from(weights[at])).sum();
        let taken = shares.iter().flatten().count() * buckets;
        let left = (buckets * copies - taken) as u128;
        let share = |place: usize| Share {
            numerator: left * u128::from(weights[place]),
            denominator: weight.max(1),
        };
        let over = |place: &usize| {
            let share = share(*place);
            share.numerator >= full.numerator * share.denominator && share.numerator > 0
        };
        let heavy: Vec<usize> = (0..weights.len()).filter(open).filter(over).collect();
        if heavy.is_empty() {
            return (0..weights.len()).map(|at| shares[at].unwrap_or_else(|| share(at))).collect();
        }
        for place in heavy {
            shares[place] = Some(full);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(weights: &[u32], buckets: usize, copies: usize) -> Vec<(u32, u32)> {
        let bounds = |share: &Share| share.totals().into_inner();
        shares(weights, buckets, copies).iter().map(bounds).collect()
    }

    #[test]
    fn equal_nodes_have_equal_shares_and_the_floor_is_the_ideal() {
        assert_eq!(totals(&[1, 1, 1], 16, 2), [(10, 11); 3]);
        assert_eq!(totals(&[1; 4], 16, 2), [(8, 8); 4]);
        assert_eq!(totals(&[1], 16, 1), [(16, 16)]);
    }

    #[test]
    fn shares_follow_weights() {
        assert_eq!(totals(&[1, 1, 2], 16, 2), [(8, 8), (8, 8), (16, 16)]);
        assert_eq!(totals(&[3, 5, 0], 256, 1), [(96, 96), (160, 160), (0, 0)]);
    }

    #[test]
    fn what_a_heavy_node_cannot_take_goes_to_the_others() {
        assert_eq!(totals(&[1, 1, 8], 16, 2), [(8, 8), (8, 8), (16, 16)]);
        assert_eq!(totals(&[1, 3, 100, 100], 16, 3), [(4, 4), (12, 12), (16, 16), (16, 16)]);
        assert_eq!(totals(&[1, 9], 16, 2), [(16, 16), (16, 16)]);
    }

    #[test]
    fn primaries_are_a_part_of_the_share() {
        let shares = shares(&[1, 1, 1], 16, 2);
        assert_eq!(shares[0].primaries(2), 5..=6);
    }

    #[test]
    fn without_weight_there_is_nothing_to_share() {
        assert_eq!(totals(&[0, 0], 16, 0), [(0, 0), (0, 0)]);
        assert_eq!(totals(&[], 16, 0), []);
    }
}
