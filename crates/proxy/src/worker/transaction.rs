//! MULTI to EXEC, and WATCH. Commands are queued here and sent in one piece at EXEC, when the server of all
//! their keys is known; that server executes the transaction.

use fleet::command::Runs;
use fleet::plan::together;
use fleet::{Command, Epoch, Plan, Server};

use super::Worker;
use super::dispatch::Ran;
use super::link::Awaiter;
use super::links::Way;

/// Maximum size of the queued commands of one transaction.
const QUEUED_BYTES_MAX: usize = 64 << 20;

#[derive(Default)]
pub(crate) struct Transaction {
    queue: Option<Queue>,
    watch: Watch,
}

#[derive(Default)]
struct Queue {
    commands: Vec<Vec<Vec<u8>>>,
    bytes: usize,
    /// True if a command was refused: EXEC will be refused too.
    broken: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Watch {
    #[default]
    None,
    /// On the client's own link, since this epoch.
    Held(Epoch),
    /// The link was closed: the keys may have changed without our knowing.
    Broken,
}

impl Transaction {
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.queue.is_some()
    }

    pub(crate) fn is_watching(&self) -> bool {
        matches!(self.watch, Watch::Held(_))
    }

    /// Marks the WATCH as broken: the keys are no longer watched.
    pub(crate) fn spoil(&mut self) {
        if self.is_watching() {
            self.watch = Watch::Broken;
        }
    }
}

impl Worker<'_> {
    pub(super) fn transaction(&mut self, index: usize, args: &[&[u8]]) -> Ran {
        let name = args[0].to_ascii_lowercase();
        let open = self.clients[index].transaction.is_open();
        match (name.as_slice(), open) {
            (b"multi", true) => self.refuse(index, "ERR MULTI calls can not be nested"),
            (b"multi", false) => {
                self.clients[index].transaction.queue = Some(Queue::default());
                self.say_ok(index)
            }
            (b"watch", true) => self.refuse(index, "ERR WATCH inside MULTI is not allowed"),
            (b"watch", false) => self.watch(index, args),
            (b"unwatch", _) => {
                self.end_watch(index);
                self.say_ok(index)
            }
            (b"discard", false) => self.refuse(index, "ERR DISCARD without MULTI"),
            (b"discard", true) => {
                self.clients[index].transaction.queue = None;
                self.end_watch(index);
                self.say_ok(index)
            }
            (_, false) => self.refuse(index, "ERR EXEC without MULTI"),
            (_, true) => self.exec(index),
        }
    }

    pub(super) fn say_ok(&mut self, index: usize) -> Ran {
        self.answer_with(index, |reply| reply.ok());
        Ran::Done
    }

    fn end_watch(&mut self, index: usize) {
        self.clients[index].transaction.watch = Watch::None;
        self.give_up_own(index);
    }

    /// Queues a command in the open transaction.
    pub(super) fn queue(&mut self, index: usize, args: &[&[u8]]) -> Ran {
        let refusal = refused_in_transaction(args);
        let client = &mut self.clients[index];
        let queue = client.transaction.queue.as_mut().expect("a transaction is open");
        let bytes: usize = args.iter().map(|arg| arg.len()).sum();
        let text = match refusal {
            None if queue.bytes + bytes <= QUEUED_BYTES_MAX => {
                queue.bytes += bytes;
                queue.commands.push(args.iter().map(|arg| arg.to_vec()).collect());
                self.answer_with(index, |reply| reply.queued());
                return Ran::Done;
            }
            None => "ERR the transaction is too large".to_owned(),
            Some(text) => text,
        };
        queue.broken = true;
        self.refuse(index, &text)
    }

    fn exec(&mut self, index: usize) -> Ran {
        let transaction = &self.clients[index].transaction;
        let queue = transaction.queue.as_ref().expect("a transaction is open");
        if queue.broken {
            let text = "EXECABORT Transaction discarded because of previous errors.";
            return self.end_exec(index, |reply| reply.error(text));
        }
        let now = self.fleet.view.epoch();
        if transaction.watch == Watch::Broken
            || matches!(transaction.watch, Watch::Held(epoch) if epoch != now)
        {
            return self.end_exec(index, |reply| reply.null_array());
        }
        let keys: Vec<Vec<u8>> =
            queue.commands.iter().flat_map(|command| keys_of(command)).collect();
        let watched = self.clients[index].own.map(|link| self.links[link].server);
        if keys.is_empty() && queue.commands.is_empty() && watched.is_none() {
            return self.end_exec(index, |reply| reply.array(0));
        }
        if watched.is_some() && self.clients[index].replies.awaited() > 0 {
            return Ran::NotYet; // Earlier requests go over another connection.
        }
        match self.server_for(index, &keys) {
            Ok(Some(server)) if watched.is_some_and(|watched| watched != server) => {
                let text = fleet::plan::Refusal::SeveralServers.to_string();
                self.end_exec(index, |reply| reply.error(text))
            }
            Ok(server) => {
                let anywhere = || self.fleet.view.walk()[0];
                let server = server.or(watched).unwrap_or_else(anywhere);
                self.send_exec(index, server)
            }
            Err(ran) => ran,
        }
    }

    /// Returns the one server of these keys, once all of them are there. An `Err` has been handled already.
    fn server_for(&mut self, index: usize, keys: &[Vec<u8>]) -> Result<Option<Server>, Ran> {
        if keys.is_empty() {
            return Ok(None);
        }
        if self.jobs.are_on_any(index, keys) {
            return Err(Ran::NotYet);
        }
        let places = keys.iter().enumerate();
        match together(&self.fleet.view, &self.known, places) {
            Ok(bring) if bring.keys.is_empty() => Ok(Some(bring.to)),
            Ok(bring) => {
                let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                Err(self.bring_first(index, &bring, &keys))
            }
            Err(Plan::Hold) => Err(self.wait_or_refuse(
                index,
                "TRYAGAIN the fleet's map is being changed, and this key will move; retry",
            )),
            Err(Plan::Refuse(refusal)) => {
                let text = refusal.to_string();
                self.clients[index].transaction.queue = None;
                self.end_watch(index);
                Err(self.refuse(index, &text))
            }
            Err(_) => unreachable!("keys are together, held or refused"),
        }
    }

    fn end_exec(&mut self, index: usize, write: impl FnOnce(&mut resp::Reply<'_>)) -> Ran {
        self.clients[index].transaction.queue = None;
        self.end_watch(index);
        self.answer_with(index, write);
        Ran::Done
    }

    fn send_exec(&mut self, index: usize, server: Server) -> Ran {
        let client = &self.clients[index];
        let own = client.own;
        let link = match own {
            Some(link) => link,
            None => match self.shared_link(server, client.protocol) {
                Ok(link) => link,
                Err(Way::Refuse(text)) => {
                    return self.end_exec(index, |reply| reply.error(text));
                }
                Err(Way::Wait) => return self.no_way(index, Way::Wait),
            },
        };
        let client = &mut self.clients[index];
        let queue = client.transaction.queue.take().expect("a transaction is open");
        client.transaction.watch = Watch::None;
        let (client, ticket) = (index as u32, client.replies.expect());
        let (now, out) = (self.now, &mut self.links[link]);
        out.push_command(now, &[b"MULTI"], Awaiter::Nobody);
        for command in &queue.commands {
            let command: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            out.push_command(now, &command, Awaiter::Nobody);
        }
        let awaiter = match own {
            Some(_) => Awaiter::Executed { client, ticket },
            None => Awaiter::Client { client, ticket },
        };
        out.push_command(now, &[b"EXEC"], awaiter);
        self.touch_link(link);
        Ran::Done
    }

    fn watch(&mut self, index: usize, args: &[&[u8]]) -> Ran {
        if args.len() < 2 {
            return self.refuse(index, "ERR wrong number of arguments for 'watch' command");
        }
        if self.clients[index].replies.awaited() > 0 {
            return Ran::NotYet;
        }
        let keys: Vec<Vec<u8>> = args[1..].iter().map(|key| key.to_vec()).collect();
        let server = match self.server_for(index, &keys) {
            Ok(server) => server.expect("there is a key"),
            Err(ran) => return ran,
        };
        let watched = self.clients[index].own.map(|link| self.links[link].server);
        if self.clients[index].transaction.is_watching() && watched != Some(server) {
            let text = fleet::plan::Refusal::SeveralServers.to_string();
            return self.refuse(index, &text);
        }
        let link = match self.own_link(index, server) {
            Ok(link) => link,
            Err(way) => return self.no_way(index, way),
        };
        self.links[link].push_command(self.now, args, Awaiter::Watched { client: index as u32 });
        self.touch_link(link);
        let client = &mut self.clients[index];
        client.busy = true;
        client.transaction.watch = Watch::Held(self.fleet.view.epoch());
        Ran::Done
    }

    pub(super) fn on_watched(&mut self, index: usize, reply: &[u8]) {
        let client = &mut self.clients[index];
        client.busy = false;
        let ticket = client.replies.expect();
        self.stirred = true;
        self.answer_client(index, ticket, reply);
    }
}

/// Returns the reason why a command cannot be part of a transaction, if it cannot.
fn refused_in_transaction(args: &[&[u8]]) -> Option<String> {
    let Some(command) = Command::find(args[0]) else {
        return Some(format!("ERR unknown command '{}'", String::from_utf8_lossy(args[0])));
    };
    let name = command.name;
    let possible = match command.runs {
        Runs::AtKeys | Runs::AtKeysWaiting | Runs::Scattered(_) | Runs::Anywhere => true,
        Runs::Channel => matches!(name, "publish" | "spublish"),
        Runs::Local => matches!(name, "ping" | "echo"),
        Runs::Everywhere(_) | Runs::Scan | Runs::Transaction | Runs::Refused(_) => false,
    };
    if !possible {
        return Some(format!(
            "ERR '{name}' is not possible in a transaction through the fleet's proxy"
        ));
    }
    let bad = command.key_places(args).err()?;
    Some(fleet::plan::Refusal::BadKeys { name, why: bad }.to_string())
}

/// Returns the names that decide where a command runs: its keys, or the channel it publishes to.
fn keys_of(command: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let Some(entry) = Command::find(&command[0]) else { return Vec::new() };
    if entry.runs == Runs::Channel {
        return command.get(1).cloned().into_iter().collect();
    }
    let places = entry.key_places(command);
    places
        .map_or_else(|_| Vec::new(), |places| places.iter().map(|at| command[at].clone()).collect())
}
