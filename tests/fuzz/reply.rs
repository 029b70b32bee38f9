//! Any text as a planner's reply: libFuzzer's way into `ceiling`.

#![no_main]

mod ceiling;

libfuzzer_sys::fuzz_target!(|reply: &str| {
    ceiling::holds(reply);
});
