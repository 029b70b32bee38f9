//! `omg watch RUN`.

use clap::Args as ClapArgs;

use crate::cli::{Console, Failure};
use crate::process::signals::Stop;
use crate::record::status::Status;
use crate::view::history::lookup::find_run;
use crate::view::history::watch::{Ended, Options, Watch};

/// Follows a run from another terminal.
///
/// Prints its events as they happen, those of the past first, and ends when the run does.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// The run: its id, the beginning of its id, or `latest`.
    #[arg(value_name = "RUN")]
    run: String,
    /// Go on when the run has ended, until it is interrupted.
    #[arg(long)]
    follow: bool,
    /// Exit by how the run ended: 0 passed, 1 failed, interrupted or not to be told, 2 paused.
    ///
    /// A signal to this command, while the run goes on, exits with its own code: 130 for Ctrl-C, 143 for TERM.
    #[arg(long)]
    exit_status: bool,
    /// Print the lines of the run's event stream as they are.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, console: &mut Console<'_>) -> Result<u8, Failure> {
    let (id, dir) = find_run(&console.home, &args.run)?;
    let options = Options { follow: args.follow, json: args.json };
    let watch = Watch { id: &id, dir: &dir, probe: console.probe, options, look: console.out_look };
    match watch.run(console.out, console.err, &console.stop)? {
        Ended::Finished(Some(status)) if args.exit_status => Ok(Status::exit_code(status)),
        // Whatever waits for the run to pass must not go on as if it had.
        Ended::Finished(None) if args.exit_status => {
            Err(Failure::new(format!("run {id} has ended, and how cannot be told"))
                .hinted(format!("omg show {id}")))
        }
        Ended::Interrupted(signal) if args.exit_status => Ok(signal.unwrap_or(Stop::Interrupt).exit_code()),
        Ended::Finished(_) | Ended::Interrupted(_) => Ok(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::history::fixture::{House, free, passed, state};
    use crate::view::term::Look;

    fn exit(outcome: &str, records: &str, exit_status: bool) -> u8 {
        let house = House::new();
        let feed = format!(
            "{{\"event\":\"run_started\"}}\n{{\"event\":\"run_finished\",\"outcome\":\"{outcome}\"}}"
        );
        house.run("20260102-030405.000000001-1", &feed, Some(&state(records)));
        let args = Args { run: "latest".to_owned(), follow: false, exit_status, json: false };
        let mut console = Console {
            home: house.home.clone(),
            out: &mut Vec::new(),
            err: &mut Vec::new(),
            out_look: Look::default(),
            err_look: Look::default(),
            zone: jiff::tz::TimeZone::UTC,
            probe: free,
            stop: crossbeam_channel::never(),
        };
        run(&args, &mut console).expect("watched")
    }

    #[test]
    fn the_exit_status_is_the_runs_own_when_that_is_asked_for() {
        let all = [passed("a"), passed("b")].join(",");
        assert_eq!(exit("passed", &all, true), 0);
        assert_eq!(exit("failed", "", true), 1);
        assert_eq!(exit("paused", "", true), 2);
        assert_eq!(exit("failed", "", false), 0);
    }
}
