//! Fuzzes `fuzz::command_execution`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::command_execution(data));
