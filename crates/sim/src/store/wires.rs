//! Data streams between nodes: dialling, bytes in both directions, breaks.

use cluster::Moment;
use cluster::map::{NodeId, Peer};
use cluster::replication::FrameNumber;
use sim_engine::{StreamId, Way};

use super::Sabotage;
use super::node::Node;
use super::world::{Event, World, ms};

impl World {
    pub(super) fn send_bytes(&mut self, from: Peer, stream: StreamId, way: Way, bytes: Vec<u8>) {
        let Some(known) = self.streams.get(stream) else { return };
        let (_, to) = known.ends(way);
        let delay = self.network.delay(&mut self.rng, from.id, to.id);
        if let Some(at) = self.streams.push((stream, way), bytes, self.now + delay) {
            self.push_at(at, Event::Pump { stream, way });
        }
    }

    /// Delivers the next bytes of a stream; while nothing passes, retries later.
    pub(super) fn pump(&mut self, id: StreamId, way: Way) {
        let Some(stream) = self.streams.get(id) else { return };
        let (from, to) = stream.ends(way);
        let stopped = self.nodes.get(&to.id).is_some_and(|node| node.is_stopped);
        if stopped || self.network.is_cut(from.id, to.id) {
            return self.push(ms(20), Event::Pump { stream: id, way });
        }
        let Some(bytes) = self.streams.arrived(id, way, self.now) else { return };
        self.take_bytes(id, way, &bytes);
        // The more traffic, the more breaks: right behind the end of a fill, for example.
        let broken = self.network.quality.broken;
        if broken > 0 && self.rng.chance(broken, 10_000) {
            self.break_stream(id);
        }
    }

    fn take_bytes(&mut self, id: StreamId, way: Way, bytes: &[u8]) {
        let Some(stream) = self.streams.get(id) else { return };
        let (_, to) = stream.ends(way);
        match way {
            Way::Out => self.take_in(to.id, id, bytes),
            Way::Back => {
                let Some(node) = self.nodes.get_mut(&to.id) else { return };
                node.plane.now.set(node.clock.at(self.now));
                node.on_answers(id, bytes);
                self.after(to.id);
            }
        }
    }

    pub(super) fn take_in(&mut self, id: NodeId, stream: StreamId, bytes: &[u8]) {
        let Some(from) = self.streams.get(stream).map(|stream| stream.from) else { return };
        let Some(node) = self.nodes.get_mut(&id) else { return };
        if node.plane.known_map().is_none() {
            return self.break_stream(stream); // It has no map yet.
        }
        node.plane.now.set(node.clock.at(self.now));
        let me = node.me;
        let back = node.on_frames(stream, from, bytes);
        if !back.is_empty() {
            self.send_bytes(me, stream, Way::Back, back);
        }
        self.after(id);
    }

    pub(super) fn dial(&mut self, from: Peer, to: Peer) {
        let Some(dialler) = self.nodes.get(&from.id).filter(|node| node.me == from) else {
            return;
        };
        let wanted = dialler.plane.links.borrow().to(to).is_some_and(|link| link.stream.is_none());
        if !wanted {
            return;
        }
        let cut = self.network.is_cut(from.id, to.id) || self.network.is_cut(to.id, from.id);
        let generation = dialler.control.generation();
        let ready = |node: &&mut Node| {
            let same = node.control.generation().zip(generation);
            let same = same.is_some_and(|(theirs, mine)| theirs.is_one_with(mine));
            node.me == to && !node.is_stopped && node.map().is_some() && same
        };
        let acceptor = self.nodes.get_mut(&to.id).filter(ready);
        let (Some(acceptor), false) = (acceptor, cut) else {
            return self.push(ms(100), Event::Dial { from, to });
        };
        // A new connection closes the old one first.
        for old in self.streams.which(|it| it.from == from && it.to == to) {
            self.streams.close(old);
            acceptor.forget_stream(old);
        }
        let stream = self.streams.open(from, to);
        let next = FrameNumber(acceptor.accept(from, stream));
        let Some(dialler) = self.nodes.get_mut(&from.id) else { return };
        let resumed = {
            let mut links = dialler.plane.links.borrow_mut();
            let link = links.living_mut().find(|(_, peer, _)| *peer == to);
            link.is_some_and(|(.., link)| {
                let outbox = link.backlog.outbox_mut();
                let resumed = outbox.resume(next).is_ok();
                if !resumed && self.tells {
                    let (acked, last) = (outbox.acked(), outbox.last());
                    println!("{from:?} to {to:?}: wants {next:?}, has {acked:?} to {last:?}");
                }
                link.stream = resumed.then_some(stream);
                resumed
            })
        };
        if resumed {
            self.take_in(to.id, stream, &[]);
            self.after(from.id);
        } else {
            self.break_stream(stream);
        }
    }

    /// Delivers the bytes that an ended process had given to its operating system, before its connections
    /// end.
    pub(super) fn deliver_last_bytes(&mut self, from: Peer) {
        let cut = |to: Peer| self.network.is_cut(from.id, to.id);
        let reaches =
            |to: Peer| self.nodes.get(&to.id).is_some_and(|it| !it.is_stopped) && !cut(to);
        let sent = self.streams.iter().filter_map(|(id, stream)| {
            let way = stream.way_from(from)?;
            reaches(stream.ends(way).1).then_some((id, way))
        });
        for (id, way) in sent.collect::<Vec<_>>() {
            while let Some(bytes) = self.streams.arrived(id, way, Moment::NEVER) {
                self.take_bytes(id, way, &bytes);
            }
        }
    }

    /// Breaks a stream. Both ends notice, and the node that had dialled dials again.
    pub(super) fn break_stream(&mut self, id: StreamId) {
        let Some(stream) = self.streams.close(id) else { return };
        let frees = self.sabotage == Some(Sabotage::TakerFreesAfterEnd);
        for peer in [stream.from, stream.to] {
            if let Some(node) = self.nodes.get_mut(&peer.id).filter(|node| node.me == peer) {
                node.forget_stream(id);
                if frees && peer == stream.to {
                    node.free_what_came();
                }
            }
        }
        let after = ms(5 + self.rng.below(200));
        self.push(after, Event::Dial { from: stream.from, to: stream.to });
    }
}
