//! `omg show RUN [NODE]`.

use clap::Args as ClapArgs;

use crate::cli::{Console, Failure};
use crate::view::history::lookup::find_run;
use crate::view::history::node;
use crate::view::history::show::Shown;

/// Shows one run, or what one of its nodes was asked and said.
///
/// With a node: what it was asked, what it said and what its check said, attempt by attempt. Of a planned run `planner` and
/// `assessor` show what these were asked and said, unless a node is called so.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// The run: its id, the beginning of its id, or `latest`.
    #[arg(value_name = "RUN")]
    run: String,
    /// A node of the run, or `planner` or `assessor` of a planned one.
    #[arg(value_name = "NODE")]
    node: Option<String>,
    /// Print one JSON document instead.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, console: &mut Console<'_>) -> Result<u8, Failure> {
    let (id, dir) = find_run(&console.home, &args.run)?;
    let shown = Shown::read(id, &dir, console.probe)?;
    match (&args.node, args.json) {
        (None, false) => write!(console.out, "{}", shown.print(console.out_look, &console.zone))?,
        (None, true) => write!(console.out, "{}", shown.json())?,
        (Some(name), false) => node::show(&shown, &dir, name, console.out_look, console.out)?,
        (Some(name), true) => write!(console.out, "{}", node::json(&shown, &dir, name)?)?,
    }
    console.out.flush()?;
    Ok(0)
}
