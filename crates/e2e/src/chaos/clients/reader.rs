//! A reader of the keys that writers write. The book judges the reads.
use std::sync::Arc;

use super::{Client, Lives, PLACES, number};
use crate::Rng;
use crate::chaos::book::Book;
use crate::chaos::courier::{Courier, Fate};
use crate::chaos::load::Desk;

pub struct Reader {
    courier: Courier,
    book: Arc<Book>,
    lives: Vec<Arc<Lives>>,
    rng: Rng,
}

impl Reader {
    /// Creates a client that reads the keys of all these owners.
    pub fn new(desk: &Desk, lives: Vec<Arc<Lives>>, mut rng: Rng) -> Reader {
        let courier = Courier::new(desk, Rng::new(rng.draw()));
        Reader { courier, book: Arc::clone(&desk.book), lives, rng }
    }
}

impl Client for Reader {
    fn step(&mut self) {
        let owner = self.rng.index(self.lives.len());
        let key = self.lives[owner].key(self.rng.index(PLACES));
        let floor = self.book.floor(key);
        let name = key.name();
        if let Fate::Answered(reply) = self.courier.send(&name, &[b"GET", name.as_bytes()]) {
            self.book.judge(key, number(&reply), floor);
        }
    }
}
