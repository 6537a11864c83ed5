//! Maximum sizes of files and functions, as a ratchet: those that were too long already are listed
//! in xtask/ratchet.txt with their size, and may only shrink.
//!
//! A function with `#[expect(clippy::too_many_lines, reason = ...)]` has given its reason (a flat
//! match, one call per arm) and is exempt.
use std::collections::BTreeMap;
use std::path::Path;

use super::tree::{File, Tree};
use super::{Finding, code};

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;
const RATCHET: &str = "xtask/ratchet.txt";
const RATCHET_HEAD: &str = "\
# Files over 800 lines and functions over 70 that were there before the rule, and their lines.
# Nothing is added here; `cargo xtask tidy --shrink` lowers what has fallen.
";

/// The listed offenders: a path, or a path and a function, with the number of lines.
#[derive(Default, Debug, PartialEq, Eq)]
pub(super) struct Ratchet(BTreeMap<String, usize>);

impl Ratchet {
    pub(super) fn read(root: &Path) -> Result<Ratchet, String> {
        let text = std::fs::read_to_string(root.join(RATCHET))
            .map_err(|error| format!("{RATCHET}: {error}"))?;
        Ratchet::parse(&text)
    }

    fn parse(text: &str) -> Result<Ratchet, String> {
        let mut listed = BTreeMap::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let entry = line.rsplit_once(' ').and_then(|(name, lines)| {
                Some((name.trim().to_owned(), lines.parse::<usize>().ok()?))
            });
            let (name, lines) = entry.ok_or_else(|| format!("{RATCHET}: cannot read `{line}`"))?;
            listed.insert(name, lines);
        }
        Ok(Ratchet(listed))
    }

    fn shown(&self) -> String {
        let entries = self.0.iter().map(|(name, lines)| format!("{name} {lines}\n"));
        RATCHET_HEAD.to_owned() + &entries.collect::<String>()
    }
}

pub(super) fn check(tree: &Tree, ratchet: &Ratchet) -> Vec<Finding> {
    let long = too_long(tree);
    let mut findings = Vec::new();
    for (name, lines) in &long {
        match ratchet.0.get(name) {
            None => findings.push(Finding::new(name, format!("has {lines} lines: divide it"))),
            Some(listed) if lines > listed => {
                let what = format!("grew from {listed} to {lines} lines; it may only shrink");
                findings.push(Finding::new(name, what));
            }
            Some(_) => {}
        }
    }
    for (name, listed) in &ratchet.0 {
        if long.get(name).is_none_or(|lines| lines < listed) {
            let what = "has shrunk: run `cargo xtask tidy --shrink` to keep it so";
            findings.push(Finding::new(name, what));
        }
    }
    findings
}

/// Lowers entries that have shrunk, and drops those that are no longer too long. Never raises or adds.
pub(super) fn shrink(tree: &Tree) -> Result<(), String> {
    let root = crate::workspace::root();
    let shrunk = shrunk(&Ratchet::read(root)?, &too_long(tree));
    std::fs::write(root.join(RATCHET), shrunk.shown())
        .map_err(|error| format!("{RATCHET}: {error}"))
}

fn shrunk(ratchet: &Ratchet, long: &BTreeMap<String, usize>) -> Ratchet {
    let lowered = ratchet.0.iter().filter_map(|(name, listed)| {
        let lines = long.get(name)?;
        Some((name.clone(), *lines.min(listed)))
    });
    Ratchet(lowered.collect())
}

fn too_long(tree: &Tree) -> BTreeMap<String, usize> {
    let mut long = BTreeMap::new();
    for file in tree.rust() {
        let lines = file.text.lines().count();
        if lines > FILE_LINES_MAX {
            long.insert(file.path.clone(), lines);
        }
        for (name, lines) in functions(file) {
            if lines > FUNCTION_LINES_MAX {
                long.insert(format!("{}::{name}", file.path), lines);
            }
        }
    }
    long
}

/// Returns the functions of a file that are not exempt, with their number of lines.
fn functions(file: &File) -> Vec<(String, usize)> {
    let code = code::only(&file.text);
    let mut found = Vec::new();
    for (start, _) in code.match_indices("fn ") {
        let inside_word = start > 0 && code::is_word_byte(code.as_bytes()[start - 1]);
        let name: String =
            code[start + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if inside_word || name.is_empty() || is_let_through(&code[..start]) {
            continue;
        }
        let end = code::item_end(&code, start);
        let lines = code::line_of(&code, end) - code::line_of(&code, start) + 1;
        found.push((name, lines));
    }
    found
}

/// Returns whether the attributes directly before a function exempt it.
fn is_let_through(before: &str) -> bool {
    let start = before.rfind(['}', '{', ';']).map_or(0, |end| end + 1);
    before[start..].contains("expect(clippy::too_many_lines")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function_of(lines: usize) -> String {
        format!("fn long(a: [u8; 2]) {{\n{}}}\n", "    f();\n".repeat(lines - 2))
    }

    fn whats(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|finding| finding.what.as_str()).collect()
    }

    #[test]
    fn a_file_over_the_ceiling_is_found() {
        let long = "// line\n".repeat(FILE_LINES_MAX + 1);
        let fits = "// line\n".repeat(FILE_LINES_MAX);
        let tree = Tree::of([("a.rs", &long), ("b.rs", &fits)]);
        let findings = check(&tree, &Ratchet::default());
        assert_eq!(whats(&findings), ["has 801 lines: divide it"]);
    }

    #[test]
    fn a_function_over_the_ceiling_is_found() {
        let tree = Tree::of([("a.rs", &function_of(71)), ("b.rs", &function_of(70))]);
        let findings = check(&tree, &Ratchet::default());
        assert_eq!(findings, [Finding::new("a.rs::long", "has 71 lines: divide it")]);
    }

    #[test]
    fn a_function_that_said_why_is_let_through() {
        let asked = "#[expect(clippy::too_many_lines, reason = \"one call an arm\")]\n";
        let text = format!("use a;\n{asked}{}", function_of(90));
        assert_eq!(check(&Tree::of([("a.rs", &text)]), &Ratchet::default()), []);
    }

    #[test]
    fn a_listed_offender_may_stay_but_not_grow() {
        let ratchet = Ratchet::parse("# why\na.rs::long 90\n").unwrap();
        assert_eq!(check(&Tree::of([("a.rs", &function_of(90))]), &ratchet), []);
        let grown = check(&Tree::of([("a.rs", &function_of(91))]), &ratchet);
        assert_eq!(whats(&grown), ["grew from 90 to 91 lines; it may only shrink"]);
    }

    #[test]
    fn a_listed_offender_that_shrank_is_lowered_and_never_raised() {
        let ratchet = Ratchet::parse("a.rs::long 90\nb.rs::long 80\nc.rs::long 75\n").unwrap();
        let tree = Tree::of([("a.rs", &function_of(85)), ("b.rs", &function_of(99))]);
        assert_eq!(check(&tree, &ratchet).len(), 3);
        let lowered = shrunk(&ratchet, &too_long(&tree));
        assert_eq!(lowered, Ratchet::parse("a.rs::long 85\nb.rs::long 80\n").unwrap());
    }

    #[test]
    fn a_line_that_is_no_entry_is_refused() {
        assert!(Ratchet::parse("a.rs many\n").is_err());
    }
}
