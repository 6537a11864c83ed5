//! Pure crates use no socket, file, clock, thread or random numbers. `deps.rs` checks their
//! dependencies; this file checks their source without tests, and that clippy forbids the same.
use super::tree::{File, Tree};
use super::{Finding, THINKING, code};

/// Paths that a pure crate may not name, in code or in a `use`.
const FORBIDDEN: [(&str, &str); 17] = [
    // Not all of std::net: an address is only a value.
    ("TcpStream", "sockets belong in crates that do I/O"),
    ("TcpListener", "sockets belong in crates that do I/O"),
    ("UdpSocket", "sockets belong in crates that do I/O"),
    ("UnixStream", "sockets belong in crates that do I/O"),
    ("ToSocketAddrs", "resolving a name is I/O"),
    ("std::fs", "files belong in crates that do I/O"),
    ("std::thread", "threads belong in crates that do I/O"),
    ("std::process", "processes belong in crates that do I/O"),
    ("std::env", "settings are handed in"),
    ("std::io::stdin", "input is handed in"),
    ("std::io::stdout", "output is returned"),
    ("std::io::stderr", "output is returned"),
    ("Instant::now", "the time is handed in"),
    ("SystemTime::now", "the time is handed in"),
    ("std::collections::HashMap", "its order differs from run to run"),
    ("std::collections::HashSet", "its order differs from run to run"),
    ("RandomState", "its seed differs from run to run"),
];

pub(super) fn impure_source(tree: &Tree) -> Vec<Finding> {
    let thinking = tree.rust().filter(|file| is_thinking(file) && !file.is_only_tests());
    thinking.flat_map(impurities).collect()
}

/// Checks that each crate has a clippy.toml, which replaces the workspace's, and that all are the same.
pub(super) fn clippy_configs(tree: &Tree) -> Vec<Finding> {
    let present: Vec<&str> = THINKING
        .into_iter()
        .filter(|name| tree.file(&format!("crates/{name}/Cargo.toml")).is_some())
        .collect();
    let config = |name: &str| tree.file(&format!("crates/{name}/clippy.toml"));
    let first = present.iter().find_map(|name| config(name));
    let mut findings = Vec::new();
    for name in present {
        let place = format!("crates/{name}/clippy.toml");
        match (config(name), first) {
            (Some(own), Some(first)) if own.text == first.text => {}
            (Some(_), _) => findings.push(Finding::new(place, "differs from its siblings")),
            (None, _) => {
                let what = "is missing: clippy must enforce the same rules";
                findings.push(Finding::new(place, what));
            }
        }
    }
    findings
}

fn is_thinking(file: &File) -> bool {
    file.crate_name().is_some_and(|name| THINKING.contains(&name))
}

fn impurities(file: &File) -> Vec<Finding> {
    let code = code::without_tests(&code::only(&file.text));
    let mut findings = Vec::new();
    for (offset, path) in imported(&code).into_iter().chain(named(&code)) {
        let forbidden = FORBIDDEN.iter().find(|(forbidden, _)| contains_path(&path, forbidden));
        if let Some((forbidden, why)) = forbidden {
            let place = format!("{}:{}", file.path, code::line_of(&code, offset));
            findings.push(Finding::new(place, format!("`{forbidden}` in a pure crate: {why}")));
        }
    }
    findings.dedup();
    findings
}

/// Returns whether `path` names `forbidden` or something inside it; `std::fs_like` is not `std::fs`.
fn contains_path(path: &str, forbidden: &str) -> bool {
    path.match_indices(forbidden).any(|(at, _)| {
        let bytes = path.as_bytes();
        let before = at.checked_sub(1).map(|before| bytes[before]);
        let after = bytes.get(at + forbidden.len()).copied();
        [before, after].into_iter().flatten().all(|byte| !code::is_word_byte(byte))
    })
}

/// Returns every path written out in the code, with its offset.
fn named(code: &str) -> Vec<(usize, String)> {
    let part_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let mut paths = Vec::new();
    let mut at = 0;
    for word in code.split(|c| !part_of_path(c)) {
        if !word.is_empty() {
            paths.push((at, word.to_owned()));
        }
        // The separator is one character, but not always one byte.
        at += word.len();
        at += code[at..].chars().next().map_or(0, char::len_utf8);
    }
    paths
}

/// Returns every path that a `use` imports, with its groups expanded.
fn imported(code: &str) -> Vec<(usize, String)> {
    let mut paths = Vec::new();
    for (offset, _) in code.match_indices("use ") {
        let inside_word = offset > 0 && code::is_word_byte(code.as_bytes()[offset - 1]);
        if !inside_word {
            let statement = code[offset + 4..].split(';').next().unwrap_or_default();
            let flat: String = statement.chars().filter(|c| !c.is_whitespace()).collect();
            let mut brought_in = Vec::new();
            ungroup("", &flat, &mut brought_in);
            paths.extend(brought_in.into_iter().map(|path| (offset, path)));
        }
    }
    paths
}

/// Expands `a::{b, c::{d, e}}` into `a::b`, `a::c::d` and `a::c::e`.
fn ungroup(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let Some((head, rest)) = tree.split_once('{') else {
        return paths.push(format!("{prefix}{tree}"));
    };
    let inside = rest.strip_suffix('}').unwrap_or(rest);
    let prefix = format!("{prefix}{head}");
    let mut depth = 0;
    let parts = inside.split(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.filter(|part| !part.is_empty()).for_each(|part| ungroup(&prefix, part, paths));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(path: &str, text: &str) -> Vec<String> {
        impure_source(&Tree::of([(path, text)])).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn every_forbidden_path_is_found_in_a_thinking_crate() {
        for (forbidden, _) in FORBIDDEN {
            let text = format!("fn f() {{ {forbidden}::x(); }}");
            let found = whats("crates/store/src/a.rs", &text);
            assert_eq!(found.len(), 1, "{forbidden}: {found:?}");
        }
    }

    #[test]
    fn groups_in_a_use_hide_nothing() {
        let text = "use std::{collections::{BTreeMap, HashMap}, net::TcpStream};";
        assert_eq!(whats("crates/resp/src/a.rs", text).len(), 2);
        assert_eq!(whats("crates/resp/src/a.rs", "use std::collections::{BTreeMap};").len(), 0);
    }

    #[test]
    fn what_touches_the_world_may_and_so_may_tests() {
        let text = "use std::net::TcpStream;";
        assert_eq!(whats("crates/server/src/a.rs", text).len(), 0);
        assert_eq!(whats("crates/store/tests/a.rs", text).len(), 0);
        let test = format!("#[cfg(test)]\nmod tests {{ {text} }}");
        assert_eq!(whats("crates/store/src/a.rs", &test).len(), 0);
    }

    #[test]
    fn other_tables_and_longer_names_are_not_meant() {
        let text = "use hashbrown::HashMap; fn f() { std::fs_like(); \"std::fs\"; } // std::env";
        assert_eq!(whats("crates/store/src/a.rs", text).len(), 0);
    }

    #[test]
    fn a_missing_or_different_clippy_config_is_found() {
        let tree = Tree::of([
            ("crates/resp/Cargo.toml", ""),
            ("crates/resp/clippy.toml", "a"),
            ("crates/store/Cargo.toml", ""),
            ("crates/store/clippy.toml", "b"),
            ("crates/placement/Cargo.toml", ""),
        ]);
        assert_eq!(clippy_configs(&tree).len(), 2);
    }
}
