//! A connection's unsent bytes: its own, and large values that are shared, not copied.
//!
//! `commands` writes into it through `Reply`; the server sends [`Output::chunks`] with one gathered write and then
//! calls [`Output::advance`] with the number of bytes the socket took. A [`Mark`] is a position in the connection's
//! stream: the server sends up to a mark, and a reply can be undone back to a mark.

use std::collections::VecDeque;
use std::sync::Arc;

#[cfg(test)]
mod tests;

#[derive(Debug, Default)]
pub struct Output {
    /// Bytes owned by this output. The first `head` of them are sent.
    bytes: Vec<u8>,
    head: usize,
    /// Shared values placed between the owned bytes, in order. None of them is sent entirely.
    shared: VecDeque<SharedPart>,
    /// The number of bytes of the first shared value that are sent. Not zero only when `head` has reached it.
    shared_head: usize,
    /// Unsent bytes of all shared values.
    shared_len: usize,
    /// Bytes sent since the connection was opened.
    sent: u64,
}

#[derive(Debug)]
struct SharedPart {
    /// The number of owned `bytes` that precede it.
    at: usize,
    value: Arc<Vec<u8>>,
}

/// The start of the bytes written since a mark.
struct Since {
    own_start: usize,
    first_shared: usize,
}

/// A position in a connection's outgoing stream, counted from its first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

impl Output {
    /// Above this size, sent bytes at the front are dropped before the rest is sent. Otherwise a client that always
    /// reads a little too slowly would make the buffer grow without bound.
    const HEAD_BYTES_KEPT: usize = 64 * 1024;

    /// Returns the number of unsent bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() - self.head + self.shared_len
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the position after the last byte written so far.
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark(self.sent + self.len() as u64)
    }

    /// Returns the position up to which the output is sent.
    pub fn sent(&self) -> Mark {
        Mark(self.sent)
    }

    /// Returns the memory held for this connection alone; shared values belong to the store.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity() + self.shared.capacity() * size_of::<SharedPart>()
    }

    /// Appends bytes that are already encoded.
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the buffer to append to. The caller must not change the bytes already there.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Appends a value without copying it. The output holds it until it is sent.
    pub fn push_shared(&mut self, value: &Arc<Vec<u8>>) {
        if value.is_empty() {
            return; // A chunk must not be empty, or sending would not advance past it.
        }
        self.shared_len += value.len();
        self.shared.push_back(SharedPart { at: self.bytes.len(), value: Arc::clone(value) });
    }

    /// Returns the unsent bytes up to `until`, in the pieces they are stored in.
    pub fn chunks(&self, until: Mark) -> Chunks<'_> {
        let left = until.0.saturating_sub(self.sent);
        Chunks {
            output: self,
            at: self.head,
            next_shared: 0,
            left: usize::try_from(left).unwrap_or(usize::MAX).min(self.len()),
        }
    }

    /// Drops `count` bytes at the front: the socket has taken them.
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.len(), "more was sent than there was");
        self.sent += count as u64;
        let mut left = count;
        while left > 0 {
            let own_end = self.shared.front().map_or(self.bytes.len(), |shared| shared.at);
            if self.head < own_end {
                let taken = left.min(own_end - self.head);
                self.head += taken;
                left -= taken;
            } else {
                left -= self.advance_shared(left);
            }
        }
        self.drop_sent();
    }

    fn advance_shared(&mut self, count: usize) -> usize {
        let first = self.shared.front().expect("unsent bytes that are not ours are shared");
        let rest = first.value.len() - self.shared_head;
        let taken = count.min(rest);
        self.shared_len -= taken;
        self.shared_head += taken;
        if taken == rest {
            self.shared.pop_front();
            self.shared_head = 0;
        }
        taken
    }

    fn drop_sent(&mut self) {
        if self.is_empty() {
            self.bytes.clear();
        } else if self.head >= Self::HEAD_BYTES_KEPT && self.head >= self.bytes.len() / 2 {
            self.bytes.drain(..self.head);
            for shared in &mut self.shared {
                shared.at -= self.head;
            }
        } else {
            return;
        }
        self.head = 0;
    }

    /// Undoes everything written since `mark`, which must not have been sent.
    pub fn truncate(&mut self, mark: Mark) {
        let since = self.since(mark);
        self.bytes.truncate(since.own_start);
        for undone in self.shared.drain(since.first_shared..) {
            self.shared_len -= undone.value.len();
        }
    }

    /// Inserts bytes at `mark`, which must not have been sent, and shifts everything written since.
    pub fn insert(&mut self, mark: Mark, bytes: &[u8]) {
        let since = self.since(mark);
        self.bytes.splice(since.own_start..since.own_start, bytes.iter().copied());
        for moved in self.shared.range_mut(since.first_shared..) {
            moved.at += bytes.len();
        }
    }

    /// Finds the bytes written since `mark`. Searches from the end, because marks are used soon after they are
    /// made.
    fn since(&self, mark: Mark) -> Since {
        assert!(mark.0 >= self.sent, "what has been sent cannot be changed");
        let written = self.mark().0.checked_sub(mark.0).expect("a mark of this output");
        let written = usize::try_from(written).expect("no more than is held in memory");
        let (mut shared_len, mut first_shared) = (0, self.shared.len());
        for shared in self.shared.iter().rev() {
            let since_its_start = self.bytes.len() - shared.at + shared_len + shared.value.len();
            if since_its_start > written {
                break;
            }
            shared_len += shared.value.len();
            first_shared -= 1;
        }
        Since { own_start: self.bytes.len() - (written - shared_len), first_shared }
    }

    /// Drops everything unsent, for example when the connection is closed. Marks stay valid.
    pub fn clear(&mut self) {
        self.sent += self.len() as u64;
        self.bytes.clear();
        self.shared.clear();
        (self.head, self.shared_head, self.shared_len) = (0, 0, 0);
    }

    /// Frees the buffers if they take more than `bytes_max` and there is nothing to send.
    pub fn trim(&mut self, bytes_max: usize) {
        if self.is_empty() && self.capacity() > bytes_max {
            self.bytes = Vec::new();
            self.shared = VecDeque::new();
        }
    }
}

/// The pieces of an [`Output`], none of them empty, ready for a gathered write.
#[derive(Debug)]
pub struct Chunks<'o> {
    output: &'o Output,
    /// Position in the output's own bytes.
    at: usize,
    next_shared: usize,
    left: usize,
}

impl<'o> Iterator for Chunks<'o> {
    type Item = &'o [u8];

    #[inline]
    fn next(&mut self) -> Option<&'o [u8]> {
        if self.left == 0 {
            return None;
        }
        let shared = self.output.shared.get(self.next_shared);
        let own_end = shared.map_or(self.output.bytes.len(), |shared| shared.at);
        let chunk = if self.at < own_end {
            let own = &self.output.bytes[self.at..own_end];
            self.at = own_end;
            own
        } else {
            let first = self.next_shared == 0;
            self.next_shared += 1;
            let skip = if first { self.output.shared_head } else { 0 };
            &shared.expect("bytes that are not ours are shared").value[skip..]
        };
        let chunk = &chunk[..chunk.len().min(self.left)];
        self.left -= chunk.len();
        Some(chunk)
    }
}
