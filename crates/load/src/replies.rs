//! Counts and discards the bytes received. Pure.
//!
//! `connection.rs` passes in what it has read; the code here looks only at the first byte and the
//! length of each reply. It counts errors and misses: a server that quickly answers that it has
//! nothing would win every comparison.
use resp::ProtocolError;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) replies: u64,
    pub(crate) errors: u64,
    /// Replies that say "no such key".
    pub(crate) misses: u64,
}

/// Counts the whole replies at the start of `bytes`. Returns the offset of the first incomplete one.
#[inline]
pub(crate) fn count(bytes: &[u8], counts: &mut Counts) -> Result<usize, ProtocolError> {
    let mut at = 0;
    while at < bytes.len() {
        let Some(end) = resp::skip_reply(bytes, at)? else { break };
        counts.replies += 1;
        match bytes[at] {
            b'-' | b'!' => counts.errors += 1,
            b'_' => counts.misses += 1,
            b'$' if bytes[at + 1] == b'-' => counts.misses += 1,
            _ => {}
        }
        at = end;
    }
    Ok(at)
}

/// Returns the text of the first error among the whole replies in `bytes`.
pub(crate) fn first_error(bytes: &[u8]) -> Option<String> {
    let mut at = 0;
    while let Ok(Some(end)) = resp::skip_reply(bytes, at) {
        if matches!(bytes[at], b'-' | b'!') {
            return Some(String::from_utf8_lossy(&bytes[at + 1..end]).trim().to_owned());
        }
        at = end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_errors_and_misses_are_told_apart() {
        let mut counts = Counts::default();
        let bytes = b"+OK\r\n$3\r\nabc\r\n$-1\r\n_\r\n-ERR no\r\n:1\r\n";
        assert_eq!(count(bytes, &mut counts).unwrap(), bytes.len());
        assert_eq!(counts, Counts { replies: 6, errors: 1, misses: 2 });
        assert_eq!(first_error(bytes).as_deref(), Some("ERR no"));
    }

    #[test]
    fn bytes_cut_anywhere_count_the_same() {
        let bytes = b"$3\r\nabc\r\n+OK\r\n$-1\r\n-ERR no\r\n$0\r\n\r\n";
        for cut in 0..bytes.len() {
            let mut counts = Counts::default();
            let used = count(&bytes[..cut], &mut counts).unwrap();
            let rest = count(&bytes[used..], &mut counts).unwrap();
            assert_eq!((used + rest, counts.replies), (bytes.len(), 5), "cut at {cut}");
        }
    }
}
