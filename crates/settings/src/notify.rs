//! The classes of keyspace events: the value of `notify-keyspace-events`, and the class of each event that commands
//! record.

use super::kind::{SettingKind, SettingValue};

/// The classes of keyspace events that are published: the letters of `notify-keyspace-events`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotifyClasses(u16);

impl NotifyClasses {
    pub const NONE: NotifyClasses = NotifyClasses(0);
    /// Publishes on `__keyspace@DATABASE__:KEY`.
    pub const KEYSPACE: NotifyClasses = NotifyClasses(1 << 0);
    /// Publishes on `__keyevent@DATABASE__:EVENT`.
    pub const KEYEVENT: NotifyClasses = NotifyClasses(1 << 1);
    pub const GENERIC: NotifyClasses = NotifyClasses(1 << 2);
    pub const STRING: NotifyClasses = NotifyClasses(1 << 3);
    pub const LIST: NotifyClasses = NotifyClasses(1 << 4);
    pub const SET: NotifyClasses = NotifyClasses(1 << 5);
    pub const HASH: NotifyClasses = NotifyClasses(1 << 6);
    pub const ZSET: NotifyClasses = NotifyClasses(1 << 7);
    pub const EXPIRED: NotifyClasses = NotifyClasses(1 << 8);
    pub const EVICTED: NotifyClasses = NotifyClasses(1 << 9);
    pub const STREAM: NotifyClasses = NotifyClasses(1 << 10);
    pub const MODULE: NotifyClasses = NotifyClasses(1 << 11);
    pub const KEY_MISS: NotifyClasses = NotifyClasses(1 << 12);
    pub const NEW: NotifyClasses = NotifyClasses(1 << 13);
    /// The meaning of `A`: every class except key misses and new keys.
    pub const ALL: NotifyClasses = NotifyClasses(0b1111_1111_1100);

    /// The letters in the order in which Redis writes them.
    const LETTERS: [(char, NotifyClasses); 11] = [
        ('g', Self::GENERIC),
        ('$', Self::STRING),
        ('l', Self::LIST),
        ('s', Self::SET),
        ('h', Self::HASH),
        ('z', Self::ZSET),
        ('x', Self::EXPIRED),
        ('e', Self::EVICTED),
        ('t', Self::STREAM),
        ('d', Self::MODULE),
        ('n', Self::NEW),
    ];
    const LAST_LETTERS: [(char, NotifyClasses); 3] =
        [('K', Self::KEYSPACE), ('E', Self::KEYEVENT), ('m', Self::KEY_MISS)];

    /// Returns whether all classes of `other` are included.
    #[must_use]
    pub fn contains(self, other: NotifyClasses) -> bool {
        self.0 & other.0 == other.0
    }

    #[must_use]
    pub fn union(self, other: NotifyClasses) -> NotifyClasses {
        NotifyClasses(self.0 | other.0)
    }

    /// Returns whether events of `class` are published: the class is on, and so is a channel.
    #[must_use]
    pub fn publishes(self, class: NotifyClasses) -> bool {
        self.contains(class) && (self.contains(Self::KEYSPACE) || self.contains(Self::KEYEVENT))
    }

    /// Returns all letters, also those that Redis leaves out: another node reads the same classes from it.
    pub(super) fn exact(self) -> String {
        let letters = Self::LETTERS.iter().chain(&Self::LAST_LETTERS);
        letters.filter(|(_, class)| self.contains(*class)).map(|(letter, _)| *letter).collect()
    }

    fn of_letter(letter: char) -> Option<NotifyClasses> {
        if letter == 'A' {
            return Some(Self::ALL);
        }
        let mut letters = Self::LETTERS.iter().chain(&Self::LAST_LETTERS);
        letters.find(|(known, _)| *known == letter).map(|(_, class)| *class)
    }
}

impl SettingValue for NotifyClasses {
    fn assign(&mut self, text: &str, _: &SettingKind) -> Result<(), String> {
        let classes = text.chars().map(NotifyClasses::of_letter);
        let all: Option<NotifyClasses> = classes
            .into_iter()
            .try_fold(NotifyClasses::NONE, |sum, class| class.map(|class| sum.union(class)));
        *self = all.ok_or("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")?;
        Ok(())
    }

    fn show(&self, _: &SettingKind) -> String {
        // Redis omits `n` after an `A`, although it is on; we show the same.
        let letters: &[_] =
            if self.contains(Self::ALL) { &[('A', Self::ALL)] } else { &Self::LETTERS };
        let on = |(letter, class): &(char, NotifyClasses)| self.contains(*class).then_some(*letter);
        letters.iter().chain(&Self::LAST_LETTERS).filter_map(on).collect()
    }
}
