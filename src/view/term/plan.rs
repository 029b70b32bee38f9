//! The plan screen: what will run, under what, and what it rests on, before anything of it is paid (FACTS 8.14).
//!
//! Its parts always stand in one order. What nodes run under is read from their policies, not from the flags, so that it
//! cannot disagree with what they are started with.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use crate::graph::estimate::Estimate;
use crate::graph::node::{Feedback, Model, PermissionMode, Retry};
use crate::graph::{Bounds, Node, NodeId, OnFail, Work};
use crate::node::runtime::{RuntimeKind, codex};
use crate::plan::call::{Plan, Replanned};
use crate::plan::evidence::{Answer, Evidence};
use crate::plan::verify_flags::VerifyCommand;
use crate::text::shell_word::shell_word;
use crate::text::usage::Usage;
use crate::text::{duration, sanitize};

/// What the nodes of an isolated plan run under.
const ISOLATED: &str = "\
Ceiling: planned nodes load no settings, yours or the repository's: no standing permission, no hook, no CLAUDE.md, no MCP
server. A tool that a node does not list does not exist for it. A command outside its Bash(...) is for claude's own judge to
allow, but for simple changes of files below this directory, like touch and rm, which claude runs unjudged; where a plan sets
permission_mode to dontAsk both are refused. What an organisation manages still applies.
";
/// What they run under where the person said so.
const LOADED: &str = "\
Ceiling: planned nodes load your own configuration, as --accept-loaded-user-config asks: settings, hooks, CLAUDE.md and MCP
servers of yours and of the repository. Your standing permissions count beside what a node lists, so a scope like Bash(git *)
is what the plan said and no bound. A tool that a node does not list still does not exist for it. No API key comes back.
";
/// The same for codex.
const CODEX_ISOLATED: &str = "\
Ceiling: planned nodes load no config.toml, no rules, no project documents and no MCP server.
";
/// The same for codex where the person said so.
const CODEX_LOADED: &str = "\
Ceiling: planned nodes load your own configuration, as --accept-loaded-user-config asks: config.toml, rules, project documents
and MCP servers. It widens neither the sandbox nor what is asked. No API key comes back.
";

/// What a mode means for a node that nobody watches; nothing of the one that is usual.
fn meaning(mode: PermissionMode) -> Option<&'static str> {
    match mode {
        PermissionMode::Auto => None,
        PermissionMode::AcceptEdits => Some("acceptEdits: edits below this directory are made unasked"),
        PermissionMode::BypassPermissions => Some("bypassPermissions: nothing is asked or refused"),
        PermissionMode::DontAsk => Some("dontAsk: what no rule of the node allows is refused"),
        PermissionMode::Manual => Some("manual: what would be asked is refused, since nobody is there"),
        PermissionMode::Plan => Some("plan: the node reads, and changes nothing"),
    }
}

/// A plan, and what is told with it.
#[derive(Debug)]
pub struct Screen<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Where it was saved.
    pub saved: Option<&'a Path>,
    /// What answers its prompts.
    pub runtime: RuntimeKind,
    /// What that runtime says of every run.
    pub disclosures: &'a [String],
    /// What is said of the person's agents and skills, a line each.
    pub staging: &'a [String],
    /// What is added to the word on isolation, since something was staged.
    pub staged: Option<&'a str>,
    /// The person's evidence command.
    pub verify: Option<&'a VerifyCommand>,
    /// How the question of build evidence was answered.
    pub evidence: &'a Evidence,
    /// What is said of checkouts elsewhere.
    pub unisolated: Option<&'a str>,
    /// The bounds that the run will have.
    pub bounds: Bounds,
}

impl Screen<'_> {
    /// The screen, with an empty line at its end.
    pub fn print(&self) -> String {
        let mut out = self.header();
        out.extend(self.plan.graph.nodes().iter().map(|node| self.node(node)));
        out.push_str(&self.at_worst());
        out.push('\n');
        out.push_str(&self.modes());
        out.push_str(&self.ceiling());
        out.extend(self.verify.map(|verify| attached(&self.plan.attached, verify)));
        out.push_str(&self.no_evidence());
        out.extend(self.plan.replanned.as_ref().map(replanned));
        if let Some(warning) = self.unisolated {
            write!(out, "\n{warning}").ok();
        }
        out.push('\n');
        out
    }

    fn header(&self) -> String {
        let Plan { graph, paid, .. } = self.plan;
        let (name, count) = (sanitize::one_line(&graph.name), graph.nodes().len());
        let nodes = if count == 1 { "node" } else { "nodes" };
        let mut out = format!("Plan \"{name}\": {count} {nodes}, planned for {}\n", paid.cost);
        out.extend(tokens("planning tokens", paid.usage));
        if let Some(path) = self.saved {
            writeln!(out, "{}", sanitize::path(path)).ok();
        }
        out
    }

    fn node(&self, node: &Node) -> String {
        let parents: Vec<&str> =
            node.parents.iter().map(|ix| self.plan.graph.node(*ix).id.as_str()).collect();
        let after =
            if parents.is_empty() { String::new() } else { format!(" (after {})", parents.join(", ")) };
        let Work::Model(model) = &node.work else { return format!("  - {}{after}\n", node.id) };
        let limits = match self.runtime {
            RuntimeKind::Codex => {
                let mode = model.permission_mode.unwrap_or(PermissionMode::Auto);
                format!(" [sandbox: {}]", codex::sandbox(mode))
            }
            RuntimeKind::Claude | RuntimeKind::Rehearsal => {
                let tools = model.allowed_tools.as_deref().unwrap_or_default().join(", ");
                let mode = model.permission_mode.map(|mode| format!(" [mode: {}]", mode.as_str()));
                format!(" [tools: {tools}]{}", mode.unwrap_or_default())
            }
        };
        let agent = model.agent.as_ref().map(|agent| format!(" [agent: {agent}]")).unwrap_or_default();
        let line = format!("{}{after}{limits}{agent}", node.id);
        format!("  - {}\n{}", sanitize::one_line(&line), self.terms(node, model))
    }

    /// What the plan says of how long, how dear and how often, where it says anything.
    fn terms(&self, node: &Node, model: &Model) -> String {
        let again = |max: u32, what: &str| format!("{max} more {what}{}", if max == 1 { "" } else { "s" });
        let causes = |retry: &Retry| {
            let causes: Vec<&str> = retry.on.iter().map(|cause| cause.as_str()).collect();
            format!("{} after {}", again(retry.max, "attempt"), causes.join(", "))
        };
        let rerun = |arc: &Feedback| {
            let target = &self.plan.graph.node(arc.rerun).id;
            format!("{} from {target} on when its check fails", again(arc.max, "round"))
        };
        let terms = [
            node.timeout.map(|timeout| format!("at most {}", duration::exact(timeout))),
            model.budget.map(|budget| format!("budget {budget}")),
            (node.retry.max > 0).then(|| causes(&node.retry)),
            node.feedback.as_ref().map(rerun),
        ];
        let terms: Vec<String> = terms.into_iter().flatten().collect();
        if terms.is_empty() { String::new() } else { format!("      {}\n", terms.join("; ")) }
    }

    /// Everything together, every attempt and every round of every loop used up.
    fn at_worst(&self) -> String {
        let graph = &self.plan.graph;
        let estimate = Estimate { bounds: self.bounds, ..Estimate::of(graph) };
        let (count, wall) = (estimate.executions(), duration::exact(estimate.wall()));
        let executions = if count == 1 { "execution" } else { "executions" };
        let dollars = match estimate.spend().filter(|_| self.runtime != RuntimeKind::Codex) {
            Some(spend) => format!("{spend} by budgets"),
            None => "with no bound on dollars".to_owned(),
        };
        let goes_on = if graph.on_fail == OnFail::Continue {
            "; after a failure it goes on with what does not depend on it"
        } else {
            ""
        };
        format!("At worst {count} {executions}, {dollars}, in {wall} by timeouts{goes_on}.\n")
    }

    /// What the modes mean that the plan asks for, of those that the word on the ceiling leaves out.
    fn modes(&self) -> String {
        if self.runtime == RuntimeKind::Codex {
            return String::new();
        }
        let is_used = |mode: &PermissionMode| {
            let asks = |node: &Node| matches!(&node.work, Work::Model(model) if model.permission_mode == Some(*mode));
            self.plan.graph.nodes().iter().any(asks)
        };
        let used = PermissionMode::ALL.into_iter().filter(is_used);
        used.filter_map(meaning).map(|meaning| format!("Mode {meaning}.\n")).collect()
    }

    fn ceiling(&self) -> String {
        let loaded = self.plan.ceiling.is_loaded();
        let said = match self.runtime {
            RuntimeKind::Codex => self.disclosures,
            RuntimeKind::Claude | RuntimeKind::Rehearsal => self.staging,
        };
        let mut out: String = said.iter().map(|line| sanitize::lines(line).into_owned() + "\n").collect();
        out.push_str(match (self.runtime, loaded) {
            (RuntimeKind::Codex, false) => CODEX_ISOLATED,
            (RuntimeKind::Codex, true) => CODEX_LOADED,
            (_, false) => ISOLATED,
            (_, true) => LOADED,
        });
        out.extend(self.staged.map(|note| format!("{note}\n")));
        out
    }

    fn no_evidence(&self) -> String {
        if self.evidence.answer == Answer::Attached {
            return String::new();
        }
        let files = self.evidence.files();
        let found = match files.as_slice() {
            [] => "nothing that builds was recognised here".to_owned(),
            files => {
                format!("{} found, and nothing of this run builds it", sanitize::one_line(&files.join(", ")))
            }
        };
        let by = self.evidence.answer.declared_by().map(|by| format!(" ({by})")).unwrap_or_default();
        format!("Build evidence: NONE, {found}{by}\n")
    }
}

/// What is told of a planned run when a later leg goes on with it.
#[derive(Debug)]
pub struct Again<'a> {
    /// The nodes that the evidence command of this leg was attached to.
    pub attached: &'a [NodeId],
    /// That command.
    pub verify: Option<&'a VerifyCommand>,
    /// The nodes that ran as an agent, each with its agent.
    pub agents: &'a [(String, String)],
    /// The nodes that could use skills.
    pub skills: &'a [String],
    /// How many skills these were, as far as the run's record says.
    pub corpus: Option<usize>,
    /// What answers its prompts.
    pub runtime: RuntimeKind,
    /// Whether planned nodes load the person's own configuration.
    pub loaded: bool,
}

impl Again<'_> {
    /// The lines, none when nothing is to be said.
    pub fn print(&self) -> String {
        let mut out: String = self.verify.map(|verify| attached(self.attached, verify)).unwrap_or_default();
        out.push_str(&self.less());
        match (self.loaded, self.runtime) {
            (true, RuntimeKind::Codex) => out.extend([codex::SANDBOX, "\n", CODEX_LOADED]),
            (true, _) => out.push_str(LOADED),
            (false, _) => {}
        }
        out
    }
}

impl Again<'_> {
    /// What the leg that planned gave its nodes and this one does not.
    fn less(&self) -> String {
        if self.agents.is_empty() && self.skills.is_empty() {
            return String::new();
        }
        let mut out = "This leg maps no agent and activates no skill: only the leg that planned held what it had staged, and what \
                       lies in the run's directory its nodes may have written.\n"
            .to_owned();
        if !self.agents.is_empty() {
            let agents: BTreeSet<&str> = self.agents.iter().map(|(_, agent)| agent.as_str()).collect();
            let each: Vec<String> =
                self.agents.iter().map(|(node, agent)| format!("{node} as {agent}")).collect();
            let (nodes, agents) = (counted(self.agents.len(), "node"), counted(agents.len(), "agent"));
            out += &indented(&format!("that leg ran {nodes} as {agents} of yours: {}", each.join(", ")));
        }
        if !self.skills.is_empty() {
            let nodes = counted(self.skills.len(), "node");
            let skills = self.corpus.map_or_else(|| "skills".to_owned(), |count| counted(count, "skill"));
            out += &indented(&format!("that leg gave {nodes} {skills} of yours: {}", self.skills.join(", ")));
        }
        out
    }
}

fn indented(text: &str) -> String {
    format!("  {}\n", sanitize::one_line(text))
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Where the evidence command is run.
fn attached(nodes: &[NodeId], verify: &VerifyCommand) -> String {
    let command = shell_word(&sanitize::one_line(&verify.command));
    let timeout = duration::exact(verify.timeout);
    let line = |node: &NodeId| {
        format!("Build evidence: when {node} is done the engine runs {command} (at most {timeout})\n")
    };
    nodes.iter().map(line).collect()
}

/// What an earlier reply had cost and why it was not taken.
fn replanned(first: &Replanned) -> String {
    let mut out = format!("Planned twice: the first reply was refused and cost {}\n", first.paid.cost);
    out.extend(tokens("its tokens", first.paid.usage));
    out.extend(first.refusals.iter().map(|refusal| format!("  ! {}\n", sanitize::one_line(refusal))));
    out
}

fn tokens(what: &str, usage: Usage) -> Option<String> {
    let Usage { input_tokens, cached_input_tokens, output_tokens, reasoning_output_tokens } = usage;
    (!usage.is_zero()).then(|| {
        format!(
            "{what}: input {input_tokens}, cached {cached_input_tokens}, output {output_tokens}, reasoning \
             {reasoning_output_tokens}\n"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use crate::node::policy::Configuration;
    use crate::plan::attach;
    use crate::plan::call::Paid;
    use crate::plan::evidence::{Stated, decide};
    use crate::plan::reply::{Terms, read};
    use crate::text::money::{Cost, Money};

    const REPLY: &str = r#"{"name":"dates","nodes":[
        {"id":"work","prompt":"x","allowed_tools":["Read","Edit","Bash(git *)"]},
        {"id":"check","depends_on":["work"],"prompt":"x","allowed_tools":["Read"]}]}"#;

    fn plan(reply: &str, configuration: Configuration, verify: Option<&VerifyCommand>) -> Plan {
        let terms = Terms { inputs: Default::default(), configuration };
        let mut accepted = read(reply, &terms).expect("a plan");
        let mut attached = Vec::new();
        if let Some(verify) = verify {
            (accepted.graph, attached) =
                attach::attach(&mut accepted.raw, &verify.command, verify.timeout).expect("an end");
        }
        let cost = |usd| Cost::known(Money::from_usd(usd).expect("a price"));
        let paid = |calls, usd| Paid {
            calls,
            cost: cost(usd),
            usage: Usage { input_tokens: 9, ..Usage::default() },
        };
        Plan {
            raw: accepted.raw,
            graph: accepted.graph,
            ceiling: accepted.ceiling,
            attached,
            paid: paid(2, 0.25),
            replanned: Some(Replanned {
                paid: paid(1, 0.1),
                refusals: vec!["node \"work\": cwd: no".into()],
                spec: "{}".into(),
            }),
            said: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn screen(runtime: RuntimeKind, configuration: Configuration, verify: Option<&VerifyCommand>) -> String {
        screen_of(REPLY, runtime, configuration, verify)
    }

    fn screen_of(
        reply: &str,
        runtime: RuntimeKind,
        configuration: Configuration,
        verify: Option<&VerifyCommand>,
    ) -> String {
        let plan = plan(reply, configuration, verify);
        let stated = if verify.is_some() { Stated::Command } else { Stated::Accepted };
        let evidence = decide(Vec::new(), stated).expect("an answer");
        Screen {
            plan: &plan,
            saved: Some(Path::new("/home/me/.oh-my-graph/runs/1-a/graph.json")),
            runtime,
            disclosures: &["codex: it is a sandbox".to_owned()],
            staging: &["Agents: none".to_owned()],
            staged: None,
            verify,
            evidence: &evidence,
            unisolated: Some("WARNING: elsewhere\n"),
            bounds: plan.graph.bounds,
        }
        .print()
    }

    #[test]
    fn a_node_is_told_with_its_mode_and_with_all_that_the_plan_asks_for_it() {
        let reply = r#"{"name":"dates","on_fail":"continue","nodes":[
            {"id":"work","prompt":"{{ feedback.check }}","allowed_tools":["Edit"],"permission_mode":"acceptEdits","timeout":"45m","budget_usd":1.5,
             "retry":{"max":2,"on":["timeout","nonzero_exit"]}},
            {"id":"look","prompt":"x","allowed_tools":["Read"],"permission_mode":"plan"},
            {"id":"check","depends_on":["work"],"prompt":"x","allowed_tools":["Read"],"success_check":{"result_matches":"^PASS"},
             "feedback":{"rerun":"work","max":1}}]}"#;
        let text = screen_of(reply, RuntimeKind::Claude, Configuration::Isolated, None);
        let from = text.find("  - work").expect("the nodes");
        let to = text.find("Agents: none").expect("what follows");
        insta::assert_snapshot!(&text[from..to]);
    }

    #[test]
    fn bounds_hold_the_worst_case_back() {
        let reply = r#"{"max_executions":3,"nodes":[{"id":"a","prompt":"x","allowed_tools":["Read"],"budget_usd":1,
            "retry":{"max":3,"on":["timeout"]}}]}"#;
        let text = screen_of(reply, RuntimeKind::Claude, Configuration::Isolated, None);
        assert!(text.contains("\nAt worst 3 executions, $4.0000 by budgets, in "), "{text}");
        let text = screen_of(reply, RuntimeKind::Codex, Configuration::Isolated, None);
        assert!(text.contains("\nAt worst 3 executions, with no bound on dollars, in "), "{text}");
    }

    #[test]
    fn an_isolated_plan_with_an_evidence_command() {
        let verify = VerifyCommand { command: "make test".into(), timeout: Duration::from_secs(600) };
        insta::assert_snapshot!(screen(RuntimeKind::Claude, Configuration::Isolated, Some(&verify)));
    }

    #[test]
    fn an_opted_in_plan_without_one_on_codex() {
        insta::assert_snapshot!(screen(RuntimeKind::Codex, Configuration::Loaded, None));
    }

    #[test]
    fn s63_a_later_leg_says_how_much_less_it_gives() {
        let again = |agents: &[(&str, &str)], skills: &[&str], corpus| {
            let agents: Vec<_> =
                agents.iter().map(|(node, agent)| ((*node).to_owned(), (*agent).to_owned())).collect();
            let skills: Vec<String> = skills.iter().map(|node| (*node).to_owned()).collect();
            let again = Again {
                attached: &[],
                verify: None,
                agents: &agents,
                skills: &skills,
                corpus,
                runtime: RuntimeKind::Claude,
                loaded: false,
            };
            again.print()
        };
        assert_eq!(again(&[], &[], Some(3)), "");
        insta::assert_snapshot!(again(
            &[("a", "writer"), ("b", "writer"), ("c", "critic")],
            &["d"],
            Some(12)
        ));
        let text = again(&[], &["d", "e"], None);
        assert!(text.ends_with("\n  that leg gave 2 nodes skills of yours: d, e\n"), "{text}");
    }

    #[test]
    fn exactly_one_word_on_the_configuration_is_said() {
        for runtime in [RuntimeKind::Claude, RuntimeKind::Codex] {
            for configuration in [Configuration::Isolated, Configuration::Loaded] {
                let text = screen(runtime, configuration, None);
                assert_eq!(text.matches("Ceiling: ").count(), 1, "{text}");
                assert_eq!(
                    text.contains("--accept-loaded-user-config"),
                    configuration == Configuration::Loaded
                );
            }
        }
    }
}
