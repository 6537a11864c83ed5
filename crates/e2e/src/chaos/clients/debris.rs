//! Large keys whose last write has an unknown fate. It may still be carried out late, so the keys
//! are removed several times. Nothing checks these keys.
use crate::chaos::courier::Courier;

/// Number of attempts to remove a key.
const ROUNDS: u32 = 15;

#[derive(Debug, Default)]
pub(super) struct Debris(Vec<(Vec<String>, u32)>);

impl Debris {
    /// Adds keys of one slot.
    pub(super) fn add(&mut self, keys: Vec<String>) {
        self.0.push((keys, ROUNDS));
    }

    pub(super) fn sweep(&mut self, courier: &mut Courier) {
        for (keys, rounds) in &mut self.0 {
            let mut words: Vec<&[u8]> = vec![b"UNLINK"];
            words.extend(keys.iter().map(String::as_bytes));
            courier.send(&keys[0], &words);
            *rounds -= 1;
        }
        self.0.retain(|(_, rounds)| *rounds > 0);
    }
}
