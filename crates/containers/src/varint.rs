//! Numbers of seven bits a byte, the lowest first. Called by `id_map.rs` and `stream.rs`.

/// Appends a number.
#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads a number in its shortest form; returns it and the remaining bytes.
#[inline]
pub(crate) fn read(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0u64;
    for (index, (byte, shift)) in bytes.iter().zip((0..u64::BITS).step_by(7)).enumerate() {
        let bits = u64::from(byte & 0x7F);
        if bits << shift >> shift != bits || (*byte == 0 && index > 0) {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some((number, &bytes[index + 1..]));
        }
    }
    None
}

/// Appends a signed number: small ones of either sign are short.
pub(crate) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, (number << 1 ^ number >> 63).cast_unsigned());
}

pub(crate) fn read_signed(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (number, rest) = read(bytes)?;
    Some(((number >> 1).cast_signed() ^ -((number & 1).cast_signed()), rest))
}

/// Appends bytes with their length before them.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(crate) fn read_bytes(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = read(bytes)?;
    rest.split_at_checked(usize::try_from(length).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_as_it_was_written() {
        for number in [0, 1, 127, 128, 16_383, 16_384, 1 << 35, u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            assert_eq!(read(&bytes), Some((number, &[][..])));
            assert_eq!(read(&bytes[..bytes.len() - 1]), None);
        }
        for number in [0, 1, -1, 63, -64, 64, i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            put_signed(&mut bytes, number);
            assert_eq!(read_signed(&bytes), Some((number, &[][..])));
        }
    }

    #[test]
    fn only_the_shortest_form_is_a_number() {
        assert_eq!(read(&[0x80, 0]), None);
        assert_eq!(read(&[0xFF; 12]), None);
        assert_eq!(read(&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2]), None);
        assert_eq!(read_bytes(&[3, 1, 2]), None);
    }
}
