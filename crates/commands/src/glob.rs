//! Glob patterns as Redis matches them (KEYS, SCAN, PSUBSCRIBE, CONFIG GET): `*`, `?`, `[a-z]`,
//! `[^a]`, `\` before a literal character. Malformed patterns (an open bracket, a backslash at the end) match as in
//! Redis.

use memchr::memmem;

use crate::Error;

/// Maximum length of a pattern. With it, the work of a match is bounded by some operations per byte of the text.
pub(crate) const PATTERN_BYTES_MAX: usize = 4096;
/// Product of the lengths of run and text up to which trying every position is the fastest way.
const TRIES_MAX: usize = 1 << 16;

/// Refuses a pattern that is too long.
pub(crate) fn checked_pattern(pattern: &[u8]) -> Result<&[u8], Error> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(Error::fixed("ERR pattern too long, the maximum is 4096 bytes"));
    }
    Ok(pattern)
}

/// Returns whether the whole of `text` matches `pattern`.
pub fn glob_matches(pattern: &[u8], text: &[u8]) -> bool {
    // Redis ignores the pattern, even `*`, if the text is empty.
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (first, mut rest) = Run::split(pattern);
    if rest.is_empty() {
        return first.count == text.len() && first.matches(text);
    }
    if first.count > text.len() || !first.matches(&text[..first.count]) {
        return false;
    }
    let mut left = &text[first.count..];
    loop {
        let (run, behind) = Run::split(skip_stars(rest));
        if behind.is_empty() {
            return run.count <= left.len() && run.matches(&left[left.len() - run.count..]);
        }
        // The first place is the best: it leaves the most text for the rest.
        let Some(at) = run.find(left) else { return false };
        left = &left[at + run.count..];
        rest = behind;
    }
}

fn skip_stars(pattern: &[u8]) -> &[u8] {
    let stars = pattern.iter().take_while(|byte| **byte == b'*').count();
    &pattern[stars..]
}

/// A part of a pattern without stars. Each of its elements matches one byte.
struct Run<'a> {
    elements: &'a [u8],
    count: usize,
    /// True if each element is a byte that stands for itself.
    is_literal: bool,
}

impl Run<'_> {
    /// Splits a pattern before its first star.
    fn split(pattern: &[u8]) -> (Run<'_>, &[u8]) {
        let (mut rest, mut count) = (pattern, 0);
        let mut is_literal = true;
        while let Some(first) = rest.first().filter(|first| **first != b'*') {
            is_literal &= !matches!(first, b'?' | b'[' | b'\\');
            (_, rest) = match_one(rest, 0);
            count += 1;
        }
        (Run { elements: &pattern[..pattern.len() - rest.len()], count, is_literal }, rest)
    }

    /// Returns whether a text of as many bytes matches.
    fn matches(&self, text: &[u8]) -> bool {
        if self.is_literal {
            return self.elements == text;
        }
        let mut rest = self.elements;
        text.iter().all(|byte| {
            let matches;
            (matches, rest) = match_one(rest, *byte);
            matches
        })
    }

    /// Returns the first place in a text at which the run matches.
    fn find(&self, text: &[u8]) -> Option<usize> {
        if self.is_literal {
            memmem::find(text, self.elements)
        } else if self.count.saturating_mul(text.len()) <= TRIES_MAX {
            text.windows(self.count).position(|window| self.matches(window))
        } else {
            self.find_in_long(text)
        }
    }

    /// Finds like [`Run::find`], 64 elements at a time: bit `n` of the state says that the first `n + 1` elements match
    /// the last `n + 1` bytes (Shift-And).
    fn find_in_long(&self, text: &[u8]) -> Option<usize> {
        let words = self.count.div_ceil(64);
        let mut masks = vec![0_u64; 256 * words];
        let mut rest = self.elements;
        for place in 0..self.count {
            for byte in 0..=u8::MAX {
                if match_one(rest, byte).0 {
                    masks[usize::from(byte) * words + place / 64] |= 1 << (place % 64);
                }
            }
            (_, rest) = match_one(rest, 0);
        }
        let last = self.count - 1;
        let mut state = vec![0_u64; words];
        for (end, byte) in text.iter().enumerate() {
            let masks = &masks[usize::from(*byte) * words..][..words];
            let mut carried = 1;
            for (word, mask) in state.iter_mut().zip(masks) {
                let shifted = *word << 1 | carried;
                carried = *word >> 63;
                *word = shifted & mask;
            }
            if state[last / 64] >> (last % 64) & 1 == 1 {
                return Some(end - last);
            }
        }
        None
    }
}

/// Matches one byte against the first element of the pattern, and returns the rest of the pattern.
fn match_one(pattern: &[u8], byte: u8) -> (bool, &[u8]) {
    match pattern {
        [] => (false, pattern),
        [b'?', rest @ ..] => (true, rest),
        [b'[', rest @ ..] => match_class(rest, byte),
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => (*literal == byte, rest),
    }
}

/// Matches one byte against `a-z]` or `^a-z]`. An unclosed class ends with the pattern.
fn match_class(pattern: &[u8], byte: u8) -> (bool, &[u8]) {
    let (negated, mut rest) = match pattern {
        [b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut contains = false;
    loop {
        rest = match rest {
            [b'\\', literal, rest @ ..] => {
                contains |= *literal == byte;
                rest
            }
            [b']', rest @ ..] => return (contains != negated, rest),
            [] => return (contains != negated, rest),
            [one, b'-', other, rest @ ..] => {
                contains |= is_between(byte, *one, *other);
                rest
            }
            [literal, rest @ ..] => {
                contains |= *literal == byte;
                rest
            }
        };
    }
}

/// Returns whether `byte` lies between the two, which may be in either order. Bytes compare as signed, as in C.
fn is_between(byte: u8, one: u8, other: u8) -> bool {
    let (byte, one, other) = (byte.cast_signed(), one.cast_signed(), other.cast_signed());
    (one.min(other)..=one.max(other)).contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pattern, text, and the result of redis-server 7.0.15.
    const ANSWERS: &[(&str, &str, bool)] = &[
        ("", "", true),
        ("*", "", false),
        ("", "a", false),
        ("a*", "a", true),
        ("*", "abc", true),
        ("**", "abc", true),
        ("a*c", "abbc", true),
        ("a*c", "abcb", false),
        ("a*b*c", "axbxbxc", true),
        ("*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaac", false),
        ("h?llo", "hello", true),
        ("h?llo", "hllo", false),
        ("h[ae]llo", "hallo", true),
        ("h[^e]llo", "hello", false),
        ("h[^e]llo", "hallo", true),
        ("h[a-b]llo", "hbllo", true),
        ("h[b-a]llo", "hallo", true),
        ("[a-]", "]", true),
        ("[a-]", "a", true),
        ("[a", "a", true),
        ("[", "[", false),
        ("[^", "x", true),
        ("[]a", "a", false),
        ("[\\]]", "]", true),
        ("[\\", "\\", true),
        ("\\*", "*", true),
        ("\\*", "a", false),
        ("\\", "\\", true),
        ("a\\", "a\\", true),
        ("a?", "a", false),
        ("a*?", "a", false),
        ("*?", "a", true),
    ];

    #[test]
    fn patterns_match_what_redis_matches() {
        for (pattern, text, expected) in ANSWERS {
            let told = glob_matches(pattern.as_bytes(), text.as_bytes());
            assert_eq!(told, *expected, "{pattern:?} on {text:?}");
        }
    }

    /// Matches as the definition says, by trying everything.
    fn matches_slowly(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.first() {
            None => text.is_empty(),
            Some(b'*') => (0..=text.len()).any(|at| matches_slowly(&pattern[1..], &text[at..])),
            Some(_) => text.split_first().is_some_and(|(byte, left)| {
                let (matches, rest) = match_one(pattern, *byte);
                matches && matches_slowly(rest, left)
            }),
        }
    }

    proptest::proptest! {
        #[test]
        fn every_pattern_matches_by_its_definition(
            pattern in "[ab*?\\[\\]^\\\\-]{0,9}",
            text in "[ab\\]-]{1,9}",
        ) {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            proptest::prop_assert_eq!(glob_matches(pattern, text), matches_slowly(pattern, text));
        }

        #[test]
        fn a_long_text_is_searched_like_a_short_one(
            run in "[ab?]{1,200}",
            text in "[ab]{1,600}",
        ) {
            let (run, _) = Run::split(run.as_bytes());
            let slowly = text.as_bytes().windows(run.count).position(|window| run.matches(window));
            proptest::prop_assert_eq!(run.find_in_long(text.as_bytes()), slowly);
        }
    }

    #[test]
    fn the_work_does_not_grow_with_the_product_of_the_lengths() {
        // At one step for each pair of bytes, each of these would take minutes.
        let text = vec![b'a'; 50_000_000];
        for pattern in
            ["a".repeat(4_000) + "b*", "?".repeat(4_000) + "b*", "[a-b]".repeat(800) + "c*"]
        {
            assert!(!glob_matches(format!("*{pattern}").as_bytes(), &text));
        }
    }

    #[test]
    fn a_pattern_of_many_stars_is_quick() {
        let pattern = b"*a".repeat(1_000);
        let text = [b'a'; 999];
        assert!(!glob_matches(&pattern, &[text.as_slice(), b"b"].concat()));
    }
}
