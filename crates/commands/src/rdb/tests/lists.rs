//! Lists in payloads of redis-server 7.0.15, and in those of older versions.

use super::*;

/// Returns the payload of a list as a slot keeps it.
fn dumped_list(row: &[u8]) -> Vec<u8> {
    let seed = store::Seed::new(1);
    let mut table = store::SlotTable::default();
    let (key, value) = (seed.key(b"l"), store::NewValue::List(row));
    let put = store::Effect::Put { key, value, expires_at: None };
    let version = table.next_version(store::UnixMillis(1));
    let _ = table.apply(&put, version, store::Touch::Nothing, &seed);
    dump(table.peek(&key).expect("it was put").value(), store::UnixMillis(1))
}

fn restored(hex: &str) -> Result<RestoredValue<'static>, PayloadError> {
    match restore(&bytes_of(hex), NO_LIMIT)? {
        RestoredValue::List(row) => Ok(RestoredValue::List(row)),
        other @ (RestoredValue::String(_)
        | RestoredValue::Hash(_)
        | RestoredValue::Set(_)
        | RestoredValue::SortedSet(_)
        | RestoredValue::Stream(_)) => panic!("not a list: {other:?}"),
    }
}

#[test]
fn payloads_of_lists_are_those_of_redis() {
    let hex = "1201021b1b00000004008161020101f178ec0389736f6d6520746578740aff0a004a4678d68460d570";
    let short = row(&[b"a", b"1", b"-5000", b"some text"]);
    assert_eq!(dumped_list(&short), bytes_of(hex));
    assert_eq!(restored(hex), Ok(RestoredValue::List(short)));
    let items: Vec<String> = (0..3_000).map(|number| format!("item{number}")).collect();
    let long = row(&items.iter().map(String::as_bytes).collect::<Vec<_>>());
    let payload = dumped_list(&long);
    // The length and the checksum of what redis-server has written.
    assert_eq!(payload.len(), 13_866);
    assert_eq!(payload[payload.len() - 8..], bytes_of("e25621ccb1495949"));
    assert_eq!(restore(&payload, NO_LIMIT), Ok(RestoredValue::List(long)));
}

#[test]
fn older_forms_of_lists_are_read() {
    let plain = "01030161c0050568656c6c6f09007db6605fc4793380";
    assert_eq!(restored(plain), Ok(RestoredValue::List(row(&[b"a", b"5", b"hello"]))));
    let node_of_one = "12020105706c61696e020d0d0000000200010182616203ff0a00fa2173451e56f7ce";
    assert_eq!(restored(node_of_one), Ok(RestoredValue::List(row(&[b"plain", b"1", b"ab"]))));
    let x = "78".repeat(300);
    let first = format!(
        "4165650100005a010000090000016103f202c078ec04fe6403f070110105d000ca9a3b06e000000000000100000a\
         412c{x}fe2f010000047461696cff"
    );
    let long = [b'x'; 300];
    let elements: [&[u8]; 11] = [
        b"a",
        b"1",
        b"-5000",
        b"100",
        b"70000",
        b"1000000000",
        b"1099511627776",
        &long,
        b"tail",
        b"y",
        b"-3",
    ];
    let ziplist = format!("0a{first}0900a1975f72dbf96986");
    assert_eq!(restored(&ziplist), Ok(RestoredValue::List(row(&elements[..9]))));
    let quicklist = format!("0e02{first}11110000000d000000020000017903fefdff0900bd02befa0c248844");
    assert_eq!(restored(&quicklist), Ok(RestoredValue::List(row(&elements))));
}

#[test]
fn payloads_that_are_no_list_are_refused() {
    let bodies: [&[u8]; 10] = [
        &[1, 0],                                                  // No elements.
        &[18, 0],                                                 // No nodes.
        &[18, 1, 2, 7, 7, 0, 0, 0, 0, 0, 0xFF],                   // An empty node.
        &[18, 1, 3, 1, b'a'],                                     // An unknown kind of node.
        &[18, 1, 2, 9, 9, 0, 0, 0, 2, 0, 1, 1, 0xFF],             // A wrong count.
        &[10, 13, 13, 0, 0, 0, 10, 0, 0, 0, 1, 0, 1, 0xF2, 0xFF], // A wrong length of the previous.
        &[10, 13, 13, 0, 0, 0, 11, 0, 0, 0, 1, 0, 0, 0xF2, 0xFF], // A wrong offset of the last.
        &[10, 13, 14, 0, 0, 0, 10, 0, 0, 0, 1, 0, 0, 0xF2, 0xFF], // A wrong length.
        &[10, 13, 13, 0, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0xF2, 0xFF], // A wrong count.
        &[10, 13, 13, 0, 0, 0, 10, 0, 0, 0, 1, 0, 0, 0x09, 0xFF], // A string behind the end.
    ];
    for body in bodies {
        let payload = sealed(body);
        assert_eq!(restore(&payload, NO_LIMIT), Err(PayloadError::BadFormat), "{body:?}");
    }
    let sound = sealed(&[10, 13, 13, 0, 0, 0, 10, 0, 0, 0, 1, 0, 0, 0xF2, 0xFF]);
    assert_eq!(restore(&sound, NO_LIMIT), Ok(RestoredValue::List(row(&[b"1"]))));
    let huge = sealed(&[18, 0x80, 0xFF, 0xFF, 0xFF, 0xFF, 1, 1, b'a']);
    assert_eq!(restore(&huge, NO_LIMIT), Err(PayloadError::BadFormat));
    let whole = dumped_list(&row(&[&[b'v'; 100], b"w"]));
    assert!(restore(&whole, 150).is_ok());
    assert_eq!(restore(&whole, 100), Err(PayloadError::BadFormat));
}
