//! Any bytes as a graph file: libFuzzer's way into `property`.

#![no_main]

mod property;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| property::holds(bytes));
