//! Parses the syntax line of a command into arguments:
//!
//! ~~~text
//! key value [NX | XX] [GET] [EX seconds | KEEPTTL]
//! key [key ...]
//! ~~~
//!
//! Words in lower case are values, words in capitals are tokens to be typed literally, and a token right before a
//! value belongs to it. Brackets enclose optional parts, `<` and `>` enclose groups, `|` separates choices. A
//! repeatable part has `...` right behind it, or is repeated in brackets together with `...`.

use crate::spec::Spec;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Argument {
    pub name: String,
    pub shape: Shape,
    pub token: Option<String>,
    pub optional: bool,
    pub multiple: bool,
    /// The index of the command's run of keys that it belongs to.
    pub key_spec_index: Option<i64>,
    pub is_float: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    Value,
    Token,
    OneOf(Vec<Argument>),
    Block(Vec<Argument>),
}

impl Shape {
    pub(super) fn inner(&self) -> Option<&[Argument]> {
        match self {
            Shape::Value | Shape::Token => None,
            Shape::OneOf(inner) | Shape::Block(inner) => Some(inner),
        }
    }
}

/// Returns the arguments of a command.
pub(super) fn arguments(spec: &Spec) -> Vec<Argument> {
    let words = words(spec.syntax);
    let mut rest = words.as_slice();
    let mut arguments = sequence(&mut rest);
    assert!(rest.is_empty(), "the syntax of {} closes what it never opened", spec.full_name);
    mark_keys(&mut arguments, spec);
    arguments
}

/// Marks the values that are keys: those with the name of a key, if the command has keys at all.
fn mark_keys(arguments: &mut [Argument], spec: &Spec) {
    const KEY_NAMES: [&str; 8] =
        ["key", "key1", "key2", "source", "destination", "destkey", "newkey", "shardchannel"];
    if !spec.has_keys() {
        return;
    }
    let mut found = 0;
    for argument in arguments {
        if argument.shape == Shape::Value && KEY_NAMES.contains(&argument.name.as_str()) {
            argument.key_spec_index = Some(found);
            // If the first key's access differs from the others', they are two runs.
            found +=
                i64::from(super::facts::key_access(spec, 0) != super::facts::key_access(spec, 1));
        }
        argument.is_float = spec.name.ends_with("float");
        match &mut argument.shape {
            Shape::OneOf(inner) | Shape::Block(inner) => mark_keys(inner, spec),
            Shape::Value | Shape::Token => {}
        }
    }
}

fn words(syntax: &str) -> Vec<String> {
    let mut spaced = String::new();
    // Dots attached to the part they repeat, as opposed to those in brackets of their own.
    let syntax = [">...", "]..."].iter().fold(syntax.to_owned(), |text, ending| {
        text.replace(ending, &format!("{} +", &ending[..1]))
    });
    for letter in syntax.chars() {
        match letter {
            '[' | ']' | '<' | '>' | '|' => spaced.extend([' ', letter, ' ']),
            _ => spaced.push(letter),
        }
    }
    let mut words = Vec::new();
    for word in spaced.split_ascii_whitespace() {
        match word.strip_suffix("...").filter(|word| !word.is_empty()) {
            Some(word) => words.extend([word.to_owned(), "+".to_owned()]),
            None => words.push(word.to_owned()),
        }
    }
    words
}

/// Parses up to a closing bracket, a `|` or the end.
fn sequence(rest: &mut &[String]) -> Vec<Argument> {
    let mut arguments: Vec<Argument> = Vec::new();
    while let Some((word, behind)) = rest.split_first() {
        match word.as_str() {
            "]" | ">" | "|" | "..." => break,
            "+" => {
                *rest = behind;
                arguments.last_mut().expect("something stands before the dots").multiple = true;
            }
            "[" => {
                *rest = behind;
                let inner = choices(rest);
                match close(rest) {
                    GroupEnd::Repeats => repeat(&mut arguments, &inner),
                    GroupEnd::Plainly => arguments.push(Argument { optional: true, ..inner }),
                }
            }
            "<" => {
                *rest = behind;
                let inner = choices(rest);
                close(rest);
                push(&mut arguments, inner);
            }
            _ => {
                *rest = behind;
                let argument = one_word(word);
                push(&mut arguments, argument);
            }
        }
    }
    arguments
}

fn one_word(word: &str) -> Argument {
    let is_token = !word.contains(|letter: char| letter.is_ascii_lowercase());
    let blank = blank(word.to_ascii_lowercase(), Shape::Value);
    if is_token {
        return Argument { shape: Shape::Token, token: Some(word.to_owned()), ..blank };
    }
    blank
}

/// Appends an argument. A token right before a value or a group becomes its prefix.
fn push(arguments: &mut Vec<Argument>, argument: Argument) {
    let takes = argument.shape != Shape::Token;
    match arguments.pop_if(|last| takes && last.shape == Shape::Token && !last.optional) {
        Some(token) => arguments.push(Argument { token: token.token, ..argument }),
        None => arguments.push(argument),
    }
}

/// Parses one sequence, or several separated by `|`, as one argument.
fn choices(rest: &mut &[String]) -> Argument {
    let mut all = vec![as_one(sequence(rest))];
    while rest.first().is_some_and(|word| word == "|") {
        *rest = &rest[1..];
        all.push(as_one(sequence(rest)));
    }
    if all.len() == 1 {
        return all.remove(0);
    }
    blank("choice".to_owned(), Shape::OneOf(all))
}

fn as_one(mut arguments: Vec<Argument>) -> Argument {
    if arguments.len() == 1 {
        return arguments.remove(0);
    }
    let name = arguments.first().map_or_else(String::new, |first| format!("{}-block", first.name));
    blank(name, Shape::Block(arguments))
}

fn blank(name: String, shape: Shape) -> Argument {
    Argument {
        name,
        shape,
        token: None,
        optional: false,
        multiple: false,
        key_spec_index: None,
        is_float: false,
    }
}

enum GroupEnd {
    Plainly,
    /// Closed with `...` before the bracket: the inside repeats the arguments before it.
    Repeats,
}

fn close(rest: &mut &[String]) -> GroupEnd {
    let repeats = rest.first().is_some_and(|word| word == "...");
    *rest = &rest[usize::from(repeats)..];
    assert!(
        rest.first().is_some_and(|word| word == "]" || word == ">"),
        "a syntax closes its brackets"
    );
    *rest = &rest[1..];
    if repeats { GroupEnd::Repeats } else { GroupEnd::Plainly }
}

/// Makes the last arguments, which `again` repeats, one repeatable argument.
fn repeat(arguments: &mut Vec<Argument>, again: &Argument) {
    let count = match &again.shape {
        Shape::Block(inner) => inner.len(),
        Shape::Value | Shape::Token | Shape::OneOf(_) => 1,
    };
    let repeated = arguments.split_off(arguments.len().saturating_sub(count));
    arguments.push(Argument { multiple: true, ..as_one(repeated) });
}

#[cfg(test)]
mod tests;
