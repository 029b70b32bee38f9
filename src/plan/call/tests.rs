//! What is bought when, and what is told of it.

use std::cell::RefCell;
use std::sync::Mutex;

use super::*;
use crate::graph::Graph;
use crate::node::invocation::Preflight;
use crate::node::policy::Configuration;
use crate::text::money::Money;

const GOOD: &str = r#"{"name":"g","nodes":[{"id":"a","prompt":"Do it.","allowed_tools":["Read"]}]}"#;
const WIDE: &str = r#"{"name":"g","nodes":[{"id":"a","prompt":"Do it.","allowed_tools":["Bash(*)"]}]}"#;

/// Gives each answer once, in order, a cent each, and keeps what it was asked.
pub(in crate::plan) struct Script {
    answers: Mutex<Vec<End>>,
    replies: Mutex<Vec<&'static str>>,
    pub(in crate::plan) asked: Mutex<Vec<Invocation>>,
}

impl Script {
    pub(in crate::plan) fn new(answers: Vec<End>, replies: &[&'static str]) -> Self {
        Script {
            answers: Mutex::new(answers),
            replies: Mutex::new(replies.to_vec()),
            asked: Mutex::default(),
        }
    }
}

impl Runtime for Script {
    fn name(&self) -> &'static str {
        "script"
    }
    fn fresh_session(&self) -> Option<String> {
        None
    }
    fn preflight(&self, _: &Graph) -> Preflight {
        Preflight::default()
    }
    fn invoke(&self, invocation: &Invocation, _: &Cancel, _: &mut dyn FnMut(&str)) -> Invoked {
        self.asked.lock().expect("a lock").push(invocation.clone());
        let end = self.answers.lock().expect("a lock").remove(0);
        let mut invoked = Invoked::unpaid(end.clone());
        if !matches!(end, End::Broken(_)) {
            invoked.charge = Cost::known(Money::from_usd(0.01).expect("a price"));
        }
        if matches!(end, End::Replied { .. }) {
            self.replies.lock().expect("a lock").remove(0).clone_into(&mut invoked.reply);
        }
        invoked
    }
}

pub(in crate::plan) fn replied() -> End {
    End::Replied { exit: Exit::Code(0), note: String::new() }
}

/// The outcome of a purchase that gets these answers, and what was asked.
fn bought(
    answers: Vec<End>,
    replies: &[&'static str],
    verify: Option<&str>,
) -> (Result<Plan, Box<NoPlan>>, Vec<Invocation>) {
    let script = Script::new(answers, replies);
    let cancel = RefCell::new(Cancel::new().expect("a pipe"));
    let asking = Asking { runtime: &script, cancel: &cancel.borrow(), cwd: "/srv".into() };
    let wanted = Wanted {
        brief: Brief {
            goal: "a goal".into(),
            inputs: Default::default(),
            is_verified: verify.is_some(),
            remaining: None,
        },
        terms: Terms { inputs: Default::default(), configuration: Configuration::Isolated },
        spend: None,
        verify: verify
            .map(|command| VerifyCommand { command: command.to_owned(), timeout: Duration::from_secs(600) }),
    };
    let outcome = plan(&asking, &wanted, &mut |_| {});
    let asked = script.asked.lock().expect("a lock").clone();
    (outcome, asked)
}

fn cents(paid: &Paid) -> (u32, String) {
    (paid.calls, paid.cost.to_string())
}

#[test]
fn a_good_plan_is_one_call_that_may_only_read() {
    let (plan, asked) = bought(vec![replied()], &[GOOD], None);
    let plan = plan.expect("a plan");
    assert_eq!(cents(&plan.paid), (1, "$0.0100".to_owned()));
    assert!(plan.attached.is_empty() && plan.replanned.is_none());
    assert_eq!(
        (asked[0].policy.clone(), asked[0].permission_mode),
        (Policy::planner(), PermissionMode::Plan)
    );
    assert_eq!(asked[0].cwd, PathBuf::from("/srv"));
}

#[test]
fn a_refused_plan_buys_one_corrected_one_and_both_are_paid() {
    let (plan, asked) = bought(vec![replied(), replied()], &[WIDE, GOOD], None);
    let plan = plan.expect("a plan");
    assert_eq!(cents(&plan.paid), (2, "$0.0200".to_owned()));
    let first = plan.replanned.expect("the first");
    assert_eq!((cents(&first.paid), first.refusals.len()), ((1, "$0.0100".to_owned()), 1));
    assert!(asked[1].prompt.starts_with(&asked[0].prompt) && asked[1].prompt.contains(&first.refusals[0]));
}

#[test]
fn auto_57_a_second_refusal_ends_it_and_keeps_what_was_bought() {
    let (none, asked) = bought(vec![replied(), replied()], &[WIDE, WIDE], None);
    let none = none.expect_err("no plan");
    assert_eq!((asked.len(), cents(&none.paid)), (2, (2, "$0.0200".to_owned())));
    assert!(
        none.why.contains("\"Bash(*)\"")
            && none.why.contains("two replies were bought, the first for $0.0100")
    );
    assert!(none.spec.expect("the reply").contains("Bash(*)"));
}

#[test]
fn what_was_refused_first_is_kept_when_the_second_reply_holds_nothing() {
    let failed = End::Replied { exit: Exit::Code(3), note: "it broke".into() };
    for (answers, replies) in [
        (vec![replied(), replied()], &[WIDE, "I cannot."][..]),
        (vec![replied(), replied()], &[WIDE, ""]),
        (vec![replied(), failed], &[WIDE, ""]),
        (vec![replied(), End::Cancelled], &[WIDE]),
    ] {
        let (none, _) = bought(answers, replies, None);
        assert!(none.expect_err("no plan").spec.expect("the first reply").contains("Bash(*)"), "{replies:?}");
    }
    let (none, _) = bought(vec![replied(), replied()], &[WIDE, "{\"nodes\": 1}"], None);
    assert!(!none.expect_err("no plan").spec.expect("the second reply").contains("Bash(*)"));
}

#[test]
fn auto_58_what_cannot_be_handed_back_precisely_is_not_bought_again() {
    for (reply, has_spec) in [("{\"nodes\": \"x\"}", true), ("{nodes}", true), ("no", false), ("", false)] {
        let (none, asked) = bought(vec![replied()], &[reply], None);
        let none = none.expect_err("no plan");
        assert_eq!((asked.len(), none.spec.is_some()), (1, has_spec), "{reply}");
    }
    let failed = End::Replied { exit: Exit::Code(3), note: "it broke".into() };
    let (none, asked) = bought(vec![failed], &[GOOD], None);
    assert!(asked.len() == 1 && none.expect_err("no plan").why.contains("it broke"));
    let limited = End::Limited { cause: "You've hit your limit".into(), resets: None };
    let (none, _) = bought(vec![limited], &[], None);
    assert!(none.expect_err("no plan").why.contains("You've hit your limit"));
}

#[test]
fn a_spawn_that_never_came_to_be_is_tried_again_and_is_no_call() {
    let broken = || End::Broken("no such file".into());
    let (plan, asked) = bought(vec![broken(), broken(), replied()], &[GOOD], None);
    assert_eq!((asked.len(), cents(&plan.expect("a plan").paid)), (3, (1, "$0.0100".to_owned())));
    let (none, asked) = bought(vec![broken(), broken(), broken()], &[], None);
    let none = none.expect_err("no plan");
    assert_eq!((asked.len(), cents(&none.paid)), (3, (0, "$0.0000".to_owned())));
    let (none, _) = bought(vec![End::Cancelled], &[], None);
    assert!(none.expect_err("no plan").is_cancelled);
}

#[test]
fn the_evidence_command_is_put_where_the_graph_ends_and_is_no_part_of_its_ceiling() {
    let (plan, _) = bought(vec![replied()], &[GOOD], Some("make test"));
    let plan = plan.expect("a plan");
    assert_eq!(plan.attached.len(), 1);
    let verify = plan.graph.nodes()[0].check.verify.as_ref().expect("a command");
    assert_eq!(verify.command, "make test");
    let (none, _) = bought(vec![replied()], &[GOOD], Some("echo {{ feedback.other }}"));
    let none = none.expect_err("a command that does not fit");
    assert!(none.why.contains("evidence command") && none.spec.is_some(), "{none:?}");
}
