//! Links that serve one client or one job at a time, because what is done there stays with the
//! connection: a WATCH, or a command that waits. They are kept for the next one when they are free.

mod waits;

use fleet::Server;
use resp::Protocol;

pub(crate) use self::waits::Waits;

use super::Worker;
use super::dispatch::Ran;
use super::link::{Awaiter, Holder, LinkState, LinkTo, Purpose};
use super::links::Way;

/// Free links that are kept, of all servers together.
const FREE_MAX: usize = 64;
/// Links of one's own at once, a worker.
const OWN_MAX: usize = 4_096;

impl Worker<'_> {
    /// A link that nobody else uses. It may not be up yet; its holder is told if it never is.
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
            return Err(Way::Refuse("ERR too many commands wait at the servers".to_owned()));
        }
        let opened = self.open_link(LinkTo { server, protocol, purpose: Purpose::Own });
        let index =
            opened.map_err(|why| Way::Refuse(super::links::away(&self.fleet, server, &why)))?;
        self.links[index].holder = Some(holder);
        Ok(index)
    }

    /// A link is free again: nothing of its holder is left there.
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

    /// A link is gone; it is not free any more.
    pub(super) fn own_is_lost(&mut self, index: usize) {
        self.free.retain(|free| *free != index);
    }

    /// A client has gone, and with it what it held.
    pub(super) fn give_up_own(&mut self, index: usize) {
        if let Some(link) = self.clients[index].own.take() {
            self.close_own(link);
        }
    }

    /// The link of a client's own to this server, once it is up.
    pub(super) fn own_link(&mut self, index: usize, server: Server) -> Result<usize, Way> {
        let client = &self.clients[index];
        if let Some(link) = client.own {
            if self.links[link].server == server {
                return self.own_if_up(link);
            }
            // What was watched elsewhere is watched no more.
            self.clients[index].transaction.spoil();
            self.give_up_own(index);
        }
        let protocol = self.clients[index].protocol;
        let link = self.take_own(server, protocol, Holder::Client(index as u32))?;
        self.clients[index].own = Some(link);
        self.own_if_up(link)
    }

    /// Runs a command that may wait. Behind it nothing of its client runs, as in Redis.
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
            // It was called back because the maps change: it begins to wait again, elsewhere perhaps.
            let mut input = waits.rest(self.now);
            input.append(&mut client.input);
            client.input = input;
            return self.put_off(index);
        }
        let ticket = client.replies.expect();
        self.answer_client(index, ticket, reply);
    }

    /// A client's own link is gone, and with it the answer it waited for.
    pub(super) fn own_failed(&mut self, index: usize, text: &str) {
        let client = &mut self.clients[index];
        client.own = None;
        client.busy = false;
        client.waits = None;
        client.transaction.spoil();
        let ticket = client.replies.expect();
        self.answer_error(index, ticket, text);
    }

    /// A client's own link is gone before anything was asked there.
    pub(super) fn own_failed_early(&mut self, index: usize, text: &str) {
        let client = &mut self.clients[index];
        client.own = None;
        if client.transaction.is_watching() {
            client.transaction.spoil();
        } else if !client.busy && client.waits.is_none() {
            client.failed = Some(text.to_owned());
        }
    }

    /// The maps change: what waits is called back, what is watched is watched no more. Both begin
    /// anew under the new map; an EXEC finds its WATCH broken, as if the key had changed.
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

    /// Asks the server to let a waiting command go; it does so only if the command has got nothing.
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
