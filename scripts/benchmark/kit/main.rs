//! The native half of `scripts/bench`: what has to be exact or cheap. Standard library only, Linux.
//!
//! - `kit meter [--timeout SECONDS] [--stderr FILE] -- COMMAND...` runs a command and tells what it cost;
//! - `kit floor --n N --conc C --keep bare|promise|strict --dir DIR --base BYTES -- COMMAND...` runs the cheapest
//!   program that makes the same promises as the program that is measured, and nothing else;
//! - `kit kill --mark WORD --want N --how fail|int|term|kill -- COMMAND...` ends a command in a certain way and
//!   watches what becomes of its processes;
//! - `kit history --root RUNS --mode stat|skim` does the least that a listing of runs has to do;
//! - `kit first --feed FILE -- COMMAND...` tells how long a command takes until its run has begun a node;
//! - `kit follow --port P --path PATH --ready WORD --feed FILE` tells how soon lines reach those who follow a server.
//!
//! Each but `history`, which is metered itself, prints one JSON object. Every wait has an end, and only processes started here, or marked by it, are signalled.

use std::collections::HashMap;

mod floor;
mod follow;
mod history;
mod kill;
mod meter;
mod system;

/// The words of a command line: `--name value` pairs, then a command after `--`.
struct Options {
    values: HashMap<String, String>,
    command: Vec<String>,
}

impl Options {
    fn parse(words: &[String]) -> Self {
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        let pairs = words[..end].chunks(2);
        let values =
            pairs.map(|pair| (pair[0].trim_start_matches('-').to_owned(), pair[1].clone())).collect();
        Options { values, command: words[(end + 1).min(words.len())..].to_vec() }
    }

    fn text(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    fn number(&self, name: &str, otherwise: u64) -> u64 {
        self.values.get(name).map_or(otherwise, |value| value.parse().expect("a number"))
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (what, rest) = words.split_first().expect("usage: kit meter|floor|kill|history|first|follow ...");
    let options = Options::parse(rest);
    match what.as_str() {
        "meter" => meter::run(&options),
        "floor" => floor::run(&options),
        "kill" => kill::run(&options),
        "history" => history::run(&options),
        "first" => history::first(&options),
        "follow" => follow::run(&options),
        _ => panic!("usage: kit meter|floor|kill|history|first|follow ..."),
    }
}
