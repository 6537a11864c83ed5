//! Tests of parsing the syntax lines of commands.

use super::*;
use crate::spec::{BLANK, KeySpec, Table};

/// Formats the parsed arguments with their kinds.
fn shown(syntax: &'static str) -> String {
    let spec = Spec { name: "x", full_name: "x", syntax, keys: KeySpec::FIRST, ..BLANK };
    show(&arguments(&spec), " ")
}

fn show(arguments: &[Argument], between: &str) -> String {
    let one = |argument: &Argument| {
        let token = match (&argument.shape, &argument.token) {
            (Shape::Token, _) | (_, None) => String::new(),
            (_, Some(token)) => format!("{token}="),
        };
        let body = match &argument.shape {
            Shape::Value if argument.key_spec_index.is_some() => format!("{}!", argument.name),
            Shape::Value => argument.name.clone(),
            Shape::Token => argument.token.clone().unwrap_or_default(),
            Shape::OneOf(inner) => format!("<{}>", show(inner, "|")),
            Shape::Block(inner) => format!("({})", show(inner, " ")),
        };
        let optional = if argument.optional { "?" } else { "" };
        let multiple = if argument.multiple { "+" } else { "" };
        format!("{token}{body}{optional}{multiple}")
    };
    arguments.iter().map(one).collect::<Vec<_>>().join(between)
}

#[test]
fn words_are_values_tokens_choices_and_repetitions() {
    assert_eq!(shown(""), "");
    assert_eq!(shown("key"), "key!");
    assert_eq!(shown("key [key ...]"), "key!+");
    assert_eq!(shown("key..."), "key!+");
    assert_eq!(shown("[GET type offset]... <A | B>..."), "(GET=type offset)?+ <A|B>+");
    assert_eq!(shown("key value [key value ...]"), "(key! value)+");
    assert_eq!(
        shown("key value [NX | XX] [GET] [EX seconds | KEEPTTL]"),
        "key! value <NX|XX>? GET? <EX=seconds|KEEPTTL>?"
    );
    assert_eq!(shown("timeout [WRITE | ALL]"), "timeout <WRITE|ALL>?");
    assert_eq!(shown("<ON | OFF>"), "<ON|OFF>");
    assert_eq!(shown("[TYPE <A | B>] [ID id [id ...]]"), "TYPE=<A|B>? ID=id?+");
    assert_eq!(shown("key [start end [BYTE | BIT]]"), "key! (start end <BYTE|BIT>?)?");
    assert_eq!(
        shown("[a [AUTH user password] [SETNAME name]]"),
        "(a (AUTH=user password)? SETNAME=name?)?"
    );
}

#[test]
fn the_syntax_of_every_command_can_be_read_and_names_what_its_arity_wants() {
    for spec in Table::default().specs() {
        let arguments = arguments(spec);
        let names = spec.full_name.split('|').count();
        let required = arguments.iter().filter(|argument| !argument.optional).count();
        let least = spec.arity.unsigned_abs() as usize - names;
        if !spec.subcommands.is_empty() {
            continue;
        }
        assert!(
            required <= least && (least == 0 || !arguments.is_empty()),
            "{}: {} for an arity of {}",
            spec.full_name,
            spec.syntax,
            spec.arity
        );
    }
}
