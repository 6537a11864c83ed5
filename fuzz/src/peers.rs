//! What must hold for any bytes that come to a peer port: before the secret is proven, on a control link,
//! and on a data link.
use cluster::control::Message;
use server::stranger;
use sim::store::victim::Victim;

/// Whatever a stranger says, as the one who dials or as the one who answers, it is not let in.
pub fn peer_handshake(data: &[u8]) {
    assert!(!stranger::is_let_in(data), "nobody is let in without the secret");
    assert!(!stranger::is_believed(data), "nobody is believed without the secret");
    assert!(!stranger::is_refusal_believed(data), "not even when refusing");
}

/// A stream of control frames reads the same whole as in pieces, up to the first that is none.
pub fn control_frames(data: &[u8]) {
    let Some((&piece, stream)) = data.split_first() else { return };
    let piece = usize::from(piece).max(1);
    let whole = stranger::control_frames(stream, stream.len().max(1));
    assert_eq!(whole, stranger::control_frames(stream, piece), "in pieces of {piece}");
}

/// Whatever another member says on its control link, the node stands, and its maps are sound.
pub fn control_messages(data: &[u8]) {
    let mut victim = Victim::default();
    let mut rest = data;
    while let Ok((message, behind)) = postcard::take_from_bytes::<Message>(rest) {
        victim.message(message);
        rest = behind;
    }
}

/// Whatever another member sends on its data link, the node stands, what it serves is as it was, and it is
/// the same whole as in pieces.
pub fn data_frames(data: &[u8]) {
    let Some((&piece, stream)) = data.split_first() else { return };
    let [mut whole, mut in_pieces] = [(); 2].map(|()| Victim::default());
    let before = whole.served();
    let stands = whole.frames(stream);
    let piece = usize::from(piece).max(1);
    let stands_in_pieces = stream.chunks(piece).fold(true, |_, chunk| in_pieces.frames(chunk));
    assert!(whole.served() == before, "what a node serves is its own to change");
    assert_eq!(stands, stands_in_pieces || stream.is_empty(), "in pieces of {piece}");
    assert!(whole.held() == in_pieces.held(), "in pieces of {piece}");
}
