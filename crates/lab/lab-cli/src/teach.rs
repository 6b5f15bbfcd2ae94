//! `coldframe-lab teach`: small lessons, reference by reference.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

use coldframe_figures::teach::{find, play, words, Lesson, LessonRuns, Played, ALL};
use schemars::JsonSchema;
use serde::Serialize;

use coldframe_terminal::verb::Verb;

use crate::failure::Failure;
use crate::output;

/// Step through a small lesson: a policy, or a part of one of the papers.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe-lab teach
  coldframe-lab teach belady
  coldframe-lab teach pa-clock --all
  coldframe-lab teach dual-buffering --format json

Every step comes from the engine and its journal. In a terminal, Enter shows the next step, and q and Enter end the \
lesson. If the output is not a terminal, the first and last steps are printed, with --all or as JSON all of them. \
Without a lesson, the list of lessons is printed.")]
pub struct Args {
    /// The lesson.
    lesson: Option<String>,
    /// Print all steps at once, with all that they do.
    #[arg(long)]
    all: bool,
    /// How to print it.
    #[arg(long, value_parser = ["text", "json"], default_value = "text")]
    format: String,
}

impl Verb<Failure> for Args {
    fn run(self, _: bool) -> Result<ExitCode, Failure> {
        let Some(name) = &self.lesson else {
            let list = || ALL.iter().map(|lesson| format!("{:<16} {}\n", lesson.name, lesson.title)).collect();
            output::result(&self.format, &listed(), list)?;
            return Ok(ExitCode::SUCCESS);
        };
        let lesson = find(name)?;
        let played = play(lesson)?;
        let stepping = !self.all && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        if stepping && self.format != "json" {
            step_by_step(lesson, &played)?;
        } else {
            output::result(&self.format, &LessonRuns::new(lesson, &played), || {
                words::whole(lesson, &played, self.all)
            })?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A lesson of the list.
#[derive(Serialize, JsonSchema)]
pub struct Listed {
    lesson: &'static str,
    title: &'static str,
}

fn listed() -> Vec<Listed> {
    ALL.iter().map(|lesson| Listed { lesson: lesson.name, title: lesson.title }).collect()
}

fn step_by_step(lesson: &Lesson, all: &[Played]) -> Result<(), Failure> {
    output::text(&words::opening(lesson))?;
    for played in all {
        output::text(&words::setup(played))?;
        for (i, step) in played.steps.iter().enumerate() {
            output::text(&words::step(i + 1, step))?;
            if !wanted() {
                return Ok(());
            }
        }
        if lesson.timeline {
            output::text(&words::timeline(played))?;
        }
    }
    Ok(output::text(&words::closing(lesson, all))?)
}

/// Whether the reader wants the next step. The end of the input means no.
fn wanted() -> bool {
    eprint!("     [Enter: next, q: quit] ");
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    matches!(std::io::stdin().lock().read_line(&mut line), Ok(n) if n > 0) && line.trim() != "q"
}
