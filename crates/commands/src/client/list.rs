//! CLIENT LIST and CLIENT INFO: connections as lines of `name=value`, and the client types.

use std::io::Write as _;

use crate::context::Context;
use crate::{ClientFacts, Error};

/// The type of a client, as in the TYPE filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ClientType {
    Normal,
    PubSub,
    /// Always empty: nodes do not connect as clients here.
    Master,
    Replica,
}

impl ClientType {
    pub(super) fn parse(word: &[u8]) -> Result<ClientType, Error> {
        match word.to_ascii_lowercase().as_slice() {
            b"normal" => Ok(ClientType::Normal),
            b"pubsub" => Ok(ClientType::PubSub),
            b"master" => Ok(ClientType::Master),
            b"slave" | b"replica" => Ok(ClientType::Replica),
            _ => {
                let word = String::from_utf8_lossy(word);
                Err(Error::new(format!("ERR Unknown client type '{word}'")))
            }
        }
    }

    pub(super) fn of(client: &ClientFacts) -> ClientType {
        if client.channels + client.patterns + client.sharded_channels > 0 {
            ClientType::PubSub
        } else {
            ClientType::Normal
        }
    }
}

pub(super) fn info(context: &mut Context<'_>) -> Result<(), Error> {
    let client = context.host.this_client(context.session);
    context.reply.verbatim("txt", &lines(&[client]));
    Ok(())
}

pub(super) fn list(context: &mut Context<'_>) -> Result<(), Error> {
    let args = context.args;
    let mut clients = context.host.clients(context.session);
    match args.get(2).map(<[u8]>::to_ascii_lowercase).as_deref() {
        None => {}
        Some(b"type") if args.len() == 4 => {
            let wanted = ClientType::parse(args.at(3))?;
            clients.retain(|client| ClientType::of(client) == wanted);
        }
        Some(b"id") if args.len() > 3 => {
            let ids: Option<Vec<i64>> = args.from(3).map(resp::parse_integer).collect();
            let ids = ids.ok_or(Error::fixed("ERR Invalid client ID"))?;
            clients.retain(|client| ids.contains(&client.id.cast_signed()));
        }
        Some(_) => return Err(Error::SYNTAX),
    }
    context.reply.verbatim("txt", &lines(&clients));
    Ok(())
}

fn lines(clients: &[ClientFacts]) -> Vec<u8> {
    let mut text = Vec::new();
    for client in clients {
        write_line(client, &mut text);
    }
    text
}

fn write_line(client: &ClientFacts, to: &mut Vec<u8>) {
    let queued = client.queued.map_or(-1, |count| i64::try_from(count).unwrap_or(i64::MAX));
    let mut put = |name: &str, value: &[u8]| {
        to.extend_from_slice(name.as_bytes());
        to.push(b'=');
        to.extend_from_slice(value);
        to.push(b' ');
    };
    put("id", client.id.to_string().as_bytes());
    put("addr", client.address.as_bytes());
    put("laddr", client.local_address.as_bytes());
    put("fd", client.descriptor.to_string().as_bytes());
    put("name", &client.name);
    put("age", client.age_seconds.to_string().as_bytes());
    put("idle", client.idle_seconds.to_string().as_bytes());
    put("flags", flags(client).as_bytes());
    put("db", client.database.number().to_string().as_bytes());
    put("sub", client.channels.to_string().as_bytes());
    put("psub", client.patterns.to_string().as_bytes());
    put("ssub", client.sharded_channels.to_string().as_bytes());
    put("multi", queued.to_string().as_bytes());
    put("qbuf", client.input_bytes.to_string().as_bytes());
    put("qbuf-free", b"0");
    put("argv-mem", b"0");
    put("multi-mem", client.queued_bytes.to_string().as_bytes());
    put("rbs", client.output_capacity.to_string().as_bytes());
    put("rbp", client.output_bytes.to_string().as_bytes());
    put("obl", client.output_bytes.to_string().as_bytes());
    put("oll", b"0");
    put("omem", client.output_capacity.to_string().as_bytes());
    put("tot-mem", client.total_bytes.to_string().as_bytes());
    put("events", if client.output_bytes > 0 { b"rw" } else { b"r" });
    put("cmd", client.last_command.unwrap_or("NULL").as_bytes());
    put("user", b"default");
    put("redir", b"-1");
    put("resp", if client.is_resp3 { b"3" } else { b"2" });
    put("lib-name", &client.library_name);
    let _ = write!(to, "lib-ver={}", String::from_utf8_lossy(&client.library_version));
    to.push(b'\n');
}

/// Returns one letter per flag of the connection; `N` if it has none.
fn flags(client: &ClientFacts) -> String {
    let letters = [
        (client.is_monitor, 'O'),
        (ClientType::of(client) == ClientType::PubSub, 'P'),
        (client.queued.is_some(), 'x'),
        (client.is_blocked, 'b'),
        (client.is_closing, 'c'),
        (client.no_evict, 'e'),
        (client.no_touch, 'T'),
    ];
    let set: String =
        letters.into_iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| letter).collect();
    if set.is_empty() { "N".to_owned() } else { set }
}
