//! `coldframe-lab teach`: small lessons, reference by reference.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

use coldframe_figures::teach::{find, json, play, words, Lesson, Played, ALL};
use serde_json::Value;

use crate::failure::Failure;
use crate::output;

/// Step through a small lesson: Belady's anomaly, second chance, the parallel handler, PA-Clock, dual buffering.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe-lab teach
  coldframe-lab teach belady
  coldframe-lab teach pa-clock --all
  coldframe-lab teach dual-buffering --format json

Every step comes from the engine and its journal. In a terminal, Enter shows the next step, and q and Enter end the \
lesson. If the output is not a terminal, all steps are printed. Without a lesson, the list of lessons is printed.")]
pub struct Args {
    /// The lesson.
    lesson: Option<String>,
    /// Print all steps at once.
    #[arg(long)]
    all: bool,
    /// How to print it.
    #[arg(long, value_parser = ["text", "json"], default_value = "text")]
    format: String,
}

pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let Some(name) = &args.lesson else {
        output::write(None, &list(args.format == "json"))?;
        return Ok(ExitCode::SUCCESS);
    };
    let lesson = find(name)?;
    let played = play(lesson)?;
    let stepping = !args.all && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    match (args.format.as_str(), stepping) {
        ("json", _) => output::write(None, &output::json(&json(lesson, &played)))?,
        (_, false) => output::write(None, &words::whole(lesson, &played))?,
        (_, true) => step_by_step(lesson, &played)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(as_json: bool) -> String {
    match as_json {
        true => {
            let one = |lesson: &Lesson| serde_json::json!({ "lesson": lesson.name, "title": lesson.title });
            output::json(&Value::Array(ALL.iter().map(one).collect()))
        }
        false => ALL.iter().map(|lesson| format!("{:<16} {}\n", lesson.name, lesson.title)).collect(),
    }
}

fn step_by_step(lesson: &Lesson, all: &[Played]) -> Result<(), Failure> {
    output::write(None, &words::opening(lesson))?;
    for played in all {
        output::write(None, &words::setup(played))?;
        for (i, step) in played.steps.iter().enumerate() {
            output::write(None, &words::step(i + 1, step))?;
            if !wanted() {
                return Ok(());
            }
        }
        if lesson.timeline {
            output::write(None, &words::timeline(played))?;
        }
    }
    Ok(output::write(None, &words::closing(lesson, all))?)
}

/// Whether the reader wants the next step. The end of the input means no.
fn wanted() -> bool {
    eprint!("     [Enter: next, q: quit] ");
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    matches!(std::io::stdin().lock().read_line(&mut line), Ok(n) if n > 0) && line.trim() != "q"
}
