//! Messages in flight from a thread to the workers with subscribers. They are collected while commands run, and
//! posted together with the replies: after the slot locks are released, with one mailbox lock per worker.

use std::sync::Arc;

use cluster::map::Peer;
use cluster::replication::Frame;
use commands::{Event, Post};
use settings::NotifyClasses;

use super::Exchange;
use crate::data::Links;
use crate::mailbox::Mailboxes;
use crate::published::{Author, PublishedMessage};

pub(crate) struct PubsubOutbox {
    /// By worker, in the order of publication.
    messages: Vec<Vec<Arc<PublishedMessage>>>,
    /// Messages for other nodes.
    afar: Vec<(Vec<Peer>, Vec<u8>)>,
    is_empty: bool,
}

impl PubsubOutbox {
    pub(crate) fn new(workers: usize) -> PubsubOutbox {
        PubsubOutbox { messages: vec![Vec::new(); workers], afar: Vec::new(), is_empty: true }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Publishes a message. Returns the number of times it will be received.
    pub(crate) fn publish(
        &mut self,
        exchange: &Exchange,
        author: Option<Author>,
        post: Post<'_>,
    ) -> usize {
        if let Some(wanted) = exchange.afar.wanted_by(post) {
            self.afar.push(wanted);
            self.is_empty = false;
        }
        self.publish_here(exchange, author, post)
    }

    /// Publishes like [`PubsubOutbox::publish`], but only to subscribers on this node.
    pub(crate) fn publish_here(
        &mut self,
        exchange: &Exchange,
        author: Option<Author>,
        post: Post<'_>,
    ) -> usize {
        let Some(route) = exchange.route(post.space, post.channel) else { return 0 };
        let message = Arc::new(PublishedMessage::new(post, route.by_name, &route.patterns, author));
        for (list, concerned) in self.messages.iter_mut().zip(&route.workers) {
            if *concerned {
                list.push(Arc::clone(&message));
            }
        }
        self.is_empty = false;
        route.receivers
    }

    /// Publishes key events.
    pub(crate) fn tell(
        &mut self,
        exchange: &Exchange,
        author: Option<Author>,
        on: NotifyClasses,
        events: &mut Vec<Event>,
    ) {
        for event in events.drain(..) {
            if !exchange.is_silent() {
                event.announce(on, |post| {
                    self.publish(exchange, author, post);
                });
            }
        }
    }

    /// Returns the messages that wait here for one worker.
    pub(crate) fn to_worker(&self, worker: usize) -> &[Arc<PublishedMessage>] {
        &self.messages[worker]
    }

    /// Puts all messages into their mailboxes, and wakes the workers that may be asleep; not the posting
    /// worker, which checks its own mail. Returns true if the posting worker has mail.
    pub(crate) fn post(
        &mut self,
        links: &Links,
        mailboxes: &Mailboxes,
        poster: Option<usize>,
    ) -> bool {
        for (peers, bytes) in self.afar.drain(..) {
            let wanting = peers.into_iter().filter_map(|peer| links.to(peer));
            // A message may be lost, as on a slow connection; it must not exhaust memory.
            for link in wanting.filter(|link| !link.is_congested()) {
                link.push(&Frame::News { bytes: &bytes });
            }
        }
        let mut own_mail = false;
        for (worker, messages) in self.messages.iter_mut().enumerate() {
            if messages.is_empty() {
                continue;
            }
            let first = mailboxes[worker].leave(messages);
            if poster == Some(worker) {
                own_mail = true;
            } else if first {
                mailboxes[worker].wake();
            }
        }
        self.is_empty = true;
        own_mail
    }
}
