//! Requests that the proxy answers itself: authentication, and properties of the connection.

use std::sync::atomic::Ordering::Relaxed;

use resp::Protocol;
use subtle::ConstantTimeEq;

use super::Worker;
use super::client::Client;
use super::dispatch::Ran;

const TOO_MANY_WRONG: &str = "ERR too many wrong passwords from this address, wait ten seconds";
const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";

impl Worker<'_> {
    pub(super) fn local(&mut self, index: usize, args: &[&[u8]]) -> Ran {
        let name = args[0].to_ascii_lowercase();
        match (name.as_slice(), &args[1..]) {
            (b"ping", []) => self.ping(index, None),
            (b"ping", [text]) => self.ping(index, Some(text)),
            (b"echo", [text]) => {
                self.answer_with(index, |reply| reply.bulk(text));
                Ran::Done
            }
            (b"quit", _) => {
                self.answer_with(index, |reply| reply.ok());
                self.clients[index].closing = true;
                Ran::Done
            }
            (b"reset", []) => self.reset(index),
            (b"select", [b"0"]) => self.say_ok(index),
            (b"select", [_]) => self.refuse(index, "ERR a fleet has only database 0"),
            (b"auth", [password]) => self.auth(index, b"default", password),
            (b"auth", [user, password]) => self.auth(index, user, password),
            (b"hello", rest) => self.hello(index, rest),
            (b"client", rest) => self.client(index, rest),
            (b"info", _) => self.info(index),
            (b"readonly" | b"readwrite", []) => self.say_ok(index),
            _ => {
                let name = String::from_utf8_lossy(&name).into_owned();
                self.refuse(index, &format!("ERR wrong number of arguments for '{name}' command"))
            }
        }
    }

    fn ping(&mut self, index: usize, text: Option<&[u8]>) -> Ran {
        let client = &self.clients[index];
        let listens = client.protocol == Protocol::Resp2 && !client.subscriptions.is_empty();
        self.answer_with(index, |reply| match (listens, text) {
            (true, text) => {
                reply.array(2);
                reply.bulk(b"pong");
                reply.bulk(text.unwrap_or_default());
            }
            (false, Some(text)) => reply.bulk(text),
            (false, None) => reply.pong(),
        });
        Ran::Done
    }

    fn reset(&mut self, index: usize) -> Ran {
        self.stop_listening(index);
        self.give_up_own(index);
        let client = &mut self.clients[index];
        client.transaction = Default::default();
        client.protocol = Protocol::Resp2;
        client.authenticated = self.shared.options.password.is_none();
        client.name.clear();
        self.answer_with(index, |reply| reply.simple("RESET"));
        Ran::Done
    }

    fn auth(&mut self, index: usize, user: &[u8], password: &[u8]) -> Ran {
        let Some(wanted) = &self.shared.options.password else {
            return self.refuse(
                index,
                "ERR AUTH <password> called without any password configured for the default user. \
                 Are you sure your configuration is correct?",
            );
        };
        let wanted = wanted.clone();
        if let Err(text) = self.judge(index, &wanted, user, password) {
            return self.refuse(index, text);
        }
        self.clients[index].authenticated = true;
        self.say_ok(index)
    }

    /// Judges a client's credentials, unless its address has presented too many wrong ones.
    fn judge(
        &mut self,
        index: usize,
        wanted: &str,
        user: &[u8],
        password: &[u8],
    ) -> Result<(), &'static str> {
        let from = self.clients[index].stream.peer_addr().map(|address| address.ip());
        let Ok(from) = from else { return Err(WRONG_PASSWORD) }; // The client has gone.
        if !self.shared.guesses.may_try(from, self.now) {
            self.clients[index].closing = true;
            return Err(TOO_MANY_WRONG);
        }
        if user == b"default" && bool::from(wanted.as_bytes().ct_eq(password)) {
            return Ok(());
        }
        self.shared.guesses.note_wrong(from, self.now);
        Err(WRONG_PASSWORD)
    }

    fn hello(&mut self, index: usize, args: &[&[u8]]) -> Ran {
        let mut protocol = self.clients[index].protocol;
        let mut rest = args;
        if let [version, behind @ ..] = args {
            protocol = match *version {
                b"2" => Protocol::Resp2,
                b"3" => Protocol::Resp3,
                _ => return self.refuse(index, "NOPROTO unsupported protocol version"),
            };
            rest = behind;
        }
        if protocol != self.clients[index].protocol && self.clients[index].replies.awaited() > 0 {
            return Ran::NotYet; // Earlier requests are answered in the other protocol.
        }
        let mut name = None;
        while !rest.is_empty() {
            rest = match rest {
                [word, user, password, behind @ ..] if word.eq_ignore_ascii_case(b"auth") => {
                    if let Some(wanted) = self.shared.options.password.clone() {
                        if let Err(text) = self.judge(index, &wanted, user, password) {
                            return self.refuse(index, text);
                        }
                        self.clients[index].authenticated = true;
                    }
                    behind
                }
                [word, given, behind @ ..] if word.eq_ignore_ascii_case(b"setname") => {
                    name = Some(given.to_vec());
                    behind
                }
                _ => return self.refuse(index, "ERR Syntax error in HELLO option"),
            };
        }
        if !self.clients[index].authenticated {
            return self.refuse(
                index,
                "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
                 HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
                 select the RESP protocol version at the same time",
            );
        }
        let client = &mut self.clients[index];
        client.protocol = protocol;
        client.name = name.unwrap_or_else(|| std::mem::take(&mut client.name));
        let id = i64::try_from(client.id).unwrap_or(i64::MAX);
        self.answer_with(index, |reply| say_hello(reply, protocol, id));
        Ran::Done
    }

    fn client(&mut self, index: usize, args: &[&[u8]]) -> Ran {
        let word = args.first().map(|word| word.to_ascii_lowercase()).unwrap_or_default();
        match (word.as_slice(), args.get(1..).unwrap_or_default()) {
            (b"id", []) => {
                let id = i64::try_from(self.clients[index].id).unwrap_or(i64::MAX);
                self.answer_with(index, |reply| reply.integer(id));
                Ran::Done
            }
            (b"getname", []) => {
                let name = self.clients[index].name.clone();
                self.answer_with(index, |reply| {
                    if name.is_empty() { reply.null() } else { reply.bulk(&name) }
                });
                Ran::Done
            }
            (b"setname", [name]) => {
                if name.iter().any(|byte| !(b'!'..=b'~').contains(byte)) {
                    let text =
                        "ERR Client names cannot contain spaces, newlines or special characters.";
                    return self.refuse(index, text);
                }
                self.clients[index].name = name.to_vec();
                self.say_ok(index)
            }
            (b"setinfo", [_, _]) | (b"no-evict" | b"no-touch", [_]) => self.say_ok(index),
            (b"info", []) => {
                let line = describe(&self.clients[index]);
                self.answer_with(index, |reply| reply.verbatim("txt", line.as_bytes()));
                Ran::Done
            }
            (b"list", _) => {
                let lines: String = self
                    .clients
                    .iter()
                    .filter(|(_, client)| !client.gone)
                    .map(|(_, client)| describe(client))
                    .collect();
                self.answer_with(index, |reply| reply.verbatim("txt", lines.as_bytes()));
                Ran::Done
            }
            _ => {
                let word = String::from_utf8_lossy(&word).into_owned();
                self.refuse(
                    index,
                    &format!("ERR 'client|{word}' is not possible through the fleet's proxy"),
                )
            }
        }
    }

    fn info(&mut self, index: usize) -> Ran {
        let view = &self.fleet.view;
        let commands: u64 = self.shared.commands.iter().map(|count| count.load(Relaxed)).sum();
        let mut text = format!(
            "# Server\r\nredis_mode:proxy\r\nopencluster_version:{}\r\nprocess_id:{}\r\nproxy_id:{}\r\n\
             \r\n# Clients\r\nconnected_clients:{}\r\nmaxclients:{}\r\n\
             \r\n# Stats\r\ntotal_commands_processed:{commands}\r\n\
             \r\n# Fleet\r\nmap:{}\r\nepoch:{}\r\nholds_keys:{}\r\nservers:{}\r\n",
            env!("CARGO_PKG_VERSION"),
            std::process::id(),
            self.shared.id,
            self.shared.clients.load(Relaxed),
            self.shared.options.limits.clients_max,
            view.current(),
            view.epoch().number(),
            i32::from(view.holds_keys()),
            self.fleet.servers.len(),
        );
        for (number, known) in self.fleet.servers.iter().enumerate() {
            text.push_str(&format!("server{number}:{}\r\n", known.address));
        }
        self.answer_with(index, |reply| reply.verbatim("txt", text.as_bytes()));
        Ran::Done
    }
}

fn say_hello(reply: &mut resp::Reply<'_>, protocol: Protocol, id: i64) {
    reply.protocol = protocol;
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(b"7.0.15");
    reply.bulk(b"proto");
    reply.integer(match protocol {
        Protocol::Resp2 => 2,
        Protocol::Resp3 => 3,
    });
    reply.bulk(b"id");
    reply.integer(id);
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
}

fn describe(client: &Client) -> String {
    let address = client.stream.peer_addr().map(|address| address.to_string()).unwrap_or_default();
    let name = String::from_utf8_lossy(&client.name);
    let resp = match client.protocol {
        Protocol::Resp2 => 2,
        Protocol::Resp3 => 3,
    };
    format!(
        "id={} addr={address} name={name} db=0 omem={} resp={resp}\n",
        client.id,
        client.replies.held_bytes()
    )
}
