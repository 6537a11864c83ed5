//! Sorted sets under a fill: a large one goes in parts while it is written to.

use store::{Score, ScoredMember};

use super::*;

fn scores<'a>(pairs: impl IntoIterator<Item = (f64, &'a str)>) -> Vec<u8> {
    let mut row = Vec::new();
    for (score, member) in pairs {
        let score = Score::new(score).expect("a number");
        ScoredMember { score, member: Element::of(member.as_bytes()) }.write(&mut row);
    }
    row
}

fn members() -> Vec<String> {
    (0..20_000).map(|number| format!("member {number}")).collect()
}

fn add_large(pair: &mut Pair) {
    let seed = pair.seed.clone();
    let names = members();
    for number in 0..3 {
        let name = format!("{{tag}}large{number}");
        let key = seed.spread(&name);
        let pairs =
            scores(names.iter().enumerate().map(|(rank, name)| (rank as f64 / 4.0, name.as_str())));
        pair.apply(&key, &Effect::SetScores { key, pairs: &pairs });
    }
}

#[test]
fn a_large_sorted_set_goes_in_parts_and_a_write_to_it_costs_what_it_changes() {
    let mut pair = Pair::new(1);
    add_large(&mut pair);
    let (steps, bytes) = fill_while(&mut pair, |pair, step| {
        let seed = pair.seed.clone();
        for number in 0..3 {
            let name = format!("{{tag}}large{number}");
            let key = seed.spread(&name);
            let (old, new) = (format!("member {}", step * 37), format!("new member {step}"));
            let pairs = scores([(-5.5, old.as_str()), (1e9, new.as_str())]);
            pair.apply(&key, &Effect::SetScores { key, pairs: &pairs });
            let members = row([format!("member {}", step * 37 + 1).as_str()]);
            pair.apply(&key, &Effect::RemoveScored { key, members: &members });
        }
    });
    assert!(pair.same());
    assert!(steps >= 3 * 20_000 * 15 / CHUNK_BYTES as u64, "only {steps} chunks");
    // Three sets of some 450 KB, and 6 small writes at each step.
    assert!(bytes < 3 * 550_000 + steps as usize * 6 * 200, "{bytes} bytes in {steps} steps");
}

#[test]
fn a_large_sorted_set_that_shrinks_goes_or_comes_back_during_its_copy_arrives() {
    let names = members();
    let gone = row(names.iter().take(19_900).map(String::as_str));
    let pairs = scores(names.iter().take(5_000).map(|name| (2.5, name.as_str())));
    for removed_at in 0..24 {
        let mut pair = Pair::new(1);
        add_large(&mut pair);
        fill_while(&mut pair, |pair, step| {
            let seed = pair.seed.clone();
            let name = format!("{{tag}}large{}", removed_at % 3);
            let key = seed.spread(&name);
            match (step == removed_at, removed_at % 4) {
                (true, 0) => pair.apply(&key, &Effect::RemoveScored { key, members: &gone }),
                (true, 1) => pair.apply(&key, &Effect::Remove { key, cause: Cause::Deleted }),
                (true, 2) => {
                    let value = NewValue::SortedSet(&pairs);
                    let put = Effect::Put { key, value, expires_at: None };
                    let remove = Effect::Remove { key, cause: Cause::Deleted };
                    pair.apply_all(key.slot(), &[remove, put]);
                }
                (true, _) => {
                    pair.apply(&key, &Effect::Remove { key, cause: Cause::Deleted });
                    pair.apply(&key, &Effect::SetScores { key, pairs: &pairs });
                }
                (false, _) => {
                    let one = scores([(step as f64, "again and again")]);
                    pair.apply(&key, &Effect::SetScores { key, pairs: &one });
                }
            }
        });
        assert!(pair.same(), "removed at step {removed_at}");
    }
}
