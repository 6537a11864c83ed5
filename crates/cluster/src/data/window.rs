//! Maximum number of bytes of a fill in flight (unacknowledged). Clients' writes travel behind the fill on the
//! same link, and clients wait until those are acknowledged. So while clients write, the window is only as
//! large as a good rate needs; while nobody writes, it is large enough to keep the other end busy.

use std::time::Duration;

use crate::Moment;
use crate::replication::{FrameNumber, LinkId, Outbox};

/// Some tenths of a millisecond of work for the other end.
const NARROW: usize = 8 * 1024;
const WIDE: usize = 256 * 1024;
/// Rate at which a fill may run beside clients' writes, whatever the round-trip time to the other end.
const BYTES_PER_MILLISECOND: usize = 64 * 1024;
/// Time after a write during which more writes are expected.
const MEMORY: Duration = Duration::from_millis(100);
/// A round trip longer than the known one raises the estimate by at most this fraction (1/32): the fill itself
/// may have caused the delay.
const PATIENCE: u32 = 32;

#[derive(Default)]
pub(super) struct Window {
    link: Option<LinkId>,
    /// The last frame on the link that the fill has added or seen.
    known: FrameNumber,
    narrow_until: Moment,
    /// A frame whose acknowledgement is awaited, and the time it was added.
    asked: Option<(FrameNumber, Moment)>,
    /// Estimated round-trip time without queueing, once it is known.
    round: Option<Duration>,
}

impl Window {
    /// Starts a fill. On another link than before, neither the clients' writes nor the round-trip time are known yet.
    pub(super) fn turn_to(&mut self, now: Moment, link: LinkId, outbox: &Outbox) {
        if self.link.replace(link) != Some(link) {
            self.known = outbox.last();
            self.narrow_until = now + MEMORY;
            (self.asked, self.round) = (None, None);
        }
    }

    /// Lets the fill append frames of its own; these do not count as clients' writes.
    pub(super) fn add<R>(
        &mut self,
        now: Moment,
        outbox: &mut Outbox,
        add: impl FnOnce(&mut Outbox) -> R,
    ) -> R {
        let before = outbox.last();
        let result = add(outbox);
        if outbox.last() != before {
            self.known.0 += outbox.last().0 - before.0;
            self.asked.get_or_insert((outbox.last(), now));
        }
        result
    }

    pub(super) fn bytes(&mut self, now: Moment, last: FrameNumber, acked: FrameNumber) -> usize {
        self.measure(now, acked);
        if core::mem::replace(&mut self.known, last) != last {
            self.narrow_until = now + MEMORY;
        }
        if now >= self.narrow_until {
            return WIDE;
        }
        let micros = self.round.unwrap_or_default().as_micros();
        let needed = micros.saturating_mul(BYTES_PER_MILLISECOND as u128) / 1000;
        usize::try_from(needed).unwrap_or(WIDE).saturating_add(NARROW).min(WIDE)
    }

    fn measure(&mut self, now: Moment, acked: FrameNumber) {
        let Some((_, since)) = self.asked.take_if(|(number, _)| *number <= acked) else { return };
        let (took, known) = (now.since(since), self.round.unwrap_or(Duration::MAX));
        self.round = Some(took.min(known.saturating_add(known / PATIENCE)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replication::Frame;

    const EARLIER: Moment = Moment::from_clock(Duration::from_secs(9));
    const AT: Moment = Moment::from_clock(Duration::from_secs(9).saturating_add(MEMORY));

    const NONE: FrameNumber = FrameNumber(0);

    fn write(outbox: &mut Outbox) {
        outbox.push(&Frame::Pubsub { bytes: b"written" });
    }

    #[test]
    fn it_is_narrow_while_somebody_writes_and_wide_when_nobody_does() {
        let (mut window, mut outbox) = (Window::default(), Outbox::default());
        write(&mut outbox);
        window.turn_to(EARLIER, LinkId(1), &outbox);
        assert_eq!(window.bytes(EARLIER, outbox.last(), NONE), NARROW, "it is not known yet");
        assert_eq!(window.bytes(AT, outbox.last(), NONE), WIDE);
        window.add(AT, &mut outbox, write);
        assert_eq!(
            window.bytes(AT, outbox.last(), NONE),
            WIDE,
            "the fill's own frames do not count"
        );
        window.add(AT, &mut outbox, write);
        write(&mut outbox);
        assert_eq!(window.bytes(AT, outbox.last(), NONE), NARROW);
        assert_eq!(window.bytes(AT + MEMORY / 2, outbox.last(), NONE), NARROW);
        assert_eq!(window.bytes(AT + MEMORY, outbox.last(), NONE), WIDE);
        window.turn_to(AT + MEMORY, LinkId(1), &outbox);
        assert_eq!(window.bytes(AT + MEMORY, outbox.last(), NONE), WIDE, "the next fill goes on");
    }

    #[test]
    fn the_farther_the_other_end_the_more_is_under_way() {
        let (mut window, mut outbox) = (Window::default(), Outbox::default());
        window.turn_to(AT, LinkId(1), &outbox);
        let mut narrow_after = |took: Duration| {
            window.add(AT, &mut outbox, write);
            window.bytes(AT + took, outbox.last(), outbox.last())
        };
        let millisecond = Duration::from_millis(1);
        assert_eq!(narrow_after(millisecond), NARROW + BYTES_PER_MILLISECOND);
        assert_eq!(narrow_after(millisecond / 2), NARROW + BYTES_PER_MILLISECOND / 2);
        let in_the_way = narrow_after(millisecond * 50);
        assert!(in_the_way < NARROW + BYTES_PER_MILLISECOND, "{in_the_way}");
        let far = (0..200).map(|_| narrow_after(millisecond * 50)).last();
        assert_eq!(far, Some(WIDE), "it stays so");
    }
}
