//! Sets that both sides have changed.

use super::*;

fn members(range: core::ops::Range<u64>) -> Vec<u8> {
    let mut row = Vec::new();
    for number in range {
        store::Element::of(format!("member {number}").as_bytes()).write(&mut row);
    }
    row
}

#[test]
fn sets_small_and_large_are_merged_like_other_values() {
    let (mut one, mut two) = parted(&["kept"]);
    let seed = one.seed.clone();
    for (name, count) in [("small", 3), ("large", 20_000)] {
        one.apply(&Effect::AddMembers { key: seed.spread(name), members: &members(0..count) });
    }
    // Both sides have made the same set, in different orders, and a different one.
    let (same, reversed) = (members(0..2), [members(1..2), members(0..1)].concat());
    one.apply(&Effect::AddMembers { key: seed.spread("same"), members: &same });
    two.apply(&Effect::AddMembers { key: seed.spread("same"), members: &reversed });
    one.apply(&Effect::AddMembers { key: seed.spread("other"), members: &same });
    two.apply(&Effect::AddMembers { key: seed.spread("other"), members: &members(0..3) });
    let tally = hand_over(&one, &mut two);
    assert_eq!((tally.taken, tally.same), (2, 1));
    for name in ["small", "large", "same"] {
        let here = two.table.peek(&two.key(name)).unwrap();
        let there = one.table.peek(&one.key(name)).unwrap();
        assert_eq!(store::Digest::of_item(&here), store::Digest::of_item(&there), "{name}");
    }
}
