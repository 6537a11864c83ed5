//! The rules of this repository that a program can check. Each check is a function from the files
//! (or the dependency graph) to its findings; `check` runs them all.
//!
//! Called by `check.rs`, and by hand as `cargo xtask tidy`.
mod tree; //    the files that are checked
mod code; //    Rust source with comments and strings blanked out
mod text; //    heads, words, whitespace, commands that README must show
mod sizes; //   files and functions that are too long, as a ratchet
mod modules; // cycles between the modules of a crate
mod purity; //  pure crates: paths that their source may not name
mod deps; //    the dependency graph: directions, I/O, licences, bans
mod licence; // licence expressions
mod deny; //    deny.toml: licences, bans, accepted advisories
mod shown; //   tests that docs/failures.md names

use tree::Tree;

/// A violation of one rule at one place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// A file, a file and line, or a crate.
    place: String,
    what: String,
}

impl Finding {
    fn new(place: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding { place: place.into(), what: what.into() }
    }
}

/// The pure crates: no socket, no clock, no thread, no random numbers.
const THINKING: [&str; 10] = [
    "placement",
    "resp",
    "containers",
    "store",
    "settings",
    "commands",
    "cluster",
    "timers",
    "fleet",
    "sim-engine",
];

pub(crate) fn chore(args: &[String]) -> Result<(), String> {
    match args {
        [] => check(),
        [shrink] if shrink == "--shrink" => sizes::shrink(&Tree::read(crate::workspace::root())?),
        [other, ..] => Err(format!("`tidy` takes --shrink or nothing, not `{other}`")),
    }
}

pub(crate) fn check() -> Result<(), String> {
    let root = crate::workspace::root();
    let tree = Tree::read(root)?;
    let graph = deps::Graph::read()?;
    let deny = deny::Deny::read(root)?;
    let ratchet = sizes::Ratchet::read(root)?;
    let checks = [
        text::module_heads(&tree),
        text::trailing_whitespace(&tree),
        text::banned_words(&tree),
        text::ignored_tests(&tree),
        text::readme_shows_both_commands(&tree),
        sizes::check(&tree, &ratchet),
        modules::cycles(&tree),
        purity::impure_source(&tree),
        purity::clippy_configs(&tree),
        shown::tests_that_are_none(&tree),
        deps::wrong_directions(&graph),
        deps::impure_dependencies(&graph),
        deps::banned_crates(&graph, &deny),
        deps::licences(&graph, &deny),
        deps::outdated_exceptions(&graph, &deny),
    ];
    let mut findings: Vec<Finding> = checks.into_iter().flatten().collect();
    findings.sort();
    if findings.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> =
        findings.iter().map(|finding| format!("{}: {}", finding.place, finding.what)).collect();
    Err(format!("{}\ntidy: {} findings", lines.join("\n"), lines.len()))
}
