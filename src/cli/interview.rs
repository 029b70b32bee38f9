//! Questions on a terminal, answered by lines; knows no command.

use std::io::{BufRead, Write};

use super::Failure;
use crate::text::sanitize;

/// Somebody who answers.
pub(super) struct Interview<'a> {
    /// Where answers come from.
    pub(super) answers: &'a mut dyn BufRead,
    /// Where questions go.
    pub(super) questions: &'a mut dyn Write,
}

impl Interview<'_> {
    /// Asks until `read` accepts the answer; an empty one stands for `usual`, which is shown.
    ///
    /// # Errors
    /// When the answers end.
    pub(super) fn ask<T>(
        &mut self,
        question: &str,
        usual: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, Failure> {
        loop {
            let shown =
                if usual.is_empty() { String::new() } else { format!(" [{}]", sanitize::one_line(usual)) };
            write!(self.questions, "{question}{shown}: ")?;
            self.questions.flush()?;
            let mut line = String::new();
            let length = self.answers.read_line(&mut line).map_err(|error| {
                Failure::new(format!("cannot read an answer: {error}")).hinted("nothing was written")
            })?;
            if length == 0 {
                writeln!(self.questions)?;
                return Err(
                    Failure::new("the answers ended before the questions").hinted("nothing was written")
                );
            }
            let answer = Some(line.trim()).filter(|line| !line.is_empty()).unwrap_or(usual);
            match read(answer) {
                Ok(value) => return Ok(value),
                Err(wrong) => writeln!(self.questions, "  {}", sanitize::one_line(&wrong))?,
            }
        }
    }

    /// Says something that is no question.
    ///
    /// # Errors
    /// When nobody listens any more.
    pub(super) fn say(&mut self, words: &str) -> Result<(), Failure> {
        Ok(writeln!(self.questions, "{words}")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(answer: &str) -> Result<u8, String> {
        answer.parse().map_err(|_| format!("{answer:?} is no number"))
    }

    fn asked(answers: &str) -> (Result<u8, Failure>, String) {
        let mut questions = Vec::new();
        let mut interview = Interview { answers: &mut answers.as_bytes(), questions: &mut questions };
        let got = interview.ask("How many", "3", number);
        (got, String::from_utf8_lossy(&questions).into_owned())
    }

    #[test]
    fn a_question_is_asked_until_it_is_answered() {
        assert_eq!(asked("\n").0, Ok(3));
        assert_eq!(asked(" 7 \n").0, Ok(7));
        let (got, said) = asked("many\n7\n");
        assert_eq!(got, Ok(7));
        assert_eq!(said, "How many [3]:   \"many\" is no number\nHow many [3]: ");
        let failure = asked("many\n").0.expect_err("the answers ended");
        assert_eq!(failure.hint.as_deref(), Some("nothing was written"));
    }
}
