//! `omg completions`: completion scripts, made from the same definition as the help.

use std::io::Write as _;

use clap::Command;
use clap_complete::Shell;

use super::Failure;
use super::context::Context;

/// Prints a completion script for a shell.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shell.
    shell: Shell,
}

/// Runs the command.
pub(super) fn run(args: &Args, context: &mut Context, mut definition: Command) -> Result<u8, Failure> {
    // The generator panics where it cannot write, and whoever reads may leave early.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut definition, "omg", &mut script);
    context.out.write_all(&script)?;
    context.out.flush()?;
    Ok(0)
}
