//! Claims that must hold for arbitrary bytes at a peer port: before the secret is proven, on a
//! control link, and on a data link.
use cluster::control::Message;
use server::stranger;
use sim::store::victim::Victim;

/// Checks that a stranger is never admitted, whatever it sends, whether it connects or accepts.
pub fn peer_handshake(data: &[u8]) {
    assert!(!stranger::is_let_in(data), "nobody is let in without the secret");
    assert!(!stranger::is_believed(data), "nobody is believed without the secret");
    assert!(!stranger::is_refusal_believed(data), "not even when refusing");
}

/// Checks that a stream of control frames parses the same whole as in pieces, up to the first invalid one.
pub fn control_frames(data: &[u8]) {
    let Some((&piece, stream)) = data.split_first() else { return };
    let piece = usize::from(piece).max(1);
    let whole = stranger::control_frames(stream, stream.len().max(1));
    assert_eq!(whole, stranger::control_frames(stream, piece), "in pieces of {piece}");
}

/// Checks that the node survives anything another member sends on its control link, and its maps stay sound.
pub fn control_messages(data: &[u8]) {
    let mut victim = Victim::default();
    let mut rest = data;
    while let Ok((message, behind)) = postcard::take_from_bytes::<Message>(rest) {
        victim.message(message);
        rest = behind;
    }
}

/// Checks that the node survives anything another member sends on its data link, that the data it
/// serves does not change, and that the result is the same whole as in pieces.
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
