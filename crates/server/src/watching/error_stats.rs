//! Counts of error replies, by code (`ERR`, `WRONGTYPE`, ...).

use std::collections::BTreeMap;

use parking_lot::Mutex;

#[derive(Default)]
pub(crate) struct ErrorStats(Mutex<BTreeMap<String, u64>>);

impl ErrorStats {
    /// Counts an error by its text, whose first word is its code.
    pub(crate) fn count(&self, text: &str) {
        let code = text.split(' ').next().unwrap_or_default();
        let mut counts = self.0.lock();
        match counts.get_mut(code) {
            Some(count) => *count += 1,
            None => {
                counts.insert(code.to_owned(), 1);
            }
        }
    }

    pub(crate) fn all(&self) -> Vec<(String, u64)> {
        self.0.lock().iter().map(|(code, count)| (code.clone(), *count)).collect()
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.lock().values().sum()
    }

    pub(super) fn reset(&self) {
        self.0.lock().clear();
    }
}
