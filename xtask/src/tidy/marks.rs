//! Coverage marks. An unusual branch calls `mark::hit("name")`, and the one test that explains it calls
//! `mark::expect("name")`. One without the other is a branch that nobody explains, or a test of nothing.
use std::collections::BTreeMap;

use super::tree::Tree;
use super::{Finding, code};

const HIT: &str = concat!("mark::", "hit(\"");
const EXPECT: &str = concat!("mark::", "expect(\"");

pub(super) fn unpaired(tree: &Tree) -> Vec<Finding> {
    let hits = named(tree, HIT);
    let expected = named(tree, EXPECT);
    let unexpected = hits
        .iter()
        .filter(|(name, _)| !expected.contains_key(*name))
        .map(|(name, place)| Finding::new(place, format!("no test expects the mark \"{name}\"")));
    let never_hit = expected
        .iter()
        .filter(|(name, _)| !hits.contains_key(*name))
        .map(|(name, place)| Finding::new(place, format!("no code hits the mark \"{name}\"")));
    unexpected.chain(never_hit).collect()
}

/// Returns every name that directly follows `call`, with one place of each.
fn named(tree: &Tree, call: &str) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for file in tree.rust() {
        let code = code::only(&file.text);
        for (offset, _) in code.match_indices(call) {
            let name = file.text[offset + call.len()..].split('"').next().unwrap_or_default();
            let place = format!("{}:{}", file.path, code::line_of(&code, offset));
            names.insert(name.to_owned(), place);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_without_its_other_half_is_found() {
        let hit = "fn f() { mark::hit(\"odd_case\"); mark::hit(\"known_case\"); }";
        let test = "fn t() { mark::expect(\"known_case\"); mark::expect(\"gone_case\"); }";
        let findings = unpaired(&Tree::of([("a.rs", hit), ("b.rs", test)]));
        let places: Vec<&str> = findings.iter().map(|finding| finding.place.as_str()).collect();
        assert_eq!(places, ["a.rs:1", "b.rs:1"]);
        assert!(findings[0].what.contains("odd_case"));
        assert!(findings[1].what.contains("gone_case"));
    }
}
