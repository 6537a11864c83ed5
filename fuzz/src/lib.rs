//! Claims that must hold for arbitrary bytes. Each function is one fuzz target: src/bin/ has a
//! binary for each, and corpus/ a folder of interesting inputs found before.
//!
//! `cargo xtask fuzz` searches for inputs that break a claim; `crates/e2e/tests/corpus.rs` includes
//! this file and replays the corpus in every test run.
mod peers; // bytes that arrive at a peer port

use commands::testing::TestNode;
use resp::{Limits, Parsed, ProtocolError, ReplyParser, ReplySkipper, RequestParser};

pub use peers::{control_frames, control_messages, data_frames, peer_handshake};

/// The requests in a stream, and the error that ended it, if any.
type Requests = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);

/// Checks that a stream of requests parses the same whole as in pieces, and that every request takes bytes.
pub fn request_parser(data: &[u8]) {
    let Some((&piece, stream)) = data.split_first() else { return };
    let piece = usize::from(piece).max(1);
    let whole = requests(stream, stream.len().max(1));
    assert_eq!(whole, requests(stream, piece), "in pieces of {piece}");
}

/// Checks that a stream of replies parses the same whole as in pieces, and that skipping finds the same ends.
pub fn reply_parser(data: &[u8]) {
    let Some((&piece, stream)) = data.split_first() else { return };
    let piece = usize::from(piece).max(1);
    let whole = reply_ends(stream, stream.len().max(1));
    assert_eq!(whole, reply_ends(stream, piece), "in pieces of {piece}");
    assert!(whole.len() <= skipped_ends(stream).len(), "a reply that is read can be skipped");
    assert!(skipped_ends(stream).starts_with(&whole), "both find the same ends");
}

/// Checks that the node survives anything that two clients send in turns (a byte 255 ends a turn,
/// and time passes), and that its effects rebuild its data.
pub fn command_execution(data: &[u8]) {
    let mut node = TestNode::default();
    node.env.string_bytes_max = STRING_BYTES_MAX;
    for (turn, bytes) in data.split(|byte| *byte == 255).enumerate() {
        let connection = 1 + turn as u64 % 2;
        node.raw(connection, bytes.to_vec());
        node.advance(TURN_MILLIS);
    }
    assert!(node.slots.digest() == node.replayed().digest(), "effects rebuild the content");
}

/// Checks that a pattern of SORT loses no byte, and names a slot only if every key it derives is in that slot. The data are a
/// pattern and an element, separated by a line break.
pub fn sort_patterns(data: &[u8]) {
    commands::fuzz_pattern(data);
}

/// Checks that a payload that RESTORE takes is a value that DUMP gives back. The data are the format's version and the
/// payload without its footer.
pub fn restore_payloads(data: &[u8]) {
    commands::fuzz_payload(data);
}

/// Limit so that a far offset does not use up the memory.
const STRING_BYTES_MAX: usize = 64 * 1024;
const TURN_MILLIS: u64 = 10;

/// Parses a stream that arrives `piece` bytes at a time, as on a connection.
fn requests(stream: &[u8], piece: usize) -> Requests {
    let mut parser = RequestParser::default();
    let mut buffer = Vec::new();
    let mut at = 0;
    let mut found = Vec::new();
    for arrived in stream.chunks(piece) {
        buffer.extend_from_slice(arrived);
        loop {
            let mut spans = Vec::new();
            match parser.next(&mut buffer, at, &Limits::FULL, &mut spans) {
                Err(error) => return (found, Some(error)),
                Ok(Parsed::Incomplete { missing_hint }) => {
                    assert!(missing_hint > 0, "what is incomplete misses something");
                    break;
                }
                Ok(Parsed::Request { end, args }) => {
                    assert!(
                        end > at && end <= buffer.len(),
                        "a request takes bytes that are there"
                    );
                    assert_eq!(args, spans.len());
                    at = end;
                    found.push(spans.iter().map(|span| span.of(&buffer).to_vec()).collect());
                }
            }
        }
    }
    (found, None)
}

/// Returns the end of each reply, up to the first error in the stream.
fn reply_ends(stream: &[u8], piece: usize) -> Vec<usize> {
    let mut parser = ReplyParser::default();
    ends(stream, piece, |buffer, at| Ok(parser.next(buffer, at)?.map(|(_, end)| end)))
}

fn skipped_ends(stream: &[u8]) -> Vec<usize> {
    let mut skipper = ReplySkipper::default();
    ends(stream, stream.len().max(1), |buffer, at| skipper.next(buffer, at))
}

fn ends(
    stream: &[u8],
    piece: usize,
    mut next: impl FnMut(&[u8], usize) -> Result<Option<usize>, ProtocolError>,
) -> Vec<usize> {
    let mut found = vec![0];
    for arrived in (piece..stream.len() + piece).step_by(piece) {
        let buffer = &stream[..arrived.min(stream.len())];
        loop {
            let at = found[found.len() - 1];
            match next(buffer, at) {
                Err(_) => return found,
                Ok(None) => break,
                Ok(Some(end)) => {
                    assert!(end > at && end <= buffer.len(), "a reply takes bytes that are there");
                    found.push(end);
                }
            }
        }
    }
    found
}
