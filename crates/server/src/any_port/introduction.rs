//! The state of a client's connection that every node must know before it serves the client: credentials,
//! protocol, name. The any-port repeats it to each node it connects to.

use std::collections::BTreeMap;
use std::sync::Arc;

use commands::{Args, Spec};
use resp::encode_command;

/// One property of a connection. Nodes get them in this order: a node accepts HELLO only after AUTH.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Property {
    Credentials,
    Protocol,
    Name,
    LibraryName,
    LibraryVersion,
    Database,
    NoTouch,
    NoEvict,
}

/// A property and the command that sets it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Statement {
    property: Property,
    command: Arc<Vec<u8>>,
}

impl Statement {
    fn new(property: Property, words: &[&[u8]]) -> Statement {
        let mut command = Vec::new();
        encode_command(&mut command, words);
        Statement { property, command: Arc::new(command) }
    }

    pub(super) fn command(&self) -> &Arc<Vec<u8>> {
        &self.command
    }
}

/// The last statement of each kind that a node has accepted.
#[derive(Default)]
pub(super) struct Introduction {
    statements: BTreeMap<Property, Arc<Vec<u8>>>,
}

impl Introduction {
    /// Keeps the client's statements, once a node has accepted them.
    pub(super) fn learn(&mut self, statements: Vec<Statement>) {
        for Statement { property, command } in statements {
            self.statements.insert(property, command);
        }
    }

    pub(super) fn forget(&mut self) {
        self.statements.clear();
    }

    /// Returns the commands for a node that does not know the client.
    pub(super) fn commands(&self) -> impl Iterator<Item = &Arc<Vec<u8>>> {
        self.statements.values()
    }

    /// Returns true if the client has authenticated.
    pub(super) fn has_credentials(&self) -> bool {
        self.statements.contains_key(&Property::Credentials)
    }
}

/// Parses a command that changes properties of its connection; returns `None` for any other command.
pub(super) fn statements(spec: &Spec, args: Args<'_>) -> Option<Vec<Statement>> {
    let words: Vec<&[u8]> = args.iter().collect();
    let one = |property| Some(vec![Statement::new(property, &words)]);
    match spec.full_name {
        "auth" => one(Property::Credentials),
        "hello" => Some(of_hello(&words)),
        "select" => one(Property::Database),
        "client|setname" => one(Property::Name),
        "client|setinfo" if words[2].eq_ignore_ascii_case(b"lib-ver") => {
            one(Property::LibraryVersion)
        }
        "client|setinfo" => one(Property::LibraryName),
        "client|no-touch" => one(Property::NoTouch),
        "client|no-evict" => one(Property::NoEvict),
        _ => None,
    }
}

/// Splits `HELLO [version [AUTH user password] [SETNAME name]]` into the commands it stands for.
fn of_hello(words: &[&[u8]]) -> Vec<Statement> {
    let mut statements = Vec::new();
    let Some(version) = words.get(1) else { return statements };
    statements.push(Statement::new(Property::Protocol, &[b"HELLO", version]));
    let mut at = 2;
    while at < words.len() {
        let option = words[at];
        match (words.get(at + 1), words.get(at + 2)) {
            (Some(user), Some(password)) if option.eq_ignore_ascii_case(b"auth") => {
                let words: [&[u8]; 3] = [b"AUTH", user, password];
                statements.push(Statement::new(Property::Credentials, &words));
                at += 3;
            }
            (Some(name), _) if option.eq_ignore_ascii_case(b"setname") => {
                let words: [&[u8]; 3] = [b"CLIENT", b"SETNAME", name];
                statements.push(Statement::new(Property::Name, &words));
                at += 2;
            }
            // A syntax error: the node refuses the command, and nothing is kept.
            _ => break,
        }
    }
    statements.sort_by_key(|statement| statement.property);
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_hello_line(line: &str) -> Introduction {
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        let mut introduction = Introduction::default();
        introduction.learn(of_hello(&words));
        introduction
    }

    fn describe(introduction: &Introduction) -> Vec<String> {
        let text = |command: &Arc<Vec<u8>>| {
            let text = String::from_utf8_lossy(command).into_owned();
            let words = text.split("\r\n").filter(|word| !word.starts_with(['*', '$']));
            words.collect::<Vec<_>>().join(" ").trim_end().to_owned()
        };
        introduction.commands().map(text).collect()
    }

    #[test]
    fn hello_is_taken_apart_and_repeated_in_an_order_that_nodes_accept() {
        let mut introduction = of_hello_line("HELLO 3 SETNAME me AUTH default secret");
        let said = ["AUTH default secret", "HELLO 3", "CLIENT SETNAME me"];
        assert_eq!(describe(&introduction), said);
        assert!(introduction.has_credentials());
        // Another HELLO changes the protocol and leaves the rest.
        introduction.learn(of_hello(&[b"HELLO", b"2"]));
        assert_eq!(
            describe(&introduction),
            ["AUTH default secret", "HELLO 2", "CLIENT SETNAME me"]
        );
        introduction.forget();
        assert!(describe(&introduction).is_empty());
    }

    #[test]
    fn a_bare_hello_says_nothing() {
        assert!(describe(&of_hello_line("HELLO")).is_empty());
        assert_eq!(describe(&of_hello_line("hello 3 auth x")), ["HELLO 3"]);
    }
}
