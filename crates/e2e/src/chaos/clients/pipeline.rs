//! A writer that sends up to 64 SETs and DELs at once to one node. Each command has a fate of its
//! own: those answered before a connection breaks are acknowledged, the others are unknown.
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use placement::Slot;

use super::{Client, Lives, PLACES, value};
use crate::Rng;
use crate::chaos::book::Key;
use crate::chaos::courier::{Command, Courier, Fate};
use crate::chaos::history::{Act, Number};
use crate::chaos::load::Desk;

const BATCH_MAX: usize = 64;

pub struct PipelinedWriter {
    courier: Courier,
    desk: Desk,
    lives: Arc<Lives>,
    rng: Rng,
}

/// A command of a batch, with its key and number in the book.
struct Write {
    key: Key,
    number: Number,
    command: Command,
}

impl PipelinedWriter {
    pub fn new(desk: &Desk, lives: Arc<Lives>, mut rng: Rng) -> PipelinedWriter {
        let courier = Courier::new(desk, Rng::new(rng.draw()));
        PipelinedWriter { courier, desk: desk.clone(), lives, rng }
    }

    /// Draws distinct keys that are on one node.
    fn draw(&mut self, rng: &mut Rng) -> Option<(std::net::SocketAddr, Vec<Key>)> {
        let count = 1 + rng.index(BATCH_MAX);
        let places: BTreeSet<usize> = (0..count).map(|_| rng.index(PLACES)).collect();
        let keys: Vec<Key> = places.into_iter().map(|place| self.lives.key(place)).collect();
        let slot = |key: &Key| Slot::of(key.name().as_bytes());
        let at = self.courier.place(slot(&keys[0]))?;
        let is_there = |key: &Key| self.courier.place(slot(key)) == Some(at);
        Some((at, keys.into_iter().filter(is_there).collect()))
    }

    fn write(&self, key: Key, rng: &mut Rng) -> Write {
        let act = if rng.one_in(16) { Act::Delete } else { Act::Set };
        let number = self.desk.book.issue(key, act);
        let (name, value) = (key.name(), value(number, rng));
        let slot = Slot::of(name.as_bytes());
        let command = match act {
            Act::Set => Command::new(slot, &[b"SET", name.as_bytes(), &value]),
            Act::Delete => Command::new(slot, &[b"DEL", name.as_bytes()]),
        };
        Write { key, number, command }
    }

    fn record(&self, write: &Write, fate: &Fate, begun: Instant) {
        let (slot, book) = (write.command.slot, &self.desk.book);
        match fate {
            Fate::Answered(_) => {
                self.desk.outages.came_through(slot, begun, Instant::now());
                book.acknowledge(write.key, write.number);
            }
            // Mostly MOVED, which is not an outage.
            Fate::NotDone => book.refuse(write.key, write.number),
            Fate::Unknown => {
                self.desk.outages.failed(slot, begun, Instant::now());
                book.unknown.fetch_add(1, Ordering::Relaxed);
                self.lives.leave(write.key.place);
            }
        }
    }
}

impl Client for PipelinedWriter {
    fn step(&mut self) {
        // Each step draws once from the seed, so that the cluster's answers do not change the next batch's keys.
        let mut rng = Rng::new(self.rng.draw());
        let Some((at, keys)) = self.draw(&mut rng) else { return };
        let writes: Vec<Write> = keys.into_iter().map(|key| self.write(key, &mut rng)).collect();
        let commands: Vec<Command> = writes.iter().map(|write| write.command.clone()).collect();
        let begun = Instant::now();
        let fates = self.courier.pipeline(at, &commands);
        for (write, fate) in writes.iter().zip(&fates) {
            self.record(write, fate, begun);
        }
    }

    fn pause(&mut self) -> Duration {
        Duration::from_millis(5)
    }
}
