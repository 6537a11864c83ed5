//! COMMAND INFO of every command that both servers have: clients route and check by it.
use e2e::{Client, Server};
use resp::Value;

use crate::ours;

/// The position of each part in an entry, and its name in messages about differences.
const PARTS: [(usize, &str); 7] = [
    (0, "name"),
    (1, "arity"),
    (2, "flags"),
    (3, "first key"),
    (4, "last key"),
    (5, "step"),
    (6, "categories"),
];

/// Parts that differ from Redis 7.0 as they do in later versions: a command has got an option.
const LATER: [(&str, &str); 2] = [("zrank", "arity"), ("zrevrank", "arity")];

#[test]
fn command_info_is_the_same_for_every_command_both_have() {
    let (redis, node) = (Server::redis(), ours());
    let (mut theirs, mut ours) = (redis.client(), node.client());
    let mut differences = Vec::new();
    let mut compared = 0;
    for name in names(&mut ours) {
        let (Some(theirs), Some(ours)) = (entry(&mut theirs, &name), entry(&mut ours, &name))
        else {
            continue;
        };
        compared += 1;
        for (index, part) in PARTS {
            let (theirs, ours) = (sorted(&theirs[index]), sorted(&ours[index]));
            if theirs != ours && !LATER.contains(&(name.as_str(), part)) {
                differences.push(format!("{name}: {part}: theirs {theirs:?}, ours {ours:?}"));
            }
        }
    }
    assert!(compared > 122, "only {compared} commands to compare");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn names(client: &mut Client) -> Vec<String> {
    let Value::Array(names) = client.run("COMMAND LIST") else { panic!("COMMAND LIST lists") };
    let text = |name: &Value| String::from_utf8_lossy(name.text().unwrap_or_default()).into_owned();
    let mut names: Vec<String> = names.iter().map(text).collect();
    names.sort();
    names
}

fn entry(client: &mut Client, name: &str) -> Option<Vec<Value>> {
    let answer = client.run(&format!("COMMAND INFO {name}"));
    let Value::Array(mut entries) = answer else { return None };
    if let Some(Value::Array(parts)) = entries.pop() { Some(parts) } else { None }
}

/// Returns the items sorted: flags and categories are sets.
fn sorted(part: &Value) -> Vec<String> {
    let (Value::Array(items) | Value::Set(items)) = part else { return vec![part.to_string()] };
    let mut items: Vec<String> = items.iter().map(Value::to_string).collect();
    items.sort();
    items
}
