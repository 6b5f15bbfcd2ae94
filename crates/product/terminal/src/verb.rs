//! The verbs of a program. A verb is a type with its arguments and what runs it, and one [`Row`] of the program's
//! table. The parser, the help in groups, manual pages and completions come from the rows.

use std::process::ExitCode;

use clap::{ArgMatches, Command};

/// The arguments of a verb, and what it does.
pub trait Verb<E>: clap::Args {
    /// Runs it; `quiet`: without notes and progress.
    ///
    /// # Errors
    /// As the verb says.
    fn run(self, quiet: bool) -> Result<ExitCode, E>;
}

/// A verb in the table of a program.
pub struct Row<E> {
    /// Its name.
    pub name: &'static str,
    /// Heading in the help; `None`: a verb that only the program itself starts.
    pub group: Option<&'static str>,
    arguments: fn(Command) -> Command,
    run: fn(&ArgMatches, bool) -> Result<ExitCode, E>,
}

impl<E> Row<E> {
    /// The row of a verb with these arguments.
    pub const fn of<V: Verb<E>>(name: &'static str, group: Option<&'static str>) -> Row<E> {
        Row { name, group, arguments: V::augment_args, run: run::<E, V> }
    }

    fn command(&self) -> Command {
        (self.arguments)(Command::new(self.name)).hide(self.group.is_none())
    }
}

fn run<E, V: Verb<E>>(matches: &ArgMatches, quiet: bool) -> Result<ExitCode, E> {
    V::from_arg_matches(matches).unwrap_or_else(|error| error.exit()).run(quiet)
}

/// A program, or a verb that has verbs, with these.
pub fn subcommands<E>(root: Command, rows: &[Row<E>]) -> Command {
    root.subcommands(rows.iter().map(Row::command))
}

/// The program with its verbs, in groups.
pub fn program<E>(root: Command, rows: &[Row<E>]) -> Command {
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\nOptions:\n{{options}}\n\n{}{{after-help}}",
        groups(rows)
    );
    subcommands(root, rows).help_template(template)
}

/// Runs the verb that was given; `None`: none was.
pub fn run_given<E>(matches: &ArgMatches, rows: &[Row<E>], quiet: bool) -> Option<Result<ExitCode, E>> {
    let (name, arguments) = matches.subcommand()?;
    let row = rows.iter().find(|row| row.name == name)?;
    Some((row.run)(arguments, quiet))
}

/// Columns of a verb's name in the help.
const NAME: usize = 12;

/// The verbs under their headings, one line each.
fn groups<E>(rows: &[Row<E>]) -> String {
    let shown: Vec<_> = rows.iter().filter(|row| row.group.is_some()).collect();
    let under = |rows: &[&Row<E>]| {
        let line = |row: &&Row<E>| format!("  {:NAME$} {}", row.name, row.command().get_about().unwrap_or_default());
        let lines: Vec<String> = rows.iter().map(line).collect();
        format!("{}:\n{}", rows[0].group.unwrap_or_default(), lines.join("\n"))
    };
    shown.chunk_by(|row, next| row.group == next.group).map(under).collect::<Vec<_>>().join("\n\n")
}
