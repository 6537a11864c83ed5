//! The connections, for CLIENT. Actions on another worker's connection go there by mail.

use commands::{ClientFacts, Clients, Pause, Session, Unblock};

use super::NodeHost;
use crate::mailbox::Mail;
use crate::watching::Monitor;

impl Clients for NodeHost<'_> {
    fn this_client(&self, session: &Session) -> ClientFacts {
        let outer = self.card.outer_facts(self.now);
        ClientFacts {
            address: outer.address,
            local_address: outer.local_address,
            descriptor: outer.descriptor,
            age_seconds: outer.age_seconds,
            input_bytes: outer.input_bytes,
            output_bytes: outer.output_bytes,
            output_capacity: outer.output_capacity,
            total_bytes: outer.total_bytes,
            last_command: Some(self.spec.full_name),
            ..ClientFacts::of_session(session)
        }
    }

    fn clients(&self, session: &Session) -> Vec<ClientFacts> {
        let cards = self.shared.clients.all();
        let facts = cards.iter().map(|card| {
            if card.id == session.id {
                self.this_client(session)
            } else {
                card.facts(self.now, &self.shared.table)
            }
        });
        facts.collect()
    }

    fn kill_client(&mut self, id: u64) -> bool {
        let Some(card) = self.shared.clients.find(id) else { return false };
        self.shared.mailboxes[card.place.worker].send(Mail::Close { id, index: card.place.index });
        true
    }

    fn pause(&mut self, pause: Pause) {
        self.shared.pauses.begin(pause, self.now);
    }

    fn unpause(&mut self) {
        self.shared.pauses.end();
        self.shared.mailboxes.wake_all();
    }

    fn unblock(&mut self, _id: u64, _how: Unblock) -> bool {
        false // No command of ours blocks.
    }

    fn start_monitor(&mut self, session: &mut Session) {
        session.is_monitor = true;
        let monitor = Monitor { id: session.id, place: self.card.place };
        self.shared.watching.monitors.enter(monitor);
    }
}
