//! Fuzzes `fuzz::control_messages`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::control_messages(data));
