//! The `omg` program; everything it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(omg::cli::main(std::env::args_os()))
}
