//! Random numbers from the system: ids, boots, nonces, seeds. Drawn here and handed on as values.

use rustix::rand::{GetRandomFlags, getrandom};

/// Returns unpredictable random bytes.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        // `getrandom` can be interrupted, and blocks only in the first seconds after a machine's boot.
        if let Ok(more) = getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            filled += more;
        }
    }
    bytes
}

/// Returns a number that no other node has drawn, and not 0, which stands for no node.
pub(crate) fn number() -> u64 {
    u64::from_le_bytes(bytes()).max(1)
}
