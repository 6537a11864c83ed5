//! Dead letters: pops that were given up because every replica's callback failed, and the retries too. The
//! latest ones are kept for `GET /timers/dead`, on the node that gave up.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::ids::{Sequence, TimerId};

pub const DEAD_LETTERS_MAX: usize = 1000;
/// Maximum number of characters kept of the reason, which comes from the client's own server.
const WHY_CHARS_MAX: usize = 200;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DeadLetter {
    pub id: TimerId,
    pub sequence: Sequence,
    /// The destination of the callback.
    pub destination: String,
    /// The error of the last attempt.
    pub why: String,
    /// The wall clock in milliseconds when the pop was given up.
    pub at: u64,
}

#[derive(Default)]
pub(crate) struct DeadLetters(VecDeque<DeadLetter>);

impl DeadLetters {
    pub(crate) fn add(&mut self, mut letter: DeadLetter) {
        if let Some((end, _)) = letter.why.char_indices().nth(WHY_CHARS_MAX) {
            letter.why.truncate(end);
        }
        if self.0.len() == DEAD_LETTERS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(letter);
    }

    /// Returns all dead letters, the latest first.
    pub(crate) fn all(&self) -> Vec<DeadLetter> {
        self.0.iter().rev().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ReplicationFactor;

    #[test]
    fn the_latest_are_kept_and_their_reasons_are_cut() {
        let mut letters = DeadLetters::default();
        for number in 0..DEAD_LETTERS_MAX as u64 + 7 {
            let id = TimerId { number, factor: ReplicationFactor::DEFAULT };
            let why = "\u{e9}".repeat(WHY_CHARS_MAX + 5);
            let destination = "10.0.0.1:80".to_owned();
            letters.add(DeadLetter { id, sequence: Sequence(0), destination, why, at: number });
        }
        let all = letters.all();
        assert_eq!((all.len(), all[0].at), (DEAD_LETTERS_MAX, DEAD_LETTERS_MAX as u64 + 6));
        assert_eq!(all[0].why.chars().count(), WHY_CHARS_MAX);
    }
}
