//! The course of a chat: a line is talk or work, work is planned, shown and confirmed before anything of it runs
//! (FACTS 1.11). Where lines come from and who plans and runs is behind two traits.

use std::path::PathBuf;

use crate::plan::router::Route;
use crate::process::signals::Stop;
use crate::text::sanitize;

/// What is shown where a line is awaited.
pub const PROMPT: &str = "> ";
/// What is asked when a plan has been shown.
pub const CONFIRM: &str = "Run this plan? [y/N] ";

/// What was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A line, without its end.
    Text(String),
    /// There are no more.
    End,
    /// The person interrupted instead, by this signal.
    Interrupted(Stop),
    /// There is no reading them any more; why.
    Broken(String),
}

/// Where lines come from and words go.
pub trait Console {
    /// Shows `prompt` and waits for a line.
    fn read(&mut self, prompt: &str) -> Line;

    /// Shows `text`, one line or several.
    fn say(&mut self, text: &str);
}

/// Why a step of a chat did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// What went wrong, for the person to read; the chat goes on.
    Told(String),
    /// The person interrupted it, by this signal.
    Interrupted(Stop),
}

/// Who does what a chat is about.
pub trait Desk {
    /// A plan that was bought and shown.
    type Plan;

    /// Decides what a line is.
    ///
    /// # Errors
    /// When nobody could be asked.
    fn route(&mut self, message: &str) -> Result<Route, Fault>;

    /// Buys a plan for `goal` and shows it.
    ///
    /// # Errors
    /// When there is none.
    fn plan(&mut self, goal: &str) -> Result<Self::Plan, Fault>;

    /// Runs `plan` to its end.
    ///
    /// # Errors
    /// When it did not pass, pauses included.
    fn run(&mut self, plan: Self::Plan) -> Result<(), Fault>;

    /// Keeps a `plan` that is not run; returns where.
    ///
    /// # Errors
    /// Why it could not be kept.
    fn keep(&mut self, plan: Self::Plan) -> Result<PathBuf, String>;
}

/// How a chat ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// By `exit`, `quit` or the end of the lines.
    Done,
    /// By a signal, which takes effect at once.
    Interrupted(Stop),
    /// Because lines could not be read any more; why.
    Broken(String),
}

/// Leads a chat to its end.
pub fn converse(console: &mut impl Console, desk: &mut impl Desk) -> Left {
    loop {
        let line = match console.read(PROMPT) {
            Line::Text(line) => line,
            Line::End => {
                console.say("");
                return Left::Done;
            }
            Line::Interrupted(signal) => return Left::Interrupted(signal),
            Line::Broken(why) => return Left::Broken(why),
        };
        let message = line.trim();
        if matches!(message, "exit" | "quit") {
            return Left::Done;
        }
        if message.is_empty() {
            continue;
        }
        match turn(message, console, desk) {
            Ok(Some(left)) => return left,
            Ok(None) => {}
            Err(Fault::Told(why)) => console.say(&format!("chat: {}", sanitize::lines(&why))),
            Err(Fault::Interrupted(signal)) => return Left::Interrupted(signal),
        }
    }
}

/// One line's way; `Some` when the chat ends with it.
fn turn(message: &str, console: &mut impl Console, desk: &mut impl Desk) -> Result<Option<Left>, Fault> {
    let goal = match desk.route(message)? {
        Route::Converse(reply) => {
            console.say(&sanitize::lines(&reply));
            return Ok(None);
        }
        Route::Graph(goal) => goal,
    };
    let plan = desk.plan(&goal)?;
    match console.read(CONFIRM) {
        Line::Text(answer) if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") => {
            desk.run(plan)?;
            Ok(None)
        }
        Line::Text(_) => {
            match desk.keep(plan) {
                Ok(path) => console.say(&format!("Not run. The plan is kept: {}", sanitize::path(&path))),
                Err(why) => console.say(&format!("Not run, and not kept: {}", sanitize::one_line(&why))),
            }
            Ok(None)
        }
        Line::End => {
            console.say("");
            Ok(Some(Left::Done))
        }
        Line::Interrupted(signal) => Ok(Some(Left::Interrupted(signal))),
        Line::Broken(why) => Ok(Some(Left::Broken(why))),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::rc::Rc;

    use super::*;

    type Log = Rc<RefCell<Vec<String>>>;

    struct Script(VecDeque<Line>, Log);

    impl Console for Script {
        fn read(&mut self, prompt: &str) -> Line {
            self.1.borrow_mut().push(prompt.trim().to_owned());
            self.0.pop_front().unwrap_or(Line::End)
        }
        fn say(&mut self, text: &str) {
            self.1.borrow_mut().push(format!("said: {text}"));
        }
    }

    /// Talks back, and plans whatever begins with `do`; `do fail`, `do pause` and `stop` fail in their own ways.
    struct Clerk(Log);

    impl Desk for Clerk {
        type Plan = String;

        fn route(&mut self, message: &str) -> Result<Route, Fault> {
            match message {
                "stop" => Err(Fault::Interrupted(Stop::Terminate)),
                "down" => Err(Fault::Told("claude was\x1b not found".into())),
                _ if message.starts_with("do") => Ok(Route::Graph(message.into())),
                _ => Ok(Route::Converse(format!("you said {message}\x1b[2J"))),
            }
        }
        fn plan(&mut self, goal: &str) -> Result<String, Fault> {
            if goal == "do fail" {
                return Err(Fault::Told("the plan was refused".into()));
            }
            Ok(goal.to_owned())
        }
        fn run(&mut self, plan: String) -> Result<(), Fault> {
            self.0.borrow_mut().push(format!("ran: {plan}"));
            if plan == "do pause" { Err(Fault::Told("the run pauses".into())) } else { Ok(()) }
        }
        fn keep(&mut self, plan: String) -> Result<PathBuf, String> {
            self.0.borrow_mut().push(format!("kept: {plan}"));
            if plan == "do full" { Err("the disk is full".into()) } else { Ok("/plans/1/graph.json".into()) }
        }
    }

    fn chat(lines: &[&str]) -> (Left, String) {
        let log = Log::default();
        let lines = lines.iter().map(|line| match *line {
            "^C" => Line::Interrupted(Stop::Interrupt),
            "^?" => Line::Broken("no".to_owned()),
            line => Line::Text(line.to_owned()),
        });
        let mut console = Script(lines.collect(), Rc::clone(&log));
        let left = converse(&mut console, &mut Clerk(Rc::clone(&log)));
        let told = log.borrow().join("; ");
        (left, told)
    }

    fn told(lines: &[&str]) -> String {
        let (left, told) = chat(lines);
        assert_eq!(left, Left::Done, "{told}");
        told
    }

    #[test]
    fn a_chat_ends_at_the_word_or_with_its_lines() {
        assert_eq!(told(&[" exit "]), ">");
        assert_eq!(told(&["", "  ", "quit", "never read"]), ">; >; >");
        assert_eq!(told(&[]), ">; said: ");
        assert_eq!(told(&["exit now"]), ">; said: you said exit now␛[2J; >; said: ");
    }

    #[test]
    fn s67_only_a_yes_runs_a_plan_and_anything_else_keeps_it() {
        for yes in ["y", " YES ", "Yes"] {
            assert_eq!(told(&["do it", yes, "quit"]), ">; Run this plan? [y/N]; ran: do it; >", "{yes}");
        }
        for no in ["", "n", "yep", "y please"] {
            let wanted = ">; Run this plan? [y/N]; kept: do it; said: Not run. The plan is kept: /plans/1/graph.json; >";
            assert_eq!(told(&["do it", no, "quit"]), wanted, "{no}");
        }
        assert!(told(&["do full", "n", "quit"]).contains("said: Not run, and not kept: the disk is full"));
        assert_eq!(told(&["do it"]), ">; Run this plan? [y/N]; said: ");
    }

    #[test]
    fn what_fails_is_told_and_the_chat_goes_on() {
        assert_eq!(told(&["down", "quit"]), ">; said: chat: claude was␛ not found; >");
        assert_eq!(told(&["do fail", "quit"]), ">; said: chat: the plan was refused; >");
        assert!(told(&["do pause", "y", "quit"]).ends_with("ran: do pause; said: chat: the run pauses; >"));
    }

    #[test]
    fn an_interrupt_takes_effect_at_once() {
        let by = |signal| Left::Interrupted(signal);
        assert_eq!(chat(&["^C", "do it"]), (by(Stop::Interrupt), ">".into()));
        assert_eq!(chat(&["do it", "^C"]), (by(Stop::Interrupt), ">; Run this plan? [y/N]".into()));
        assert_eq!(chat(&["stop", "do it"]), (by(Stop::Terminate), ">".into()));
    }

    #[test]
    fn lines_that_cannot_be_read_end_it() {
        assert_eq!(chat(&["^?", "do it"]), (Left::Broken("no".into()), ">".into()));
        assert_eq!(chat(&["do it", "^?"]).0, Left::Broken("no".into()));
    }
}
