//! The commands of a page: fenced blocks marked `console`, `$ ` before a command, its output below.
//! `...` stands for anything: alone for any number of lines, in a line for any text.

/// A command, and its expected output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Line number in the page.
    pub(crate) line: usize,
    pub(crate) command: String,
    /// Expected output; if empty, any output is accepted as long as the command succeeds.
    pub(crate) expected: Vec<String>,
}

const FENCE: &str = "```";

pub(crate) fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut block: Option<String> = None;
    for (number, line) in text.lines().enumerate() {
        if let Some(language) = line.strip_prefix(FENCE) {
            block = match block {
                Some(_) => None,
                None => Some(language.to_owned()),
            };
            continue;
        }
        if block.as_deref() != Some("console") {
            continue;
        }
        if let Some(command) = line.strip_prefix("$ ") {
            let command = without_remark(command).to_owned();
            steps.push(Step { line: number + 1, command, expected: Vec::new() });
        } else if let Some(step) = steps.last_mut() {
            step.expected.push(line.to_owned());
        }
    }
    steps
}

/// Strips a trailing remark, which is for people.
fn without_remark(command: &str) -> &str {
    command.split_once(" # ").map_or(command, |(command, _)| command).trim_end()
}

/// Returns whether the output matches the expected lines.
pub(crate) fn fits(expected: &[String], printed: &[&str]) -> bool {
    match (expected.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first == "..." => {
            fits(rest, printed) || (!printed.is_empty() && fits(expected, &printed[1..]))
        }
        (Some((first, rest)), Some((line, others))) => line_fits(first, line) && fits(rest, others),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

fn line_fits(expected: &str, line: &str) -> bool {
    let (expected, line) = (expected.trim_end(), line.trim_end());
    let mut parts = expected.split("...");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn commands_are_found_with_what_follows() {
    let text = "a\n```console\n$ one   # a remark\nprints\n$ two\n```\n```sh\n$ three\n```\n";
    let found = steps(text);
    let expected = vec!["prints".to_owned()];
    let one = Step { line: 3, command: "one".to_owned(), expected };
    let two = Step { line: 5, command: "two".to_owned(), expected: Vec::new() };
    assert_eq!(found, [one, two]);
}

#[test]
fn dots_stand_for_anything_and_nothing_else_does() {
    let fits = |expected: &str, printed: &str| {
        let expected: Vec<String> = expected.lines().map(str::to_owned).collect();
        fits(&expected, &printed.lines().collect::<Vec<_>>())
    };
    assert!(fits("a ... c\n...\nz", "a b c\n1\n2\nz"));
    assert!(fits("...\nz", "z") && fits("a...", "a") && fits("(integer) ...", "(integer) 7"));
    assert!(!fits("a ... c", "a b d") && !fits("a", "a\nb") && !fits("a\nb", "a"));
    assert!(!fits("...z", "zy") && !fits("x...", "y"));
}
