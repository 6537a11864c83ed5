//! Requests that run on several servers at once, and the merging of their answers: MGET and similar commands,
//! part by part; KEYS, DBSIZE, SCRIPT on all servers; SCAN on server after server.

mod merge;

use fleet::command::Merge;
use fleet::plan::{Part, PartRun, Scatter};
use fleet::scan::Cursor;
use fleet::{Server, View};
use resp::Protocol;

pub(super) use self::merge::{array_items, bulk};
use self::merge::{join, merged, scanned};
use super::Worker;
use super::dispatch::Ran;
use super::jobs::{Task, Waiter};
use super::link::Awaiter;
use super::replies::Ticket;
use super::round::encoded;

/// A request whose parts are in flight.
pub(crate) struct Gather {
    client: usize,
    ticket: Ticket,
    protocol: Protocol,
    how: How,
    /// The answers so far, in the order of the parts.
    parts: Vec<Vec<u8>>,
    left: usize,
}

/// Rule for merging the answers.
enum How {
    Merge(Merge),
    /// Like `Merge::ByKey`; holds the positions of each part's items in the merged answer.
    ByKey(Vec<Vec<usize>>),
    /// One server's part of a SCAN, and the view in which it began.
    Scan(Cursor, View),
}

impl How {
    fn of(scatter: &Scatter) -> How {
        if scatter.merge != Merge::ByKey {
            return How::Merge(scatter.merge);
        }
        // Such a command has only keys as arguments, from the first on.
        let places = |part: &Part| part.keys.iter().map(|key| key - 1).collect();
        How::ByKey(scatter.parts.iter().map(places).collect())
    }
}

impl Worker<'_> {
    /// Starts a request with this many parts.
    fn begin_gather(&mut self, client: usize, how: How, parts: usize) -> usize {
        let Worker { clients, gathers, .. } = self;
        let ticket = clients[client].replies.expect();
        let protocol = clients[client].protocol;
        let parts_empty = vec![Vec::new(); parts];
        gathers.insert(Gather { client, ticket, protocol, how, parts: parts_empty, left: parts })
    }

    /// Takes the answer to one part.
    pub(super) fn gathered(&mut self, gather: usize, part: usize, reply: &[u8]) {
        let under_way = &mut self.gathers[gather];
        under_way.parts[part] = reply.to_vec();
        under_way.left -= 1;
        if under_way.left > 0 {
            return;
        }
        let done = self.gathers.remove(gather);
        let reply = done.reply();
        self.answer_client(done.client, done.ticket, &reply);
    }

    pub(super) fn scatter(&mut self, index: usize, scatter: &Scatter, args: &[&[u8]]) -> Ran {
        let protocol = self.clients[index].protocol;
        for part in &scatter.parts {
            let PartRun::Forward(server) = part.run else { continue };
            if let Err(way) = self.shared_link(server, protocol) {
                // All or nothing, as far as that can be known in advance.
                return self.no_way(index, way);
            }
        }
        let gather = self.begin_gather(index, How::of(scatter), scatter.parts.len());
        for (number, part) in scatter.parts.iter().enumerate() {
            let command = part.args(args);
            let waiter = Waiter::Part { gather, part: number };
            match part.run {
                PartRun::Forward(server) => {
                    let awaiter = Awaiter::Gather { gather: gather as u32, part: number as u32 };
                    self.ask(server, protocol, &[(&command, awaiter)]);
                }
                PartRun::Read(route) => {
                    self.begin_job(index, Task::read(route, command[1], &command), waiter);
                }
                PartRun::Write { route, known } => {
                    let token = self.shared.token();
                    let task = Task::write_one(route, known, token, &command);
                    self.begin_job(index, task, waiter);
                }
            }
        }
        Ran::Done
    }

    /// Sends commands to a server that has a link, or fails the awaited answers.
    fn ask(&mut self, server: Server, protocol: Protocol, commands: &[(&[&[u8]], Awaiter)]) {
        match self.shared_link(server, protocol) {
            Ok(link) => {
                for (command, awaiter) in commands {
                    self.links[link].push_command(self.now, command, *awaiter);
                }
                self.touch_link(link);
            }
            Err(_) => {
                let text = super::links::away(&self.fleet, server, "its connection was just lost");
                commands.iter().for_each(|(_, awaiter)| self.disappoint(*awaiter, &text));
            }
        }
    }

    pub(super) fn everywhere(
        &mut self,
        index: usize,
        servers: &[Server],
        merge: Merge,
        args: &[&[u8]],
    ) -> Ran {
        let protocol = self.clients[index].protocol;
        for server in servers {
            if let Err(way) = self.shared_link(*server, protocol) {
                return self.no_way(index, way);
            }
        }
        if matches!(args[0].to_ascii_lowercase().as_slice(), b"flushall" | b"flushdb") {
            return self.flush_everywhere(index, servers, args);
        }
        // DBSIZE needs two questions: the number of keys, and how many of them are the fleet's own.
        let each = if merge == Merge::Sizes { 2 } else { 1 };
        let gather = self.begin_gather(index, How::Merge(merge), servers.len() * each);
        let mut own_keys: Vec<&[u8]> = vec![b"EXISTS"];
        own_keys.extend(fleet::config::KEYS.iter().map(|key| key.as_bytes()));
        for (number, server) in servers.iter().enumerate() {
            let awaiter =
                |part: usize| Awaiter::Gather { gather: gather as u32, part: part as u32 };
            let commands =
                [(args, awaiter(number * each)), (&own_keys, awaiter(number * each + 1))];
            self.ask(*server, protocol, &commands[..each]);
        }
        Ran::Done
    }

    /// Deletes all keys on every server except the fleet's own.
    fn flush_everywhere(&mut self, index: usize, servers: &[Server], args: &[&[u8]]) -> Ran {
        if self.fleet.view.phase() != &fleet::view::Phase::Settled {
            let text = "ERR a migration is in progress; retry after it has ended";
            return self.refuse(index, text);
        }
        let gather = self.begin_gather(index, How::Merge(Merge::AllOk), servers.len());
        for (part, server) in servers.iter().enumerate() {
            self.begin_job(index, Task::flush(*server, args), Waiter::Part { gather, part });
        }
        Ran::Done
    }

    pub(super) fn scan(&mut self, index: usize, args: &[&[u8]]) -> Ran {
        let Some(text) = args.get(1) else {
            return self.refuse(index, "ERR wrong number of arguments for 'scan' command");
        };
        let Some(cursor) = Cursor::read(&self.fleet.view, text) else {
            return self.refuse(index, "ERR invalid cursor");
        };
        let protocol = self.clients[index].protocol;
        if let Err(way) = self.shared_link(cursor.server, protocol) {
            return self.no_way(index, way);
        }
        let how = How::Scan(cursor, self.fleet.view.clone());
        let gather = self.begin_gather(index, how, 1);
        let inner = cursor.inner.to_string();
        let mut command = args.to_vec();
        command[1] = inner.as_bytes();
        let awaiter = Awaiter::Gather { gather: gather as u32, part: 0 };
        self.ask(cursor.server, protocol, &[(&command, awaiter)]);
        Ran::Done
    }
}

impl Gather {
    /// Returns the answer for the client. An error in one part is the answer for all.
    fn reply(&self) -> Vec<u8> {
        if let Some(error) = self.parts.iter().find(|part| part.starts_with(b"-")) {
            return error.clone();
        }
        let made = match &self.how {
            How::Merge(merge) => merged(*merge, self.protocol, &self.parts),
            How::ByKey(places) => self.by_key(places),
            How::Scan(cursor, view) => {
                scanned(&self.parts[0], self.protocol, |inner| cursor.following(view, inner))
            }
        };
        made.unwrap_or_else(|| {
            encoded(self.protocol, |reply| {
                reply.error("ERR the servers' answers cannot be merged");
            })
        })
    }

    fn by_key(&self, places: &[Vec<usize>]) -> Option<Vec<u8>> {
        let total = places.iter().map(Vec::len).sum();
        let mut items: Vec<&[u8]> = vec![&[]; total];
        for (part, places) in self.parts.iter().zip(places) {
            let of_part = array_items(part)?;
            if of_part.len() != places.len() {
                return None;
            }
            for (item, place) in of_part.into_iter().zip(places) {
                items[*place] = item;
            }
        }
        Some(join(&items))
    }
}
