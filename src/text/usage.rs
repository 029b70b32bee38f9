//! Token counts, as runtimes report them and the feed carries them.

use serde::{Deserialize, Serialize};

/// Tokens of one or more invocations. Absent members are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens read.
    #[serde(skip_serializing_if = "is_zero")]
    pub input_tokens: u64,
    /// Of these, tokens read from a cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_input_tokens: u64,
    /// Tokens written.
    #[serde(skip_serializing_if = "is_zero")]
    pub output_tokens: u64,
    /// Of these, tokens of reasoning.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning_output_tokens: u64,
}

impl Usage {
    /// Whether nothing was counted.
    pub fn is_zero(&self) -> bool {
        *self == Usage::default()
    }

    /// Member by member, `self - other`, not below 0: what one turn added to a running total.
    pub fn saturating_sub(self, other: Usage) -> Usage {
        Usage {
            input_tokens: self.input_tokens.saturating_sub(other.input_tokens),
            cached_input_tokens: self.cached_input_tokens.saturating_sub(other.cached_input_tokens),
            output_tokens: self.output_tokens.saturating_sub(other.output_tokens),
            reasoning_output_tokens: self
                .reasoning_output_tokens
                .saturating_sub(other.reasoning_output_tokens),
        }
    }
}

/// A count that cannot be is kept at the most there is: a wrong reporter stops no run.
impl std::ops::Add for Usage {
    type Output = Usage;
    fn add(self, other: Usage) -> Usage {
        Usage {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cached_input_tokens: self.cached_input_tokens.saturating_add(other.cached_input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            reasoning_output_tokens: self
                .reasoning_output_tokens
                .saturating_add(other.reasoning_output_tokens),
        }
    }
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Usage>>(each: I) -> Usage {
        each.fold(Usage::default(), std::ops::Add::add)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}
