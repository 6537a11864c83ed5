//! Fuzzes `fuzz::restore_payloads`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::restore_payloads(data));
