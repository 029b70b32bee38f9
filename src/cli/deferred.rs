//! Flags that are declared once their command was named: `omg version` need not know those of twenty others (PERF P6).

use clap::ArgMatches;
use clap::{Args, Command, Error, FromArgMatches};

/// The arguments `T` of one subcommand.
#[derive(Debug)]
pub(super) struct Deferred<T>(pub(super) T);

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(T::augment_args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(T::augment_args_for_update)
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Deferred)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use crate::cli::Omg;

    #[test]
    fn a_command_is_told_in_the_same_words_before_and_after_it_was_named() {
        let listed = Omg::command();
        let mut named = Omg::command();
        named.build();
        for command in listed.get_subcommands() {
            let told = named.find_subcommand(command.get_name()).and_then(clap::Command::get_about);
            assert_eq!(command.get_about().map(ToString::to_string), told.map(ToString::to_string));
        }
    }
}
