//! Fuzzes `fuzz::sort_patterns`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::sort_patterns(data));
