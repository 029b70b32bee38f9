//! `omg serve`: the live view in a browser, until it is interrupted.

use std::io::Write;
use std::sync::Arc;

use jiff::tz::TimeZone;

use super::context::Context;
use super::decide::InBackground;
use super::left_lanes::LeftLanes;
use super::{Failure, services};
use crate::process::{browser, signals};
use crate::record::{Home, RunId, lock};
use crate::text::shell_word::shell_word;
use crate::view::history::lookup::find_run;
use crate::view::web::{self, Build, Serving, Site, holder};

/// Shows runs in a browser, live, and takes decisions at gates there.
///
/// Without RUN it shows all runs. Only this machine can reach it. A run does not need it and is not ended with it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run: its id, the beginning of its id, or `latest`.
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// The port on 127.0.0.1; 0 takes any that is free.
    #[arg(long, value_name = "PORT", default_value_t = 8642)]
    port: u16,
    /// Does not open a browser.
    #[arg(long)]
    no_open: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, context: &mut Context) -> Result<u8, Failure> {
    let one = args.run.as_deref().map(|text| find_run(&context.home, text)).transpose()?.map(|(id, _)| id);
    let stop =
        signals::listen().map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
    let listener = web::bind(args.port).map_err(|error| refused(args.port, &error))?;
    let what = one.as_ref().map_or("All runs".to_owned(), |id| format!("Run {id}"));
    let site = Site {
        decide: Some(Arc::new(InBackground)),
        lanes: Some(Arc::new(LeftLanes::default())),
        ..site(context, one)
    };
    let serving = Serving::start(listener, site).map_err(cannot_serve)?;
    let address = serving.url();
    // A terminal that is gone ends nothing: the signal does.
    writeln!(context.out, "{what}: {address}\nCtrl-C stops serving; runs go on.").ok();
    context.out.flush().ok();
    if context.out_is_terminal && !args.no_open {
        open(&address, context);
    }
    stop.recv().ok();
    drop(serving);
    Ok(0)
}

/// The site of this program, with nobody to carry out decisions or to look into lanes.
pub(super) fn site(context: &Context, run: Option<RunId>) -> Site {
    Site {
        home: context.home.clone(),
        command_prefix: command_prefix(&context.home),
        run,
        probe: lock::probe,
        build: build(),
        projects: services::directory("CLAUDE_CONFIG_DIR", ".claude").map(|it| it.join("projects")),
        lanes: None,
        decide: None,
    }
}

/// What makes a command that is pasted into any terminal find the runs of `home`. A path that is not text cannot be pasted.
fn command_prefix(home: &Home) -> String {
    let path = home.path().to_str().filter(|_| home.must_be_named(std::env::var_os("HOME").as_deref()));
    path.map(|path| format!("OMG_HOME={} ", shell_word(path))).unwrap_or_default()
}

/// Opens a browser; that there is none is a warning.
pub(super) fn open(address: &str, context: &mut Context) {
    if let Err(error) = browser::open(address) {
        writeln!(context.err, "note: no browser was opened: {error}").ok();
    }
}

/// The build of this program.
pub(super) fn build() -> Build {
    Build::of_program(std::env::current_exe().ok().as_deref(), &TimeZone::system())
}

fn refused(port: u16, error: &std::io::Error) -> Failure {
    if error.kind() != std::io::ErrorKind::AddrInUse {
        return Failure::new(format!("cannot listen on 127.0.0.1:{port}: {error}"))
            .hinted("--port names another port");
    }
    let (what, hint) = holder::words(port, holder::identify(port).as_ref(), &build());
    Failure::new(what).hinted(hint)
}

fn cannot_serve(error: std::io::Error) -> Failure {
    Failure::new(format!("cannot serve: {error}"))
}
