//! The text of `docs/CLI.md` below its introduction, made from the definition that the program parses with.

use clap::{Command, CommandFactory};

use super::Omg;

/// Columns of the help texts in the page.
const WIDTH: usize = 100;

/// The help of every command, as Markdown.
pub fn reference() -> String {
    let mut page = String::new();
    let mut root = Omg::command().term_width(WIDTH).disable_help_subcommand(true);
    root.build();
    add(&mut page, &mut root);
    page
}

fn add(page: &mut String, command: &mut Command) {
    let name = command.get_bin_name().unwrap_or("omg").to_owned();
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    page.push_str(&["## `", &name, "`\n\n```text\n", lines.join("\n").trim_end(), "\n```\n\n"].concat());
    for sub in command.get_subcommands_mut() {
        add(page, sub);
    }
}
