//! A request in flight: the commands that stand for it at one or several nodes, and the merging of their
//! replies.

use std::sync::Arc;

use placement::Slot;
use resp::{encode_command, parse_integer, skip_reply};

use super::framing::Malformed;
use super::introduction::Statement;
use super::pipeline::Transaction;
use super::plan::{BlockingRequest, CommandPart, Merge};
use super::routes::Redirect;
use super::upstream::UpstreamId;

/// Maximum bytes of values merged into one reply. A reply from one node streams through and needs no limit.
pub(super) const MERGED_BYTES_MAX: usize = 512 * 1024 * 1024;

/// An entry in the client's sequence of replies.
pub(super) enum QueuedReply {
    /// The reply is known.
    Ready(Vec<u8>),
    /// Nodes were asked.
    Asked(Forwarded),
}

/// One command at one node.
pub(super) struct Inquiry {
    /// Commands with a slot follow redirects.
    pub slot: Option<Slot>,
    pub command: Arc<Vec<u8>>,
    /// The connection it was last sent on.
    pub on: UpstreamId,
    /// The number of times it was sent again.
    pub retries: usize,
    pub replies_left: usize,
    /// Set if the command may wait for keys.
    pub blocks: Option<Box<BlockingRequest>>,
    /// Positions of its keys among those of the whole command.
    places: Vec<usize>,
    /// The reply so far, if it is needed whole.
    body: Vec<u8>,
    /// The last redirect, as received.
    refusal: Vec<u8>,
}

impl Inquiry {
    pub(super) fn new(slot: Option<Slot>, command: Arc<Vec<u8>>) -> Inquiry {
        let (places, body, refusal) = Default::default();
        let (on, retries, replies_left, blocks) = (0, 0, 1, None);
        Inquiry { slot, command, on, retries, replies_left, blocks, places, body, refusal }
    }

    pub(super) fn of_part(part: &CommandPart) -> Inquiry {
        let words: Vec<&[u8]> = part.args.iter().map(Vec::as_slice).collect();
        let mut command = Vec::new();
        encode_command(&mut command, &words);
        let places = part.places.clone();
        Inquiry { places, ..Inquiry::new(Some(part.slot), Arc::new(command)) }
    }
}

/// The change that an accepted command makes to the session.
pub(super) enum OnSuccess {
    Nothing,
    /// HELLO, AUTH and the like: repeat it to the other nodes.
    Introduce(Vec<Statement>),
    /// MULTI.
    Begin(Transaction),
    Watch,
    Unwatch,
    Reset,
}

/// The next step of a request.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum ForwardStep {
    /// The current inquiry needs another reply, or the next inquiry's reply is read.
    GoOn,
    /// The current inquiry did not run and is sent again.
    Redirected(Redirect),
}

/// The outcome of a request.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum ForwardOutcome {
    /// The request is answered. `bytes` is empty if the reply has streamed through.
    Reply { bytes: Vec<u8>, is_error: bool },
    /// Some parts have run and some have not: no correct reply exists.
    Half,
}

pub(super) struct Forwarded {
    pub inquiries: Vec<Inquiry>,
    /// The inquiry whose reply is read. They are read one after another.
    pub current: usize,
    pub on_success: OnSuccess,
    /// True if no other request may be in flight with it, except those of the same transaction.
    pub is_exclusive: bool,
    /// True if it belongs to a transaction: it is sent once, and cannot go to another node.
    pub in_transaction: bool,
    merge: Merge,
    writes: bool,
    /// True if at least one inquiry has failed.
    has_failed: bool,
    /// True if at least one part has run.
    has_run: bool,
    error: Option<Vec<u8>>,
    sum: i64,
    values: Vec<Vec<u8>>,
    value_bytes: usize,
}

impl Forwarded {
    pub(super) fn one(inquiry: Inquiry) -> Forwarded {
        Forwarded::new(Merge::Pass, false, vec![inquiry])
    }

    pub(super) fn scattered(merge: Merge, parts: &[CommandPart]) -> Forwarded {
        let writes = parts.iter().any(|part| part.writes);
        Forwarded::new(merge, writes, parts.iter().map(Inquiry::of_part).collect())
    }

    fn new(merge: Merge, writes: bool, inquiries: Vec<Inquiry>) -> Forwarded {
        let keys = inquiries.iter().map(|inquiry| inquiry.places.len()).sum();
        Forwarded {
            inquiries,
            current: 0,
            on_success: OnSuccess::Nothing,
            is_exclusive: false,
            in_transaction: false,
            merge,
            writes,
            has_failed: false,
            has_run: false,
            error: None,
            sum: 0,
            values: vec![Vec::new(); keys],
            value_bytes: 0,
        }
    }

    /// Returns the bytes kept for it while it is in flight.
    pub(super) fn bytes(&self) -> usize {
        self.inquiries.iter().map(|inquiry| inquiry.command.len()).sum()
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.inquiries.iter().filter_map(|inquiry| inquiry.slot)
    }

    pub(super) fn inquiry(&mut self) -> Option<&mut Inquiry> {
        self.inquiries.get_mut(self.current)
    }

    /// Takes bytes of a reply that is not an error. Returns those that go to the client at once.
    pub(super) fn take_bytes(&mut self, bytes: Vec<u8>) -> Option<Vec<u8>> {
        if self.merge == Merge::Pass {
            return Some(bytes);
        }
        let inquiry = &mut self.inquiries[self.current];
        if self.value_bytes + inquiry.body.len() + bytes.len() > MERGED_BYTES_MAX {
            self.values = Vec::new();
            inquiry.body = Vec::new();
            self.value_bytes = MERGED_BYTES_MAX;
            let mib = MERGED_BYTES_MAX / 1024 / 1024;
            let text = format!("-ERR the values exceed {mib} MiB together; ask for fewer keys\r\n");
            self.error.get_or_insert(text.into_bytes());
        } else {
            inquiry.body.extend_from_slice(&bytes);
        }
        None
    }

    /// Ends a reply that is not an error.
    pub(super) fn end_reply(&mut self) -> Result<(), Malformed> {
        self.has_run = true;
        let inquiry = &mut self.inquiries[self.current];
        let body = core::mem::take(&mut inquiry.body);
        match self.merge {
            Merge::Pass | Merge::Ok => {}
            Merge::Sum => self.sum = self.sum.saturating_add(integer(&body)?),
            // The limit was exceeded; nothing is kept.
            Merge::Values if self.values.is_empty() => {}
            Merge::Values => {
                let elements = elements(&body)?;
                if elements.len() != inquiry.places.len() {
                    return Err(Malformed);
                }
                for (place, value) in inquiry.places.iter().zip(elements) {
                    self.value_bytes += value.len();
                    self.values[*place] = value.to_vec();
                }
            }
        }
        inquiry.replies_left -= 1;
        if inquiry.replies_left == 0 {
            self.current += 1;
        }
        Ok(())
    }

    /// Takes bytes of a reply that is an error.
    pub(super) fn take_error_bytes(&mut self, bytes: &[u8]) {
        self.inquiries[self.current].body.extend_from_slice(bytes);
    }

    /// Ends a reply that is an error: it is the inquiry's last one.
    pub(super) fn end_error(&mut self) -> ForwardStep {
        let inquiry = &mut self.inquiries[self.current];
        let body = core::mem::take(&mut inquiry.body);
        let redirect = inquiry.slot.and_then(|_| Redirect::parse(&body));
        if let Some(redirect) = redirect.filter(|_| inquiry.retries < RETRIES_MAX) {
            inquiry.refusal = body;
            return ForwardStep::Redirected(redirect);
        }
        self.fail(body);
        ForwardStep::GoOn
    }

    /// Ends the current inquiry with its last redirect.
    pub(super) fn give_up(&mut self) {
        let refusal = self.inquiry().map(|inquiry| core::mem::take(&mut inquiry.refusal));
        self.fail(refusal.unwrap_or_default());
    }

    /// Ends the current inquiry, which did not run, with this error.
    pub(super) fn fail(&mut self, error: Vec<u8>) {
        self.has_failed = true;
        self.error.get_or_insert(error);
        self.current += 1;
    }

    /// Returns the outcome, once all inquiries are done.
    pub(super) fn outcome(&mut self) -> ForwardOutcome {
        if self.writes && self.has_failed && self.has_run {
            return ForwardOutcome::Half;
        }
        if let Some(bytes) = self.error.take() {
            return ForwardOutcome::Reply { bytes, is_error: true };
        }
        let bytes = match self.merge {
            Merge::Pass => Vec::new(),
            Merge::Ok => b"+OK\r\n".to_vec(),
            Merge::Sum => format!(":{}\r\n", self.sum).into_bytes(),
            Merge::Values => {
                let header = format!("*{}\r\n", self.values.len()).into_bytes();
                let mut bytes = Vec::with_capacity(header.len() + self.value_bytes);
                bytes.extend_from_slice(&header);
                self.values.drain(..).for_each(|value| bytes.extend_from_slice(&value));
                bytes
            }
        };
        ForwardOutcome::Reply { bytes, is_error: false }
    }
}

/// Maximum number of retries of a command; after that the client gets the redirect.
pub(super) const RETRIES_MAX: usize = 16;

fn integer(reply: &[u8]) -> Result<i64, Malformed> {
    let text = reply.strip_prefix(b":").and_then(|rest| rest.strip_suffix(b"\r\n"));
    text.and_then(parse_integer).ok_or(Malformed)
}

/// Returns the elements of an array, each as received.
fn elements(reply: &[u8]) -> Result<Vec<&[u8]>, Malformed> {
    let header = reply.iter().position(|byte| *byte == b'\n').ok_or(Malformed)?;
    let (mut elements, mut at) = (Vec::new(), header + 1);
    while at < reply.len() {
        let end = skip_reply(reply, at).ok().flatten().ok_or(Malformed)?;
        elements.push(&reply[at..end]);
        at = end;
    }
    Ok(elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_as_nodes_write_them() {
        let values = elements(b"*3\r\n$1\r\na\r\n$-1\r\n$0\r\n\r\n").unwrap();
        assert_eq!(values, [&b"$1\r\na\r\n"[..], b"$-1\r\n", b"$0\r\n\r\n"]);
        assert_eq!(elements(b"*1\r\n$9\r\na"), Err(Malformed));
        assert_eq!(integer(b":7\r\n"), Ok(7));
        assert_eq!(integer(b"+OK\r\n"), Err(Malformed));
    }

    fn two(merge: Merge, writes: bool) -> Forwarded {
        let part = |slot: u16, place| CommandPart {
            slot: Slot::new(slot).unwrap(),
            args: vec![b"X".to_vec()],
            writes,
            places: vec![place],
        };
        Forwarded::scattered(merge, &[part(1, 1), part(2, 0)])
    }

    fn reply(request: &mut Forwarded, bytes: &[u8]) {
        if bytes.starts_with(b"-") {
            request.take_error_bytes(bytes);
            assert_eq!(request.end_error(), ForwardStep::GoOn);
        } else {
            assert_eq!(request.take_bytes(bytes.to_vec()), None);
            request.end_reply().unwrap();
        }
    }

    fn outcome(merge: Merge, writes: bool, replies: [&[u8]; 2]) -> ForwardOutcome {
        let mut request = two(merge, writes);
        replies.iter().for_each(|bytes| reply(&mut request, bytes));
        request.outcome()
    }

    fn error(bytes: &[u8]) -> ForwardOutcome {
        ForwardOutcome::Reply { bytes: bytes.to_vec(), is_error: true }
    }

    #[test]
    fn a_write_that_ran_in_part_has_no_answer() {
        let oom = b"-OOM no room\r\n";
        assert_eq!(outcome(Merge::Ok, true, [b"+OK\r\n", oom]), ForwardOutcome::Half);
        assert_eq!(outcome(Merge::Sum, true, [oom, b":1\r\n"]), ForwardOutcome::Half);
        assert_eq!(outcome(Merge::Ok, true, [oom, b"-CLUSTERDOWN\r\n"]), error(oom));
        // A read has changed nothing: the error is correct.
        assert_eq!(outcome(Merge::Sum, false, [b":1\r\n", oom]), error(oom));
    }

    #[test]
    fn answers_of_parts_are_merged() {
        let good = |bytes: &[u8]| ForwardOutcome::Reply { bytes: bytes.to_vec(), is_error: false };
        assert_eq!(outcome(Merge::Ok, true, [b"+OK\r\n", b"+OK\r\n"]), good(b"+OK\r\n"));
        assert_eq!(outcome(Merge::Sum, true, [b":1\r\n", b":2\r\n"]), good(b":3\r\n"));
        let merged = outcome(Merge::Values, false, [b"*1\r\n$1\r\na\r\n", b"*1\r\n$-1\r\n"]);
        assert_eq!(merged, good(b"*2\r\n$-1\r\n$1\r\na\r\n"));
    }

    #[test]
    fn values_beyond_the_limit_are_not_kept() {
        let mut request = two(Merge::Values, false);
        request.value_bytes = MERGED_BYTES_MAX - 4;
        reply(&mut request, b"*1\r\n$1\r\na\r\n");
        assert_eq!(request.value_bytes, MERGED_BYTES_MAX);
        reply(&mut request, b"*1\r\n$-1\r\n");
        assert!(matches!(request.outcome(), ForwardOutcome::Reply { is_error: true, .. }));
    }
}
