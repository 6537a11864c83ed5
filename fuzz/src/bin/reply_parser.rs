//! Fuzzes `fuzz::reply_parser`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::reply_parser(data));
