//! How much of a fill may be under way unacknowledged. What is written meanwhile travels behind it on the
//! same link, and clients wait until that is acknowledged: where somebody writes, little goes ahead of
//! them; where nobody does, as much as keeps the other end busy.

use std::time::Duration;

use crate::replication::{FrameNumber, LinkId, Outbox};

/// Some tenths of a millisecond of the other end's time.
const NARROW: usize = 8 * 1024;
const WIDE: usize = 256 * 1024;
/// Whoever has written is expected to write again for so long.
const MEMORY: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(super) struct Window {
    link: Option<LinkId>,
    /// The last frame on the link that the fill has added or seen.
    known: FrameNumber,
    narrow_until: Duration,
}

impl Window {
    /// A fill begins: of another link it is not known yet whether somebody writes there.
    pub(super) fn turn_to(&mut self, now: Duration, link: LinkId, outbox: &Outbox) {
        if self.link.replace(link) != Some(link) {
            self.known = outbox.last();
            self.narrow_until = now + MEMORY;
        }
    }

    /// Lets the fill add frames of its own, which do not count as somebody's writes.
    pub(super) fn add<R>(&mut self, outbox: &mut Outbox, add: impl FnOnce(&mut Outbox) -> R) -> R {
        let before = outbox.last();
        let result = add(outbox);
        self.known.0 += outbox.last().0 - before.0;
        result
    }

    pub(super) fn bytes(&mut self, now: Duration, last: FrameNumber) -> usize {
        if core::mem::replace(&mut self.known, last) != last {
            self.narrow_until = now + MEMORY;
        }
        if now < self.narrow_until { NARROW } else { WIDE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replication::Frame;

    const AT: Duration = Duration::from_secs(9);

    fn write(outbox: &mut Outbox) {
        outbox.push(&Frame::News { bytes: b"written" });
    }

    #[test]
    fn it_is_narrow_while_somebody_writes_and_wide_when_nobody_does() {
        let (mut window, mut outbox) = (Window::default(), Outbox::default());
        write(&mut outbox);
        window.turn_to(AT - MEMORY, LinkId(1), &outbox);
        assert_eq!(window.bytes(AT - MEMORY, outbox.last()), NARROW, "it is not known yet");
        assert_eq!(window.bytes(AT, outbox.last()), WIDE);
        window.add(&mut outbox, write);
        assert_eq!(window.bytes(AT, outbox.last()), WIDE, "the fill's own frames do not count");
        window.add(&mut outbox, write);
        write(&mut outbox);
        assert_eq!(window.bytes(AT, outbox.last()), NARROW);
        assert_eq!(window.bytes(AT + MEMORY / 2, outbox.last()), NARROW);
        assert_eq!(window.bytes(AT + MEMORY, outbox.last()), WIDE);
        window.turn_to(AT + MEMORY, LinkId(1), &outbox);
        assert_eq!(window.bytes(AT + MEMORY, outbox.last()), WIDE, "the next fill goes on");
    }
}
