//! Plays a sequence of steps to two servers, one step at a time, and stops where they differ.
//!
//! Each server has three connections: two that run commands, so that WATCH and CLIENT have another
//! client to deal with, and one that listens to channels.
use std::fmt;
use std::slice;
use std::time::{Duration, Instant};

use e2e::{Answer, Client, Server};
use resp::Value;

use crate::compare;

pub(crate) type Args = Vec<Vec<u8>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    Resp2,
    Resp3,
}

/// One of the three connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    First,
    Second,
    Listener,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// One command with one answer. Not for the listener, which may receive messages in between.
    Call { who: Who, args: Args },
    /// Commands with no answer or several: sent all at once, and read up to the answer to a PING.
    Burst { who: Who, commands: Vec<Args> },
    /// SCAN with these options from 0 until it is back at 0; each server has cursors of its own.
    ScanAll { options: Args },
    /// DUMP a key at each server and RESTORE it, under another name, at the other.
    Swap { from: Vec<u8>, to: Vec<u8> },
    /// QUIT, and a new connection.
    Quit { who: Who },
}

#[derive(Clone, Debug)]
pub(crate) struct Mismatch {
    /// Index of the step.
    pub(crate) at: usize,
    pub(crate) theirs: String,
    pub(crate) ours: String,
}

impl Mismatch {
    /// Returns the name of the command that was answered differently.
    pub(crate) fn command(&self, steps: &[Step]) -> String {
        let words = steps[self.at].to_string();
        words.split_whitespace().nth(1).unwrap_or_default().to_uppercase()
    }
}

/// Timeout for a message to the listener.
const MESSAGE_WITHIN: Duration = Duration::from_secs(3);
/// Time limit for both servers to remove expired keys.
const EXPIRED_WITHIN: Duration = Duration::from_secs(2);
const MARK: &[u8] = b"--mark--";

pub(crate) struct Lockstep {
    theirs: Side,
    ours: Side,
}

struct Side {
    server: Server,
    speaks: Speaks,
    clients: [Client; 3],
    helper: Client,
    /// Open transactions of First and Second.
    open: [Open; 2],
}

/// A transaction in progress.
#[derive(Default)]
struct Open {
    in_multi: bool,
    queued: Vec<Args>,
    /// True if one of the watched keys was missing when it was watched.
    watched_missing: bool,
}

/// The result of a step: go on while the two servers hold the same data.
#[derive(PartialEq, Eq)]
enum Flow {
    GoOn,
    /// The servers may legitimately differ from here on: the sequence ends.
    Parted,
}

impl Lockstep {
    pub(crate) fn new(theirs: Server, ours: Server, speaks: Speaks) -> Lockstep {
        Lockstep { theirs: Side::new(theirs, speaks), ours: Side::new(ours, speaks) }
    }

    /// Plays a whole sequence from an empty start.
    pub(crate) fn play(&mut self, steps: &[Step]) -> Result<(), Mismatch> {
        self.theirs.begin();
        self.ours.begin();
        let mut is_listening = false;
        for (at, step) in steps.iter().enumerate() {
            let differs = |(theirs, ours)| Mismatch { at, theirs, ours };
            if self.step(step).map_err(differs)? == Flow::Parted {
                return Ok(());
            }
            is_listening |= matches!(step, Step::Burst { who: Who::Listener, .. });
            if is_listening {
                self.messages().map_err(differs)?;
            }
        }
        let at = steps.len().saturating_sub(1);
        self.end(is_listening).map_err(|(theirs, ours)| Mismatch { at, theirs, ours })
    }

    /// Compares the servers at the end of a sequence: equal content, and no further messages.
    fn end(&mut self, is_listening: bool) -> Result<(), (String, String)> {
        let digest: Args = vec![b"DEBUG".to_vec(), b"DIGEST".to_vec()];
        // Both count an expired key until they remove it, each at its own time.
        let until = Instant::now() + EXPIRED_WITHIN;
        while let Err(differ) = self.same_help(&digest, &digest) {
            if Instant::now() > until {
                return Err(differ);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        if !is_listening {
            return Ok(());
        }
        let more = self.ours.burst(Who::Listener, &[]);
        verdict(more.is_empty(), || ("no further message".into(), shown_all(&more)))
    }

    fn step(&mut self, step: &Step) -> Result<Flow, (String, String)> {
        match step {
            Step::Call { who, args } => return self.call(*who, args),
            Step::Burst { who, commands } => {
                self.theirs.forget(*who);
                let theirs = self.theirs.burst(*who, commands);
                let ours = self.ours.burst(*who, commands);
                let same = compare::same_burst(commands, &theirs, &ours);
                verdict(same, || (shown_all(&theirs), shown_all(&ours)))?;
            }
            Step::ScanAll { options } => {
                let theirs = self.theirs.scan_all(options);
                let ours = self.ours.scan_all(options);
                verdict(theirs == ours, || (format!("{theirs:?}"), format!("{ours:?}")))?;
            }
            Step::Swap { from, to } => self.swap(from, to)?,
            Step::Quit { who } => {
                self.theirs.forget(*who);
                let theirs = self.theirs.quit(*who);
                let ours = self.ours.quit(*who);
                verdict(theirs == ours, || (theirs, ours))?;
            }
        }
        Ok(Flow::GoOn)
    }

    fn call(&mut self, who: Who, args: &Args) -> Result<Flow, (String, String)> {
        if self.theirs.open[who as usize].in_multi && compare::is_config_set(args) {
            return Ok(Flow::GoOn); // Not played: see `is_config_set`.
        }
        let theirs = self.theirs.call(who, args);
        let ours = self.ours.call(who, args);
        let (Ok(theirs), Ok(ours)) = (&theirs, &ours) else {
            let both_gone = theirs.is_err() && ours.is_err();
            verdict(both_gone, || (shown_or_gone(&theirs), shown_or_gone(&ours)))?;
            return Ok(Flow::GoOn);
        };
        let open = self.theirs.track(who, args, theirs);
        if open.watched_missing && compare::stopped_once_too_often(theirs, ours) {
            return Ok(Flow::Parted);
        }
        let same = compare::same(args, &open.queued, theirs, ours);
        verdict(same, || (shown_all(slice::from_ref(theirs)), shown_all(slice::from_ref(ours))))?;
        Ok(Flow::GoOn)
    }

    fn swap(&mut self, from: &[u8], to: &[u8]) -> Result<(), (String, String)> {
        let dump: Args = vec![b"DUMP".to_vec(), from.to_vec()];
        let get: Args = vec![b"GET".to_vec(), to.to_vec()];
        let restore = |dump: &[u8]| -> Args {
            [b"RESTORE", to, b"0", dump, b"REPLACE"].map(<[u8]>::to_vec).to_vec()
        };
        let (theirs, ours) = (self.theirs.help(&dump), self.ours.help(&dump));
        if let (Value::Bulk(theirs), Value::Bulk(ours)) = (&theirs, &ours) {
            self.same_help(&restore(ours), &restore(theirs))?;
            return self.same_help(&get, &get);
        }
        verdict(theirs == ours, || (theirs.to_string(), ours.to_string()))
    }

    fn same_help(&mut self, to_them: &Args, to_us: &Args) -> Result<(), (String, String)> {
        let (theirs, ours) = (self.theirs.help(to_them), self.ours.help(to_us));
        verdict(theirs == ours, || (theirs.to_string(), ours.to_string()))
    }

    /// Compares the messages that the last step sent to the listener. Redis determines how many to expect.
    fn messages(&mut self) -> Result<(), (String, String)> {
        let theirs = self.theirs.burst(Who::Listener, &[]);
        let mut ours = Vec::new();
        for _ in &theirs {
            let client = &mut self.ours.clients[Who::Listener as usize];
            match client.receive_within(MESSAGE_WITHIN) {
                Ok(Some(message)) => ours.push(message),
                Ok(None) | Err(_) => break,
            }
        }
        let same = compare::same_messages(&theirs, &ours);
        verdict(same, || (shown_all(&theirs), shown_all(&ours)))
    }
}

impl Side {
    fn new(server: Server, speaks: Speaks) -> Side {
        let clients = [(); 3].map(|()| server.client());
        let helper = server.client();
        Side { server, speaks, clients, helper, open: Default::default() }
    }

    /// Resets everything to the state of a new server, but faster than a restart.
    fn begin(&mut self) {
        for who in [Who::First, Who::Second, Who::Listener] {
            if !self.reset(who) {
                self.clients[who as usize] = self.server.client();
            }
            self.hello(who);
        }
        self.open = Default::default();
        for line in [
            "FLUSHALL",
            "CONFIG SET maxmemory-policy noeviction",
            "CONFIG SET slowlog-log-slower-than 10000",
        ] {
            self.clients[0].run(line);
        }
        self.clients[0].call(&["CONFIG", "SET", "notify-keyspace-events", ""]);
    }

    /// Resets the connection, and discards everything received before RESET's own answer. Returns whether it worked.
    fn reset(&mut self, who: Who) -> bool {
        let client = &mut self.clients[who as usize];
        if client.send(&["RESET"]).is_err() {
            return false;
        }
        while let Ok(answer) = client.receive() {
            if answer.raw == b"+RESET\r\n" {
                return true;
            }
            if matches!(answer.value, Value::Error(_)) {
                return false;
            }
        }
        false
    }

    fn hello(&mut self, who: Who) {
        if self.speaks == Speaks::Resp3 {
            self.clients[who as usize].run("HELLO 3");
        }
    }

    fn call(&mut self, who: Who, args: &Args) -> std::io::Result<Answer> {
        let client = &mut self.clients[who as usize];
        client.send(args)?;
        client.receive()
    }

    /// Runs a command on a connection of its own, outside of any transaction.
    fn help(&mut self, args: &Args) -> Value {
        self.helper.call(args).value
    }

    /// Tracks the open transaction of a connection; returns the one that EXEC has just closed.
    fn track(&mut self, who: Who, args: &Args, answer: &Answer) -> Open {
        let name = args[0].to_ascii_uppercase();
        if answer.raw == b"+QUEUED\r\n" {
            self.open[who as usize].queued.push(args.clone());
        } else if answer.raw.starts_with(b"-ERR ") {
            // Nothing has changed.
        } else if matches!(name.as_slice(), b"EXEC" | b"DISCARD" | b"RESET" | b"UNWATCH") {
            return std::mem::take(&mut self.open[who as usize]);
        } else if name == b"MULTI" {
            self.open[who as usize].in_multi = true;
        } else if name == b"WATCH" {
            // OBJECT reads the key without a side effect: it triggers no event. The connection itself has the right database.
            let client = &mut self.clients[who as usize];
            let is_missing = |key: &Vec<u8>| {
                client.call(&[b"OBJECT", &b"ENCODING"[..], key]).value == Value::Null
            };
            let missing = args[1..].iter().any(is_missing);
            self.open[who as usize].watched_missing |= missing;
        }
        Open::default()
    }

    /// Clears the state of a connection that was opened anew.
    fn forget(&mut self, who: Who) {
        if let Some(open) = self.open.get_mut(who as usize) {
            *open = Open::default();
        }
    }

    fn burst(&mut self, who: Who, commands: &[Args]) -> Vec<Answer> {
        let mut bytes = Vec::new();
        let ping: Args = vec![b"PING".to_vec(), MARK.to_vec()];
        for args in commands.iter().chain([&ping]) {
            let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
            resp::encode_command(&mut bytes, &args);
        }
        let client = &mut self.clients[who as usize];
        let mut answers = Vec::new();
        if client.send_raw(&bytes).is_err() {
            return answers;
        }
        while let Ok(answer) = client.receive() {
            if is_mark(&answer.value) {
                break;
            }
            answers.push(answer);
        }
        answers
    }

    fn scan_all(&mut self, options: &Args) -> Result<Vec<Value>, Value> {
        let mut found = Vec::new();
        let mut cursor = b"0".to_vec();
        loop {
            let args: Args = [vec![b"SCAN".to_vec(), cursor], options.clone()].concat();
            let answer = self.help(&args);
            let Value::Array(mut parts) = answer else { return Err(answer) };
            let (Some(Value::Array(keys)), Some(Value::Bulk(next))) = (parts.pop(), parts.pop())
            else {
                return Err(Value::Array(parts));
            };
            found.extend(keys);
            if next == b"0" {
                // A key may be returned twice, and in any order.
                found.sort_by(|a, b| a.text().cmp(&b.text()));
                found.dedup();
                return Ok(found);
            }
            cursor = next;
        }
    }

    fn quit(&mut self, who: Who) -> String {
        let answer = self.call(who, &vec![b"QUIT".to_vec()]);
        let after = self.clients[who as usize].receive();
        self.clients[who as usize] = self.server.client();
        self.hello(who);
        let is_closed = after.is_err_and(|error| error.kind() == std::io::ErrorKind::UnexpectedEof);
        format!("{}, closed: {is_closed}", shown_or_gone(&answer))
    }
}

fn is_mark(value: &Value) -> bool {
    let pong = if let Value::Array(parts) = value { parts.last() } else { Some(value) };
    pong.and_then(Value::text) == Some(MARK)
}

fn verdict(same: bool, shown: impl FnOnce() -> (String, String)) -> Result<(), (String, String)> {
    if same { Ok(()) } else { Err(shown()) }
}

fn shown_or_gone(answer: &std::io::Result<Answer>) -> String {
    match answer {
        Ok(answer) => answer.raw.escape_ascii().to_string(),
        Err(error) => format!("(no answer: {error})"),
    }
}

fn shown_all(answers: &[Answer]) -> String {
    let shown = answers.iter().map(|answer| answer.raw.escape_ascii().to_string());
    shown.collect::<Vec<String>>().join(" | ")
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Call { who, args } => write!(f, "{who:?}: {}", line(args)),
            Step::Burst { who, commands } => {
                let lines: Vec<String> = commands.iter().map(line).collect();
                write!(f, "{who:?}: {}", lines.join(" ; "))
            }
            Step::ScanAll { options } => write!(f, "First: SCAN* {}", line(options)),
            Step::Swap { from, to } => {
                write!(f, "First: DUMP/RESTORE {} {}", from.escape_ascii(), to.escape_ascii())
            }
            Step::Quit { who } => write!(f, "{who:?}: QUIT"),
        }
    }
}

/// Formats a command in the syntax of redis-cli.
fn line(args: &Args) -> String {
    let word = |arg: &Vec<u8>| {
        let text = arg.escape_ascii().to_string();
        if text.is_empty() || text.contains([' ', '\\']) { format!("\"{text}\"") } else { text }
    };
    args.iter().map(word).collect::<Vec<String>>().join(" ")
}
