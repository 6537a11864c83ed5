//! One client of the any-port: its requests are planned, sent to the nodes concerned, and answered in
//! their order. If the connection to a node breaks while an answer is due, nobody knows what became of
//! the command: the client's connection is closed.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use commands::{Args, OwnedArgs};
use placement::Slot;
use resp::{Limits, Parsed, ReplyParser, RequestParser, Value, encode_command};

use super::LOOK_EVERY;
use super::plan::{Merge, Part, Plan, plan};
use super::upstream::Upstream;
use crate::shared::Shared;

const READ_BYTES: usize = 64 * 1024;
/// So often a command is sent after its bucket, before the client is told to look itself.
const MOVES_MAX: usize = 16;
/// Between two such attempts: a handover takes milliseconds.
const MOVE_PAUSE: Duration = Duration::from_millis(2);

/// A node, by its client address.
type Place = (String, u16);

pub(super) struct Session<'s> {
    shared: &'s Arc<Shared>,
    client: TcpStream,
    nodes: BTreeMap<Place, Upstream>,
    /// What the client has said of itself, for nodes it has not met yet. The last of each kind.
    introduction: BTreeMap<Vec<u8>, Vec<u8>>,
    transaction: Transaction,
}

#[derive(Clone, PartialEq, Eq)]
enum Transaction {
    None,
    /// WATCH has fixed where the next one runs.
    Watching(Place),
    /// MULTI was said; the first key decides where it runs.
    Begun,
    /// It runs there.
    At(Place),
}

/// An answer that is due.
enum Due {
    Ready(Vec<u8>),
    /// From that node; it can be asked again elsewhere.
    From(Place, OwnedArgs, Option<Slot>),
    Merged(Merge, Vec<(Place, Part)>),
}

impl<'s> Session<'s> {
    pub(super) fn new(shared: &'s Arc<Shared>, client: TcpStream) -> io::Result<Session<'s>> {
        client.set_nodelay(true)?;
        client.set_nonblocking(false)?;
        client.set_read_timeout(Some(LOOK_EVERY))?;
        Ok(Session {
            shared,
            client,
            nodes: BTreeMap::new(),
            introduction: BTreeMap::new(),
            transaction: Transaction::None,
        })
    }

    /// Serves the client until it goes, or has to go.
    pub(super) fn run(mut self) {
        // Nobody is left to be told of an error here.
        let _ = self.serve();
    }

    fn serve(&mut self) -> io::Result<()> {
        let mut input = Vec::new();
        let mut parser = RequestParser::default();
        let mut spans = Vec::new();
        while self.read(&mut input)? {
            let mut at = 0;
            let mut due = Vec::new();
            let limits = Limits::FULL;
            loop {
                spans.clear();
                match parser.next(&mut input, at, &limits, &mut spans) {
                    Ok(Parsed::Request { end, args }) => {
                        at = end;
                        if args == 0 {
                            continue;
                        }
                        let args = Args::new(&input, &spans);
                        if plan(&self.shared.table, args) == Plan::Listen {
                            let args = OwnedArgs::new(args.iter());
                            self.answer(due)?;
                            return self.listen(&args, &input[at..]);
                        }
                        due.push(self.begin(args)?);
                    }
                    Ok(Parsed::Incomplete { .. }) => break,
                    Err(error) => {
                        due.push(Due::Ready(error.reply()));
                        self.answer(due)?;
                        return Ok(());
                    }
                }
            }
            input.drain(..at);
            if input.len() as u64 > self.shared.settings.load().client_query_buffer_limit {
                return Ok(());
            }
            self.answer(due)?;
        }
        Ok(())
    }

    /// Reads more. False at the end.
    fn read(&mut self, input: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            let old = input.len();
            input.resize(old + READ_BYTES, 0);
            let read = self.client.read(&mut input[old..]);
            input.truncate(old + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(count) => return Ok(count > 0),
                Err(error) if is_timeout(&error) => {
                    if self.shared.is_stopping() {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a request on its way.
    fn begin(&mut self, args: Args<'_>) -> io::Result<Due> {
        let here = self.here();
        match (plan(&self.shared.table, args), self.transaction.clone()) {
            (Plan::Begin, Transaction::None | Transaction::Watching(_)) => {
                if let Transaction::Watching(place) = self.transaction.clone() {
                    self.transaction = Transaction::At(place.clone());
                    return self.send(place, args, None);
                }
                self.transaction = Transaction::Begun;
                Ok(Due::Ready(b"+OK\r\n".to_vec()))
            }
            (Plan::End, Transaction::Begun) => {
                self.transaction = Transaction::None;
                self.begin_at(&here)?;
                self.send(here, args, None)
            }
            (Plan::End, Transaction::At(place)) => {
                self.transaction = Transaction::None;
                self.send(place, args, None)
            }
            (plan, Transaction::Begun) => {
                let place = match plan {
                    Plan::To(slot) | Plan::Watch(slot) => self.place_of(slot),
                    Plan::Refuse(text) => return Ok(refused(text)),
                    Plan::Here | Plan::Scatter(..) | Plan::Listen | Plan::Begin | Plan::End => here,
                };
                self.begin_at(&place)?;
                self.transaction = Transaction::At(place.clone());
                self.send(place, args, None)
            }
            // Its own node says what does not belong there.
            (_, Transaction::At(place)) => self.send(place, args, None),
            (Plan::Watch(slot), Transaction::Watching(place)) if self.place_of(slot) != place => {
                Ok(refused("ERR all watched keys must live on one node; use a hash tag"))
            }
            (Plan::Watch(slot), _) => {
                let place = self.place_of(slot);
                self.transaction = Transaction::Watching(place.clone());
                self.send(place, args, None)
            }
            (Plan::To(slot), _) => self.send(self.place_of(slot), args, Some(slot)),
            (Plan::Scatter(merge, parts), _) => self.scatter(merge, parts),
            (Plan::Refuse(text), _) => Ok(refused(text)),
            (Plan::Here | Plan::Listen | Plan::End, _) => {
                self.remember(args);
                self.send(here, args, None)
            }
        }
    }

    /// MULTI at the node where the transaction turns out to run; the client was answered already.
    fn begin_at(&mut self, place: &Place) -> io::Result<()> {
        let node = self.node(place)?;
        node.queue(&["MULTI"]);
        node.flush()?;
        node.reply().map(drop)
    }

    fn send(&mut self, place: Place, args: Args<'_>, slot: Option<Slot>) -> io::Result<Due> {
        let args = OwnedArgs::new(args.iter());
        let words: Vec<&[u8]> = args.args().iter().collect();
        self.node(&place)?.queue(&words);
        Ok(Due::From(place, args, slot))
    }

    fn scatter(&mut self, merge: Merge, parts: Vec<Part>) -> io::Result<Due> {
        let mut sent = Vec::new();
        for part in parts {
            let place = self.place_of(part.slot);
            self.node(&place)?.queue(&part.args);
            sent.push((place, part));
        }
        Ok(Due::Merged(merge, sent))
    }

    /// Collects what is due, in order, and hands it to the client.
    fn answer(&mut self, due: Vec<Due>) -> io::Result<()> {
        for node in self.nodes.values_mut() {
            node.flush()?;
        }
        let mut output = Vec::new();
        for due in due {
            let reply = match due {
                Due::Ready(reply) => reply,
                Due::From(place, args, slot) => {
                    let reply = self.node(&place)?.reply()?;
                    let words: Vec<&[u8]> = args.args().iter().collect();
                    self.follow(reply, &words, slot)?
                }
                Due::Merged(merge, parts) => self.merge(merge, parts)?,
            };
            output.extend_from_slice(&reply);
        }
        self.client.write_all(&output)
    }

    /// Sends a command again where its slot has moved to.
    fn follow<A: AsRef<[u8]>>(
        &mut self,
        mut reply: Vec<u8>,
        args: &[A],
        slot: Option<Slot>,
    ) -> io::Result<Vec<u8>> {
        let Some(slot) = slot else { return Ok(reply) };
        for attempt in 0..MOVES_MAX {
            let moved = reply.starts_with(b"-MOVED ") || reply.starts_with(b"-TRYAGAIN");
            if !moved {
                break;
            }
            if attempt > 0 {
                thread::sleep(MOVE_PAUSE);
            }
            let place = moved_to(&reply).unwrap_or_else(|| self.place_of(slot));
            let node = self.node(&place)?;
            node.queue(args);
            node.flush()?;
            reply = node.reply()?;
        }
        Ok(reply)
    }

    fn merge(&mut self, merge: Merge, parts: Vec<(Place, Part)>) -> io::Result<Vec<u8>> {
        let count = parts.iter().map(|(_, part)| part.places.len()).sum();
        let mut values: Vec<Vec<u8>> = vec![Vec::new(); count];
        let mut sum = 0;
        let mut error = None;
        for (place, part) in parts {
            let reply = self.node(&place)?.reply()?;
            let reply = self.follow(reply, &part.args, Some(part.slot))?;
            if reply.starts_with(b"-") {
                error.get_or_insert(reply);
                continue;
            }
            match merge {
                Merge::Ok => {}
                Merge::Sum => sum += integer(&reply),
                Merge::Values => {
                    for (place, value) in part.places.iter().zip(elements(&reply)) {
                        values[*place] = value;
                    }
                }
            }
        }
        if let Some(error) = error {
            return Ok(error);
        }
        Ok(match merge {
            Merge::Ok => b"+OK\r\n".to_vec(),
            Merge::Sum => format!(":{sum}\r\n").into_bytes(),
            Merge::Values => [format!("*{count}\r\n").into_bytes(), values.concat()].concat(),
        })
    }

    /// A client that listens is tied to this node: bytes go both ways as they come.
    fn listen(&mut self, args: &OwnedArgs, rest: &[u8]) -> io::Result<()> {
        let here = self.here();
        let words: Vec<&[u8]> = args.args().iter().collect();
        let node = self.node(&here)?;
        node.queue(&words);
        node.flush()?;
        let mut node = self.nodes.remove(&here).expect("asked a moment ago");
        node.stream.set_read_timeout(None)?;
        node.stream.write_all(rest)?;
        self.client.write_all(&node.take_unread())?;
        let (mut from_node, mut to_client) = (node.stream.try_clone()?, self.client.try_clone()?);
        let back = thread::Builder::new().name("any-back".to_owned()).spawn(move || {
            let _ = io::copy(&mut from_node, &mut to_client);
            let _ = to_client.shutdown(std::net::Shutdown::Both);
        })?;
        let mut input = Vec::new();
        while self.read(&mut input).unwrap_or(false) {
            if node.stream.write_all(&input).is_err() {
                break;
            }
            input.clear();
        }
        let _ = node.stream.shutdown(std::net::Shutdown::Both);
        let _ = back.join();
        Ok(())
    }

    /// Keeps what other nodes must be told, too, before they serve this client.
    fn remember(&mut self, args: Args<'_>) {
        let is = |index: usize, word: &str| {
            args.get(index).is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
        };
        let kind: &[u8] = match () {
            () if is(0, "hello") && args.len() > 1 => b"1 hello",
            () if is(0, "auth") => b"2 auth",
            () if is(0, "client") && is(1, "setname") => b"3 name",
            () => return,
        };
        let words: Vec<&[u8]> = args.iter().collect();
        let mut command = Vec::new();
        encode_command(&mut command, &words);
        self.introduction.insert(kind.to_vec(), command);
        // Others begin anew, with the new introduction.
        let here = self.here();
        self.nodes.retain(|place, _| *place == here);
    }

    fn here(&self) -> Place {
        let addr = self.shared.client_addr;
        let host =
            if addr.ip().is_unspecified() { "127.0.0.1".to_owned() } else { addr.ip().to_string() };
        (host, addr.port())
    }

    /// Where a slot is served, as far as this node knows.
    fn place_of(&self, slot: Slot) -> Place {
        let map = self.shared.map();
        let primary =
            map.bucket_of(slot).primary().filter(|primary| *primary != self.shared.data.me);
        let member = primary.and_then(|primary| map.member(primary));
        member.map_or_else(|| self.here(), |member| (member.at.host.clone(), member.at.client))
    }

    fn node(&mut self, place: &Place) -> io::Result<&mut Upstream> {
        if !self.nodes.contains_key(place) {
            let introduction: Vec<Vec<u8>> = self.introduction.values().cloned().collect();
            let node = Upstream::connect((&place.0, place.1), &introduction)?;
            self.nodes.insert(place.clone(), node);
        }
        Ok(self.nodes.get_mut(place).expect("inserted if it was not there"))
    }
}

fn refused(text: &str) -> Due {
    Due::Ready(format!("-{text}\r\n").into_bytes())
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// The address in `-MOVED slot host:port`.
fn moved_to(reply: &[u8]) -> Option<Place> {
    let text = std::str::from_utf8(reply).ok()?.strip_prefix("-MOVED ")?.trim_end();
    let (host, port) = text.split_once(' ')?.1.rsplit_once(':')?;
    Some((host.to_owned(), port.parse().ok()?))
}

fn integer(reply: &[u8]) -> i64 {
    let parsed = ReplyParser::default().next(reply, 0).ok().flatten();
    match parsed {
        Some((Value::Integer(number), _)) => number,
        _ => 0,
    }
}

/// The elements of an array, each as it came.
fn elements(reply: &[u8]) -> Vec<Vec<u8>> {
    let mut elements = Vec::new();
    let Some(mut at) = reply.iter().position(|byte| *byte == b'\n').map(|end| end + 1) else {
        return elements;
    };
    while let Ok(Some(end)) = resp::skip_reply(reply, at) {
        elements.push(reply[at..end].to_vec());
        at = end;
        if at == reply.len() {
            break;
        }
    }
    elements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_elements_are_read_as_nodes_write_them() {
        let moved = b"-MOVED 42 10.0.0.7:6380\r\n";
        assert_eq!(moved_to(moved), Some(("10.0.0.7".to_owned(), 6380)));
        assert_eq!(moved_to(b"-MOVED 1 ::1:6379\r\n"), Some(("::1".to_owned(), 6379)));
        assert_eq!(moved_to(b"-ERR no\r\n"), None);
        let values = elements(b"*3\r\n$1\r\na\r\n$-1\r\n$0\r\n\r\n");
        assert_eq!(values, [b"$1\r\na\r\n".to_vec(), b"$-1\r\n".to_vec(), b"$0\r\n\r\n".to_vec()]);
        assert_eq!(integer(b":7\r\n"), 7);
    }
}
