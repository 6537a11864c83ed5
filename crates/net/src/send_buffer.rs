//! Bytes on their way to a stream that may not take them all at once.

use std::io::{self, ErrorKind, Write};

use crate::stream::must_wait;

/// Bytes to be sent, of which some are sent already. An empty buffer keeps at most `KEPT` bytes of capacity.
#[derive(Debug, Default)]
pub struct SendBuffer<const KEPT: usize> {
    bytes: Vec<u8>,
    /// Number of bytes at the beginning that are sent.
    sent: usize,
}

impl<const KEPT: usize> SendBuffer<KEPT> {
    /// Returns the vector to which bytes to be sent are appended. It may begin with bytes that are sent.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    #[inline]
    pub fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Returns the number of unsent bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Records that the other end has accepted this many of the unsent bytes.
    #[inline]
    pub fn advance(&mut self, count: usize) {
        self.sent += count;
        if self.sent == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT);
            self.sent = 0;
        } else if self.sent >= KEPT && self.sent >= self.bytes.len() / 2 {
            // A reader that is always a little behind must not make the buffer grow forever.
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Sends what the stream accepts, and returns the number of bytes.
    pub fn flush(&mut self, stream: &mut impl Write) -> io::Result<usize> {
        let mut sent = 0;
        while !self.is_empty() {
            match stream.write(self.unsent()) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.advance(count);
                    sent += count;
                }
                Err(error) if must_wait(&error) => return Ok(sent),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        match stream.flush() {
            Err(error) if !must_wait(&error) => Err(error),
            Ok(()) | Err(_) => Ok(sent),
        }
    }

    /// Discards all bytes and frees their memory.
    pub fn discard(&mut self) {
        *self = SendBuffer::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that takes at most `room` bytes, in writes of at most `each`.
    #[derive(Default)]
    struct Narrow {
        room: usize,
        each: usize,
        taken: Vec<u8>,
        flushes: usize,
    }

    impl Write for Narrow {
        fn write(&mut self, from: &[u8]) -> io::Result<usize> {
            let count = from.len().min(self.room).min(self.each);
            if count == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
            self.room -= count;
            self.taken.extend_from_slice(&from[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.flushes += 1;
            Ok(())
        }
    }

    /// A stream whose every write has this result.
    struct Always(fn() -> io::Result<usize>);

    impl Write for Always {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            (self.0)()
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn bytes_leave_in_order_however_little_is_taken_at_once() {
        let mut buffer = SendBuffer::<4>::default();
        let mut stream = Narrow { each: 3, ..Narrow::default() };
        let mut expected = Vec::new();
        let mut sent = 0;
        for number in 0..200_u8 {
            buffer.bytes_mut().extend_from_slice(&[number; 5]);
            expected.extend_from_slice(&[number; 5]);
            stream.room = usize::from(number) % 10;
            sent += buffer.flush(&mut stream).unwrap();
            assert_eq!(sent + buffer.len(), expected.len());
        }
        assert!(!buffer.is_empty(), "the test sends all at once");
        assert_eq!(stream.flushes, 0, "flushed before everything was written");
        stream.room = usize::MAX;
        buffer.flush(&mut stream).unwrap();
        assert_eq!(stream.taken, expected);
        assert_eq!((buffer.len(), stream.flushes), (0, 1));
    }

    #[test]
    fn a_reader_that_is_always_behind_does_not_make_the_buffer_grow() {
        let mut buffer = SendBuffer::<1_000>::default();
        buffer.bytes_mut().extend_from_slice(&[b'x'; 500]);
        for _ in 0..1_000 {
            buffer.bytes_mut().extend_from_slice(&[b'x'; 100]);
            buffer.advance(100);
        }
        assert_eq!(buffer.len(), 500);
        assert!(buffer.bytes.len() < 3_000, "{} bytes are kept", buffer.bytes.len());
    }

    #[test]
    fn an_empty_buffer_keeps_little_memory() {
        let mut buffer = SendBuffer::<1_000>::default();
        buffer.bytes_mut().resize(100_000, 0);
        buffer.advance(100_000);
        assert!((1..=1_000).contains(&buffer.bytes.capacity()), "{}", buffer.bytes.capacity());
        buffer.bytes_mut().push(1);
        buffer.discard();
        assert_eq!((buffer.len(), buffer.bytes.capacity()), (0, 0));
    }

    #[test]
    fn a_stream_that_takes_nothing_or_fails_is_an_error_and_a_full_one_is_not() {
        let mut buffer = SendBuffer::<10>::default();
        buffer.bytes_mut().push(1);
        let zero = buffer.flush(&mut Always(|| Ok(0)));
        assert_eq!(zero.unwrap_err().kind(), ErrorKind::WriteZero);
        let reset = buffer.flush(&mut Always(|| Err(ErrorKind::ConnectionReset.into())));
        assert_eq!(reset.unwrap_err().kind(), ErrorKind::ConnectionReset);
        let full = buffer.flush(&mut Always(|| Err(ErrorKind::WouldBlock.into())));
        assert_eq!(full.unwrap(), 0);
        let connecting = buffer.flush(&mut Always(|| Err(ErrorKind::NotConnected.into())));
        assert_eq!(connecting.unwrap(), 0);
        assert_eq!(buffer.unsent(), [1]);
    }
}
