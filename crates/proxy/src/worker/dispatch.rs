//! Starts a request as `fleet::decide` says. A request that has to wait has done nothing yet; it is tried again.

use fleet::{Command, Plan, Server, decide};
use resp::Protocol;

use super::Worker;
use super::link::Awaiter;
use super::links::Way;
use super::round::Request;

/// Result of starting a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ran {
    /// It is answered, or will be.
    Done,
    /// It has to wait, together with all later requests of its client.
    NotYet,
}

impl Worker<'_> {
    pub(super) fn run_request(&mut self, index: usize, request: &Request<'_>) -> Ran {
        let args = request.args();
        self.begun += 1;
        let client = &mut self.clients[index];
        if resp::is_http(args[0]) {
            // A web page made a browser send this; nothing behind it is run.
            client.closing = true;
            self.touch_client(index);
            return Ran::Done;
        }
        if let Some(text) = client.failed.take() {
            // The preparation for this request failed.
            return self.refuse(index, &text);
        }
        if !client.is_plain()
            && let Some(ran) = self.run_in_state(index, &args)
        {
            return ran;
        }
        if self.jobs.are_on_keys() && self.must_wait_for_jobs(index, &args) {
            return Ran::NotYet;
        }
        let plan = decide(&self.fleet.view, &self.known, &args);
        let ran = self.carry_out(index, plan, request, &args);
        if ran == Ran::Done {
            self.clients[index].waiting_since = None;
        }
        ran
    }

    fn carry_out(
        &mut self,
        index: usize,
        plan: Plan,
        request: &Request<'_>,
        args: &[&[u8]],
    ) -> Ran {
        if let Some(trouble) = &self.fleet.trouble
            && !matches!(plan, Plan::Local | Plan::Refuse(_))
        {
            let text = format!("ERR {trouble}");
            return self.refuse(index, &text);
        }
        match plan {
            Plan::Forward(server) => self.forward(index, server, request, args),
            Plan::ForwardWaiting(server) => self.wait_at(index, server, args),
            Plan::Read { key, route } => self.begin_read(index, key, route, args),
            Plan::Write(bring) => self.begin_write(index, &bring, args),
            Plan::WriteWaiting(bring) => self.bring_first(index, &bring, args),
            Plan::Scatter(scatter) => self.scatter(index, &scatter, args),
            Plan::Everywhere { servers, merge } => self.everywhere(index, &servers, merge, args),
            Plan::Scan => self.scan(index, args),
            Plan::Anywhere => self.anywhere(index, request, args),
            Plan::Channel => self.channel(index, args),
            Plan::Transaction => self.transaction(index, args),
            Plan::Local => self.local(index, args),
            Plan::Hold => self.wait_or_refuse(
                index,
                "TRYAGAIN the fleet's map is being changed, and this key will move; retry",
            ),
            Plan::Refuse(refusal) => self.refuse(index, &refusal.to_string()),
        }
    }

    /// Forwards a request unchanged.
    #[inline]
    pub(super) fn forward(
        &mut self,
        index: usize,
        server: Server,
        request: &Request<'_>,
        args: &[&[u8]],
    ) -> Ran {
        let link = match self.shared_link(server, self.clients[index].protocol) {
            Ok(link) => link,
            Err(way) => return self.no_way(index, way),
        };
        let ticket = self.clients[index].replies.expect();
        let awaiter = Awaiter::Client { client: index as u32, ticket };
        match request.raw {
            Some(raw) => self.links[link].push(self.now, raw, awaiter),
            None => self.links[link].push_command(self.now, args, awaiter),
        }
        self.touch_link(link);
        Ran::Done
    }

    /// Forwards a request to the first server that can be reached.
    fn anywhere(&mut self, index: usize, request: &Request<'_>, args: &[&[u8]]) -> Ran {
        let servers = self.fleet.view.walk();
        let protocol = self.clients[index].protocol;
        let up = servers.iter().find(|server| self.shared_link(**server, protocol).is_ok());
        let server = up.or(servers.first()).copied().expect("a map has a server with weight");
        self.forward(index, server, request, args)
    }

    /// Handles a missing link: waits for one, or refuses with the reason.
    pub(super) fn no_way(&mut self, index: usize, way: Way) -> Ran {
        match way {
            Way::Wait => {
                self.wait_or_refuse(index, "ERR the server is unreachable: no connection in time")
            }
            Way::Refuse(text) => self.refuse(index, &text),
        }
    }

    /// Lets a request wait, up to a timeout.
    pub(super) fn wait_or_refuse(&mut self, index: usize, text: &str) -> Ran {
        let since = *self.clients[index].waiting_since.get_or_insert(self.now);
        if self.now.saturating_duration_since(since) < self.shared.options.limits.parked_time_max {
            return Ran::NotYet;
        }
        self.refuse(index, text)
    }

    /// Answers with an error; the text begins with its code.
    pub(super) fn refuse(&mut self, index: usize, text: &str) -> Ran {
        self.answer_with(index, |reply| reply.error(text));
        Ran::Done
    }

    /// Handles requests that are forbidden or mean something else in the client's present state.
    fn run_in_state(&mut self, index: usize, args: &[&[u8]]) -> Option<Ran> {
        let name = Command::find(args[0]).map_or("", |command| command.name);
        let client = &self.clients[index];
        if !client.authenticated && !matches!(name, "auth" | "hello" | "quit" | "reset") {
            return Some(self.refuse(index, "NOAUTH Authentication required."));
        }
        if client.transaction.is_open()
            && !matches!(name, "exec" | "discard" | "multi" | "watch" | "quit" | "reset")
        {
            return Some(self.queue(index, args));
        }
        let listens = !client.subscriptions.is_empty() && client.protocol == Protocol::Resp2;
        let allowed = matches!(
            name,
            "subscribe"
                | "unsubscribe"
                | "psubscribe"
                | "punsubscribe"
                | "ssubscribe"
                | "sunsubscribe"
                | "ping"
                | "quit"
                | "reset"
        );
        if listens && !allowed {
            let text = format!(
                "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
                String::from_utf8_lossy(args[0]).to_lowercase()
            );
            return Some(self.refuse(index, &text));
        }
        None
    }
}
