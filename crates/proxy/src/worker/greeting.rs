//! The greeting on a new link before it takes commands: our credentials, the protocol, and the map on which we act.
//!
//! The name is set in two steps: first with epoch 0, then the server's configuration is read, then with the
//! epoch we act on. A switch of maps waits for, or kills, every connection with an older name, so a map that
//! we have not seen yet cannot have been switched to while this link takes commands.

use fleet::switch::Agreement;
use fleet::{Config, Epoch};
use resp::{Protocol, ReplyParser, Value};

use super::Worker;
use super::link::{Awaiter, Hello, Link, LinkState, Purpose};

impl Worker<'_> {
    pub(super) fn greet(&mut self, index: usize) {
        let name = match self.links[index].purpose {
            Purpose::Shared | Purpose::Own => {
                fleet::names::connection(&self.shared.id, Epoch::NONE)
            }
            // It touches no keys, so a switch of maps need not wait for it.
            Purpose::Listening => format!("fleet-listener:{}", self.shared.id),
        };
        let (now, access) = (self.now, &self.shared.options.access);
        let link = &mut self.links[index];
        let protocol = link.protocol;
        let mut say =
            |args: &[&[u8]], hello| link.push_command(now, args, Awaiter::Greeting(hello));
        if let Some(command) = access.auth_command() {
            say(&command, Hello::Auth);
        }
        if protocol == Protocol::Resp3 {
            say(&[b"HELLO", b"3"], Hello::Protocol);
        }
        say(&[b"CLIENT", b"SETNAME", name.as_bytes()], Hello::Name);
        say(&[b"CLIENT", b"ID"], Hello::Id);
        if self.listens_to_cluster(index) {
            return self.touch_link(index);
        }
        let link = &mut self.links[index];
        let mut keys: Vec<&[u8]> = vec![b"MGET"];
        keys.extend(fleet::config::KEYS.iter().map(|key| key.as_bytes()));
        link.push_command(now, &keys, Awaiter::Greeting(Hello::Config));
        self.touch_link(index);
    }

    pub(super) fn on_greeting(
        &mut self,
        index: usize,
        hello: Hello,
        reply: &[u8],
    ) -> Result<(), String> {
        let value = value_of(reply)?;
        match (hello, value) {
            // Older servers have no ID for the connection; then its blocking commands cannot be interrupted.
            (Hello::Id, id) => {
                let number = if let Value::Integer(number) = id { Some(number) } else { None };
                self.links[index].client_id = number;
                if self.listens_to_cluster(index) {
                    self.come_up(index);
                }
            }
            (Hello::Config, value) => return self.on_config(index, &value),
            (Hello::Protocol, Value::Error(_)) => {
                return Err("it does not speak RESP3".to_owned());
            }
            (Hello::Auth | Hello::Name, Value::Error(text)) => {
                return Err(String::from_utf8_lossy(&text).into_owned());
            }
            (Hello::Auth | Hello::Name | Hello::Protocol, _) => {}
        }
        Ok(())
    }

    /// Returns whether the link listens to a cluster's node. Such a node may lack the configuration, and a
    /// listening link does not need it.
    fn listens_to_cluster(&self, index: usize) -> bool {
        let Link { server, purpose, .. } = self.links[index];
        purpose == Purpose::Listening && self.fleet.view.is_cluster(server)
    }

    fn on_config(&mut self, index: usize, answer: &Value) -> Result<(), String> {
        let config = Config::read(answer).map_err(|error| error.to_string())?;
        let config = config.ok_or("its server.config.* keys are missing")?;
        if config.epoch > self.fleet.view.epoch() {
            // The server knows a map that we do not know yet.
            self.links[index].ahead = Some(config.epoch);
            self.shared.look_again();
            return Ok(());
        }
        let first = &self.fleet.config;
        if let Agreement::Differs(difference) = Agreement::between(first, &config) {
            let server = self.links[index].server.0;
            return Err(difference.text(&first.servers[0], &self.fleet.servers[server].address));
        }
        self.come_up(index);
        Ok(())
    }

    /// Brings up the links that were ahead of us, once we have caught up.
    pub(super) fn welcome_the_ahead(&mut self) {
        let epoch = self.fleet.view.epoch();
        let ready = |ahead: Option<Epoch>| ahead.is_some_and(|ahead| ahead <= epoch);
        let links = self.links.iter().filter(|(_, link)| ready(link.ahead));
        for index in links.map(|(index, _)| index).collect::<Vec<_>>() {
            self.links[index].ahead = None;
            self.come_up(index);
        }
    }

    fn come_up(&mut self, index: usize) {
        let link = &mut self.links[index];
        link.state = LinkState::Up;
        if link.purpose == Purpose::Listening {
            self.listening_is_up(index);
        } else {
            self.rename_link(index);
        }
        self.link_is_up(index);
    }
}

/// Parses a complete reply.
pub(super) fn value_of(reply: &[u8]) -> Result<Value, String> {
    match ReplyParser::default().next(reply, 0) {
        Ok(Some((value, _))) => Ok(value),
        Ok(None) => unreachable!("its end was found"),
        Err(error) => Err(format!("it does not speak RESP: {error}")),
    }
}
