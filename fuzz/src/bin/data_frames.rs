//! Fuzzes `fuzz::data_frames`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::data_frames(data));
