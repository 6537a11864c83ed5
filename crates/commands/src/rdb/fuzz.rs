//! Claims about payloads that must hold for arbitrary bytes; called by the fuzz target `restore_payloads` and its corpus.

use store::{Digest, Effect, Seed, SlotTable, Touch, UnixMillis};

use super::{crc64, dump, restore};

/// Maximum length of a restored value.
const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Versions of the format: of Redis 7.0, Redis 8, Valkey 9.
const VERSIONS: [u16; 3] = [10, 12, 80];

/// Checks that a payload with this body, if RESTORE takes it, is a value that DUMP gives back. The first byte of the data
/// chooses the version; the checksum is added.
///
/// # Panics
/// If a claim does not hold.
pub fn fuzz_payload(data: &[u8]) {
    let Some((version, body)) = data.split_first() else { return };
    let version = VERSIONS[usize::from(*version) % VERSIONS.len()];
    let payload = sealed_as(version, body);
    let Some((digest, dumped)) = restored(&payload, VALUE_BYTES_MAX) else { return };
    // A packed form may be shorter than the value one by one.
    let (again, _) = restored(&dumped, usize::MAX).expect("what DUMP writes can be restored");
    assert!(digest == again, "the same value comes back");
}

/// Returns a payload in a version of the format, with its checksum.
pub(super) fn sealed_as(version: u16, body: &[u8]) -> Vec<u8> {
    let mut payload = [body, &version.to_le_bytes()].concat();
    let checksum = crc64::crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}

/// Restores a payload as a key. Returns the fingerprint of the value, and its payload.
fn restored(payload: &[u8], bytes_max: usize) -> Option<(Digest, Vec<u8>)> {
    let value = restore(payload, bytes_max).ok()?;
    let (seed, mut table) = (Seed::new(1), SlotTable::default());
    let key = seed.key(b"key");
    let put = Effect::Put { key, value: value.new_value(), expires_at: None };
    let version = table.next_version(UnixMillis(1));
    let applied = table.apply(&put, version, Touch::Nothing, &seed);
    assert_eq!(applied.grown_bytes, table.bytes() as i64, "its memory is counted");
    let found = table.peek(&key).expect("it was put");
    // At this time no field has expired.
    Some((Digest::of_item(&found), dump(found.value(), UnixMillis::default())))
}
