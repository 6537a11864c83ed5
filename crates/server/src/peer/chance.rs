//! Chance, from the system: ids, boots, nonces, seeds. Drawn here and handed on as values.

use rustix::rand::{GetRandomFlags, getrandom};

/// Bytes that nobody can foresee.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        // It can be interrupted, and waits only in the first seconds of a machine's life.
        if let Ok(more) = getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            filled += more;
        }
    }
    bytes
}

/// A number that no other node has drawn, and not 0, which stands for nobody.
pub(crate) fn number() -> u64 {
    u64::from_le_bytes(bytes()).max(1)
}
