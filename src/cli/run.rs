//! `omg run`: loads a graph, looks at everything that can be looked at for free, and runs it.

use std::io::Write;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::context::Context;
use super::execute::LiveView;
use super::order::{self, Common, Manner};
use super::{Failure, detach, dry_run, execute, services};
use crate::leg::preflight;
use crate::node::runtime::RuntimeKind;
use crate::record::Durability;
use crate::text::sanitize;

/// Runs a graph.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(flatten)]
    background: detach::Flags,
    /// Says what would run, and runs nothing.
    #[arg(long, conflicts_with_all = ["json", "detach"])]
    dry_run: bool,
    /// Does not serve the live view of this run.
    ///
    /// On a terminal it is served while the run goes on, on a port of its own, and opened in a browser.
    #[arg(long)]
    no_web: bool,
    /// How soon a verdict is in state.json: `paced`, or `strict` for before anything that depends on it starts.
    #[arg(long, value_name = "POLICY", default_value = "paced", value_parser = policies())]
    durability: Durability,
}

fn policies() -> impl TypedValueParser<Value = Durability> {
    PossibleValuesParser::new(["paced", "strict"])
        .map(|word| if word == "strict" { Durability::Strict } else { Durability::Paced })
}

/// Runs the command.
pub(super) fn run(args: Args, runtime: RuntimeKind, context: &mut Context) -> Result<u8, Failure> {
    if args.background.is_asked() {
        return detach::begin(context);
    }
    if args.background.is_copy() {
        detach::settle_in();
    }
    let common = &args.common;
    let ready = order::load(common, context)?;
    let graph = &ready.loaded.graph;
    if args.dry_run {
        let code = dry_run::run(common, ready, runtime, context)?;
        return context.out.settle().map(|()| code);
    }
    let values = order::input_values(common, graph)?;
    order::refuse(common, preflight::refusals(graph, &values, &Context::base()))?;
    let services = services::wire(runtime, graph, &execute::mark())?;
    order::refuse(common, preflight::lanes(graph, &Context::base(), services.git.as_ref()))?;
    let settings =
        preflight::settings(runtime, graph, &values, &Context::base(), services::whereabouts(runtime));
    order::warn_of_settings(&settings, "", context);
    order::announce(common, &ready.loaded, services.runtime.preflight(graph), context)?;
    for line in preflight::unexported(graph, &values) {
        writeln!(context.err, "warning: {}", sanitize::one_line(&line)).ok();
    }
    let manner = Manner {
        durability: args.durability,
        rehearsal: None,
        detached: args.background.is_copy(),
        web: LiveView::unless(args.no_web),
    };
    order::start(common, ready, values, services, manner, context)
}
