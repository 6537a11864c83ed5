//! Tests a session against in-memory nodes, which answer `MOVED` for slots they do not serve.

use std::collections::BTreeMap;

use resp::{Limits, Parsed, RequestParser, skip_reply};

use super::*;
use crate::names;

/// Two nodes; the test can change which one serves a slot.
struct World {
    session: Session,
    /// The first node serves the slots below this number.
    border: u16,
    /// Commands received by each node, one per line.
    heard: [Vec<String>; 2],
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    /// A node that does not answer now.
    silent: Option<usize>,
    waiting: [Vec<Vec<u8>>; 2],
}

fn address(node: usize) -> Address {
    Address::plain("10.0.0.1", 7000 + node as u16)
}

impl World {
    fn new() -> World {
        World {
            session: Session::new(&address(0), None),
            border: 8192,
            heard: Default::default(),
            values: BTreeMap::new(),
            silent: None,
            waiting: Default::default(),
        }
    }

    /// Sends these commands and returns the answers, once nothing is in flight.
    fn say(&mut self, commands: &[&str]) -> Vec<String> {
        let mut bytes = Vec::new();
        for command in commands {
            let args: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
            resp::encode_command(&mut bytes, &args);
        }
        self.session.push(&bytes).unwrap();
        self.settle();
        self.answers()
    }

    fn answers(&mut self) -> Vec<String> {
        let output = std::mem::take(self.session.output());
        let mut answers = Vec::new();
        let mut at = 0;
        while let Some(end) = skip_reply(&output, at).unwrap() {
            answers.push(String::from_utf8_lossy(&output[at..end]).replace("\r\n", " "));
            at = end;
        }
        answers
    }

    fn settle(&mut self) {
        loop {
            while self.session.next_to_connect().is_some() {}
            let mut quiet = true;
            for node in 0..2 {
                if node < self.session.nodes.count() {
                    let bytes = self.session.take_outgoing(node);
                    self.waiting[node].extend(commands(&bytes));
                }
                if self.silent == Some(node) || self.waiting[node].is_empty() {
                    continue;
                }
                quiet = false;
                let command = self.waiting[node].remove(0);
                let reply = self.reply(node, &command);
                self.session.on_reply(node, reply.as_bytes()).unwrap();
            }
            if quiet {
                return;
            }
        }
    }

    fn reply(&mut self, node: usize, command: &[u8]) -> String {
        let text = String::from_utf8_lossy(command).into_owned();
        let words: Vec<&str> = text.split(' ').collect();
        self.heard[node].push(text.clone());
        let key = match words[0] {
            "GET" | "SET" | "WATCH" => Some(words[1]),
            _ => None,
        };
        if let Some(slot) = key.map(|key| Slot::of(key.as_bytes()).number())
            && (slot < self.border) != (node == 0)
        {
            return format!("-MOVED {slot} {}\r\n", address(1 - node));
        }
        match words.as_slice() {
            ["CLUSTER", "NODES"] => self.nodes(),
            ["CLIENT", "LIST"] => {
                let line = format!("id=7 addr=x name=fleet:{node}:3 cmd=get\n");
                format!("${}\r\n{line}\r\n", line.len())
            }
            ["MULTI"] => "+OK\r\n".to_owned(),
            ["EXEC"] => "*0\r\n".to_owned(),
            ["DBSIZE"] => format!(":{}\r\n", node + 1),
            ["SET", key, value] => {
                self.values.insert(key.as_bytes().to_vec(), value.as_bytes().to_vec());
                "+OK\r\n".to_owned()
            }
            ["GET", key] => match self.values.get(key.as_bytes()) {
                Some(value) => {
                    format!("${}\r\n{}\r\n", value.len(), String::from_utf8_lossy(value))
                }
                None => "$-1\r\n".to_owned(),
            },
            _ => "+OK\r\n".to_owned(),
        }
    }

    fn nodes(&self) -> String {
        let line = |node: usize, first: u16, last: u16| {
            format!("id{node} {}@1 master - 0 0 1 connected {first}-{last}\n", address(node))
        };
        let text = line(0, 0, self.border - 1) + &line(1, self.border, 16383);
        format!("${}\r\n{text}\r\n", text.len())
    }

    fn heard_about(&self, node: usize, word: &str) -> Vec<&str> {
        let about = |line: &&String| line.contains(word);
        self.heard[node].iter().filter(about).map(String::as_str).collect()
    }
}

fn commands(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    let (mut parser, mut spans, mut at) = (RequestParser::default(), Vec::new(), 0);
    let mut commands = Vec::new();
    while at < bytes.len() {
        spans.clear();
        let parsed = parser.next(&mut bytes, at, &Limits::FULL, &mut spans).unwrap();
        let Parsed::Request { end, .. } = parsed else { panic!("incomplete command") };
        let words: Vec<&[u8]> = spans.iter().map(|span| span.of(&bytes)).collect();
        commands.push(words.join(&b' '));
        at = end;
    }
    commands
}

/// Keys of a slot below 8192, and of one above.
const LOW: &str = "b";
const HIGH: &str = "a";

#[test]
fn commands_go_where_their_slots_are_and_answers_keep_their_order() {
    assert!(Slot::of(LOW.as_bytes()).number() < 8192 && Slot::of(HIGH.as_bytes()).number() >= 8192);
    let mut world = World::new();
    let commands = [&format!("SET {HIGH} 1"), &format!("SET {LOW} 2"), &format!("GET {HIGH}")];
    let commands = commands.map(String::as_str);
    assert_eq!(world.say(&commands), ["+OK ", "+OK ", "$1 1 "]);
    assert_eq!(world.heard_about(0, "SET"), [format!("SET {LOW} 2")]);
    assert_eq!(world.heard_about(1, "SET"), [format!("SET {HIGH} 1")]);
}

#[test]
fn who_is_told_moved_goes_there_and_nothing_overtakes_it() {
    let mut world = World::new();
    world.say(&["PING"]);
    let key = (0..).map(|number| format!("k{number}"));
    let mut key = key.filter(|key| (4096..8192).contains(&Slot::of(key.as_bytes()).number()));
    let key = key.next().unwrap();
    world.border = 4096;
    let commands: Vec<String> = (0..5).map(|number| format!("SET {key} {number}")).collect();
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    assert_eq!(world.say(&commands), ["+OK "; 5]);
    assert_eq!(world.values[key.as_bytes()], b"4");
    // The session learns from the first MOVED: the next command goes to the right node.
    world.heard = Default::default();
    assert_eq!(world.say(&[&format!("GET {key}")]), ["$1 4 "]);
    assert_eq!(world.heard_about(0, "GET").len(), 0);
}

#[test]
fn a_transaction_is_sent_in_one_piece_and_goes_after_its_slot() {
    let mut world = World::new();
    world.say(&["PING"]);
    world.border = 1;
    let set = format!("SET {LOW} 1");
    let answers = world.say(&["MULTI", &set, "EXEC"]);
    assert_eq!(answers.len(), 3);
    assert_eq!(answers[1], "+OK ");
    assert_eq!(world.values[LOW.as_bytes()], b"1");
}

#[test]
fn a_watch_does_not_outlive_a_move() {
    let mut world = World::new();
    assert_eq!(world.say(&[&format!("WATCH {LOW}")]), ["+OK "]);
    world.border = 1;
    let set = format!("SET {LOW} 1");
    assert_eq!(world.say(&["MULTI", &set, "EXEC"]), ["+OK ", "+QUEUED ", "*-1 "]);
    assert!(world.values.is_empty());
    // The next attempt is made where the key is now.
    assert_eq!(world.say(&[&format!("WATCH {LOW}")]), ["+OK "]);
    assert_eq!(world.say(&["MULTI", &set, "EXEC"])[2], "*0 ");
    assert_eq!(world.values[LOW.as_bytes()], b"1");
}

#[test]
fn a_name_is_given_to_every_connection_before_anything_else_is_said() {
    let mut world = World::new();
    world.silent = Some(1);
    assert!(world.say(&["CLIENT SETNAME fleet:x:0", "GET server.config.epoch"]).is_empty());
    assert!(world.heard_about(0, "GET").is_empty(), "not all connections have their name");
    world.silent = None;
    world.settle();
    assert_eq!(world.answers(), ["+OK ", "$-1 "]);
}

#[test]
fn a_connection_made_late_looks_at_the_epoch_before_it_takes_commands() {
    let mut world = World::new();
    world.border = 16383; // So far the second node serves almost nothing.
    let epoch = String::from_utf8(names::in_cluster(b"server.config.epoch").unwrap()).unwrap();
    world.say(&[&format!("SET {epoch} 3"), "CLIENT SETNAME fleet:x:3"]);
    world.session.nodes.lose(1, "for the test");
    world.values.insert(epoch.clone().into_bytes(), b"4".to_vec());
    world.heard = Default::default();
    world.border = 1;
    // The fleet has a newer map than the name says: the command waits.
    assert!(world.say(&[&format!("SET {LOW} 1")]).is_empty());
    assert_eq!(world.heard_about(1, "SETNAME"), ["CLIENT SETNAME fleet:x:0"]);
    assert!(world.heard_about(1, &format!("SET {LOW}")).is_empty());
    // It waits until the user of the session has learnt of that map.
    world.border = 16383;
    world.values.insert(epoch.into_bytes(), b"3".to_vec());
    world.session.nodes.rename(b"fleet:x:4");
    world.border = 1;
    world.session.go_on();
    world.settle();
    assert_eq!(world.answers(), ["+OK "]);
}

#[test]
fn questions_to_the_whole_are_asked_everywhere() {
    let mut world = World::new();
    assert_eq!(world.say(&["DBSIZE"]), [":3 "]);
    let list = world.say(&["CLIENT LIST"]).remove(0);
    let of_first = names::connections(&list)[0].client_id;
    assert_eq!(of_first, 7);
    let second = list.lines().nth(1).unwrap();
    let id = second.strip_prefix("id=").unwrap().split(' ').next().unwrap();
    world.say(&[&format!("CLIENT KILL ID {id}")]);
    assert_eq!(world.heard_about(1, "KILL"), ["CLIENT KILL ID 7"]);
    assert!(world.heard_about(0, "KILL").is_empty());
}

#[test]
fn a_scan_goes_from_node_to_node_by_slots() {
    let mut answer = Vec::new();
    let keys = [LOW, HIGH];
    answer.extend_from_slice(b"*2\r\n$1\r\n0\r\n*2\r\n");
    keys.iter().for_each(|key| answer.extend_from_slice(format!("$1\r\n{key}\r\n").as_bytes()));
    let slot = |number| Slot::new(number).unwrap();
    // The node has both keys, but the scan returns the higher one when it reaches that key's slot.
    let page = answers::scanned(&answer, (slot(0), slot(8191)));
    let next = parcel::cursor_at(slot(8192)).to_string();
    let expected = format!("*2\r\n${}\r\n{next}\r\n*1\r\n$1\r\n{LOW}\r\n", next.len());
    assert_eq!(page, expected.as_bytes());
    let page = answers::scanned(&answer, (slot(8192), slot(16383)));
    assert_eq!(page, format!("*2\r\n$1\r\n0\r\n*1\r\n$1\r\n{HIGH}\r\n").as_bytes());
}
