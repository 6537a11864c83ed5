//! Keys for tests, spread over several databases, so that the tests of fills and merges cover those as well.

use store::{Database, Key, Seed};

pub(crate) trait SpreadKeys {
    /// Returns a key in a database that depends on its name.
    fn spread<'a>(&self, name: &'a str) -> Key<'a>;
}

impl SpreadKeys for Seed {
    fn spread<'a>(&self, name: &'a str) -> Key<'a> {
        let last = name.bytes().last().map_or(0, u16::from);
        self.key(name.as_bytes()).in_database(Database::new(last % 3).expect("a small number"))
    }
}
