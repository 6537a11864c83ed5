//! Looks up commands with names of up to 16 bytes, which are nearly all that clients send: a name is two words, so a
//! look-up is a multiplication and a comparison of words.

use crate::Spec;
use crate::spec::CommandId;

/// Length of the longest name that is looked up here.
pub(crate) const SHORT_BYTES_MAX: usize = 16;
/// An odd number without a pattern, to spread names over the places.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
/// Number of bytes of a word.
const WORD: usize = 8;

/// Commands by their lower-case names, with open addressing: a power of two in size, at most a quarter full.
pub(crate) struct ShortNames {
    places: Box<[Place]>,
    /// 64 less the number of bits of a place's index.
    shift: u32,
}

#[derive(Clone, Copy, Default)]
struct Place {
    words: Words,
    command: Option<(&'static Spec, CommandId)>,
}

/// A name in lower case, filled up with zeros.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Words {
    first: u64,
    second: u64,
}

impl ShortNames {
    pub(crate) fn with_room_for(count: usize) -> ShortNames {
        let size = (count.max(1) * 4).next_power_of_two();
        ShortNames {
            places: vec![Place::default(); size].into_boxed_slice(),
            shift: u64::BITS - size.trailing_zeros(),
        }
    }

    pub(crate) fn insert(&mut self, spec: &'static Spec, id: CommandId) {
        let words = Words::of(spec.name.as_bytes());
        let mut place = self.first_place(words);
        while self.places[place].command.is_some() {
            place = (place + 1) & (self.places.len() - 1);
        }
        self.places[place] = Place { words, command: Some((spec, id)) };
    }

    /// Finds the command with this name of up to [`SHORT_BYTES_MAX`] bytes, case-insensitively.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<(&'static Spec, CommandId)> {
        let words = Words::of(name);
        let mut place = self.first_place(words);
        loop {
            let Place { words: known, command } = self.places[place];
            let (spec, id) = command?;
            // The lengths differ if the name ends with zero bytes.
            if known == words && spec.name.len() == name.len() {
                return Some((spec, id));
            }
            place = (place + 1) & (self.places.len() - 1);
        }
    }

    #[inline]
    fn first_place(&self, words: Words) -> usize {
        let mixed = words.first ^ words.second.rotate_left(29);
        (mixed.wrapping_mul(MULTIPLIER) >> self.shift) as usize
    }
}

impl Words {
    /// Returns the words of a name of up to [`SHORT_BYTES_MAX`] bytes.
    #[inline]
    fn of(name: &[u8]) -> Words {
        match name.split_at_checked(WORD) {
            None => Words { first: word_of(name), second: 0 },
            Some((first, second)) => Words { first: word_of(first), second: word_of(second) },
        }
    }
}

/// Returns a name of up to eight bytes in lower case, filled up with zeros.
#[inline]
fn word_of(name: &[u8]) -> u64 {
    let length = name.len();
    let part = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_le_bytes);
    let word = match length {
        0 => 0,
        1..4 => {
            // The middle byte is the first or the last one again if there are fewer than three.
            let byte = |at: usize| u64::from(name[at]) << (8 * at);
            byte(0) | byte(length / 2) | byte(length - 1)
        }
        4.. => {
            // The two halves overlap if the name is shorter than eight bytes.
            let (first, last) = (part(&name[..4]), part(&name[length - 4..]));
            u64::from(first) | u64::from(last) << (8 * (length - 4))
        }
    };
    to_lower_case(word)
}

/// Converts the eight bytes of a word to lower case, as `u8::to_ascii_lowercase` does.
#[inline]
fn to_lower_case(word: u64) -> u64 {
    const fn all(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    // No sum of two bytes below 128 carries over into the next one.
    let low = word & all(0x7F);
    let from_a = low + all(0x80 - b'A');
    let above_z = low + all(0x80 - (b'Z' + 1));
    let is_upper = from_a & !above_z & !word & all(0x80);
    word | is_upper >> 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_in_every_position_becomes_lower_case() {
        for byte in 0..=u8::MAX {
            for at in 0..8 {
                let mut name = *b"aZ\x80~0_[@";
                name[at] = byte;
                let expected = u64::from_le_bytes(name.map(|byte| byte.to_ascii_lowercase()));
                assert_eq!(to_lower_case(u64::from_le_bytes(name)), expected, "{name:?}");
            }
        }
    }

    #[test]
    fn names_of_every_length_have_words_of_their_own() {
        let name = b"abcdefghijklmnop";
        let words: Vec<Words> = (0..=name.len()).map(|length| Words::of(&name[..length])).collect();
        assert_eq!(words[16], Words { first: word_of(b"abcdefgh"), second: word_of(b"ijklmnop") });
        assert!(words.iter().enumerate().all(|(at, one)| !words[..at].contains(one)));
    }

    #[test]
    fn a_word_has_the_bytes_of_its_name_in_their_order() {
        let name = b"abcdefgh";
        for length in 0..=8 {
            let mut expected = [0; 8];
            expected[..length].copy_from_slice(&name[..length]);
            assert_eq!(word_of(&name[..length]), u64::from_le_bytes(expected));
        }
    }
}
