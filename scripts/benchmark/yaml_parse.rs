//! Walks the parser's events over a file and does nothing with them: what loading that file costs at least.

use granit_parser::{Parser, options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: yaml-parse FILE")?;
    let text = std::fs::read_to_string(path)?;
    let mut events = 0_usize;
    for event in Parser::new_from_str_with_options(&text, options! {}) {
        event?;
        events += 1;
    }
    println!("{events}");
    Ok(())
}
