//! Finds the end of a reply while it streams through: a reply of any size is forwarded in pieces and never held
//! whole. (`resp::ReplySkipper` needs the whole reply in one buffer.)

/// Maximum length of a line of a reply: errors and simple strings are short.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// The largest number of elements that can still be doubled for a map.
const ELEMENTS_MAX: u64 = u32::MAX as u64;

/// Bytes that are not a valid reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Malformed;

/// Follows one reply after another. Keeps its position in a reply that is cut off.
#[derive(Default)]
pub(super) struct Framer {
    /// Number of items still to come in the current reply; zero between replies.
    items_left: u64,
    /// The beginning of a line that is cut off.
    line: Vec<u8>,
    /// Remaining bytes of a bulk string and the line break after it.
    bulk_left: u64,
}

/// The outcome of [`Framer::feed`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fed {
    /// Number of bytes that belong to the reply.
    pub used: usize,
    /// True if the reply ends there.
    pub whole: bool,
}

impl Framer {
    /// Takes bytes of the current reply, at most up to its end.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<Fed, Malformed> {
        if self.items_left == 0 && !bytes.is_empty() {
            self.items_left = 1;
        }
        let mut used = 0;
        while used < bytes.len() {
            used += if self.bulk_left > 0 {
                self.feed_bulk(&bytes[used..])
            } else {
                self.feed_line(&bytes[used..])?
            };
            if self.items_left == 0 {
                return Ok(Fed { used, whole: true });
            }
        }
        Ok(Fed { used, whole: false })
    }

    fn feed_bulk(&mut self, bytes: &[u8]) -> usize {
        let left = usize::try_from(self.bulk_left).unwrap_or(usize::MAX);
        let used = left.min(bytes.len());
        self.bulk_left -= used as u64;
        if self.bulk_left == 0 {
            self.items_left -= 1;
        }
        used
    }

    fn feed_line(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(bytes.len(), |end| end + 1);
        if self.line.len() + used > LINE_BYTES_MAX {
            return Err(Malformed);
        }
        self.line.extend_from_slice(&bytes[..used]);
        if end.is_some() {
            self.end_line()?;
        }
        Ok(used)
    }

    /// Reads a whole line: an item, or a header.
    fn end_line(&mut self) -> Result<(), Malformed> {
        let line = core::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r\n").ok_or(Malformed)?;
        let (first, text) = line.split_first().ok_or(Malformed)?;
        let count = || match resp::parse_integer(text) {
            Some(-1) => Ok(None),
            Some(count) => u64::try_from(count).map(Some).map_err(|_| Malformed),
            None => Err(Malformed),
        };
        let children = match first {
            b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => 0,
            b'$' | b'!' | b'=' => match count()? {
                None => 0,
                Some(len) => {
                    // The item ends with its last byte.
                    self.bulk_left = len + 2;
                    return Ok(());
                }
            },
            b'*' | b'~' | b'>' => elements(count()?, 1, 0)?,
            b'%' => elements(count()?, 2, 0)?,
            // An attribute is followed by the reply that it describes.
            b'|' => elements(count()?, 2, 1)?,
            _ => return Err(Malformed),
        };
        self.items_left = (self.items_left - 1).checked_add(children).ok_or(Malformed)?;
        Ok(())
    }
}

fn elements(count: Option<u64>, each: u64, more: u64) -> Result<u64, Malformed> {
    let count = count.unwrap_or(0);
    if count > ELEMENTS_MAX { Err(Malformed) } else { Ok(count * each + more) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLIES: [&[u8]; 12] = [
        b"+OK\r\n",
        b"-ERR no\r\n",
        b":12\r\n",
        b"$5\r\nhe\r\no\r\n",
        b"$-1\r\n",
        b"$0\r\n\r\n",
        b"*-1\r\n",
        b"*0\r\n",
        b"*3\r\n$1\r\na\r\n*2\r\n:1\r\n_\r\n#t\r\n",
        b"%1\r\n+k\r\n~2\r\n,1.5\r\n(99\r\n",
        b"|1\r\n+a\r\n+b\r\n$2\r\nxy\r\n",
        b"=7\r\ntxt:abc\r\n",
    ];

    #[test]
    fn a_reply_ends_where_it_ends_however_it_is_cut() {
        let all = REPLIES.concat();
        for piece in 1..=all.len() {
            let (mut framer, mut ends, mut at) = (Framer::default(), Vec::new(), 0);
            for chunk in all.chunks(piece) {
                let mut chunk_at = 0;
                while chunk_at < chunk.len() {
                    let fed = framer.feed(&chunk[chunk_at..]).expect("a reply");
                    (chunk_at, at) = (chunk_at + fed.used, at + fed.used);
                    if fed.whole {
                        ends.push(at);
                    }
                }
            }
            let expected: Vec<usize> = REPLIES
                .iter()
                .scan(0, |at, reply| {
                    *at += reply.len();
                    Some(*at)
                })
                .collect();
            assert_eq!(ends, expected, "pieces of {piece}");
        }
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        for bytes in
            [&b"hello\r\n"[..], b"$x\r\n", b"*-2\r\n", b"+OK\n", b"\r\n", b"*99999999999\r\n"]
        {
            assert_eq!(Framer::default().feed(bytes), Err(Malformed), "{}", bytes.escape_ascii());
        }
        let long = vec![b'+'; LINE_BYTES_MAX + 1];
        assert_eq!(Framer::default().feed(&long), Err(Malformed));
    }
}
