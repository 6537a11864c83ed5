//! Fuzzes `fuzz::peer_handshake`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::peer_handshake(data));
