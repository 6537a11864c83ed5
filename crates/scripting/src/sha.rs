//! Names of scripts: the SHA-1 of their text.

use sha1::{Digest, Sha1};

/// The SHA-1 of a script, as 40 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ScriptId([u8; 40]);

impl ScriptId {
    /// Returns the id of the script with this text.
    pub fn of(text: &[u8]) -> ScriptId {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut id = [0; 40];
        for (pair, byte) in id.chunks_exact_mut(2).zip(Sha1::digest(text)) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        ScriptId(id)
    }

    /// Reads an id that a client has written, in any case of its letters.
    pub fn parse(text: &[u8]) -> Option<ScriptId> {
        let mut id: [u8; 40] = text.try_into().ok()?;
        id.make_ascii_lowercase();
        id.iter().all(u8::is_ascii_hexdigit).then_some(ScriptId(id))
    }

    pub fn text(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_sha1_in_hexadecimal() {
        let id = ScriptId::of(b"");
        assert_eq!(id.text(), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        assert_eq!(ScriptId::parse(b"DA39A3EE5E6B4B0D3255BFEF95601890AFD80709"), Some(id));
        assert_eq!(ScriptId::parse(b"da39"), None);
        assert_eq!(ScriptId::parse(&[b'g'; 40]), None);
    }
}
