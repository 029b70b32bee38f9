//! A gate decided from a page (FACTS 9.3, DECISIONS 25).
//!
//! Everything that can be refused without a leg is refused here; who carries a decision out is handed in, so that it is
//! the very code of `omg resume`, which judges again with the lock in its hand.

use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::guards;
use super::http::{Answer, Request};
use crate::record::lock::Probe;
use crate::record::{RunDir, RunId};
use crate::text::sanitize;
use crate::view::history::{Prober, ReadError, Run, waiting};

/// The longest body, in bytes.
const BODY_BYTES_MAX: usize = 4 * 1024;

/// How long a leg may take from its last line to its end.
const LAST_STEPS: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(5);

/// What a person chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The gate passes.
    Approve,
    /// It fails, and what depends on it does not run.
    Reject,
}

/// Carries decisions out.
pub trait Decide: Send + Sync {
    /// Starts the leg of `run` in which `gate` is decided; returns once it has begun.
    ///
    /// # Errors
    /// Why it did not begin, for a person.
    fn decide(&self, run: &RunId, gate: &str, choice: Choice) -> Result<(), String>;
}

/// `POST api/gate/approve` and `api/gate/reject`.
pub(super) fn post(
    request: &mut Request,
    run: (&RunId, &RunDir),
    choice: Choice,
    token: &str,
    (probe, decide): (Prober, Option<&dyn Decide>),
) -> Answer {
    #[derive(Deserialize)]
    struct Body {
        node: String,
    }
    if let Some(refusal) = guards::refusal_to_change(request, token) {
        return refusal;
    }
    let (id, dir) = run;
    let Some(decide) = decide else {
        return Answer::text(
            409,
            format!("this view decides nothing; omg resume {id} does, or the page of omg serve"),
        );
    };
    let body = request.body(BODY_BYTES_MAX).ok().flatten();
    let Some(Body { node }) = body.and_then(|body| serde_json::from_slice(&body).ok()) else {
        return Answer::text(400, "the body must be {\"node\": \"<gate>\"}, at most 4 KiB");
    };
    if node.is_empty() {
        return Answer::text(400, "no gate is named");
    }
    if let Some(refusal) = refusal(id, dir, &node, probe) {
        return refusal;
    }
    match decide.decide(id, &node, choice) {
        Ok(()) => Answer::text(202, format!("run {id} goes on")),
        Err(why) => Answer::text(409, sanitize::lines(&why)),
    }
}

/// Whether nobody is at work on `run`. A leg that has written its last line gives the lock back a moment later.
fn becomes_free(run: &Run, probe: impl Fn() -> Probe) -> bool {
    let until = Instant::now() + LAST_STEPS;
    while probe() == Probe::Held {
        if run.legs.open || Instant::now() > until {
            return false;
        }
        thread::sleep(LOOK);
    }
    true
}

fn refusal(id: &RunId, dir: &RunDir, node: &str, probe: Prober) -> Option<Answer> {
    let run = match Run::read(id.clone(), dir, probe) {
        Ok(run) => run,
        Err(error @ (ReadError::Stream(_) | ReadError::Snapshot(_))) => {
            return Some(Answer::text(500, error.to_string()));
        }
    };
    if !becomes_free(&run, || probe(dir)) {
        return Some(Answer::text(
            409,
            format!("run {id} is under way; its gates are decided when it has paused"),
        ));
    }
    if run.brief.is_none() {
        return Some(Answer::text(409, format!("run {id} has no snapshot; nothing of it can go on")));
    }
    let gates = waiting(&run);
    if gates.is_empty() {
        return Some(Answer::text(409, format!("run {id} waits at no gate")));
    }
    (!gates.iter().any(|gate| gate == node)).then(|| {
        let gates = sanitize::one_line(&gates.join(", ")).into_owned();
        Answer::text(409, format!("run {id} does not wait there; it waits at {gates}"))
    })
}
