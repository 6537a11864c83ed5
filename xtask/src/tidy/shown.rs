//! docs/failures.md names, for every failure, the tests that prove its statement. A name that no
//! test has is a claim without proof.
use super::Finding;
use super::tree::Tree;

const PAGE: &str = "docs/failures.md";

/// Minimum number of words in a test's name; anything shorter in backticks is a setting or a command.
const NAME_WORDS_MIN: usize = 4;

pub(super) fn tests_that_are_none(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.file(PAGE) else { return vec![Finding::new(PAGE, "is missing")] };
    let rows = page.text.lines().enumerate().filter(|(_, line)| is_row(line));
    rows.flat_map(|(number, row)| {
        let place = format!("{PAGE}:{}", number + 1);
        let names = named(row);
        let nothing = names.is_empty().then(|| Finding::new(&place, "no test shows this failure"));
        let gone = names
            .into_iter()
            .filter(|name| !is_test(tree, name))
            .map(|name| Finding::new(&place, format!("there is no test `{name}`")));
        gone.chain(nothing).collect::<Vec<_>>()
    })
    .collect()
}

/// Returns whether the line is a row of the table: neither its head nor the line below.
fn is_row(line: &str) -> bool {
    line.starts_with("| ") && !line.starts_with("| failure ")
}

/// Returns the words in backticks in the last cell that look like names of tests.
fn named(row: &str) -> Vec<&str> {
    let cell = row.trim_end().trim_end_matches('|').rsplit('|').next().unwrap_or_default();
    let quoted = cell.split('`').skip(1).step_by(2);
    quoted.filter(|name| name.split('_').count() >= NAME_WORDS_MIN).collect()
}

fn is_test(tree: &Tree, name: &str) -> bool {
    let head = format!("fn {name}(");
    tree.rust().any(|file| {
        file.text.find(&head).is_some_and(|at| {
            let before = file.text[..at].lines().rev().map(str::trim);
            let mut of_it = before.take_while(|line| line.is_empty() || is_attribute(line));
            of_it.any(|line| line == concat!("#[", "test]"))
        })
    })
}

fn is_attribute(line: &str) -> bool {
    line.starts_with('#') || line.ends_with(']') || line.starts_with("//")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str = "#[test]\nfn a_node_that_dies_is_missed() {}\nfn not_a_test_at_all() {}\n";

    fn whats(page: &str) -> Vec<String> {
        let tree = Tree::of([(PAGE, page), ("crates/x/tests/y.rs", TEST)]);
        tests_that_are_none(&tree).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_test_that_is_there_is_enough() {
        let page = "| failure | shown by |\n|---|---|\n| death | `a_node_that_dies_is_missed` |\n";
        assert_eq!(whats(page), Vec::<String>::new());
    }

    #[test]
    fn a_name_that_no_test_has_is_found() {
        let page = "| death | `a_node_that_was_renamed` |\n| other | `not_a_test_at_all` |\n";
        let gone = "there is no test `a_node_that_was_renamed`";
        assert_eq!(whats(page), [gone, "there is no test `not_a_test_at_all`"]);
    }

    #[test]
    fn a_failure_that_no_test_shows_is_found() {
        assert_eq!(whats("| death | see `lease` |\n"), ["no test shows this failure"]);
    }
}
