//! The texts of scripts that a node remembers, so that EVALSHA finds them. Bounded in number and bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::sha::ScriptId;

/// Maximum number of remembered scripts, as in Redis.
pub const TEXTS_MAX: usize = 500;
/// Maximum size of all of them.
const BYTES_MAX: usize = 32 << 20;

#[derive(Debug, Default)]
pub(crate) struct Texts {
    by_id: BTreeMap<ScriptId, Remembered>,
    /// The ids by their last use.
    by_use: BTreeMap<u64, ScriptId>,
    uses: u64,
    bytes: usize,
    /// Number of the last flush of the cluster's scripts that was applied.
    flush: u64,
}

#[derive(Debug)]
struct Remembered {
    text: Arc<[u8]>,
    used: u64,
    keys: KeyUse,
}

/// The keys that a script has used so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum KeyUse {
    Unknown,
    Declared,
    Others,
}

impl Texts {
    pub(crate) fn get(&mut self, id: &ScriptId) -> Option<Arc<[u8]>> {
        self.uses += 1;
        let found = self.by_id.get_mut(id)?;
        self.by_use.remove(&found.used);
        found.used = self.uses;
        self.by_use.insert(self.uses, *id);
        Some(Arc::clone(&found.text))
    }

    pub(crate) fn has(&self, id: &ScriptId) -> bool {
        self.by_id.contains_key(id)
    }

    pub(crate) fn declares_its_keys(&self, id: &ScriptId) -> bool {
        self.by_id.get(id).is_some_and(|found| found.keys == KeyUse::Declared)
    }

    pub(crate) fn note_keys(&mut self, id: &ScriptId, only_declared: bool) {
        let Some(found) = self.by_id.get_mut(id) else { return };
        if !only_declared {
            found.keys = KeyUse::Others;
        } else if found.keys == KeyUse::Unknown {
            found.keys = KeyUse::Declared;
        }
    }

    pub(crate) fn put(&mut self, id: ScriptId, text: &[u8]) {
        if self.get(&id).is_some() {
            return;
        }
        self.bytes += text.len();
        self.by_id.insert(
            id,
            Remembered { text: Arc::from(text), used: self.uses, keys: KeyUse::Unknown },
        );
        self.by_use.insert(self.uses, id);
        while self.by_id.len() > TEXTS_MAX || self.bytes > BYTES_MAX {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            if let Some(forgotten) = self.by_id.remove(&oldest) {
                self.bytes -= forgotten.text.len();
            }
        }
    }

    pub(crate) fn follow_flush(&mut self, flush: u64) {
        if flush != self.flush {
            self.clear();
            self.flush = flush;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.by_id.clear();
        self.by_use.clear();
        self.bytes = 0;
    }

    pub(crate) fn figures(&self) -> (usize, usize) {
        (self.by_id.len(), self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_that_was_not_used_for_longest_is_forgotten() {
        let mut texts = Texts::default();
        let put = |texts: &mut Texts, number: usize| {
            let text = number.to_string();
            let id = ScriptId::of(text.as_bytes());
            texts.put(id, text.as_bytes());
            id
        };
        let ids: Vec<ScriptId> = (0..TEXTS_MAX).map(|number| put(&mut texts, number)).collect();
        assert!(texts.get(&ids[0]).is_some(), "it is used again");
        put(&mut texts, TEXTS_MAX);
        assert!(texts.has(&ids[0]) && !texts.has(&ids[1]));
        assert_eq!(texts.figures().0, TEXTS_MAX);
        texts.follow_flush(1);
        assert_eq!(texts.figures(), (0, 0));
        put(&mut texts, 1);
        texts.follow_flush(1);
        assert_eq!(texts.figures(), (1, 1));
    }

    #[test]
    fn large_scripts_push_out_others() {
        let mut texts = Texts::default();
        for number in 0..40_u8 {
            let text = vec![number; 1 << 20];
            texts.put(ScriptId::of(&text), &text);
        }
        assert_eq!(texts.figures(), (32, 32 << 20));
    }
}
