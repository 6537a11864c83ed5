//! The decision about each command: [`decide`] applies the table of commands to a view of the maps.
//!
//! The proxy calls it for each command. A [`Plan`] is either carried out at once (`Forward` and its
//! variants), or says which job to create (`read.rs`, `write.rs`).

use std::fmt;

use placement::{Slot, hash_tag};

use crate::command::{Access, Command, Merge, Places, Runs};
use crate::config::Server;
use crate::known::{Knowledge, Known};
use crate::names::is_reserved;
use crate::view::{Place, Route, View};

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Plan {
    /// Send it as it is, on a shared connection.
    Forward(Server),
    /// Send it as it is, on a connection of its own: it may block there.
    ForwardWaiting(Server),
    /// Read one moving key, the argument at `key`, with a `ReadJob`.
    Read {
        key: usize,
        route: Route,
    },
    /// Move these keys to `to` first, then run the command there, with a `WriteJob`.
    Write(Bring),
    /// Like `Write`, but with a `BringJob`, and then the command on a connection of its own.
    WriteWaiting(Bring),
    /// Plan and run the parts separately, and merge the answers.
    Scatter(Scatter),
    /// Send it to each of these servers, and merge the answers.
    Everywhere {
        servers: Vec<Server>,
        merge: Merge,
    },
    /// Scan server after server; `scan.rs` decodes the cursor.
    Scan,
    /// Send it to any server in `View::walk`.
    Anywhere,
    /// Send each channel of a pub/sub command to the channel's server (`View::channel`).
    Channel,
    Transaction,
    Local,
    /// Wait until the view changes, then decide again.
    Hold,
    Refuse(Refusal),
}

/// Keys that must be at `to`, and gone from their old servers, before the command runs there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bring {
    pub to: Server,
    pub keys: Vec<MovingKey>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MovingKey {
    /// Index of the key among the arguments.
    pub place: usize,
    pub from: Server,
    /// Knowledge about the key; never `Settled`.
    pub known: Knowledge,
}

/// A command on several keys that runs as several commands of the same name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scatter {
    pub merge: Merge,
    pub parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// Positions of its keys among the arguments of the whole command.
    pub keys: Vec<usize>,
    /// Number of arguments per key: 2 for MSET.
    pub step: usize,
    pub run: PartRun,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartRun {
    Forward(Server),
    /// Reads one moving key.
    Read(Route),
    /// Writes one moving key.
    Write {
        route: Route,
        known: Knowledge,
    },
}

impl Part {
    /// Returns the command of this part.
    pub fn args<'a, A: AsRef<[u8]>>(&self, whole: &'a [A]) -> Vec<&'a [u8]> {
        let name = std::iter::once(whole[0].as_ref());
        let of_key = |place: usize| whole[place..place + self.step].iter().map(AsRef::as_ref);
        name.chain(self.keys.iter().flat_map(|place| of_key(*place))).collect()
    }
}

/// Reason why a command is refused. Displayed as the error for the client, with its code in front.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    Unknown(String),
    /// Its keys cannot be determined from its arguments.
    BadKeys {
        name: &'static str,
        why: crate::command::BadKeys,
    },
    NotInAFleet {
        name: &'static str,
        why: &'static str,
    },
    Reserved,
    SeveralServers,
    NoKeys {
        name: &'static str,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Unknown(name) => write!(f, "ERR unknown command '{name}'"),
            Refusal::BadKeys { name, why: why @ crate::command::BadKeys::TooFewArguments } => {
                write!(f, "ERR {why} for '{name}' command")
            }
            Refusal::BadKeys { why, .. } => write!(f, "ERR {why}"),
            Refusal::NotInAFleet { name, why } => {
                write!(f, "ERR '{name}' is not possible through the fleet's proxy: {why}")
            }
            Refusal::Reserved => {
                f.write_str("ERR keys that begin with 'server.config.' belong to the fleet")
            }
            Refusal::SeveralServers => f.write_str(
                "CROSSSLOT Keys in request live on different servers; a {hash tag} keeps keys together",
            ),
            Refusal::NoKeys { name } => write!(
                f,
                "ERR '{name}' needs at least one key, so that the fleet knows where to run it"
            ),
        }
    }
}

/// Decides what to do with a command under a view, given the knowledge about moving keys.
pub fn decide<A: AsRef<[u8]>>(view: &View, known: &Known, args: &[A]) -> Plan {
    let name = args[0].as_ref();
    let Some(command) = Command::find(name) else {
        return Plan::Refuse(Refusal::Unknown(String::from_utf8_lossy(name).into_owned()));
    };
    match command.runs {
        Runs::AtKeys | Runs::AtKeysWaiting => at_keys(view, known, command, args),
        Runs::Scattered(merge) => scattered(view, known, Scattered { command, merge }, args),
        Runs::Everywhere(merge) => {
            Plan::Everywhere { servers: view.walk(), merge: command.merge(merge, args) }
        }
        Runs::Scan => Plan::Scan,
        Runs::Anywhere => Plan::Anywhere,
        Runs::Channel => Plan::Channel,
        Runs::Transaction => Plan::Transaction,
        Runs::Local => Plan::Local,
        Runs::Refused(why) => Plan::Refuse(Refusal::NotInAFleet { name: command.name, why }),
    }
}

/// Returns the one server of all these keys. WATCH needs this, and a transaction for all of its commands.
pub fn together<A: AsRef<[u8]>>(
    view: &View,
    known: &Known,
    keys: impl Iterator<Item = (usize, A)>,
) -> Result<Bring, Plan> {
    let mut bring: Option<Bring> = None;
    for (place, key) in keys {
        let key = key.as_ref();
        if is_reserved(key) {
            return Err(Plan::Refuse(Refusal::Reserved));
        }
        let (to, moving) = match view.place(key) {
            Place::Held => return Err(Plan::Hold),
            Place::At(server) => (server, None),
            Place::Moving(route) => (route.to, Some((route.from, known.of(key)))),
        };
        let bring = bring.get_or_insert(Bring { to, keys: Vec::new() });
        if bring.to != to {
            return Err(Plan::Refuse(Refusal::SeveralServers));
        }
        if let Some((from, known)) = moving.filter(|(_, known)| *known < Knowledge::Settled) {
            bring.keys.push(MovingKey { place, from, known });
        }
    }
    bring.ok_or(Plan::Refuse(Refusal::NoKeys { name: "this" }))
}

fn at_keys<A: AsRef<[u8]>>(view: &View, known: &Known, command: &Command, args: &[A]) -> Plan {
    let places = match key_places(command, args) {
        Ok(places) => places,
        Err(refusal) => return Plan::Refuse(refusal),
    };
    if let Some(why) = elsewhere(view, command, args) {
        return Plan::Refuse(Refusal::NotInAFleet { name: command.name, why });
    }
    let waits = command.may_wait(args);
    if let (Some(key), Access::Read, false) = (places.only(), command.access, waits) {
        return read_one(view, known, key, args[key].as_ref());
    }
    let keys = places.iter().map(|place| (place, &args[place]));
    match (together(view, known, keys), waits) {
        (Err(plan), _) => plan,
        (Ok(bring), false) if bring.keys.is_empty() => Plan::Forward(bring.to),
        (Ok(bring), true) if bring.keys.is_empty() => Plan::ForwardWaiting(bring.to),
        (Ok(bring), false) => Plan::Write(bring),
        (Ok(bring), true) => Plan::WriteWaiting(bring),
    }
}

/// Returns the reason why a command that uses more than its keys cannot run at the server of its keys.
fn elsewhere<A: AsRef<[u8]>>(view: &View, command: &Command, args: &[A]) -> Option<&'static str> {
    let is_word = |arg: &A, word: &str| arg.as_ref().eq_ignore_ascii_case(word.as_bytes());
    let options = args.get(2..)?;
    match command.name {
        "copy" => {
            let db = options.iter().position(|arg| is_word(arg, "db"))?;
            let number = options.get(db + 1)?.as_ref();
            (number != b"0").then_some("a fleet has one database, number 0")
        }
        "sort" | "sort_ro" if view.walk().len() > 1 => {
            let key = args[1].as_ref();
            let is_settled = matches!(view.place(key), Place::At(_));
            let is_pattern = |pair: &[A]| {
                let pattern = pair[1].as_ref();
                (is_word(&pair[0], "by") || is_word(&pair[0], "get"))
                    && pattern.contains(&b'*')
                    && !(is_settled && is_beside(pattern, key))
            };
            let why = "BY and GET may only name keys with the hash tag of the sorted key, and only \
                       while no migration moves that key";
            options.windows(2).any(is_pattern).then_some(why)
        }
        _ => None,
    }
}

/// Returns whether all keys that fit a pattern have the hash tag of `key`.
fn is_beside(pattern: &[u8], key: &[u8]) -> bool {
    let tag = hash_tag(pattern);
    tag.len() < pattern.len() && !tag.contains(&b'*') && tag == hash_tag(key)
}

fn key_places<A: AsRef<[u8]>>(command: &Command, args: &[A]) -> Result<Places, Refusal> {
    let name = command.name;
    let places = command.key_places(args).map_err(|why| Refusal::BadKeys { name, why })?;
    if places.is_empty() { Err(Refusal::NoKeys { name }) } else { Ok(places) }
}

fn read_one(view: &View, known: &Known, place: usize, key: &[u8]) -> Plan {
    if is_reserved(key) {
        return Plan::Refuse(Refusal::Reserved);
    }
    match view.place(key) {
        Place::At(server) => Plan::Forward(server),
        Place::Held => Plan::Hold,
        Place::Moving(route) => match known.of(key) {
            Knowledge::Nothing => Plan::Read { key: place, route },
            Knowledge::Gone | Knowledge::Settled => Plan::Forward(route.to),
        },
    }
}

#[derive(Clone, Copy)]
struct Scattered {
    command: &'static Command,
    merge: Merge,
}

fn scattered<A: AsRef<[u8]>>(view: &View, known: &Known, which: Scattered, args: &[A]) -> Plan {
    let places = match key_places(which.command, args) {
        Ok(places) => places,
        Err(refusal) => return Plan::Refuse(refusal),
    };
    let mut parts: Vec<Part> = Vec::new();
    for place in places.iter() {
        let key = args[place].as_ref();
        let run = match part_run(view, known, which.command.access, key) {
            Ok(run) => run,
            Err(plan) => return plan,
        };
        // Keys at rest on one server share a part; a moving key gets a part of its own.
        let fits = |part: &&mut Part| match run {
            PartRun::Forward(server) if view.is_cluster(server) => {
                part.run == run && Slot::of(args[part.keys[0]].as_ref()) == Slot::of(key)
            }
            PartRun::Forward(_) => part.run == run,
            PartRun::Read(_) | PartRun::Write { .. } => false,
        };
        match parts.iter_mut().find(fits) {
            Some(part) => part.keys.push(place),
            None => parts.push(Part { keys: vec![place], step: places.step(), run }),
        }
    }
    match parts.as_slice() {
        [Part { run: PartRun::Forward(server), .. }] => Plan::Forward(*server),
        _ => Plan::Scatter(Scatter { merge: which.merge, parts }),
    }
}

fn part_run(view: &View, known: &Known, access: Access, key: &[u8]) -> Result<PartRun, Plan> {
    if is_reserved(key) {
        return Err(Plan::Refuse(Refusal::Reserved));
    }
    let route = match view.place(key) {
        Place::Held => return Err(Plan::Hold),
        Place::At(server) => return Ok(PartRun::Forward(server)),
        Place::Moving(route) => route,
    };
    Ok(match (known.of(key), access) {
        (Knowledge::Settled, _) | (Knowledge::Gone, Access::Read) => PartRun::Forward(route.to),
        (Knowledge::Nothing, Access::Read) => PartRun::Read(route),
        (known, Access::Write) => PartRun::Write { route, known },
    })
}

#[cfg(test)]
mod tests;
