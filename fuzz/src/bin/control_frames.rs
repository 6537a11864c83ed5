//! Fuzzes `fuzz::control_frames`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::control_frames(data));
