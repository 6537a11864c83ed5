//! Tests that the table is sorted, and that it finds the keys in every form of command.

use super::*;

fn keys(line: &str) -> Result<Vec<&str>, BadKeys> {
    let args: Vec<&str> = line.split(' ').collect();
    let command = Command::find(args[0].as_bytes()).unwrap();
    let mut places: Vec<usize> = command.key_places(&args)?.iter().collect();
    places.sort_unstable();
    Ok(places.into_iter().map(|place| args[place]).collect())
}

#[test]
fn the_table_is_sorted_in_lower_case_and_without_doubles() {
    for pair in table::TABLE.windows(2) {
        assert!(pair[0].name < pair[1].name, "{} {}", pair[0].name, pair[1].name);
    }
    for command in table::TABLE {
        assert_eq!(command.name, command.name.to_lowercase());
        assert!(command.name.len() <= NAME_BYTES_MAX);
        assert_eq!(Command::find(command.name.to_uppercase().as_bytes()), Some(command));
    }
    assert_eq!(Command::find(b"gett"), None);
    assert_eq!(Command::find(&[b'x'; 100]), None);
}

#[test]
fn keys_are_found_wherever_they_stand() {
    for (line, expected) in [
        ("GET k", vec!["k"]),
        ("MGET a b c", vec!["a", "b", "c"]),
        ("MSET a 1 b 2", vec!["a", "b"]),
        ("BLPOP a b 0", vec!["a", "b"]),
        ("EVAL script 2 a b arg", vec!["a", "b"]),
        ("EVAL script 0 arg", vec![]),
        ("ZUNIONSTORE dest 2 a b WEIGHTS 1 2", vec!["dest", "a", "b"]),
        ("XREAD COUNT 2 STREAMS a b 0 0", vec!["a", "b"]),
        ("XREADGROUP GROUP g c STREAMS a >", vec!["a"]),
        ("SORT k BY w_* GET # STORE dest", vec!["k", "dest"]),
        ("SORT k", vec!["k"]),
        ("GEORADIUS k 1 2 3 km STOREDIST dest", vec!["k", "dest"]),
        ("OBJECT ENCODING k", vec!["k"]),
        ("BITOP AND dest a b", vec!["dest", "a", "b"]),
        ("LMOVE a b LEFT RIGHT", vec!["a", "b"]),
        ("PING", vec![]),
    ] {
        assert_eq!(keys(line).as_deref(), Ok(expected.as_slice()), "{line}");
    }
}

#[test]
fn keys_that_cannot_be_found_are_an_error() {
    for (line, expected) in [
        ("GET", BadKeys::TooFewArguments),
        ("MGET", BadKeys::TooFewArguments),
        ("MSET a 1 b", BadKeys::TooFewArguments),
        ("BLPOP 0", BadKeys::TooFewArguments),
        ("EVAL script 3 a b", BadKeys::Count),
        ("EVAL script -1 a", BadKeys::Count),
        ("EVAL script x a", BadKeys::Count),
        ("EVAL script", BadKeys::TooFewArguments),
        ("XREAD COUNT 2", BadKeys::Streams),
        ("XREAD STREAMS a b 0", BadKeys::Streams),
        ("OBJECT HELP", BadKeys::TooFewArguments),
    ] {
        assert_eq!(keys(line), Err(expected), "{line}");
    }
}

#[test]
fn xread_waits_only_if_told_to() {
    let waits = |line: &str| {
        let args: Vec<&str> = line.split(' ').collect();
        Command::find(args[0].as_bytes()).unwrap().may_wait(&args)
    };
    assert!(waits("XREAD BLOCK 0 STREAMS a 0"));
    assert!(!waits("XREAD STREAMS a 0"));
    assert!(waits("BLPOP a 0"));
    assert!(!waits("LPOP a"));
}
