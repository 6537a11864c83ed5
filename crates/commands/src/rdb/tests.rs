//! Tests of the serialisation, with payloads of Redis, and broken ones.

mod lists; // Lists.

use super::fuzz::sealed_as;
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

pub(super) const NO_LIMIT: usize = 1 << 29;

pub(super) fn bytes_of(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect()
}

fn stored(value: StringValue<'_>) -> StoredValue<'_> {
    StoredValue::String(value)
}

/// Returns a payload with this body, and a valid version and checksum.
pub(super) fn sealed(body: &[u8]) -> Vec<u8> {
    sealed_as(VERSION, body)
}

#[test]
fn payloads_are_those_of_redis() {
    for (string, hex) in DUMPED {
        let payload = dump(stored(StringValue::Bytes(string)), store::UnixMillis(1));
        assert_eq!(payload, bytes_of(hex), "{}", string.escape_ascii());
        assert_eq!(restore(&payload, NO_LIMIT), Ok(RestoredValue::String(Cow::Borrowed(*string))));
    }
}

#[test]
fn numbers_are_dumped_as_their_text_is() {
    for number in [0, -7, 127, 128, -129, 300, 32_768, -70_000, i64::MAX, i64::MIN] {
        let text = number.to_string();
        let payload = dump(stored(StringValue::Integer(number)), store::UnixMillis(1));
        // Longer numbers are not compressed, but their text would be.
        if text.len() <= UNCOMPRESSED_BYTES_MAX {
            assert_eq!(
                payload,
                dump(stored(StringValue::Bytes(text.as_bytes())), store::UnixMillis(1))
            );
        }
        assert_eq!(
            restore(&payload, NO_LIMIT),
            Ok(RestoredValue::String(Cow::Borrowed(text.as_bytes())))
        );
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
    let payload = dump(stored(StringValue::Bytes(b"hello")), store::UnixMillis(1));
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
    let payload = sealed_as(VERSION_READ_MAX + 1, &[TYPE_STRING, 1, b'x']);
    assert_eq!(restore(&payload, NO_LIMIT), Err(PayloadError::WrongChecksum));
}

/// Payloads of Valkey 9.1.2 (version 80).
const OF_VALKEY_9: &[&str] = &[
    "000568656c6c6f5000ac5816e7fb6647fe",
    "00c07b500087c89a709e28004d",
    "00c30e412c0361626361e0ff02e1150701626350001d7dfa5f5e1686df",
    "10151500000004008161020101816202847465787405ff5000860f9b70f47faf30",
    "1201021010000000030001018374776f040301ff5000a21da7cfc9af6a28",
    "140f0f00000003008161028162020101ff5000884eaba3b44a8319",
    "0b0e020000000300000001000200030050006a289573f33c2aef",
    "111414000000040081610283312e35048162020201ff500035287db4314ae097",
];

#[test]
fn payloads_of_valkey_9_are_read() {
    let row_of = |elements: &[&[u8]]| row(elements);
    let read: Vec<RestoredValue<'static>> =
        OF_VALKEY_9.iter().map(|hex| owned(restore(&bytes_of(hex), NO_LIMIT))).collect();
    assert_eq!(read[0], RestoredValue::String(b"hello".into()));
    assert_eq!(read[1], RestoredValue::String(b"123".into()));
    assert_eq!(read[2], RestoredValue::String("abcabc".repeat(50).into_bytes().into()));
    assert_eq!(read[3], RestoredValue::Hash(row_of(&[b"a", b"1", b"b", b"text"])));
    assert_eq!(read[4], RestoredValue::List(row_of(&[b"1", b"two", b"3"])));
    assert_eq!(read[5], RestoredValue::Set(row_of(&[b"a", b"b", b"1"])));
    assert_eq!(read[6], RestoredValue::Set(row_of(&[b"1", b"2", b"3"])));
    assert!(matches!(&read[7], RestoredValue::SortedSet(_)));
}

#[test]
fn a_hash_with_an_expiry_of_a_field_of_valkey_9_is_read() {
    let payload =
        bytes_of("16020161c001576609f4a101000001620474657874ffffffffffffffff50009985b13ae1641ec0");
    let mut row = Vec::new();
    let element = |text: &'static str| store::Element::of(text.as_bytes());
    let at = u64::from_le_bytes([0x57, 0x66, 0x09, 0xF4, 0xA1, 0x01, 0, 0]);
    store::write_field(element("a"), Some(at), element("1"), &mut row);
    store::write_field(element("b"), None, element("text"), &mut row);
    assert_eq!(restore(&payload, NO_LIMIT), Ok(RestoredValue::Hash(row)));
}

#[test]
fn later_payloads_are_checked_as_deeply() {
    for hex in OF_VALKEY_9 {
        let payload = bytes_of(hex);
        let body = &payload[..payload.len() - FOOTER_BYTES];
        for len in 1..body.len() {
            let cut = sealed_as(80, &body[..len]);
            assert_eq!(restore(&cut, NO_LIMIT), Err(PayloadError::BadFormat), "{hex} up to {len}");
        }
    }
}

fn owned(restored: Result<RestoredValue<'_>, PayloadError>) -> RestoredValue<'static> {
    match restored.expect("the payload is sound") {
        RestoredValue::String(text) => RestoredValue::String(text.into_owned().into()),
        RestoredValue::Hash(row) => RestoredValue::Hash(row),
        RestoredValue::List(row) => RestoredValue::List(row),
        RestoredValue::SortedSet(row) => RestoredValue::SortedSet(row),
        RestoredValue::Set(row) => RestoredValue::Set(row),
        RestoredValue::Stream(records) => RestoredValue::Stream(records),
    }
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
    let payload = dump(stored(StringValue::Bytes(&[b'a'; 1_000])), store::UnixMillis(1));
    assert!(restore(&payload, 1_000).is_ok());
    assert_eq!(restore(&payload, 999), Err(PayloadError::BadFormat));
}

/// Payloads of hashes on redis-server 7.0.15, and their fields and values.
const DUMPED_HASHES: &[(&[&[u8]], &str)] = &[
    (
        &[b"a", b"1", b"b", b"text", b"c", b"-70000"],
        "101d1d00000006008161020101816202847465787405816302f290eefe04ff0a00daf8a3c4777dbe7b",
    ),
    (&[b"f1", &[b'x'; 65]], "0401026631c3094041017878e034000178780a005c026f7a1d1eb576"),
    (&[b"1", b"2"], "100b0b000000020001010201ff0a00d770c6ef6d1b164e"),
];

/// Payloads of sets on redis-server 7.0.15, and their members.
const DUMPED_SETS: &[(&[&[u8]], &str)] = &[
    (&[b"1", b"2", b"3"], "0b0e02000000030000000100020003000a00a5025ce26d6e4d1b"),
    (&[b"-70000", b"5"], "0b10040000000200000090eefeff050000000a007959d34c8acb73f6"),
    (
        &[b"-1", b"0", b"9223372036854775807"],
        "0bc31520040800000003200300ffa000200a6000800e01ff7f0a0092958dab0a0305d7",
    ),
    (&[b"abc"], "0201036162630a00a3cbec4c8c2f31f0"),
    (&[&[b'x'; 65]], "0201c3094041017878e034000178780a000f046685e65faf85"),
];

#[test]
fn payloads_of_sets_are_those_of_redis() {
    for (members, hex) in DUMPED_SETS {
        let row = row(members);
        assert_eq!(dumped_as(store::NewValue::Set(&row)), bytes_of(hex));
        assert_eq!(restore(&bytes_of(hex), NO_LIMIT), Ok(RestoredValue::Set(row)));
    }
    // A number in the form of a large set, as Redis writes it after a text was removed.
    let payload = bytes_of("0201c0070a00a9a54e47484fa94b");
    assert_eq!(restore(&payload, NO_LIMIT), Ok(RestoredValue::Set(row(&[b"7"]))));
    // A listpack, as Redis writes it since 7.2.
    let listpack = sealed(&[20, 13, 13, 0, 0, 0, 2, 0, 1, 1, 0x82, b'a', b'b', 3, 0xFF]);
    assert_eq!(restore(&listpack, NO_LIMIT), Ok(RestoredValue::Set(row(&[b"1", b"ab"]))));
}

#[test]
fn payloads_that_are_no_set_are_refused() {
    let intset = |width: u8, count: u8, numbers: &[u8]| {
        let head = [11, 8 + numbers.len() as u8, width, 0, 0, 0, count, 0, 0, 0];
        [&head[..], numbers].concat()
    };
    assert!(restore(&sealed(&intset(2, 2, &[1, 0, 2, 0])), NO_LIMIT).is_ok());
    let bodies: [Vec<u8>; 14] = [
        vec![2, 0],                                        // No members.
        vec![2, 1],                   // Fewer members than their count, then the footer.
        vec![2, 2, 1, b'a', 1, b'a'], // A member twice.
        vec![2, 2, 1, b'7', 0xC0, 7], // A member twice, in two forms.
        intset(2, 0, &[]),            // No members.
        intset(3, 1, &[1, 0, 0]),     // No such width.
        intset(0, 0, &[]),            // No such width.
        intset(2, 2, &[1, 0]),        // Fewer members than their count.
        intset(2, 1, &[1, 0, 2, 0]),  // More members than their count.
        intset(2, 2, &[2, 0, 1, 0]),  // In the wrong order.
        intset(2, 2, &[1, 0, 1, 0]),  // A member twice.
        vec![11, 3, 2, 0, 0],         // No header.
        vec![20, 7, 7, 0, 0, 0, 0, 0, 0xFF], // No members.
        vec![20, 11, 11, 0, 0, 0, 2, 0, 1, 1, 1, 1, 0xFF], // A member twice.
    ];
    for body in bodies {
        assert_eq!(restore(&sealed(&body), NO_LIMIT), Err(PayloadError::BadFormat), "{body:?}");
    }
    let payload = sealed(&[2, 0x80, 0xFF, 0xFF, 0xFF, 0xFF, 1, b'm']);
    assert_eq!(restore(&payload, NO_LIMIT), Err(PayloadError::BadFormat));
    let whole = dumped_as(store::NewValue::Set(&row(&[&[b'm'; 100], b"n"])));
    assert!(restore(&whole, 103).is_ok());
    assert_eq!(restore(&whole, 102), Err(PayloadError::BadFormat));
}

fn row(elements: &[&[u8]]) -> Vec<u8> {
    let mut row = Vec::new();
    elements.iter().for_each(|element| store::Element::of(element).write(&mut row));
    row
}

/// Returns the payload of a hash as a slot keeps it.
fn dumped(row: &[u8]) -> Vec<u8> {
    dumped_as(store::NewValue::Hash(row))
}

/// Returns the payload of a value as a slot keeps it.
fn dumped_as(value: store::NewValue<'_>) -> Vec<u8> {
    let seed = store::Seed::new(1);
    let mut table = store::SlotTable::default();
    let key = seed.key(b"h");
    let put = store::Effect::Put { key, value, expires_at: None };
    let version = table.next_version(store::UnixMillis(1));
    let _ = table.apply(&put, version, store::Touch::Nothing, &seed);
    dump(table.peek(&key).expect("it was put").value(), store::UnixMillis(1))
}

#[test]
fn payloads_of_hashes_are_those_of_redis() {
    for (elements, hex) in DUMPED_HASHES {
        let row = row(elements);
        assert_eq!(dumped(&row), bytes_of(hex));
        assert_eq!(restore(&bytes_of(hex), NO_LIMIT), Ok(RestoredValue::Hash(row)));
    }
}

#[test]
fn payloads_that_are_no_hash_are_refused() {
    let bodies: [&[u8]; 8] = [
        &[4, 0],                                                    // No fields.
        &[4, 1, 1, b'f'], // A field without value, then the footer.
        &[4, 2, 1, b'f', 1, b'1', 1, b'f', 1, b'2'], // A field twice.
        &[4, 2, 1, b'7', 1, b'1', 0xC0, 7, 1, b'2'], // A field twice, in two forms.
        &[16, 7, 7, 0, 0, 0, 0, 0, 0xFF], // No fields.
        &[16, 9, 9, 0, 0, 0, 1, 0, 1, 1, 0xFF], // A field without value.
        &[16, 15, 15, 0, 0, 0, 4, 0, 1, 1, 2, 1, 1, 1, 3, 1, 0xFF], // A field twice.
        &[16, 11, 12, 0, 0, 0, 2, 0, 1, 1, 2, 1, 0xFF], // A wrong length.
    ];
    for body in bodies {
        let payload = sealed(body);
        assert_eq!(restore(&payload, NO_LIMIT), Err(PayloadError::BadFormat), "{body:?}");
    }
    let payload = sealed(&[4, 0x80, 0xFF, 0xFF, 0xFF, 0xFF, 1, b'f', 1, b'v']);
    assert_eq!(restore(&payload, NO_LIMIT), Err(PayloadError::BadFormat));
    let whole = dumped(&row(&[b"f", &[b'v'; 100]]));
    assert!(restore(&whole, 105).is_ok());
    assert_eq!(restore(&whole, 100), Err(PayloadError::BadFormat));
}

/// Returns a row of two fields, of which one has a deadline.
fn timed_row() -> Vec<u8> {
    let mut row = Vec::new();
    let element = |text: &'static str| store::Element::of(text.as_bytes());
    store::write_field(element("keep"), None, element("v1"), &mut row);
    store::write_field(element("ttl"), Some(1_005_000), element("v2"), &mut row);
    row
}

#[test]
fn hashes_with_deadlines_are_read_in_the_forms_of_redis_and_of_valkey() {
    let expected = Ok(RestoredValue::Hash(timed_row()));
    let at = 1_005_000u64.to_le_bytes();
    // Redis 8, a large hash: the earliest deadline; then for each field what is added to it, and 1.
    let redis = [&[24][..], &at, b"\x02\x00\x04keep\x02v1\x01\x03ttl\x02v2"].concat();
    assert_eq!(restore(&sealed_as(12, &redis), NO_LIMIT), expected);
    assert_eq!(dumped(&timed_row()), sealed_as(12, &redis), "ours is the same");
    // Redis 8, a small one.
    let elements: [&[u8]; 6] = [b"keep", b"v1", b"0", b"ttl", b"v2", b"1005000"];
    let packed = listpack::write(elements.iter().map(|text| store::Element::of(text)));
    let small = [&[25][..], &at, &[packed.len() as u8], &packed].concat();
    assert_eq!(restore(&sealed_as(12, &small), NO_LIMIT), expected);
    // Valkey 9.
    let none = (-1i64).to_le_bytes();
    let valkey = [&[22][..], b"\x02\x04keep\x02v1", &none, b"\x03ttl\x02v2", &at].concat();
    assert_eq!(restore(&sealed_as(80, &valkey), NO_LIMIT), expected);
    assert_eq!(restore(&sealed_as(12, &valkey), NO_LIMIT), Err(PayloadError::BadFormat));
    // A field that is due stays behind.
    let seed = store::Seed::new(1);
    let mut table = store::SlotTable::default();
    let put = store::Effect::Put {
        key: seed.key(b"h"),
        value: store::NewValue::Hash(&timed_row()),
        expires_at: None,
    };
    let version = table.next_version(store::UnixMillis(1));
    let _ = table.apply(&put, version, store::Touch::Nothing, &seed);
    let found = table.peek(&seed.key(b"h")).expect("it was put");
    let later = dump(found.value(), store::UnixMillis(1_005_000));
    assert_eq!(restore(&later, NO_LIMIT), Ok(RestoredValue::Hash(row(&[b"keep", b"v1"]))));
}

#[test]
fn wrong_deadlines_in_payloads_are_refused() {
    let far = u64::MAX.to_le_bytes();
    let bodies: [(u16, Vec<u8>); 6] = [
        // A sum beyond 64 bits, and one that is no signed number.
        (12, [&[24][..], &far, b"\x01\x02\x01f\x01v"].concat()),
        (12, [&[24][..], &far, b"\x01\x01\x01f\x01v"].concat()),
        // A negative time that does not mean none.
        (80, [&[22][..], b"\x01\x01f\x01v", &(-2i64).to_le_bytes()].concat()),
        // No time.
        (80, [&[22][..], b"\x01\x01f\x01v"].concat()),
        (12, vec![24, 0, 0, 0]),
        // A field twice.
        (12, [&[24][..], &[0; 8], b"\x02\x00\x01f\x01v\x00\x01f\x01w"].concat()),
    ];
    for (version, body) in bodies {
        let payload = sealed_as(version, &body);
        let restored = restore(&payload, NO_LIMIT);
        assert_eq!(restored, Err(PayloadError::BadFormat), "{body:?}");
    }
    for elements in [&[b"f" as &[u8], b"v"][..], &[b"f", b"v", b"-1"], &[b"f", b"v", b"text"]] {
        let packed = listpack::write(elements.iter().map(|text| store::Element::of(text)));
        let body = [&[25][..], &[0; 8], &[packed.len() as u8], &packed].concat();
        assert_eq!(restore(&sealed_as(12, &body), NO_LIMIT), Err(PayloadError::BadFormat));
    }
}

#[test]
fn changed_payloads_of_every_type_are_refused_or_dumped_again() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/restore_payloads");
    let mut kinds = std::collections::BTreeSet::new();
    for file in std::fs::read_dir(corpus).expect("it is in the repository") {
        let seed = std::fs::read(file.expect("readable").path()).expect("readable");
        kinds.insert(seed[1]);
        super::fuzz_payload(&seed);
        for at in 0..seed.len() {
            super::fuzz_payload(&seed[..at]);
            for change in [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0xFF] {
                let mut changed = seed.clone();
                changed[at] ^= change;
                super::fuzz_payload(&changed);
            }
        }
    }
    assert!(kinds.len() >= 10, "payloads of {kinds:?} only");
}
