//! Top-level modules of a crate form layers: none depends on itself through others. A cycle of two modules, or
//! of more, makes them one module in several files.
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::tree::{File, Tree};
use super::{Finding, code};

/// The crates whose modules are checked.
const LAYERED: [&str; 2] = ["cluster", "server"];

/// For each module, the modules it names, each with a file that does.
type Uses<'t> = BTreeMap<&'t str, BTreeMap<&'t str, &'t str>>;

/// Finds modules that depend on themselves, by the shortest way.
pub(super) fn cycles(tree: &Tree) -> Vec<Finding> {
    LAYERED.into_iter().flat_map(|name| cycles_in(tree, name)).collect()
}

fn cycles_in(tree: &Tree, name: &str) -> Vec<Finding> {
    let folder = format!("crates/{name}/src/");
    let uses = uses(tree, &folder);
    let found = uses.keys().filter_map(|module| {
        let cycle = shortest_cycle(&uses, module)?;
        let steps = cycle.windows(2).map(|step| {
            let file = &uses[step[0]][step[1]][folder.len()..];
            format!("{} uses {} ({file})", step[0], step[1])
        });
        let steps = steps.collect::<Vec<_>>().join(", ");
        Some(Finding::new(format!("{folder}{module}"), format!("a cycle of modules: {steps}")))
    });
    found.collect()
}

/// Returns the shortest way from a module back to itself. Ways through a module before it in the alphabet are
/// left out: that module reports them.
fn shortest_cycle<'t>(uses: &Uses<'t>, start: &'t str) -> Option<Vec<&'t str>> {
    let mut came_from = BTreeMap::new();
    let mut waiting = VecDeque::from([start]);
    while let Some(module) = waiting.pop_front() {
        for next in uses.get(module)?.keys().copied().filter(|next| *next >= start) {
            if next == start {
                return Some(way_to(module, start, &came_from));
            }
            if !came_from.contains_key(next) {
                came_from.insert(next, module);
                waiting.push_back(next);
            }
        }
    }
    None
}

fn way_to<'t>(last: &'t str, start: &'t str, came_from: &BTreeMap<&str, &'t str>) -> Vec<&'t str> {
    let mut way = vec![start, last];
    while let Some(before) = way.last().and_then(|module| came_from.get(module)) {
        way.push(before);
    }
    way.reverse();
    way
}

fn uses<'t>(tree: &'t Tree, folder: &str) -> Uses<'t> {
    let files: Vec<(&str, &File)> =
        tree.rust().filter_map(|file| Some((module_of(file, folder)?, file))).collect();
    let modules: BTreeSet<&str> = files.iter().map(|(module, _)| *module).collect();
    let mut uses: Uses<'t> = modules.iter().map(|module| (*module, BTreeMap::new())).collect();
    for (module, file) in files.into_iter().filter(|(_, file)| !file.is_only_tests()) {
        let code = code::without_tests(&code::only(&file.text));
        for name in named_at_the_top(&code, is_at_the_top(file, folder)) {
            if let Some(used) = modules.get(name).filter(|used| **used != module) {
                uses.entry(module).or_default().entry(used).or_insert(&file.path);
            }
        }
    }
    uses
}

/// Returns the top-level module that a file of the crate belongs to.
fn module_of<'t>(file: &'t File, folder: &str) -> Option<&'t str> {
    let first = file.path.strip_prefix(folder)?.split('/').next()?;
    let module = first.strip_suffix(".rs").unwrap_or(first);
    (module != "lib" && module != "main").then_some(module)
}

/// Returns whether `super::` in this file means the root of the crate.
fn is_at_the_top(file: &File, folder: &str) -> bool {
    let rest = file.path.strip_prefix(folder).unwrap_or_default();
    !rest.contains('/') || (rest.ends_with("/mod.rs") && rest.matches('/').count() == 1)
}

/// Returns the names that follow `crate::`, alone or as a list in braces.
fn named_at_the_top(code: &str, is_at_the_top: bool) -> Vec<&str> {
    let roots: &[&str] = if is_at_the_top { &["crate::", "super::"] } else { &["crate::"] };
    let starts =
        roots.iter().flat_map(|root| code.match_indices(root).map(move |(at, _)| at + root.len()));
    starts.flat_map(|start| names_at(code, start)).collect()
}

fn names_at(code: &str, start: usize) -> Vec<&str> {
    let rest = &code[start..];
    let Some(list) = rest.strip_prefix('{') else { return vec![word_at(rest)] };
    let (mut names, mut nested, mut begin) = (vec![word_at(list.trim_start())], 0_usize, None);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'{' => nested += 1,
            b'}' if nested == 0 => break,
            b'}' => nested -= 1,
            b',' if nested == 0 => begin = Some(at + 1),
            _ if begin.is_some() && !byte.is_ascii_whitespace() => {
                begin = None;
                names.push(word_at(&list[at..]));
            }
            _ => {}
        }
    }
    names
}

/// Returns the word that the text begins with.
fn word_at(text: &str) -> &str {
    let end = text.bytes().position(|byte| !code::is_word_byte(byte)).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats<const N: usize>(files: [(&str, &str); N]) -> Vec<String> {
        cycles(&Tree::of(files)).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn two_modules_that_use_each_other_are_found_once_with_the_files_that_do() {
        let found = whats([
            ("crates/server/src/lib.rs", "mod a;\nmod b;\n"),
            ("crates/server/src/a/mod.rs", "mod deep;\n"),
            ("crates/server/src/a/deep.rs", "use crate::b::B;\n"),
            ("crates/server/src/b.rs", "use crate::a::A;\n"),
        ]);
        assert_eq!(found, ["a cycle of modules: a uses b (a/deep.rs), b uses a (b.rs)"]);
    }

    #[test]
    fn a_longer_cycle_is_found_as_well() {
        let found = whats([
            ("crates/cluster/src/a.rs", "use crate::c;\n"),
            ("crates/cluster/src/b.rs", "fn f() { crate::a::g() }\n"),
            ("crates/cluster/src/c.rs", "use super::b::B;\n"),
        ]);
        let steps = "a uses c (a.rs), c uses b (c.rs), b uses a (b.rs)";
        assert_eq!(found, [format!("a cycle of modules: {steps}")]);
    }

    #[test]
    fn layers_are_no_cycle_and_neither_is_the_use_of_a_module_by_itself() {
        let found = whats([
            ("crates/server/src/a.rs", "use crate::{b::{a, B}, c};\nuse crate::a::deep;\n"),
            ("crates/server/src/b.rs", "use crate::c::C;\n"),
            ("crates/server/src/c.rs", "// crate::a\nconst TEXT: &str = \"crate::a\";\n"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn lists_in_braces_are_read_at_their_first_level() {
        let names = names_at("{ one::{two, three}, four, five::Six }; seven", 0);
        assert_eq!(names, ["one", "four", "five"]);
    }

    #[test]
    fn tests_may_use_every_module() {
        let found = whats([
            ("crates/server/src/a.rs", "use crate::b::B;\n"),
            ("crates/server/src/b.rs", "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n"),
            ("crates/server/src/b/tests.rs", "use crate::a::A;\n"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn other_crates_are_not_checked() {
        let files = [
            ("crates/store/src/a.rs", "use crate::b::B;\n"),
            ("crates/store/src/b.rs", "use crate::a::A;\n"),
        ];
        assert_eq!(whats(files), Vec::<String>::new());
    }
}
