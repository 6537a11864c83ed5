//! Checks on the plain text of files: heads, banned words, whitespace, README.
use super::tree::Tree;
use super::{Finding, code};

/// Words that are allowed on a branch but not on main. Split here, so that this file passes.
const BANNED_WORDS: [(&str, &str); 6] = [
    (concat!("FIX", "ME"), "do it now, or write an issue"),
    (concat!("X", "XX"), "do it now, or write an issue"),
    (concat!("todo", "!("), "write it, or leave the whole branch out"),
    (concat!("unimplemented", "!("), "write it, or leave the whole branch out"),
    (concat!("dbg", "!("), "left over from a search"),
    (concat!("../", "shared"), "a reader of this repository does not have that folder"),
];

/// The first commands that a newcomer types.
const README_COMMANDS: [&str; 2] = ["cargo run --release", "cargo xtask test"];

/// Checks that every Rust file opens with a description.
pub(super) fn module_heads(tree: &Tree) -> Vec<Finding> {
    let headless = tree.rust().filter(|file| !file.text.starts_with("//! "));
    headless.map(|file| Finding::new(&file.path, "does not start with a `//!` comment")).collect()
}

pub(super) fn trailing_whitespace(tree: &Tree) -> Vec<Finding> {
    per_line(tree, |line| line.ends_with([' ', '\t', '\r']).then(|| "trailing whitespace".into()))
}

pub(super) fn banned_words(tree: &Tree) -> Vec<Finding> {
    per_line(tree, |line| {
        let (word, advice) = BANNED_WORDS.iter().find(|(word, _)| line.contains(word))?;
        Some(format!("`{word}`: {advice}"))
    })
}

/// Finds ignored tests: a test that does not run proves nothing; a slow one reads `e2e::effort` instead.
pub(super) fn ignored_tests(tree: &Tree) -> Vec<Finding> {
    let attribute = concat!("#[", "ignore");
    let mut findings = Vec::new();
    for file in tree.rust() {
        let code = code::only(&file.text);
        for (offset, _) in code.match_indices(attribute) {
            let place = format!("{}:{}", file.path, code::line_of(&code, offset));
            findings.push(Finding::new(place, "an ignored test never runs"));
        }
    }
    findings
}

pub(super) fn readme_shows_both_commands(tree: &Tree) -> Vec<Finding> {
    let text = tree.file("README.md").map_or("", |file| file.text.as_str());
    let missing = README_COMMANDS.iter().filter(|command| !text.contains(**command));
    missing.map(|command| Finding::new("README.md", format!("does not show `{command}`"))).collect()
}

fn per_line(tree: &Tree, check: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (index, line) in file.text.split('\n').enumerate() {
            if let Some(what) = check(line) {
                findings.push(Finding::new(format!("{}:{}", file.path, index + 1), what));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|finding| finding.place.as_str()).collect()
    }

    #[test]
    fn a_file_without_a_head_is_found() {
        let tree = Tree::of([("a.rs", "//! What it holds.\n"), ("b.rs", "use x;\n//! Late.\n")]);
        assert_eq!(places(&module_heads(&tree)), ["b.rs"]);
    }

    #[test]
    fn whitespace_at_the_end_of_a_line_is_found() {
        let tree = Tree::of([("a.md", "one\ntwo \nthree\t\n"), ("b.md", "fine\n")]);
        assert_eq!(places(&trailing_whitespace(&tree)), ["a.md:2", "a.md:3"]);
    }

    #[test]
    fn every_banned_word_is_found() {
        for (word, _) in BANNED_WORDS {
            let text = format!("//! Head.\n// {word}\n");
            assert_eq!(places(&banned_words(&Tree::of([("a.rs", &text)]))), ["a.rs:2"], "{word}");
        }
        assert_eq!(banned_words(&Tree::of([("a.rs", "SET k v XX")])), []);
    }

    #[test]
    fn an_ignored_test_is_found_and_the_word_in_a_string_is_not() {
        let text =
            concat!("#[test]\n#[", "ignore]\nfn a() {}\nconst B: &str = \"#[", "ignore]\";\n");
        assert_eq!(places(&ignored_tests(&Tree::of([("a.rs", text)]))), ["a.rs:2"]);
    }

    #[test]
    fn a_readme_that_hides_a_command_is_found() {
        let tree = Tree::of([("README.md", "Type `cargo run --release`.\n")]);
        assert_eq!(readme_shows_both_commands(&tree).len(), 1);
        assert_eq!(readme_shows_both_commands(&Tree::of([])).len(), 2);
    }
}
