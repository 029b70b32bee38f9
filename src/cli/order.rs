//! From a graph file and its flags to a leg: what `run` and `rehearse` share.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::context::Context;
use super::execute::{self, Display, LiveView};
use super::services::Services;
use super::{Failure, graph_file};
use crate::graph::{Bounds, CONCURRENCY_MAX, Graph, bounds};
use crate::leg::Order;
use crate::leg::again::Inherited;
use crate::leg::open::DEFAULT_MODE;
use crate::load::{Loaded, Source, inputs};
use crate::node::invocation::Preflight;
use crate::node::runtime::settings::Finding;
use crate::record::Durability;
use crate::text::sanitize;

/// What `run` and `rehearse` share.
#[derive(Debug, clap::Args)]
pub(super) struct Common {
    /// The graph file; /dev/stdin and pipes work.
    pub(super) graph: PathBuf,
    /// The value of an input; repeat for more.
    #[arg(long = "input", value_name = "NAME=VALUE")]
    pub(super) input: Vec<String>,
    /// A YAML or JSON mapping of inputs.
    #[arg(long, value_name = "FILE")]
    pub(super) inputs: Option<PathBuf>,
    /// How many nodes run at the same time, at most 10; 0 takes the graph's own number, else 4.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole)]
    pub(super) concurrency: Option<i64>,
    #[command(flatten)]
    pub(super) bounds: BoundFlags,
    #[command(flatten)]
    pub(super) quota: QuotaFlag,
    /// After a failure runs everything that does not depend on it.
    #[arg(long)]
    pub(super) continue_on_fail: bool,
    /// Prints the feed's own lines on standard output, and everything else on standard error.
    #[arg(long)]
    pub(super) json: bool,
    /// Shows no progress, warnings only.
    #[arg(long, short)]
    pub(super) quiet: bool,
}

/// Bounds on a whole run.
#[derive(Debug, clap::Args)]
pub(super) struct BoundFlags {
    /// Starts no node that could make the run spend more than this, all legs together; what a node without budget_usd costs
    /// counts once it has ended.
    #[arg(long, value_name = "DOLLARS", allow_negative_numbers = true, value_parser = dollars)]
    max_usd: Option<f64>,
    /// Starts no node that could make more executions than this, all legs together; each retry that a node may take counts.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count)]
    max_executions: Option<i64>,
    /// Starts nothing more after this time, such as 2h30m; what runs goes on to its end.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    max_wall: Option<String>,
}

/// Patience with a spent limit.
#[derive(Debug, clap::Args)]
pub(super) struct QuotaFlag {
    /// Waits for a spent usage limit to be lifted instead of pausing, at most this long (6h without a time).
    #[arg(long, value_name = "MAX", num_args = 0..=1, require_equals = true, default_missing_value = "6h")]
    wait_for_quota: Option<String>,
}

impl QuotaFlag {
    /// How long to wait, or what is wrong with it.
    pub(super) fn read(&self) -> Result<Option<Duration>, Failure> {
        let patience = self.wait_for_quota.as_deref().map(bounds::wall).transpose();
        patience.map_err(|wrong| Failure::new(format!("--wait-for-quota: {wrong}")))
    }
}

impl BoundFlags {
    /// The bounds, or what is wrong with the first bad one.
    pub(super) fn read(&self) -> Result<Bounds, Failure> {
        fn flag<T>(name: &str, read: Option<Result<T, String>>) -> Result<Option<T>, Failure> {
            read.transpose().map_err(|wrong| Failure::new(format!("{name}: {wrong}")))
        }
        Ok(Bounds {
            spend: flag("--max-usd", self.max_usd.map(bounds::spend))?,
            executions: flag("--max-executions", self.max_executions.map(bounds::executions))?,
            wall: flag("--max-wall", self.max_wall.as_deref().map(bounds::wall))?,
        })
    }
}

/// A number of nodes, however wrong; what cannot be is refused when the graph is known.
pub(super) fn whole(word: &str) -> Result<i64, String> {
    word.parse().map_err(|_| format!("it takes a whole number from 0 to {CONCURRENCY_MAX}"))
}

/// Dollars, however wrong; what cannot be is refused with the graph's own words for it.
pub(super) fn dollars(word: &str) -> Result<f64, String> {
    word.parse().map_err(|_| "it takes dollars, such as 2.50".to_owned())
}

/// A count, however wrong; what cannot be is refused with the graph's own words for it.
pub(super) fn count(word: &str) -> Result<i64, String> {
    word.parse().map_err(|_| "it takes a whole number, such as 20".to_owned())
}

/// A graph that was loaded, with everything its flags say.
pub(super) struct Ready {
    /// The file.
    pub(super) source: Source,
    /// The graph.
    pub(super) loaded: Loaded,
    /// How many nodes run at once.
    pub(super) slots: usize,
}

/// How a leg is to be run.
pub(super) struct Manner {
    /// How soon a verdict is in the snapshot.
    pub(super) durability: Durability,
    /// The script of a rehearsal, empty without one; `None` for a run in earnest.
    pub(super) rehearsal: Option<String>,
    /// Whether it goes to the background once it is open.
    pub(super) detached: bool,
    /// Whether a person at a terminal is shown the live view.
    pub(super) web: LiveView,
}

/// Loads the graph that `common` names.
pub(super) fn load(common: &Common, context: &mut Context) -> Result<Ready, Failure> {
    context.out_is_feed = common.json;
    let (source, loaded) = graph_file::load(&common.graph, context)?;
    let slots = slots(&loaded.graph, common.concurrency, context)?;
    Ok(Ready { source, loaded, slots })
}

/// Runs a graph that nothing speaks against any more; returns the exit code.
pub(super) fn start(
    common: &Common,
    ready: Ready,
    values: BTreeMap<String, String>,
    services: Services,
    manner: Manner,
    context: &mut Context,
) -> Result<u8, Failure> {
    let Ready { loaded, slots, .. } = ready;
    let bounds = loaded.graph.bounds.overridden_by(common.bounds.read()?);
    mention_advice(common, &loaded, context);
    let claimed = execute::claim(context)?;
    let title =
        format!("Running graph \"{}\" (run {})", graph_file::title(&common.graph, &loaded), claimed.run.run);
    let Manner { detached, web, .. } = manner;
    let display = Display {
        title,
        json: common.json,
        quiet: common.quiet,
        detached,
        web,
        again: String::new(),
        goes_on: false,
    };
    let inherited = Inherited::first(&loaded.graph);
    let order = Order {
        encoded: loaded.encoded(),
        source_path: common.graph.display().to_string(),
        sha256: loaded.sha256,
        graph: Arc::new(loaded.graph),
        inputs: values,
        base: Context::base(),
        continue_on_fail: common.continue_on_fail,
        slots,
        durability: manner.durability,
        runtime: services.runtime,
        shell: services.shell,
        launcher: services.launcher,
        git: services.git,
        rehearsal: manner.rehearsal,
        default_mode: DEFAULT_MODE,
        planned: None,
        bounds,
        patience: common.quota.read()?,
        inherited,
    };
    execute::execute(claimed, order, &display, context)
}

/// Says how much advice there is, which a run does not print.
fn mention_advice(common: &Common, loaded: &Loaded, context: &mut Context) {
    let (path, count) = (&common.graph, loaded.advice.len());
    if count == 0 || common.quiet {
        return;
    }
    let warnings = if count == 1 { "1 lint warning" } else { &format!("{count} lint warnings") };
    // A pipe has been read, and cannot be again.
    let shows = match path.is_file() {
        true if count == 1 => format!(": omg lint {} shows it", path.display()),
        true => format!(": omg lint {} shows them", path.display()),
        false => String::new(),
    };
    writeln!(context.err, "{}", sanitize::one_line(&format!("{warnings}{shows}"))).ok();
}

/// The number of slots; a number that cannot be is refused in plain words (case C11).
pub(super) fn slots(graph: &Graph, flag: Option<i64>, context: &mut Context) -> Result<usize, Failure> {
    let asked = asked_slots(flag)?;
    if let Some(asked) = asked.filter(|asked| *asked > CONCURRENCY_MAX) {
        writeln!(context.err, "note: --concurrency {asked} is capped at {CONCURRENCY_MAX}").ok();
    }
    Ok(graph.effective_concurrency(asked))
}

/// What `--concurrency` asks for, if anything.
pub(super) fn asked_slots(flag: Option<i64>) -> Result<Option<usize>, Failure> {
    let Some(asked) = flag.filter(|asked| *asked != 0) else { return Ok(None) };
    usize::try_from(asked).map(Some).map_err(|_| {
        Failure::new(format!("--concurrency {asked}: at least one node must be able to run"))
            .hinted(format!("give a number from 1 to {CONCURRENCY_MAX}, or 0 for the graph's own"))
    })
}

/// The inputs, or everything that is wrong with them.
pub(super) fn input_values(common: &Common, graph: &Graph) -> Result<BTreeMap<String, String>, Failure> {
    inputs::resolve(graph, &common.input, common.inputs.as_deref())
        .map_err(|errors| wrong_inputs(&common.graph.display().to_string(), &errors))
}

/// Everything that is wrong with the inputs of `place`.
pub(super) fn wrong_inputs(place: &str, errors: &[inputs::InputError]) -> Failure {
    let hint = errors.iter().find_map(inputs::InputError::hint);
    let list: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let failure = Failure::new(format!("{place}: {}", list.join("; ")));
    match hint {
        Some(hint) => failure.hinted(hint),
        None => failure,
    }
}

/// Refuses with the first of `reasons`, all of them told.
pub(super) fn refuse(common: &Common, reasons: Vec<String>) -> Result<(), Failure> {
    if reasons.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("{}: {}; nothing was run", common.graph.display(), reasons.join("; "))))
}

/// Tells what a runtime says of the graph, and which fragments went into it; or refuses.
pub(super) fn announce(
    common: &Common,
    loaded: &Loaded,
    found: Preflight,
    context: &mut Context,
) -> Result<(), Failure> {
    refuse(common, found.refusals.clone())?;
    warn(&found, context);
    let (said, _) = context.prose();
    for line in found.disclosures {
        writeln!(said, "{}", sanitize::one_line(&line)).ok();
    }
    graph_file::print_splices(&loaded.splices, context);
    graph_file::print_advice(&common.graph, &loaded.fragment_advice, context);
    Ok(())
}

/// Prints what settings files would change about who pays, a line for a file and a key. `whose` says whom alone it concerns.
pub(super) fn warn_of_settings<'f>(
    found: impl IntoIterator<Item = &'f Finding>,
    whose: &str,
    context: &mut Context,
) {
    for finding in found {
        let line = format!("{finding}{whose}; {}", finding.remedy());
        writeln!(context.err, "WARNING: {}", sanitize::one_line(&line)).ok();
    }
}

/// Prints what a runtime warns of, whatever the graph's author allows.
pub(super) fn warn(found: &Preflight, context: &mut Context) {
    let advice = found.advice.iter().map(|advice| format!("{advice} [{}]", advice.id));
    for line in advice.chain(found.warnings.iter().cloned()) {
        writeln!(context.err, "WARNING: {}", sanitize::one_line(&line)).ok();
    }
}
