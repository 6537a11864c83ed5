//! Tests of the serialisation, with payloads of Redis, and broken ones.

use super::*;

/// Strings, and the output of DUMP for them on redis-server 7.0.15.
const DUMPED: &[(&[u8], &str)] = &[
    (b"", "00000a005d9b5c400f7fa2da"),
    (b"hello", "000568656c6c6f0a006372df766534200a"),
    (b"-7", "00c0f90a005e26d130d7a242ab"),
    (b"300", "00c12c010a00954261f265825c10"),
    (b"-70000", "00c290eefeff0a002875de7b13eb2800"),
    (b"12345678901", "000b31323334353637383930310a00304e52d727176510"),
    (b"007", "00033030370a007258e27b4c69bad9"),
    (&[b'a'; 40], "00c30928016161e01b000161610a00cf092faaae25831d"),
    (
        b"the cat sat on the mat, the dog sat on the cat",
        "00c3232e087468652063617420732003036f6e2074200e036d61742c600802646f67e0031720260a00b33628ec\
         9e81e1db",
    ),
    (
        b"<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abc",
        "00283c3d3e3f404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162630a000b\
         72eac604c1b66d",
    ),
];

const NO_LIMIT: usize = 1 << 29;

fn bytes_of(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect()
}

/// Returns a payload with this body, and a valid version and checksum.
fn sealed(body: &[u8]) -> Vec<u8> {
    let mut payload = body.to_vec();
    payload.extend_from_slice(&VERSION.to_le_bytes());
    let checksum = crc64::crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}

#[test]
fn payloads_are_those_of_redis() {
    for (string, hex) in DUMPED {
        let payload = dump(StoredValue::Bytes(string));
        assert_eq!(payload, bytes_of(hex), "{}", string.escape_ascii());
        assert_eq!(restore(&payload, NO_LIMIT).as_deref(), Ok(*string));
    }
}

#[test]
fn numbers_are_dumped_as_their_text_is() {
    for number in [0, -7, 127, 128, -129, 300, 32_768, -70_000, i64::MAX, i64::MIN] {
        let text = number.to_string();
        let payload = dump(StoredValue::Integer(number));
        // Longer numbers are not compressed, but their text would be.
        if text.len() <= UNCOMPRESSED_BYTES_MAX {
            assert_eq!(payload, dump(StoredValue::Bytes(text.as_bytes())));
        }
        assert_eq!(restore(&payload, NO_LIMIT).as_deref(), Ok(text.as_bytes()));
    }
}

#[test]
fn lengths_take_as_few_bytes_as_they_need() {
    for (len, bytes) in [(63, 1), (64, 2), (16_383, 2), (16_384, 5)] {
        let mut out = Vec::new();
        put_length(&mut out, len);
        assert_eq!(out.len(), bytes);
        assert_eq!(RdbReader(&out).length(), Some(len));
    }
    let wide = [&[LENGTH_64_BITS][..], &5u64.to_be_bytes()].concat();
    assert_eq!(RdbReader(&wide).length(), Some(5));
}

#[test]
fn a_payload_that_was_changed_is_refused() {
    let payload = dump(StoredValue::Bytes(b"hello"));
    for at in 0..payload.len() {
        let mut changed = payload.clone();
        changed[at] ^= 1;
        assert_eq!(restore(&changed, NO_LIMIT), Err(PayloadError::WrongChecksum), "byte {at}");
    }
    for len in 0..payload.len() {
        assert_eq!(restore(&payload[..len], NO_LIMIT), Err(PayloadError::WrongChecksum));
    }
}

#[test]
fn a_later_version_is_refused() {
    let mut payload = [&[TYPE_STRING, 1, b'x'][..], &(VERSION + 1).to_le_bytes()].concat();
    let checksum = crc64::crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    assert_eq!(restore(&payload, NO_LIMIT), Err(PayloadError::WrongChecksum));
}

#[test]
fn nonsense_under_a_right_checksum_is_refused_and_takes_no_memory() {
    let huge = &(1u64 << 60).to_be_bytes();
    let bodies: &[&[u8]] = &[
        b"",
        b"\x00",
        b"\x01\x01x",
        b"\x00\xC4",
        b"\x00\x82xxxx",
        b"\x00\xC3\x01",
        b"\x00\xC3\x02\x05\x20\x00",
        &[b"\x00\x81", huge.as_slice()].concat(),
        &[b"\x00\xC3\x02\x81", huge.as_slice(), b"\x00x"].concat(),
    ];
    for body in bodies {
        let payload = sealed(body);
        assert_eq!(restore(&payload, NO_LIMIT), Err(PayloadError::BadFormat), "{body:?}");
    }
}

#[test]
fn no_string_longer_than_allowed_is_made() {
    let payload = dump(StoredValue::Bytes(&[b'a'; 1_000]));
    assert!(restore(&payload, 1_000).is_ok());
    assert_eq!(restore(&payload, 999), Err(PayloadError::BadFormat));
}
