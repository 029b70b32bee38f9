//! `omg estimate`: what a graph may take at worst, and what its runs usually took.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Serialize;

use super::context::Context;
use super::{Failure, graph_file};
use crate::graph::estimate::Estimate;
use crate::graph::{Cause, Graph, Node, NodeIx, Work};
use crate::text::duration;
use crate::text::money::{Cost, Money};
use crate::text::sanitize;
use crate::view::history::usual::{Spread, Usual, usual};

/// How many nodes a line names.
const NAMED_MAX: usize = 5;

/// Says what a graph may take at worst, and what its runs usually took.
///
/// At worst: every attempt and every round of every loop is used up, in one run that nobody resumes. What goes beyond that
/// is told with it: a budget bounds one invocation, which ends after it is reached, and codex keeps none. Of the time, what
/// a person takes to decide and what is waited for a limit are left out.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The graph file; /dev/stdin and pipes work.
    graph: PathBuf,
    /// Prints one JSON document instead.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, context: &mut Context) -> Result<u8, Failure> {
    let (_, loaded) = graph_file::load(&args.graph, context)?;
    let estimate = Estimate::of(&loaded.graph);
    let console = context.console();
    let usual = usual(&loaded.graph, &console.home, console.probe)?;
    let text = if args.json {
        json(args, &loaded.graph, &estimate, usual.as_ref())
    } else {
        let title = graph_file::title(&args.graph, &loaded);
        print(&sanitize::one_line(&title), &loaded.graph, &estimate, usual.as_ref())
    };
    console.out.write_all(text.as_bytes())?;
    console.out.flush()?;
    Ok(0)
}

fn print(title: &str, graph: &Graph, estimate: &Estimate, usual: Option<&Usual>) -> String {
    let mut out = format!("{title}, at worst:\n");
    let mut line = |what: &str, words: String| {
        writeln!(out, "  {what:<12}{words}").ok();
    };
    line("executions", executions(estimate));
    line("dollars", dollars(graph, estimate));
    line("time", time(estimate));
    if estimate.checks > 0 {
        line("checks", format!("{} run as evidence", counted(estimate.checks, "command")));
    }
    if !estimate.lanes.is_empty() {
        line("worktrees", worktrees(estimate));
    }
    for (gate, behind) in &estimate.gates {
        line("a person", format!("at {}: {} behind it", graph.node(*gate).id, waiting(*behind)));
    }
    for words in beyond(graph, estimate) {
        line("beyond it", words);
    }
    let Some(usual) = usual else { return out };
    let by = match (usual.runs, usual.passed) {
        (1, 0) => "1 run that has ended and did not pass".to_owned(),
        (1, _) => "1 run that has passed".to_owned(),
        (runs, passed) => format!("{runs} runs that have ended, {passed} of them passed"),
    };
    writeln!(out, "\nusually, by {by}:").ok();
    let mut line = |what: &str, words: String| {
        writeln!(out, "  {what:<12}{words}").ok();
    };
    line("executions", spread(usual.executions, |count| count.to_string()));
    line("dollars", spread(usual.cost, |cost| cost.to_string()));
    line("time", spread(usual.time, duration::format));
    out
}

fn executions(estimate: &Estimate) -> String {
    let all = estimate.prompts + estimate.commands;
    let parts =
        format!("{} and {}", counted(estimate.prompts, "prompt"), counted(estimate.commands, "command"));
    match estimate.executions() {
        bound if bound < all => format!("{bound}: max_executions pauses the run there, before {parts}"),
        _ => format!("{all}: {parts}, retries and rounds included"),
    }
}

fn dollars(graph: &Graph, estimate: &Estimate) -> String {
    if estimate.prompts == 0 {
        return format!("{}: no node asks a model", Money::ZERO);
    }
    let count = estimate.unbudgeted.len();
    let have = if count == 1 { "node has" } else { "nodes have" };
    let open = format!("{count} {have} no budget: {}", named(graph, &estimate.unbudgeted));
    let rest = format!("the others may spend {}", estimate.budgeted);
    match (estimate.unbudgeted.is_empty(), estimate.bounds.spend) {
        (true, Some(bound)) if bound < estimate.budgeted => {
            format!("{bound}: max_usd pauses the run there, before the budgets' {}", estimate.budgeted)
        }
        (true, _) => format!("{}, by the nodes' budgets", estimate.budgeted),
        (false, Some(bound)) => format!("{bound}: max_usd starts nothing beyond it, but {open}"),
        (false, None) if estimate.budgeted.is_zero() => format!("unbounded: {open}"),
        (false, None) => format!("unbounded: {open}; {rest}"),
    }
}

fn time(estimate: &Estimate) -> String {
    let slots = estimate.slots;
    let wall = duration::format(estimate.wall());
    let capped = match estimate.bounds.wall {
        Some(bound) => format!("; max_wall starts nothing after {}", duration::format(bound)),
        None => String::new(),
    };
    let path = duration::format(estimate.longest_path);
    format!("{wall} with {slots} at a time; the longest path alone takes {path}{capped}")
}

/// What is not in the numbers, as far as the graph gives rise to it.
fn beyond(graph: &Graph, estimate: &Estimate) -> Vec<String> {
    let mut told = Vec::new();
    if !estimate.budgeted.is_zero() {
        let is_retried = |node: &Node| {
            let has_budget = matches!(&node.work, Work::Model(model) if model.budget.is_some());
            has_budget && node.retry.max > 0 && node.retry.on.contains(&Cause::BudgetExceeded)
        };
        let again = if graph.nodes().iter().any(is_retried) {
            ", and again with each retry on budget_exceeded"
        } else {
            ""
        };
        told.push(format!("a prompt overshoots its budget by what it spends before it is stopped{again}"));
        told.push("codex keeps no budgets: with --runtime codex the dollars are unbounded".to_owned());
    }
    if estimate.prompts + estimate.commands > 0 {
        told.push("a node that is ended at its timeout is given a few seconds to end".to_owned());
    }
    if estimate.prompts > 0 {
        told.push(
            "with --wait-for-quota a prompt that a limit held back has all its attempts again".to_owned(),
        );
    }
    told
}

fn worktrees(estimate: &Estimate) -> String {
    let lanes = estimate.lanes.iter();
    let named: Vec<String> = lanes
        .map(|(name, setup)| if *setup { format!("{name} (with a setup)") } else { name.clone() })
        .collect();
    let more = named.len().saturating_sub(NAMED_MAX);
    format!("{}: {}", named.len(), listed(named.into_iter().take(NAMED_MAX).collect(), more))
}

fn waiting(behind: usize) -> String {
    match behind {
        0 => "nothing waits".to_owned(),
        1 => "1 node waits".to_owned(),
        n => format!("{n} nodes wait"),
    }
}

fn named(graph: &Graph, nodes: &[NodeIx]) -> String {
    let ids = nodes.iter().take(NAMED_MAX).map(|ix| graph.node(*ix).id.to_string()).collect();
    listed(ids, nodes.len().saturating_sub(NAMED_MAX))
}

fn listed(named: Vec<String>, more: usize) -> String {
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    named.join(", ") + &more
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn spread<T: Copy + PartialEq>(spread: Spread<T>, words: impl Fn(T) -> String) -> String {
    let Spread { least, median, most } = spread;
    if least == most {
        return words(median);
    }
    format!("{} ({} to {})", words(median), words(least), words(most))
}

/// What `--json` prints (shape 1, see docs/CLI.md).
fn json(args: &Args, graph: &Graph, estimate: &Estimate, usual: Option<&Usual>) -> String {
    let id = |ix: &NodeIx| graph.node(*ix).id.to_string();
    let bounds = &estimate.bounds;
    let document = Document {
        schema: 1,
        file: args.graph.display().to_string(),
        worst: Worst {
            executions: estimate.executions(),
            prompts: estimate.prompts,
            commands: estimate.commands,
            checks: estimate.checks,
            usd: estimate.spend().map(Money::usd),
            budgeted_usd: estimate.budgeted.usd(),
            unbudgeted: estimate.unbudgeted.iter().map(id).collect(),
            seconds: estimate.wall().as_secs_f64(),
            longest_path_seconds: estimate.longest_path.as_secs_f64(),
            slots: estimate.slots,
            worktrees: estimate.lanes.keys().map(String::as_str).collect(),
            gates: estimate
                .gates
                .iter()
                .map(|(gate, behind)| Waits { id: id(gate), behind: *behind })
                .collect(),
            max_usd: bounds.spend.map(Money::usd),
            max_executions: bounds.executions,
            max_wall_seconds: bounds.wall.map(|wall| wall.as_secs_f64()),
        },
        usual: usual.map(|usual| UsualJson {
            runs: usual.runs,
            passed: usual.passed,
            cost_unknown: usual.of_unknown_cost > 0,
            usd: of_spread(usual.cost, |cost: Cost| cost.known.usd()),
            executions: of_spread(usual.executions, |count| count),
            seconds: of_spread(usual.time, |time| time.as_secs_f64()),
        }),
    };
    serde_json::to_string_pretty(&document).expect("text and numbers always encode") + "\n"
}

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    file: String,
    worst: Worst<'a>,
    usual: Option<UsualJson>,
}

#[derive(Serialize)]
struct Worst<'a> {
    executions: u64,
    prompts: u64,
    commands: u64,
    checks: u64,
    usd: Option<f64>,
    budgeted_usd: f64,
    unbudgeted: Vec<String>,
    seconds: f64,
    longest_path_seconds: f64,
    slots: usize,
    worktrees: Vec<&'a str>,
    gates: Vec<Waits>,
    max_usd: Option<f64>,
    max_executions: Option<u32>,
    max_wall_seconds: Option<f64>,
}

#[derive(Serialize)]
struct Waits {
    id: String,
    behind: usize,
}

#[derive(Serialize)]
struct UsualJson {
    runs: usize,
    passed: usize,
    cost_unknown: bool,
    usd: SpreadJson<f64>,
    executions: SpreadJson<u64>,
    seconds: SpreadJson<f64>,
}

#[derive(Serialize)]
struct SpreadJson<T> {
    least: T,
    median: T,
    most: T,
}

fn of_spread<T, J>(spread: Spread<T>, number: impl Fn(T) -> J) -> SpreadJson<J> {
    SpreadJson { least: number(spread.least), median: number(spread.median), most: number(spread.most) }
}
