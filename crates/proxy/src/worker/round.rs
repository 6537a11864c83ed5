//! A client's turn: reads it, parses its requests, and passes each to `dispatch.rs`, until one has to wait.
//! Requests behind that one wait with it, so a client's requests keep their order.

use std::io::ErrorKind;

use resp::{Limits, Parsed, Protocol, Span};
use smallvec::SmallVec;

use super::dispatch::Ran;
use super::{READ_BYTES, Worker};

/// Maximum number of bytes per read of a large request.
const LARGE_READ_BYTES: usize = 1024 * 1024;
/// Maximum size of a request together with everything read after it.
const INPUT_BYTES_MAX: usize = 1 << 30;

/// Number of arguments of a request that fit without a heap allocation.
pub(crate) const ARGS_INLINE: usize = 8;

/// A request in the buffer where it was parsed.
#[derive(Clone, Copy)]
pub(crate) struct Request<'b> {
    bytes: &'b [u8],
    spans: &'b [Span],
    /// The request's own bytes, if they are written as every server understands them.
    pub raw: Option<&'b [u8]>,
}

impl<'b> Request<'b> {
    pub(crate) fn args(&self) -> SmallVec<[&'b [u8]; ARGS_INLINE]> {
        self.spans.iter().map(|span| span.of(self.bytes)).collect()
    }
}

/// Result of running a client's input.
#[derive(Clone, Copy)]
enum Rest {
    /// The rest is the beginning of a request, or nothing.
    Keep,
    /// The rest has to wait.
    PutOff,
    /// The client sends no more requests: discard the rest.
    Forget,
}

impl Worker<'_> {
    /// Serves a client whose socket is readable or writable.
    pub(super) fn serve(&mut self, index: usize) {
        let Some(client) = self.clients.get_mut(index) else { return };
        if client.gone || client.round == self.round {
            return;
        }
        client.round = self.round;
        if !client.replies.output.is_empty() {
            self.touch_client(index);
        }
        let client = &self.clients[index];
        if client.closing {
            return;
        }
        if client.readiness.hung_up && client.waits.is_some() {
            // Its blocking command must not take an element that nobody would then receive.
            return self.close_client(index);
        }
        if client.put_off || !self.may_go_on(index) {
            self.put_off(index);
            return;
        }
        match self.read_and_run(index) {
            Ok(()) => {}
            // It sends no more, but may still read its answers.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof && self.awaits(index) => {
                self.clients[index].closing = true;
            }
            Err(_) => self.close_client(index),
        }
    }

    fn awaits(&self, index: usize) -> bool {
        self.clients[index].replies.awaited() > 0
    }

    fn read_and_run(&mut self, index: usize) -> std::io::Result<()> {
        let client = &mut self.clients[index];
        if client.input.is_empty() {
            let mut buffer = std::mem::take(&mut self.buffer);
            let read = client.read(&mut buffer);
            if let Ok(filled) = read {
                let (used, rest) = self.run_all(index, &mut buffer[..filled]);
                self.keep(index, &buffer[used..filled], rest);
            }
            self.buffer = buffer;
            read?;
        } else {
            let mut input = std::mem::take(&mut client.input);
            let old = input.len();
            input.resize(old + (old / 2).clamp(READ_BYTES, LARGE_READ_BYTES), 0);
            let filled = old + client.read(&mut input[old..])?;
            input.truncate(filled);
            self.run_kept(index, input);
        }
        let Some(client) = self.clients.get(index) else { return Ok(()) };
        if client.readiness.readable && !client.put_off && !client.gone && !client.closing {
            self.clients_again.push(index);
        }
        Ok(())
    }

    fn run_kept(&mut self, index: usize, mut input: Vec<u8>) {
        let (used, rest) = self.run_all(index, &mut input);
        match rest {
            Rest::Keep | Rest::PutOff => {
                input.drain(..used);
                self.keep_whole(index, input, rest);
            }
            Rest::Forget => {}
        }
    }

    fn keep(&mut self, index: usize, left: &[u8], rest: Rest) {
        match rest {
            Rest::Keep if left.is_empty() => {}
            Rest::Keep | Rest::PutOff => self.keep_whole(index, left.to_vec(), rest),
            Rest::Forget => {}
        }
    }

    fn keep_whole(&mut self, index: usize, left: Vec<u8>, rest: Rest) {
        let client = &mut self.clients[index];
        if client.gone {
            return;
        }
        if client.input.is_empty() {
            client.input = left;
        } else {
            // A parsed request that has to wait was put in front.
            client.input.extend_from_slice(&left);
        }
        if client.input.len() > INPUT_BYTES_MAX {
            return self.close_client(index);
        }
        if matches!(rest, Rest::PutOff) {
            self.put_off(index);
        }
    }

    /// Runs the requests of a client's kept input that can run.
    pub(super) fn run_put_off(&mut self, index: usize) {
        let input = std::mem::take(&mut self.clients[index].input);
        self.run_kept(index, input);
        let Some(client) = self.clients.get_mut(index) else { return };
        if !client.put_off && !client.gone && !client.closing {
            // It was not read while it waited; epoll may have reported it long ago and will not do so again.
            client.readiness.readable = true;
            self.clients_again.push(index);
        }
    }

    /// Gives waiting clients another turn, if anything has changed.
    pub(super) fn resume_put_off(&mut self) {
        if !std::mem::take(&mut self.stirred) || self.put_off.is_empty() {
            return;
        }
        for index in std::mem::take(&mut self.put_off) {
            let Some(client) = self.clients.get_mut(index) else { continue };
            if client.gone || !client.put_off {
                continue;
            }
            client.put_off = false;
            if self.may_go_on(index) {
                self.run_put_off(index);
            } else {
                self.put_off(index);
            }
        }
    }

    /// Makes a client wait until something changes.
    pub(super) fn put_off(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if !client.put_off {
            client.put_off = true;
            self.put_off.push(index);
        }
    }

    /// Returns whether a client may send more requests.
    fn may_go_on(&self, index: usize) -> bool {
        let limits = &self.shared.options.limits;
        let client = &self.clients[index];
        !client.busy
            && client.replies.awaited() < limits.requests_per_client_max
            && client.replies.held_bytes() < limits.unread_bytes_max
    }

    /// Runs the requests in `bytes`, and returns the number of bytes consumed.
    fn run_all(&mut self, index: usize, bytes: &mut [u8]) -> (usize, Rest) {
        let mut spans = std::mem::take(&mut self.spans);
        let mut at = 0;
        let rest = loop {
            if !self.may_go_on(index) {
                break if at == bytes.len() { Rest::Keep } else { Rest::PutOff };
            }
            spans.clear();
            let client = &mut self.clients[index];
            let limits = if client.authenticated { Limits::FULL } else { Limits::BEFORE_AUTH };
            match client.parser.next(bytes, at, &limits, &mut spans) {
                Ok(Parsed::Request { end, args: 0 }) => at = end,
                Ok(Parsed::Request { end, .. }) => {
                    let raw = canonical(&bytes[at..end], at, &spans).then(|| &bytes[at..end]);
                    let request = Request { bytes, spans: &spans, raw };
                    if let Ran::NotYet = self.run_request(index, &request) {
                        if raw.is_none() {
                            self.put_in_front(index, &request);
                            at = end;
                        }
                        break Rest::PutOff;
                    }
                    at = end;
                    if self.clients[index].closing || self.clients[index].gone {
                        break Rest::Forget;
                    }
                }
                Ok(Parsed::Incomplete { .. }) => break Rest::Keep,
                Err(error) => {
                    self.refuse_protocol(index, &error.reply());
                    break Rest::Forget;
                }
            }
        };
        spans.clear();
        spans.shrink_to(4 * READ_BYTES);
        self.spans = spans;
        (at, rest)
    }

    /// Keeps a waiting inline request in array form, because it was unquoted in place.
    fn put_in_front(&mut self, index: usize, request: &Request<'_>) {
        resp::encode_command(&mut self.clients[index].input, &request.args());
    }

    fn refuse_protocol(&mut self, index: usize, text: &[u8]) {
        let ticket = self.clients[index].replies.expect();
        self.answer_error(index, ticket, text);
        self.clients[index].closing = true;
    }

    /// Writes an answer of our own.
    pub(super) fn answer_with(&mut self, index: usize, write: impl FnOnce(&mut resp::Reply<'_>)) {
        let protocol = self.clients[index].protocol;
        let reply = encoded(protocol, write);
        let client = &mut self.clients[index];
        let ticket = client.replies.expect();
        client.replies.answer(ticket, &reply);
        self.touch_client(index);
    }
}

/// Encodes an answer of our own.
pub(super) fn encoded(protocol: Protocol, write: impl FnOnce(&mut resp::Reply<'_>)) -> Vec<u8> {
    let mut output = resp::Output::default();
    write(&mut resp::Reply::new(&mut output, protocol));
    std::mem::take(output.bytes_mut())
}

/// Returns whether a request is written as all clients write it. Parsers are lenient about some of its bytes,
/// and not all in the same way: what one server takes for an argument's end, another may not, and all clients
/// share a connection.
fn canonical(request: &[u8], at: usize, spans: &[Span]) -> bool {
    if request.first() != Some(&b'*') {
        return false;
    }
    let mut next = match request.iter().position(|byte| *byte == b'\n') {
        Some(newline) if request[newline - 1] == b'\r' => newline + 1,
        Some(_) | None => return false,
    };
    for span in spans {
        let start = span.start as usize - at;
        let end = start + span.len as usize;
        let header = request.get(next) == Some(&b'$') && request[start - 2..start] == *b"\r\n";
        if !header || request.get(end..end + 2) != Some(b"\r\n") {
            return false;
        }
        next = end + 2;
    }
    next == request.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use resp::RequestParser;

    fn is_canonical(bytes: &[u8]) -> bool {
        let mut bytes = [b"PING\r\n", bytes].concat();
        let mut spans = Vec::new();
        let mut parser = RequestParser::default();
        let parsed = parser.next(&mut bytes, 6, &Limits::FULL, &mut spans).unwrap();
        assert!(matches!(parsed, Parsed::Request { end, .. } if end == bytes.len()), "{parsed:?}");
        canonical(&bytes[6..], 6, &spans)
    }

    #[test]
    fn what_a_client_library_writes_is_passed_on_as_it_is() {
        assert!(is_canonical(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"));
        assert!(is_canonical(b"*1\r\n$4\r\n\r\n\r\n\r\n"));
        let value = [b'x'; 300];
        assert!(is_canonical(&[b"*2\r\n$4\r\nECHO\r\n$300\r\n", &value[..], b"\r\n"].concat()));
    }

    #[test]
    fn what_our_parser_forgives_is_written_anew() {
        for odd in [
            &b"GET k\r\n"[..],
            b"*2\rx$3\r\nGET\r\n$1\r\nk\r\n",
            b"*2\r\n$3\rxGET\r\n$1\r\nk\r\n",
            b"*2\r\n$3\r\nGETxx$1\r\nk\r\n",
            b"*2\r\n$3\r\nGET\r\n$1\r\nkxx",
        ] {
            assert!(!is_canonical(odd), "{}", odd.escape_ascii());
        }
    }
}
