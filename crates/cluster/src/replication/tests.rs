//! Tests a link as two ends with a wire between them that breaks where the test says.

use super::*;
use crate::map::LogIndex;

fn news(text: &str) -> Frame<'_> {
    Frame::Pubsub { bytes: text.as_bytes() }
}

/// Sends all unsent bytes; only the first `cut` bytes arrive.
fn carry(outbox: &mut Outbox, wire: &mut Vec<u8>, mut cut: usize) {
    while let Some(bytes) = outbox.unsent() {
        let count = bytes.len();
        let through = count.min(cut);
        wire.extend_from_slice(&bytes[..through]);
        cut -= through;
        outbox.sent(count);
    }
}

fn receive(inbox: &mut Inbox, wire: &mut Vec<u8>) -> Vec<String> {
    let mut heard = Vec::new();
    let mut at = 0;
    while let Some((_, frame, length)) = inbox.peek(&wire[at..]).unwrap() {
        let Frame::Pubsub { bytes } = frame else { panic!("only news was sent") };
        heard.push(String::from_utf8(bytes.to_vec()).unwrap());
        inbox.done();
        at += length;
    }
    wire.drain(..at);
    heard
}

#[test]
fn every_frame_arrives_once_wherever_the_connection_breaks() {
    for cut in 0..200 {
        let (mut outbox, mut inbox, mut wire) = (Outbox::default(), Inbox::default(), Vec::new());
        let texts: Vec<String> = (0..10).map(|number| format!("news {number}")).collect();
        for text in &texts {
            outbox.push(&news(text));
        }
        carry(&mut outbox, &mut wire, cut);
        let mut heard = receive(&mut inbox, &mut wire);
        wire.clear();
        outbox.resume(inbox.next()).unwrap();
        carry(&mut outbox, &mut wire, usize::MAX);
        heard.extend(receive(&mut inbox, &mut wire));
        assert_eq!(heard, texts, "cut after {cut} bytes");
        let Some(BackFrame::Ack(through)) = inbox.ack() else { panic!("something to acknowledge") };
        outbox.acknowledge(through).unwrap();
        assert_eq!(outbox.acked(), outbox.last());
        assert_eq!(outbox.unacknowledged_bytes(), 0, "what is acknowledged is not kept");
        // The acknowledgement may have been lost with the connection it was written to.
        assert!(inbox.ack().is_none());
        inbox.acknowledge_anew();
        assert_eq!(inbox.ack(), Some(BackFrame::Ack(through)));
    }
}

#[test]
fn a_long_history_is_kept_until_it_is_acknowledged_and_not_longer() {
    let mut outbox = Outbox::default();
    let text = "x".repeat(10_000);
    let (mut inbox, mut wire) = (Inbox::default(), Vec::new());
    for _ in 0..100 {
        outbox.push(&news(&text));
        carry(&mut outbox, &mut wire, usize::MAX);
        receive(&mut inbox, &mut wire);
    }
    assert!(outbox.unacknowledged_bytes() > 1_000_000);
    outbox.acknowledge(FrameNumber(50)).unwrap();
    assert!(outbox.unacknowledged_bytes() < 600_000);
    assert_eq!(outbox.resume(FrameNumber(10)), Err(Forgotten), "acknowledged, so forgotten");
    assert_eq!(outbox.resume(FrameNumber(102)), Err(Forgotten), "never sent");
    assert_eq!(outbox.resume(FrameNumber(101)), Ok(()), "all of it is there");
    assert_eq!(outbox.unsent(), None);
    assert_eq!(outbox.acknowledge(FrameNumber(101)), Err(BadAck));
}

#[test]
fn a_draft_that_is_appended_goes_as_if_it_had_been_written_there() {
    // Some drafts fit into the current chunk, some fill it, some begin a new one.
    for size in [10, 9_000, 40_000, 65_000] {
        let (mut outbox, mut inbox, mut wire) = (Outbox::default(), Inbox::default(), Vec::new());
        let (mut draft, mut texts, mut heard) = (Outbox::default(), Vec::new(), Vec::new());
        for number in 0..30 {
            let text = format!("{number:0>size$}");
            let to = if number % 3 == 0 { &mut outbox } else { &mut draft };
            to.push(&news(&text));
            texts.push(text);
            if number % 3 == 2 {
                outbox.append(&mut draft);
                assert_eq!((draft.unsent(), draft.unacknowledged_bytes()), (None, 0));
                assert_eq!(outbox.last(), FrameNumber(number + 1));
                carry(&mut outbox, &mut wire, usize::MAX);
                heard.extend(receive(&mut inbox, &mut wire));
                assert!(texts == heard, "{size} bytes each: after {number}");
            }
        }
        assert_eq!(outbox.resume(FrameNumber(17)), Ok(()));
        carry(&mut outbox, &mut wire, usize::MAX);
        outbox.acknowledge(outbox.last()).unwrap();
        assert_eq!(outbox.unacknowledged_bytes(), 0);
    }
}

/// Takes in the received frames, and assembles the long ones.
fn gather(inbox: &mut Inbox, parts: &mut FrameParts, wire: &mut Vec<u8>) -> Vec<Vec<u8>> {
    let mut heard = Vec::new();
    let mut at = 0;
    while let Some((_, frame, length)) = inbox.peek(&wire[at..]).unwrap() {
        assert!(length <= FRAME_BYTES_MAX + 4, "{length} bytes in one frame");
        if let Frame::Part { bytes } = frame {
            parts.add(bytes).unwrap();
        } else if let Frame::LastPart { bytes } = frame {
            let whole = parts.finish(bytes).unwrap();
            let Ok(Frame::Pubsub { bytes }) = Frame::read(&whole) else { panic!("news was sent") };
            heard.push(bytes.to_vec());
        } else {
            let Frame::Pubsub { bytes } = frame else { panic!("only news was sent") };
            heard.push(bytes.to_vec());
        }
        inbox.done();
        at += length;
    }
    wire.drain(..at);
    heard
}

#[test]
fn a_long_frame_travels_in_parts_and_survives_any_break() {
    let sizes = [10, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES, 5 * PART_BYTES + 7, 20];
    let texts: Vec<Vec<u8>> = sizes.iter().zip(0..).map(|(size, byte)| vec![byte; *size]).collect();
    let total: usize = sizes.iter().sum();
    for first_cut in (0..total + 1_000).step_by(99_991) {
        let (mut outbox, mut inbox) = (Outbox::default(), Inbox::default());
        let (mut wire, mut parts) = (Vec::new(), FrameParts::default());
        let mut numbers = Vec::new();
        for text in &texts {
            numbers.push(outbox.push(&Frame::Pubsub { bytes: text }));
        }
        assert_eq!(numbers.last(), Some(&outbox.last()), "a frame counts with its last part");
        let mut heard = Vec::new();
        // The connection breaks repeatedly; each new one carries some more bytes.
        let mut cut = first_cut;
        while heard.len() < texts.len() {
            carry(&mut outbox, &mut wire, cut);
            heard.extend(gather(&mut inbox, &mut parts, &mut wire));
            wire.clear();
            if let Some(BackFrame::Ack(through)) = inbox.ack() {
                outbox.acknowledge(through).unwrap();
            }
            outbox.resume(inbox.next()).unwrap();
            cut += PART_BYTES + 1_000;
        }
        assert!(heard == texts, "first cut after {first_cut} bytes");
        assert_eq!((outbox.unacknowledged_bytes(), parts.bytes()), (0, 0));
    }
}

#[test]
fn parts_are_put_back_if_the_frame_must_wait_and_have_a_limit() {
    let mut parts = FrameParts::default();
    parts.add(b"abc").unwrap();
    let whole = parts.finish(b"de").unwrap();
    assert_eq!(whole, b"abcde");
    parts.put_back(whole, b"de");
    assert_eq!(parts.bytes(), 3);
    assert_eq!(parts.finish(b"de").unwrap(), b"abcde");
    assert_eq!(parts.bytes(), 0);
}

#[test]
fn bytes_that_are_no_frame_are_told_apart() {
    assert_eq!(Frame::read(&[]), Err(BadFrame::Truncated));
    assert_eq!(Frame::read(&[200]), Err(BadFrame::UnknownTag(200)));
    let inbox = Inbox::default();
    assert_eq!(inbox.peek(&[255; 8]), Err(BadFrame::TooLong(u64::from(u32::MAX))));
    assert_eq!(inbox.peek(&[9, 0, 0]), Ok(None));
    let mut bytes = Vec::new();
    BackFrame::Ack(FrameNumber(7)).write(&mut bytes);
    bytes[0] += 1;
    bytes.push(0);
    assert_eq!(first_answer(&bytes), Err(BadFrame::BadNumber), "nothing may follow");
}

#[test]
fn the_lag_of_a_slot_counts_its_changes_until_they_are_acknowledged() {
    let mut outbox = Outbox::default();
    let slot = |number: u16| placement::Slot::new(number).unwrap();
    let change = |outbox: &mut Outbox, number: u16| {
        let unit = [&number.to_le_bytes()[..], b"effects"].concat();
        let (reign, written_in) = (LogIndex(1), LogIndex(1));
        outbox.push(&Frame::Effects { reign, written_in, unit: &unit })
    };
    change(&mut outbox, 5);
    outbox.push(&news("not a change"));
    let second = change(&mut outbox, 5);
    change(&mut outbox, 9);
    let lags = outbox.lag_by_slot();
    assert_eq!(lags.keys().copied().collect::<Vec<_>>(), [slot(5), slot(9)]);
    assert_eq!(lags[&slot(5)], SlotLag { units: 2, bytes: 2 * lags[&slot(9)].bytes });

    carry(&mut outbox, &mut Vec::new(), 0);
    outbox.acknowledge(second).unwrap();
    let lags = outbox.lag_by_slot();
    assert_eq!(
        lags.into_iter().map(|(slot, lag)| (slot.number(), lag.units)).collect::<Vec<_>>(),
        [(9, 1)]
    );
}
