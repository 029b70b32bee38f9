//! End-to-end tests: the built program, a stand-in CLI, a home of their own. One file a topic; tests are named by the
//! id of the case they pin where there is one.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests start the program and stop at the first surprise"
)]

#[path = "../contract/mod.rs"]
mod contract;
mod env;
#[path = "../docs/markdown.rs"]
mod markdown;

mod auto;
mod basics;
mod chat;
mod cli;
mod crash;
mod detach;
mod disk;
mod doctor;
mod draw;
mod estimate;
mod examples;
mod export;
mod fragments;
mod gates;
mod guard;
mod init;
mod lanes;
mod lint;
mod loading;
mod loops;
mod money;
mod new;
mod output;
mod pauses;
mod power;
mod processes;
mod prune;
mod reference;
mod resume;
mod retries;
mod runtimes;
mod scheduling;
mod schema;
mod signals;
mod stop;
mod terminal;
mod trials;
mod web;
