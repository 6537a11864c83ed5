//! Patterns of BY and GET. The first `*` stands for the element; `->` behind it separates the key of a hash from a field.
//! `#` is the element itself.

use placement::Slot;

use super::options::{SortOption, options};
use crate::Args;

/// A pattern of BY or GET.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pattern<'a> {
    Element,
    /// No `*`: nothing is looked up.
    Nothing,
    Key {
        prefix: &'a [u8],
        suffix: &'a [u8],
        field: Option<&'a [u8]>,
    },
}

impl<'a> Pattern<'a> {
    pub(super) fn new(text: &'a [u8]) -> Pattern<'a> {
        // As in Redis, nothing behind a zero byte has a meaning.
        let meaningful = text.split(|byte| *byte == 0).next().unwrap_or_default();
        if meaningful == b"#" {
            return Pattern::Element;
        }
        let Some(star) = meaningful.iter().position(|byte| *byte == b'*') else {
            return Pattern::Nothing;
        };
        let behind = &meaningful[star + 1..];
        let arrow = behind.windows(2).position(|pair| pair == b"->");
        let arrow = arrow.map(|at| star + 1 + at).filter(|at| at + 2 < meaningful.len());
        Pattern::Key {
            prefix: &text[..star],
            suffix: &text[star + 1..arrow.unwrap_or(text.len())],
            field: arrow.map(|at| &text[at + 2..]),
        }
    }

    pub(super) fn is_element(&self) -> bool {
        *self == Pattern::Element
    }

    /// Returns the field to look up, if the derived key is that of a hash.
    pub(super) fn field(&self) -> Option<&'a [u8]> {
        match self {
            Pattern::Key { field, .. } => *field,
            Pattern::Element | Pattern::Nothing => None,
        }
    }

    /// Returns whether the pattern derives a key from an element.
    pub(super) fn substitutes(&self) -> bool {
        matches!(self, Pattern::Key { .. })
    }
}

/// Returns the slot of all keys that a pattern can derive; `None` if they may be in different slots.
pub(super) fn slot_of(pattern: &[u8]) -> Option<Slot> {
    let mut tag_at = None;
    for (at, byte) in pattern.iter().enumerate() {
        match (byte, tag_at) {
            (b'*' | b'?' | b'[' | b'\\', _) => return None,
            (b'{', None) => tag_at = Some(at + 1),
            // An empty tag: the whole key counts.
            (b'}', Some(start)) if at == start => return whole(pattern),
            // What follows cannot change the slot.
            (b'}', Some(start)) => return Some(Slot::of(&pattern[start..at])),
            _ => {}
        }
    }
    whole(pattern)
}

/// Returns the slot of a pattern without a tag; `None` if elements are part of the key.
fn whole(pattern: &[u8]) -> Option<Slot> {
    let is_fixed = !pattern.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'\\'));
    is_fixed.then(|| Slot::of(pattern))
}

/// The slots of the keys that a command derives from elements.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum DerivedSlots {
    These(Vec<Slot>),
    Any,
}

/// Returns the slots that the patterns of a SORT command may lead to.
pub(crate) fn derived_slots(args: Args<'_>) -> DerivedSlots {
    let mut slots = Vec::new();
    for option in options(args) {
        let (SortOption::By(index) | SortOption::Get(index)) = option else { continue };
        if !Pattern::new(args.at(index)).substitutes() {
            continue;
        }
        match slot_of(args.at(index)) {
            Some(slot) => slots.push(slot),
            None => return DerivedSlots::Any,
        }
    }
    DerivedSlots::These(slots)
}

impl Pattern<'_> {
    /// Returns the key that the pattern derives from an element.
    pub(super) fn key(&self, element: &[u8]) -> Option<Vec<u8>> {
        match self {
            Pattern::Key { prefix, suffix, .. } => Some([prefix, element, suffix].concat()),
            Pattern::Element | Pattern::Nothing => None,
        }
    }
}

/// Checks the claims of patterns for arbitrary bytes: a pattern and an element, separated by a line break.
#[cfg(any(test, feature = "testing"))]
pub fn fuzz_pattern(data: &[u8]) {
    let split = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (text, element) = (&data[..split], data.get(split + 1..).unwrap_or_default());
    let pattern = Pattern::new(text);
    let Some(key) = pattern.key(element) else { return };
    let Pattern::Key { prefix, suffix, field } = pattern else { unreachable!("it derives a key") };
    assert!(!prefix.contains(&b'*'), "the first star is replaced");
    assert_eq!(key.len(), prefix.len() + element.len() + suffix.len());
    let arrow = field.map_or(0, |field| field.len() + 2);
    assert_eq!(prefix.len() + 1 + suffix.len() + arrow, text.len(), "no byte is lost");
    assert!(field.is_none_or(|field| !field.is_empty()), "a field has a name");
    if let Some(slot) = slot_of(text) {
        assert_eq!(Slot::of(&key), slot, "a slot is named only if no element can change it");
    }
}
