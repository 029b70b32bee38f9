//! Whether there is colour, how wide a line is, and which colour means what (case B13).
//!
//! Without colour not one escape byte is written: a plain style paints nothing, and the view that redraws itself
//! is off as well. The flag outranks the environment; `NO_COLOR` outranks `CLICOLOR_FORCE`.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::fd::AsFd;

use anstyle::{AnsiColor, Style};

use crate::record::status::Status;

/// `--color`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ColourChoice {
    /// Colour on a terminal that wants it.
    #[default]
    Auto,
    /// Colour everywhere.
    Always,
    /// No colour anywhere.
    Never,
}

/// How one stream wants to be written to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Whether escape sequences may be written.
    pub colour: bool,
    /// Columns of a line; `None` in a pipe, where nothing is cut.
    pub width: Option<usize>,
}

impl Look {
    /// Looks at a stream of this process.
    pub fn of(stream: &(impl IsTerminal + AsFd), choice: ColourChoice) -> Self {
        let terminal = stream.is_terminal();
        let colour = decide(choice, |name| std::env::var_os(name), terminal);
        Look { colour, width: terminal.then(|| columns(stream)).flatten() }
    }

    /// Whether a view that redraws itself may be shown: on a terminal that takes escape sequences.
    pub fn is_live(self) -> bool {
        self.colour && self.width.is_some()
    }

    /// `style`, or the plain one where there is no colour.
    pub fn style(self, style: Style) -> Style {
        if self.colour { style } else { Style::new() }
    }

    /// `text` in `style`, if there is colour.
    pub fn paint(self, style: Style, text: &str) -> String {
        crate::text::table::paint(self.style(style), text).into_owned()
    }
}

/// Good.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Bad.
pub const BAD: Style = AnsiColor::Red.on_default();
/// Worth a look.
pub const WARY: Style = AnsiColor::Yellow.on_default();
/// Under way.
pub const BUSY: Style = AnsiColor::Cyan.on_default();
/// Beside the point.
pub const FAINT: Style = Style::new().dimmed();

/// The colour of a status.
pub fn of_status(status: Status) -> Style {
    match status {
        Status::Planning | Status::Running => BUSY,
        Status::Paused => WARY,
        Status::Pass => GOOD,
        Status::Fail | Status::Abandoned => BAD,
    }
}

/// Whether a stream gets colour; `var` reads the environment.
pub fn decide(choice: ColourChoice, var: impl Fn(&str) -> Option<OsString>, terminal: bool) -> bool {
    let set = |name: &str| var(name).is_some_and(|value| !value.is_empty());
    let is = |name: &str, word: &str| var(name).is_some_and(|value| value == word);
    match choice {
        ColourChoice::Always => true,
        ColourChoice::Never => false,
        ColourChoice::Auto if set("NO_COLOR") => false,
        ColourChoice::Auto if set("CLICOLOR_FORCE") && !is("CLICOLOR_FORCE", "0") => true,
        ColourChoice::Auto => terminal && set("TERM") && !is("TERM", "dumb") && !is("CLICOLOR", "0"),
    }
}

/// Whether the locale can show more than ASCII; `var` reads the environment. One that nobody set says nothing against it.
pub fn is_unicode(var: impl Fn(&str) -> Option<OsString>) -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(var).find(|value| !value.is_empty());
    set.is_none_or(|locale| {
        let locale = locale.to_string_lossy().to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

fn columns(stream: &impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(choice: ColourChoice, vars: &[(&str, &str)], terminal: bool, colour: bool) {
        let var =
            |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
        assert_eq!(decide(choice, var, terminal), colour, "{choice:?} {vars:?} {terminal}");
    }

    #[test]
    fn b13_colour_is_off_where_it_is_not_wanted() {
        let xterm = ("TERM", "xterm");
        check(ColourChoice::Auto, &[xterm], true, true);
        check(ColourChoice::Auto, &[xterm], false, false);
        check(ColourChoice::Auto, &[xterm, ("NO_COLOR", "1")], true, false);
        check(ColourChoice::Auto, &[xterm, ("NO_COLOR", "")], true, true);
        check(ColourChoice::Auto, &[xterm, ("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], true, false);
        check(ColourChoice::Auto, &[("TERM", "dumb")], true, false);
        check(ColourChoice::Auto, &[], true, false);
        check(ColourChoice::Auto, &[xterm, ("CLICOLOR", "0")], true, false);
        check(ColourChoice::Auto, &[("CLICOLOR_FORCE", "1")], false, true);
        check(ColourChoice::Auto, &[xterm, ("CLICOLOR_FORCE", "0")], false, false);
        check(ColourChoice::Never, &[xterm, ("CLICOLOR_FORCE", "1")], true, false);
        check(ColourChoice::Always, &[("NO_COLOR", "1")], false, true);
    }

    #[test]
    fn the_first_locale_that_is_set_decides() {
        for (vars, unicode) in [
            (&[][..], true),
            (&[("LANG", "C")], false),
            (&[("LANG", "en_GB.UTF-8")], true),
            (&[("LC_ALL", "POSIX"), ("LANG", "en_GB.UTF-8")], false),
            (&[("LC_ALL", ""), ("LC_CTYPE", "C.utf8"), ("LANG", "C")], true),
        ] {
            let var = |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
            assert_eq!(is_unicode(var), unicode, "{vars:?}");
        }
    }

    #[test]
    fn b13_without_colour_no_escape_byte_is_painted() {
        assert_eq!(Look::default().paint(BAD, "FAIL"), "FAIL");
        assert!(Look { colour: true, width: None }.paint(BAD, "FAIL").contains('\u{1b}'));
    }
}
