//! Passes a server's answers to their receivers. Usually an answer's bytes are copied from the read buffer to
//! its client's output without being parsed: only the end of the answer is found.

use std::io::Read;

use super::link::{Awaiter, Purpose};
use super::replies::Ticket;
use super::round::encoded;
use super::{READ_BYTES, Worker};

/// Maximum number of bytes per read of a large answer.
const LARGE_READ_BYTES: usize = 4 * 1024 * 1024;
/// Maximum consecutive reads of one link before others have their turn.
const READS_MAX: usize = 16;

impl Worker<'_> {
    /// Reads from a link that is ready.
    pub(super) fn read_link(&mut self, index: usize) {
        for _ in 0..READS_MAX {
            let Some(link) = self.links.get(index) else { return };
            if !link.readiness.readable {
                return;
            }
            if let Err(why) = self.read_link_once(index) {
                return self.lose_link(index, &why);
            }
        }
        self.links_again.push(index);
    }

    fn read_link_once(&mut self, index: usize) -> Result<(), String> {
        let link = &mut self.links[index];
        if !link.input.is_empty() {
            return self.read_on(index);
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let read = link.stream.read(&mut buffer);
        let done = match read {
            Ok(filled) => self.took(index, filled, buffer.len()).and_then(|()| {
                let used = self.deliver(index, &buffer[..filled])?;
                if used < filled
                    && let Some(link) = self.links.get_mut(index)
                {
                    link.input.extend_from_slice(&buffer[used..filled]);
                }
                Ok(())
            }),
            Err(error) => self.took_nothing(index, &error),
        };
        self.buffer = buffer;
        done
    }

    /// Reads more of an answer whose beginning was received before.
    fn read_on(&mut self, index: usize) -> Result<(), String> {
        let link = &mut self.links[index];
        let mut input = std::mem::take(&mut link.input);
        let old = input.len();
        if old > self.shared.options.limits.reply_bytes_max {
            return Err("its answer is too large".to_owned());
        }
        let room = (old / 2).clamp(READ_BYTES, LARGE_READ_BYTES);
        input.resize(old + room, 0);
        let read = link.stream.read(&mut input[old..]);
        let done = match read {
            Ok(filled) => self.took(index, filled, room).and_then(|()| {
                input.truncate(old + filled);
                let used = self.deliver(index, &input)?;
                input.drain(..used);
                Ok(())
            }),
            Err(error) => {
                input.truncate(old);
                self.took_nothing(index, &error)
            }
        };
        if let Some(link) = self.links.get_mut(index)
            && !input.is_empty()
        {
            link.input = input;
        }
        done
    }

    fn took(&mut self, index: usize, filled: usize, room: usize) -> Result<(), String> {
        if filled == 0 {
            return Err("it closed the connection".to_owned());
        }
        let link = &mut self.links[index];
        link.since = self.now;
        link.readiness.note_read(filled, room, link.stream.short_read_is_all());
        Ok(())
    }

    fn took_nothing(&mut self, index: usize, error: &std::io::Error) -> Result<(), String> {
        if net::must_wait(error) {
            let link = &mut self.links[index];
            link.readiness.readable = false;
            return Ok(());
        }
        Err(error.to_string())
    }

    /// Passes on all complete answers in `bytes`, and returns the number of bytes consumed.
    fn deliver(&mut self, index: usize, bytes: &[u8]) -> Result<usize, String> {
        let mut at = 0;
        loop {
            // An answer may have closed the link it came on.
            let Some(link) = self.links.get_mut(index) else { return Ok(bytes.len()) };
            let end = match link.skipper.next(bytes, at) {
                Ok(Some(end)) => end,
                Ok(None) => return Ok(at),
                Err(error) => return Err(format!("it does not speak RESP: {error}")),
            };
            let reply = &bytes[at..end];
            at = end;
            if link.purpose == Purpose::Listening && link.state == super::link::LinkState::Up {
                self.heard(index, reply);
                continue;
            }
            match link.awaiting.pop_front() {
                Some(Awaiter::Client { client, ticket }) => {
                    self.answer_client(client as usize, ticket, reply);
                }
                Some(Awaiter::Gather { gather, part }) => {
                    self.gathered(gather as usize, part as usize, reply);
                }
                Some(Awaiter::Job { job, serial }) => self.on_job_answer(job, serial, reply),
                Some(Awaiter::Waited { client }) => {
                    self.on_waited_for(index, client as usize, reply);
                }
                Some(Awaiter::Watched { client }) => self.on_watched(client as usize, reply),
                Some(Awaiter::Executed { client, ticket }) => {
                    self.answer_client(client as usize, ticket, reply);
                    self.release_own(index);
                }
                Some(Awaiter::Greeting(hello)) => self.on_greeting(index, hello, reply)?,
                Some(Awaiter::Nobody) => {}
                None => return Err("it sent an unexpected reply".to_owned()),
            }
        }
    }

    /// Gives a client an answer, whose turn may not have come yet.
    #[inline]
    pub(super) fn answer_client(&mut self, index: usize, ticket: Ticket, reply: &[u8]) {
        let client = &mut self.clients[index];
        client.replies.answer(ticket, if client.gone { b"" } else { reply });
        self.stirred |= client.put_off;
        if !client.touched {
            client.touched = true;
            self.touched_clients.push(index);
        }
    }

    /// Answers with an error of our own; the text begins with its code.
    pub(super) fn answer_error(&mut self, index: usize, ticket: Ticket, text: impl AsRef<[u8]>) {
        let protocol = self.clients[index].protocol;
        let reply = encoded(protocol, |reply| reply.error(text));
        self.answer_client(index, ticket, &reply);
    }

    /// Fails an awaited answer because the link is gone.
    pub(super) fn disappoint(&mut self, awaiter: Awaiter, text: &str) {
        match awaiter {
            Awaiter::Client { client, ticket } | Awaiter::Executed { client, ticket } => {
                self.answer_error(client as usize, ticket, text);
            }
            Awaiter::Gather { gather, part } => {
                let reply = format!("-{text}\r\n");
                self.gathered(gather as usize, part as usize, reply.as_bytes());
            }
            Awaiter::Job { job, serial } => self.on_job_lost(job, serial, text),
            Awaiter::Waited { client } | Awaiter::Watched { client } => {
                self.own_failed(client as usize, text);
            }
            Awaiter::Greeting(_) | Awaiter::Nobody => {}
        }
    }
}
