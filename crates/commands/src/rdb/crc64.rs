//! The CRC-64 of Redis's payloads: Jones' polynomial, bits reversed, initial value zero. Processes eight bytes per
//! step, with eight tables built at compile time.

/// The polynomial, lowest bit first.
const POLYNOMIAL: u64 = 0x95AC_9329_AC4B_C9B5;

static TABLES: [[u64; 256]; 8] = tables();

pub(super) fn crc64(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let crc = words.iter().fold(0, |crc, word| step_word(crc, *word));
    rest.iter().fold(crc, |crc, byte| step(crc, *byte))
}

#[inline]
fn step(crc: u64, byte: u8) -> u64 {
    TABLES[0][usize::from(crc.to_le_bytes()[0] ^ byte)] ^ crc >> 8
}

#[inline]
fn step_word(crc: u64, word: [u8; 8]) -> u64 {
    let mixed = (crc ^ u64::from_le_bytes(word)).to_le_bytes();
    let terms = mixed.iter().zip(TABLES.iter().rev());
    terms.fold(0, |sum, (byte, table)| sum ^ table[usize::from(*byte)])
}

/// Builds the tables: `tables()[n][byte]` is the contribution of a byte to the sum after `n` more bytes.
const fn tables() -> [[u64; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut later = 1;
    while later < 8 {
        let mut byte = 0;
        while byte < 256 {
            let crc: u64 = tables[later - 1][byte];
            tables[later][byte] = tables[0][(crc & 0xFF) as usize] ^ crc >> 8;
            byte += 1;
        }
        later += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_the_published_check_value() {
        assert_eq!(crc64(b"123456789"), 0xE9C6_D914_C4B8_D9CA);
        assert_eq!(crc64(b""), 0);
    }

    #[test]
    fn words_and_single_bytes_give_the_same_sum() {
        let bytes: Vec<u8> = (0..100u8).map(|byte| byte.wrapping_mul(37)).collect();
        for len in 0..bytes.len() {
            let one_by_one = bytes[..len].iter().fold(0, |crc, byte| step(crc, *byte));
            assert_eq!(crc64(&bytes[..len]), one_by_one, "for {len} bytes");
        }
    }
}
