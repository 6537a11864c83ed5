//! Runs every command in README.md and docs/getting-started.md as a reader would, and compares its
//! output with the page: a mistake in either is a failure here.
//!
//! `page.rs` parses the blocks, `shell.rs` is the reader's terminal.
mod page; //  commands and expected output, from a page
mod shell; // a terminal in which free ports replace the default ones

use std::path::{Path, PathBuf};

use page::Step;
use shell::Shell;

/// Commands that are not run here: this very test is part of them.
const LEFT_OUT: [&str; 1] = ["cargo xtask test"];

#[test]
fn the_readme_is_true() {
    check("README.md");
}

#[test]
fn getting_started_is_true() {
    check("docs/getting-started.md");
}

#[test]
fn a_page_with_a_mistake_fails() {
    let mut shell = Shell::new();
    let step = |command: &str, expected: &str| Step {
        line: 1,
        command: command.to_owned(),
        expected: expected.lines().map(str::to_owned).collect(),
    };
    assert_eq!(shell.follow(&step("echo one; echo two", "one\n...")), Ok(()));
    let wrong = shell.follow(&step("echo one", "two")).unwrap_err();
    assert!(wrong.contains("one"), "{wrong}");
    assert!(shell.follow(&step("false", "")).is_err(), "a command that fails");
    assert!(shell.follow(&step("opencluster no-such-thing", "")).is_err());
}

fn check(page: &str) {
    let path = root().join(page);
    let text = std::fs::read_to_string(&path).expect("the page is there");
    let steps = page::steps(&text);
    assert!(steps.len() >= 8, "{page} has only {} commands", steps.len());
    let mut shell = Shell::new();
    for step in steps {
        if LEFT_OUT.iter().any(|command| step.command.starts_with(command)) {
            continue;
        }
        if let Err(why) = shell.follow(&step) {
            let (line, command, logs) = (step.line, step.command, shell.logs());
            panic!("{page}:{line}: $ {command}\n{why}\n{logs}");
        }
    }
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("crates/e2e lies two below the root").to_owned()
}
