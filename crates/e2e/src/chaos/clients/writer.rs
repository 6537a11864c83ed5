//! A writer that sends one SET or DEL at a time, each to the node that serves its slot.
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use placement::Slot;

use super::{Client, Lives, PLACES, value};
use crate::Rng;
use crate::chaos::courier::{Courier, Fate};
use crate::chaos::history::Act;
use crate::chaos::load::Desk;

pub struct Writer {
    courier: Courier,
    desk: Desk,
    lives: Arc<Lives>,
    rng: Rng,
}

impl Writer {
    pub fn new(desk: &Desk, lives: Arc<Lives>, mut rng: Rng) -> Writer {
        let courier = Courier::new(desk, Rng::new(rng.draw()));
        Writer { courier, desk: desk.clone(), lives, rng }
    }
}

impl Client for Writer {
    fn step(&mut self) {
        let place = self.rng.index(PLACES);
        let key = self.lives.key(place);
        let act = if self.rng.one_in(16) { Act::Delete } else { Act::Set };
        let number = self.desk.book.issue(key, act);
        let (name, value) = (key.name(), value(number, &mut self.rng));
        let words: &[&[u8]] = match act {
            Act::Set => &[b"SET", name.as_bytes(), &value],
            Act::Delete => &[b"DEL", name.as_bytes()],
        };
        let (slot, begun) = (Slot::of(name.as_bytes()), Instant::now());
        match self.courier.send(&name, words) {
            Fate::Answered(_) => {
                self.desk.outages.came_through(slot, begun, Instant::now());
                self.desk.book.acknowledge(key, number);
            }
            Fate::NotDone => {
                self.desk.outages.failed(slot, begun, Instant::now());
                self.desk.book.refuse(key, number);
            }
            Fate::Unknown => {
                self.desk.outages.failed(slot, begun, Instant::now());
                self.desk.book.unknown.fetch_add(1, Ordering::Relaxed);
                self.lives.leave(place);
            }
        }
    }
}
