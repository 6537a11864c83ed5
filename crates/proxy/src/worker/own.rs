//! Links that serve one client or one job at a time, because they hold state of the connection: a WATCH, or a
//! blocking command. Free links are kept for the next user.

mod waits;

use fleet::Server;
use resp::Protocol;

pub(crate) use self::waits::Waits;

use super::Worker;
use super::dispatch::Ran;
use super::link::{Awaiter, Holder, LinkState, LinkTo, Purpose};
use super::links::Way;

/// Maximum number of free links kept, of all servers together.
const FREE_MAX: usize = 64;
/// Maximum number of own links per worker.
const OWN_MAX: usize = 4_096;

impl Worker<'_> {
    /// Returns a link that nobody else uses. It may not be up yet; its holder gets an error if it never comes up.
    pub(super) fn take_own(
        &mut self,
        server: Server,
        protocol: Protocol,
        holder: Holder,
    ) -> Result<usize, Way> {
        let epoch = self.fleet.view.epoch();
        let fits = |index: &usize| {
            let link = &self.links[*index];
            (link.server, link.protocol, link.epoch) == (server, protocol, epoch)
        };
        if let Some(place) = self.free.iter().position(fits) {
            let index = self.free.swap_remove(place);
            self.links[index].holder = Some(holder);
            return Ok(index);
        }
        let owned = self.links.iter().filter(|(_, link)| link.purpose == Purpose::Own).count();
        if owned >= OWN_MAX {
            let text = "ERR too many transactions and blocking commands at the servers; retry";
            return Err(Way::Refuse(text.to_owned()));
        }
        let opened = self.open_link(LinkTo { server, protocol, purpose: Purpose::Own });
        let index =
            opened.map_err(|why| Way::Refuse(super::links::away(&self.fleet, server, &why)))?;
        self.links[index].holder = Some(holder);
        Ok(index)
    }

    /// Makes a link free again: no state of its holder is left there.
    pub(super) fn release_own(&mut self, index: usize) {
        let Some(link) = self.links.get_mut(index) else { return };
        if let Some(Holder::Client(client)) = link.holder.take() {
            self.clients[client as usize].own = None;
        }
        let link = &mut self.links[index];
        link.patient = false;
        if link.state != LinkState::Up || !link.awaiting.is_empty() || self.free.len() >= FREE_MAX {
            return self.close_own(index);
        }
        if link.epoch != self.fleet.view.epoch() {
            self.rename_link(index);
        }
        self.free.push(index);
    }

    pub(super) fn close_own(&mut self, index: usize) {
        let Some(link) = self.links.get_mut(index) else { return };
        link.holder = None;
        self.lose_link(index, "it is not needed any more");
    }

    /// Removes a lost link from the free ones.
    pub(super) fn own_is_lost(&mut self, index: usize) {
        self.free.retain(|free| *free != index);
    }

    /// Closes the own link of a client that is gone.
    pub(super) fn give_up_own(&mut self, index: usize) {
        if let Some(link) = self.clients[index].own.take() {
            self.close_own(link);
        }
    }

    /// Returns the client's own link to this server, once it is up.
    pub(super) fn own_link(&mut self, index: usize, server: Server) -> Result<usize, Way> {
        let client = &self.clients[index];
        if let Some(link) = client.own {
            if self.links[link].server == server {
                return self.own_if_up(link);
            }
            // Keys watched at another server are no longer watched.
            self.clients[index].transaction.spoil();
            self.give_up_own(index);
        }
        let protocol = self.clients[index].protocol;
        let link = self.take_own(server, protocol, Holder::Client(index as u32))?;
        self.clients[index].own = Some(link);
        self.own_if_up(link)
    }

    /// Runs a command that may block. No later request of its client runs meanwhile, as in Redis.
    pub(super) fn wait_at(&mut self, index: usize, server: Server, args: &[&[u8]]) -> Ran {
        if self.clients[index].replies.awaited() > 0 {
            return Ran::NotYet;
        }
        let link = match self.own_link(index, server) {
            Ok(link) => link,
            Err(way) => return self.no_way(index, way),
        };
        let awaiter = Awaiter::Waited { client: index as u32 };
        self.links[link].patient = true;
        self.links[link].push_command(self.now, args, awaiter);
        self.touch_link(link);
        let client = &mut self.clients[index];
        client.busy = true;
        client.waits = Some(Waits::new(args, self.now));
        Ran::Done
    }

    pub(super) fn on_waited_for(&mut self, link: usize, index: usize, reply: &[u8]) {
        self.links[link].patient = false;
        self.stop_waiting(index, reply);
        if !self.clients[index].transaction.is_watching() {
            self.release_own(link);
        } else if self.links[link].epoch != self.fleet.view.epoch() {
            self.rename_link(link);
        }
    }

    fn stop_waiting(&mut self, index: usize, reply: &[u8]) {
        let client = &mut self.clients[index];
        client.busy = false;
        self.stirred = true;
        let waits = client.waits.take();
        let nothing = matches!(reply, b"*-1\r\n" | b"$-1\r\n" | b"_\r\n");
        if let Some(waits) = waits.filter(|waits| waits.called_back && nothing) {
            // It was unblocked because the maps change: it starts again, possibly at another server.
            let mut input = waits.rest(self.now);
            input.append(&mut client.input);
            client.input = input;
            return self.put_off(index);
        }
        let ticket = client.replies.expect();
        self.answer_client(index, ticket, reply);
    }

    /// Handles the loss of a client's own link while it awaited an answer there.
    pub(super) fn own_failed(&mut self, index: usize, text: &str) {
        let client = &mut self.clients[index];
        client.own = None;
        client.busy = false;
        client.waits = None;
        client.transaction.spoil();
        let ticket = client.replies.expect();
        self.answer_error(index, ticket, text);
    }

    /// Handles the loss of a client's own link before anything was asked there.
    pub(super) fn own_failed_early(&mut self, index: usize, text: &str) {
        let client = &mut self.clients[index];
        client.own = None;
        if client.transaction.is_watching() {
            client.transaction.spoil();
        } else if !client.busy && client.waits.is_none() {
            client.failed = Some(text.to_owned());
        }
    }

    /// Leaves the epoch because the maps change: unblocks blocking commands and drops watches. Both start
    /// again under the new map; an EXEC finds its WATCH broken, as if the key had changed.
    pub(super) fn leave_epoch(&mut self) {
        let holders = self.clients.iter().filter(|(_, client)| client.own.is_some());
        for index in holders.map(|(index, _)| index).collect::<Vec<_>>() {
            let client = &mut self.clients[index];
            if client.waits.is_some() {
                self.call_back(index);
            } else if client.transaction.is_watching() && !client.busy {
                client.transaction.spoil();
                self.give_up_own(index);
            }
        }
    }

    /// Asks the server to unblock a command; the server does so only if the command has got nothing.
    fn call_back(&mut self, index: usize) {
        let Some(own) = self.clients[index].own else { return };
        let (server, protocol) = (self.links[own].server, self.links[own].protocol);
        let Some(id) = self.links[own].client_id else { return };
        let Ok(shared) = self.shared_link(server, protocol) else { return };
        let id = id.to_string();
        let command: [&[u8]; 4] = [b"CLIENT", b"UNBLOCK", id.as_bytes(), b"TIMEOUT"];
        self.links[shared].push_command(self.now, &command, Awaiter::Nobody);
        self.touch_link(shared);
        if let Some(waits) = &mut self.clients[index].waits {
            waits.called_back = true;
        }
    }
}
