//! Malformed requests get exactly the answers that Redis gives: `requests.txt` holds both, and each
//! case is played to Redis too, so that the table itself cannot be wrong.
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::time::Duration;

use e2e::{Client, Server};

const TABLE: &str = include_str!("requests.txt");
const CASES_MIN: usize = 100;
const CLOSES_WITHIN: Duration = Duration::from_secs(2);
const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

/// One block of the table.
struct Case {
    /// The text of the block in the table.
    shown: String,
    sent: Vec<u8>,
    answer: Vec<u8>,
}

#[test]
fn redis_gives_the_answers_in_the_table() {
    check(&Server::redis());
}

#[test]
fn our_node_gives_the_answers_in_the_table() {
    check(&Server::node_with(&["--enable-debug-command", "yes"]));
}

#[test]
fn a_line_that_never_ends_is_refused_as_redis_does() {
    let endless = [&b""[..], b"*", b"*1\r\n$"].map(|start| [start, &[b'1'; 70_000]].concat());
    let (redis, node) = (Server::redis(), Server::node());
    for sent in endless {
        let [theirs, ours] = [&redis, &node].map(|server| answer(server, &sent));
        assert!(theirs.starts_with(b"-ERR Protocol error: too big"), "{}", theirs.escape_ascii());
        assert_eq!(ours.escape_ascii().to_string(), theirs.escape_ascii().to_string());
    }
}

fn check(server: &Server) {
    let cases = cases();
    assert!(cases.len() >= CASES_MIN, "only {} cases", cases.len());
    let mut wrong = String::new();
    for case in cases {
        server.client().run("FLUSHALL");
        let answer = answer(server, &[&case.sent, PING].concat());
        if answer != case.answer {
            let _ = write!(wrong, "{}but got {}\n\n", case.shown, answer.escape_ascii());
        }
    }
    assert!(wrong.is_empty(), "wrong answers:\n{wrong}");
}

/// Returns everything received until the server closes the connection, as it does once we stop sending.
fn answer(server: &Server, sent: &[u8]) -> Vec<u8> {
    let client: Client = server.client();
    let mut stream = client.stream();
    // The server may close the connection while we are still sending.
    let _ = stream.write_all(sent);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    stream.set_read_timeout(Some(CLOSES_WITHIN)).expect("a timeout can be set");
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer)
        && error.kind() == std::io::ErrorKind::WouldBlock
    {
        answer.extend_from_slice(b"(and the connection stays open)");
    }
    answer
}

fn cases() -> Vec<Case> {
    let blocks = TABLE.split("\n\n").skip(1);
    blocks.map(|block| case(block.trim_end())).collect()
}

fn case(block: &str) -> Case {
    let mut case = Case { shown: format!("{block}\n"), sent: Vec::new(), answer: Vec::new() };
    for line in block.lines() {
        if let Some(raw) = line.strip_prefix("raw> ") {
            case.sent.extend(unescaped(raw));
        } else if let Some(command) = line.strip_prefix("> ") {
            let words = words(command);
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            resp::encode_command(&mut case.sent, &words);
        } else {
            let answer = line.strip_prefix('<').expect("a line is raw>, > or <");
            case.answer.extend(unescaped(answer.strip_prefix(' ').unwrap_or(answer)));
            case.answer.extend(b"\r\n");
        }
    }
    case
}

/// Splits a line into words at spaces; a word with spaces or escapes is in quotes.
fn words(line: &str) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').expect("a quote is closed"),
            None => rest.split_once(' ').map_or((rest, ""), |(word, after)| (word, after)),
        };
        words.push(unescaped(word));
        rest = after.trim_start();
    }
    words
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let plain = match byte {
            b'\\' => match rest.next().expect("something follows a backslash") {
                b'r' => b'\r',
                b'n' => b'\n',
                b'x' => {
                    let digits = [rest.next(), rest.next()].map(|digit| digit.expect("two digits"));
                    let digits = std::str::from_utf8(&digits).expect("hexadecimal digits");
                    u8::from_str_radix(digits, 16).expect("hexadecimal digits")
                }
                other => other,
            },
            other => other,
        };
        bytes.push(plain);
    }
    bytes
}
