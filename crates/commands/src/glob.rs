//! Glob patterns as Redis matches them (KEYS, SCAN, PSUBSCRIBE, CONFIG GET): `*`, `?`, `[a-z]`,
//! `[^a]`, `\` before a literal character. Malformed patterns (an open bracket, a backslash at the end) match as in
//! Redis.

/// Returns whether the whole of `text` matches `pattern`.
///
/// Only the last of several stars ever needs another attempt, so the work is bounded by the product of the lengths
/// for every pattern.
pub fn glob_matches(pattern: &[u8], text: &[u8]) -> bool {
    // Redis ignores the pattern, even `*`, if the text is empty.
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (mut rest, mut at) = (pattern, 0);
    // The pattern after the last star, and the position in the text at which it was last tried.
    let mut star: Option<(&[u8], usize)> = None;
    loop {
        if rest.first() == Some(&b'*') {
            rest = skip_stars(rest);
            if rest.is_empty() {
                return true;
            }
            star = Some((rest, at));
        }
        match match_one(rest, text[at]) {
            Some(behind) if at + 1 == text.len() => {
                if skip_stars(behind).is_empty() {
                    return true;
                }
                // The rest of the pattern needs more text, and a later attempt has even less.
                return false;
            }
            Some(behind) => (rest, at) = (behind, at + 1),
            None => {
                let Some((behind, tried)) = star.filter(|(_, tried)| tried + 1 < text.len()) else {
                    return false;
                };
                (rest, at) = (behind, tried + 1);
                star = Some((rest, at));
            }
        }
    }
}

fn skip_stars(pattern: &[u8]) -> &[u8] {
    let stars = pattern.iter().take_while(|byte| **byte == b'*').count();
    &pattern[stars..]
}

/// Matches one byte against the first element of the pattern, and returns the rest of the pattern.
fn match_one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [] => None,
        [b'?', rest @ ..] => Some(rest),
        [b'[', rest @ ..] => match_class(rest, byte),
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => (*literal == byte).then_some(rest),
    }
}

/// Matches one byte against `a-z]` or `^a-z]`. An unclosed class ends with the pattern.
fn match_class(pattern: &[u8], byte: u8) -> Option<&[u8]> {
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
            [b']', rest @ ..] => return (contains != negated).then_some(rest),
            [] => return (contains != negated).then_some(rest),
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

    #[test]
    fn a_pattern_of_many_stars_is_quick() {
        let pattern = b"*a".repeat(1_000);
        let text = [b'a'; 999];
        assert!(!glob_matches(&pattern, &[text.as_slice(), b"b"].concat()));
    }
}
