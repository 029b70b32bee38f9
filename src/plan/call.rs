//! Buying a plan: the planner's call, the one corrected reply that a refusal buys, and what both cost (FACTS 8.2).
//!
//! At most two calls. Only what the reply's own content got wrong is worth a second one: nothing precise could be handed
//! back about anything else. A spawn that never came to be is tried again and is no call.

use std::path::PathBuf;
use std::time::Duration;

use crate::graph::node::{PermissionMode, TIMEOUT_DEFAULT};
use crate::graph::raw::RawGraph;
use crate::graph::{Graph, NodeId};
use crate::node::invocation::{End, Invocation, Invoked, Runtime, Session};
use crate::node::judge;
use crate::node::policy::{Ceiling, Policy};
use crate::plan::attach;
use crate::plan::prompt::Brief;
use crate::plan::repair;
use crate::plan::reply::{self, Rejected, Terms};
use crate::plan::verify_flags::VerifyCommand;
use crate::process::{Cancel, Exit};
use crate::text::fence;
use crate::text::money::{Cost, Money};
use crate::text::sanitize;
use crate::text::usage::Usage;

/// How often a child that cannot be started is tried in all, and the pause between (FACTS 8.1).
pub(super) const SPAWNS_MAX: u32 = 3;
const SPAWN_PAUSE: Duration = Duration::from_millis(300);
/// How much of a reply is shown where it is no plan at all.
const SHOWN_BYTES_MAX: usize = 500;

/// Who is asked, and where.
pub struct Asking<'a> {
    /// What answers.
    pub runtime: &'a dyn Runtime,
    /// What ends it.
    pub cancel: &'a Cancel,
    /// The directory that the person is in.
    pub cwd: PathBuf,
}

/// What is to be planned.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// What the planner is told.
    pub brief: Brief,
    /// What its reply is held to.
    pub terms: Terms,
    /// The person's evidence command.
    pub verify: Option<VerifyCommand>,
    /// What the person allows the run to cost: no corrected reply is bought beyond it.
    pub spend: Option<Money>,
}

/// What calls cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paid {
    /// How many there were.
    pub calls: u32,
    /// Their price.
    pub cost: Cost,
    /// Their tokens.
    pub usage: Usage,
}

impl Paid {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Paid) -> Self {
        Paid {
            calls: self.calls + other.calls,
            cost: self.cost + other.cost,
            usage: self.usage + other.usage,
        }
    }

    /// Counts a call; one that nobody was asked in is none.
    pub(super) fn count(&mut self, invoked: &Invoked) {
        if !never_began(invoked) {
            *self = self.and(Paid { calls: 1, cost: invoked.charge, usage: invoked.usage });
        }
    }
}

/// What one call asked and what came back, word for word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// What was asked.
    pub prompt: String,
    /// What was answered, possibly nothing.
    pub reply: String,
    /// The tail of standard error.
    pub stderr: String,
}

impl Exchange {
    pub(super) fn of(prompt: &str, invoked: &Invoked) -> Self {
        Exchange { prompt: prompt.to_owned(), reply: invoked.reply.clone(), stderr: invoked.stderr.clone() }
    }
}

/// Why a call has no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// Why, one line.
    pub why: String,
    /// Whether the person ended it.
    pub is_cancelled: bool,
}

impl From<String> for Unanswered {
    fn from(why: String) -> Self {
        Unanswered { why, is_cancelled: false }
    }
}

/// A first reply that was refused and bought a second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replanned {
    /// What the first had cost.
    pub paid: Paid,
    /// What was wrong with it.
    pub refusals: Vec<String>,
    /// The object that it held.
    pub spec: String,
}

/// A plan, bought and held to its terms.
#[derive(Debug)]
pub struct Plan {
    /// The graph, normalised, as it runs.
    pub raw: RawGraph,
    /// The graph.
    pub graph: Graph,
    /// What each node may do.
    pub ceiling: Ceiling,
    /// The nodes that the person's evidence command was attached to.
    pub attached: Vec<NodeId>,
    /// What all calls cost.
    pub paid: Paid,
    /// The reply that was refused before.
    pub replanned: Option<Replanned>,
    /// Every call, in order.
    pub said: Vec<Exchange>,
    /// What a person should hear of the calls.
    pub warnings: Vec<String>,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoPlan {
    /// Why, one line or several refusals, one a line.
    pub why: String,
    /// Whether the person ended it.
    pub is_cancelled: bool,
    /// Whether a usage limit is spent.
    pub is_limited: bool,
    /// What the last reply that held anything held between its braces, if one did.
    pub spec: Option<String>,
    /// What all calls cost.
    pub paid: Paid,
    /// The reply that was refused before the last.
    pub replanned: Option<Replanned>,
    /// Every call, in order.
    pub said: Vec<Exchange>,
    /// What a person should hear of the calls.
    pub warnings: Vec<String>,
}

impl NoPlan {
    /// A plan that came when the person had ended it.
    pub fn cancelled(plan: &Plan) -> Self {
        NoPlan {
            why: "the planner was ended".to_owned(),
            is_cancelled: true,
            is_limited: false,
            spec: None,
            paid: plan.paid,
            replanned: plan.replanned.clone(),
            said: plan.said.clone(),
            warnings: plan.warnings.clone(),
        }
    }
}

/// Buys a plan. A first reply that was refused is told before another is bought, which may take long.
///
/// # Errors
/// Why there is none; what was paid is told all the same.
pub fn plan(
    asking: &Asking<'_>,
    wanted: &Wanted,
    first_refused: &mut dyn FnMut(&Replanned),
) -> Result<Plan, Box<NoPlan>> {
    let mut purchase = Purchase {
        asking,
        wanted,
        paid: Paid::default(),
        warnings: Vec::new(),
        replanned: None,
        said: Vec::new(),
    };
    let base = wanted.brief.prompt().map_err(|error| purchase.none(&no_fence(error), None))?;
    let first = purchase.ask(&base)?;
    let accepted = match reply::read(&first, &wanted.terms) {
        Ok(accepted) => accepted,
        Err(Rejected::Refused { refusals, spec }) if !purchase.is_spent() => {
            let again = repair::prompt(&base, &refusals)
                .map_err(|error| purchase.none(&no_fence(error), Some(spec.clone())))?;
            let replanned = Replanned { paid: purchase.paid, refusals, spec };
            first_refused(&replanned);
            purchase.replanned = Some(replanned);
            let second = purchase.ask(&again)?;
            reply::read(&second, &wanted.terms).map_err(|rejected| purchase.refused(&second, &rejected))?
        }
        Err(rejected) => return Err(purchase.refused(&first, &rejected)),
    };
    purchase.settle(accepted)
}

struct Purchase<'a> {
    asking: &'a Asking<'a>,
    wanted: &'a Wanted,
    paid: Paid,
    warnings: Vec<String>,
    replanned: Option<Replanned>,
    said: Vec<Exchange>,
}

impl Purchase<'_> {
    /// One call: its reply, or why there is none.
    fn ask(&mut self, prompt: &str) -> Result<String, Box<NoPlan>> {
        let mut invoked = spawn(self.asking, "planner", Policy::planner(), prompt, SPAWNS_MAX);
        self.warnings.append(&mut invoked.warnings);
        self.paid.count(&invoked);
        self.said.push(Exchange::of(prompt, &invoked));
        match replied("the planner", &invoked) {
            Ok(()) => Ok(invoked.reply),
            Err(Unanswered { why, is_cancelled }) => {
                let is_limited = matches!(invoked.end, End::Limited { .. });
                Err(Box::new(NoPlan { is_cancelled, is_limited, ..*self.none(&why, None) }))
            }
        }
    }

    /// What trusted code does to a plan that was accepted: tools first, which the reply's own words decide, the evidence
    /// command last, which is the person's.
    fn settle(self, accepted: reply::Accepted) -> Result<Plan, Box<NoPlan>> {
        let reply::Accepted { mut raw, mut graph, ceiling } = accepted;
        let mut attached = Vec::new();
        if let Some(verify) = &self.wanted.verify {
            let spec = serde_json::to_string_pretty(&raw).ok();
            (graph, attached) = attach::attach(&mut raw, &verify.command, verify.timeout)
                .map_err(|error| self.none(&error.to_string(), spec))?;
        }
        let Purchase { paid, warnings, replanned, said, .. } = self;
        Ok(Plan { raw, graph, ceiling, attached, paid, replanned, said, warnings })
    }

    fn refused(&self, reply: &str, rejected: &Rejected) -> Box<NoPlan> {
        let why = match rejected {
            Rejected::NoObject if reply.trim().is_empty() => "the planner's reply is empty".to_owned(),
            Rejected::NoObject => format!("the planner's reply holds no JSON object: {}", shown(reply)),
            Rejected::Unreadable { why, .. } => format!("the planner's reply is no graph: {why}"),
            Rejected::Refused { refusals, .. } => format!("the plan was refused: {}", refusals.join("; ")),
        };
        let bought = match (&self.replanned, rejected) {
            (Some(first), _) => format!(
                "; two replies were bought, the first for {} and this one for {}",
                first.paid.cost,
                self.paid.since(&first.paid)
            ),
            (None, Rejected::Refused { .. }) => {
                format!("; it cost {}, and max_usd leaves no room for a corrected reply", self.paid.cost)
            }
            (None, _) => String::new(),
        };
        self.none(&(why + &bought), rejected.spec().map(str::to_owned))
    }

    /// Whether the person's bound is reached, as far as prices are known.
    fn is_spent(&self) -> bool {
        self.wanted.spend.is_some_and(|bound| self.paid.cost.known >= bound)
    }

    /// No plan. What there is to keep is `spec`, or else what was refused before.
    fn none(&self, why: &str, spec: Option<String>) -> Box<NoPlan> {
        let before = self.replanned.as_ref().filter(|_| spec.is_none());
        let why = match before {
            None => why.to_owned(),
            Some(first) => {
                format!(
                    "{why}; the first reply, for {}, was refused: {}",
                    first.paid.cost,
                    first.refusals.join("; ")
                )
            }
        };
        let spec = spec.or_else(|| before.map(|first| first.spec.clone()));
        Box::new(NoPlan {
            why,
            is_cancelled: false,
            is_limited: false,
            spec,
            paid: self.paid,
            replanned: self.replanned.clone(),
            said: self.said.clone(),
            warnings: self.warnings.clone(),
        })
    }
}

impl Paid {
    /// What was paid after `before`.
    fn since(&self, before: &Paid) -> Cost {
        Cost {
            known: self.cost.known.saturating_sub(before.cost.known),
            unknown: self.cost.unknown.saturating_sub(before.cost.unknown),
        }
    }
}

/// Whether `who` replied.
///
/// # Errors
/// Why not.
pub(super) fn replied(who: &str, invoked: &Invoked) -> Result<(), Unanswered> {
    match &invoked.end {
        End::Replied { exit: Exit::Code(0), .. } => Ok(()),
        End::Replied { exit, note } => {
            let said = if note.is_empty() { shown(&invoked.reply) } else { note.clone() };
            Err(format!("{who} ended with {exit}: {said}").into())
        }
        end => {
            let fault = judge::no_answer(end, TIMEOUT_DEFAULT);
            let why = fault.map_or_else(String::new, |fault| fault.detail);
            Err(Unanswered {
                why: format!("{who} gave no reply: {why}"),
                is_cancelled: *end == End::Cancelled,
            })
        }
    }
}

/// One invocation that is no node's. A child that cannot be started is tried up to `spawns_max` times, since nothing was paid for it.
///
/// No program can be given a NUL. What a node left or a model wrote may hold one, so it is replaced here: that is material, and
/// a call that could not be made for it would end what was paid for.
pub(super) fn spawn(
    asking: &Asking<'_>,
    name: &str,
    policy: Policy,
    prompt: &str,
    spawns_max: u32,
) -> Invoked {
    let mut invocation = Invocation {
        node: NodeId::parse(name).expect("the names of these calls are ids"),
        attempt: 0,
        prompt: prompt.replace('\0', "\u{FFFD}"),
        cwd: asking.cwd.clone(),
        session: Session::Fresh(asking.runtime.fresh_session()),
        permission_mode: PermissionMode::Plan,
        policy,
        budget: None,
        agent: None,
        model: None,
        effort: None,
        timeout: TIMEOUT_DEFAULT,
        leave_running: false,
    };
    loop {
        let invoked = asking.runtime.invoke(&invocation, asking.cancel, &mut |_| {});
        invocation.attempt += 1;
        let again = never_began(&invoked) && invocation.attempt < spawns_max;
        if !again || asking.cancel.wait(SPAWN_PAUSE) {
            return invoked;
        }
    }
}

/// Whether no child came to be, so that nobody was asked and nothing was paid.
fn never_began(invoked: &Invoked) -> bool {
    matches!(invoked.end, End::Broken(_)) && invoked.charge.is_zero()
}

fn no_fence(error: getrandom::Error) -> String {
    format!("the planner cannot be asked: the system gives no randomness: {error}")
}

/// As much of a reply as a line holds.
pub(super) fn shown(text: &str) -> String {
    sanitize::one_line(&fence::truncate(text, SHOWN_BYTES_MAX)).into_owned()
}

#[cfg(test)]
pub(in crate::plan) mod tests;
