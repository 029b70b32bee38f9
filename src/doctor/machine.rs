//! The programs, the environment, the processes and the clock of the machine.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;

use super::{Finding, Subject};
use crate::node::runtime::settings::{Effect, effect_of};
use crate::node::worktree::Git;
use crate::process::{checkup, find};
use crate::text::sanitize;

/// The oldest git that has every command of `node::worktree`, `git worktree remove` above all.
const GIT_MIN: (u64, u64) = (2, 17);
/// How long a shell may take to do nothing.
const SHELL_TIMEOUT: Duration = Duration::from_secs(5);
/// No clock that is right shows an earlier time: this program did not exist.
const EARLIEST: i64 = 1_735_689_600;

/// Variables that children are given or spared.
pub(super) fn environment(subject: &Subject) -> Vec<Finding> {
    let set = subject.environment.iter().filter_map(|(name, value)| {
        let name = name.to_str()?;
        Some((name, effect_of(name, &value.to_string_lossy())?))
    });
    let told = set.map(|(name, effect)| match effect {
        Effect::Bills => Finding::ok("environment", format!("{name} is set; no child of a run is given it")),
        Effect::Redirects => Finding::warning(
            "environment",
            format!(
                "{name} is set, and children are given it: work goes to another server than the CLI's own"
            ),
            format!("unset {name} unless that is what you want"),
        ),
    });
    told.collect()
}

/// git and the shell.
pub(super) fn programs(subject: &Subject) -> Vec<Finding> {
    vec![git(subject), shell(subject)]
}

fn git(subject: &Subject) -> Finding {
    let asks = "worktree: nodes need it";
    let Ok(git) = Git::find(subject.launcher.clone()) else {
        return Finding::warning("git", format!("not on PATH; {asks}"), "install git");
    };
    let said = match git.line(Path::new("/"), ["--version"]) {
        Ok(said) => sanitize::one_line(&said).into_owned(),
        Err(error) => {
            return Finding::warning("git", format!("{error}; {asks}"), "see what git --version says");
        }
    };
    let (major, minor) = GIT_MIN;
    match version(&said) {
        Some(version) if version < GIT_MIN => {
            Finding::warning("git", format!("{said} is older than {major}.{minor}; {asks}"), "update git")
        }
        _ => Finding::ok("git", said),
    }
}

/// `git version 2.39.5 (Apple Git-154)` as 2 and 39.
fn version(said: &str) -> Option<(u64, u64)> {
    let number = said.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut parts = number.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

fn shell(subject: &Subject) -> Finding {
    let needs = "commands, checks and setup run in it";
    match find::find("sh") {
        Err(missing) => Finding::problem("shell", format!("{missing}; {needs}"), "put sh on PATH"),
        Ok(path) => match subject.launcher.question(&path, &["-c", ":"], SHELL_TIMEOUT) {
            Ok(_) => Finding::ok("shell", path.display().to_string()),
            Err(why) => Finding::problem(
                "shell",
                format!("{} -c : does not succeed ({why}); {needs}", path.display()),
                "put an sh that works first on PATH",
            ),
        },
    }
}

/// Whether processes end as they should.
pub(super) fn processes(subject: &Subject) -> Vec<Finding> {
    let sweep = match checkup::leftovers_end(&subject.launcher) {
        Ok(()) => Finding::ok("leftovers", "what a node leaves running is ended with it"),
        Err(why) => Finding::warning("leftovers", why, HIDDEN),
    };
    let guard = match checkup::guard_ends() {
        Ok(()) => Finding::ok("guard", "what a killed omg leaves running is ended"),
        Err(why) => Finding::warning("guard", why, HIDDEN),
    };
    vec![sweep, guard]
}

/// Where processes cannot be seen they cannot be ended.
const HIDDEN: &str =
    "see that /proc is mounted and shows your own processes; until then look with ps for what a run left";

/// The clock, when it cannot be right.
pub(super) fn clock(now: Timestamp) -> Option<Finding> {
    (now.as_second() < EARLIEST).then(|| {
        Finding::warning(
            "clock",
            format!("it says {now}: runs are named and sorted by it, and no CLI can log in"),
            "set the clock",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn a_version_of_git_is_read_from_what_it_says() {
        for (said, wanted) in [
            ("git version 2.39.5", Some((2, 39))),
            ("git version 2.39.5 (Apple Git-154)", Some((2, 39))),
            ("git version 2.9.rc1", Some((2, 9))),
            ("git", None),
            ("git version x", None),
        ] {
            assert_eq!(version(said), wanted, "{said}");
        }
    }

    #[test]
    fn a_clock_of_another_age_is_told() {
        assert_eq!(clock(Timestamp::UNIX_EPOCH).map(|it| it.level), Some(Level::Warning));
        assert_eq!(clock(Timestamp::from_second(EARLIEST).unwrap_or_default()), None);
    }
}
