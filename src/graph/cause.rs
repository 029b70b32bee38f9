//! Why a node failed, as a closed set.

use serde::{Deserialize, Serialize};

/// The cause of a FAIL. The first seven may stand in `retry.on`; the others are additive (DECISIONS 12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The exit code was not zero and the check asked for zero.
    NonzeroExit,
    /// The child could not be started or its run broke down.
    RunError,
    /// The node's own time ran out.
    Timeout,
    /// The reply could not be read, or was empty.
    OutputError,
    /// The node cost more than its `budget_usd`.
    BudgetExceeded,
    /// The check's command said no, or could not be completed.
    VerifyFailed,
    /// The reply did not match `result_matches`.
    ResultMismatch,
    /// A halt elsewhere ended the node.
    Cancelled,
    /// A signal to the engine ended the node.
    Interrupted,
    /// Preparing the node failed before anything was paid.
    Setup,
    /// A person rejected the gate.
    Rejected,
}

impl Cause {
    /// The causes that `retry.on` accepts, in the order in which messages list them.
    pub const RETRYABLE: [Cause; 7] = [
        Cause::NonzeroExit,
        Cause::RunError,
        Cause::Timeout,
        Cause::OutputError,
        Cause::BudgetExceeded,
        Cause::VerifyFailed,
        Cause::ResultMismatch,
    ];

    /// The word in graphs, events and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Cause::NonzeroExit => "nonzero_exit",
            Cause::RunError => "run_error",
            Cause::Timeout => "timeout",
            Cause::OutputError => "output_error",
            Cause::BudgetExceeded => "budget_exceeded",
            Cause::VerifyFailed => "verify_failed",
            Cause::ResultMismatch => "result_mismatch",
            Cause::Cancelled => "cancelled",
            Cause::Interrupted => "interrupted",
            Cause::Setup => "setup",
            Cause::Rejected => "rejected",
        }
    }

    /// Reads a word of `retry.on`.
    pub fn retryable_from(word: &str) -> Option<Self> {
        Self::RETRYABLE.into_iter().find(|cause| cause.as_str() == word)
    }
}
