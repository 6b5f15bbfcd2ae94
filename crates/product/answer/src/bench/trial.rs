//! A run that a plan wants, and what became of it.

use std::path::PathBuf;
use std::rc::Rc;

use coldframe_sheet::quantity::human_size;

use crate::error::AnswerError;
use crate::run::runs::{By, Run, Way};

/// A run that a plan wants.
#[derive(Clone, PartialEq, Debug)]
pub struct Trial {
    /// Who pages it.
    pub way: Way,
    /// Its RAM; `None`: without a limit.
    pub ram_bytes: Option<u64>,
    /// The program is ended after so many seconds; `None`: never.
    pub at_most: Option<f64>,
    /// Whether the user sees its output, and gives its input.
    pub shown: bool,
    /// Files that leave the page cache first.
    pub cold: Rc<[PathBuf]>,
    /// How many at a time; `None`: it is not about that. A run of which a process is killed ends then.
    pub jobs: Option<u32>,
}

impl Trial {
    /// The program alone.
    pub fn plain(at_most: Option<f64>) -> Trial {
        Trial { way: Way::plain(), ram_bytes: None, at_most, shown: false, cold: Rc::new([]), jobs: None }
    }

    /// The program in that RAM.
    pub fn paged(way: &Way, ram_bytes: u64, at_most: f64) -> Trial {
        Trial { way: way.clone(), ram_bytes: Some(ram_bytes), at_most: Some(at_most), ..Trial::plain(None) }
    }

    /// For people who wait.
    pub fn words(&self) -> String {
        match (self.way.by, self.ram_bytes) {
            (By::Plain, _) | (_, None) => "running it alone".into(),
            (_, Some(ram)) => format!("running it in {}", human_size(ram)),
        }
    }
}

/// What became of a trial.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// The program ran, and has ended.
    Ran(Run),
    /// It could not be run so.
    Refused(Refusal),
    /// A signal to coldframe ended it: there are no more runs.
    Signal,
}

impl Outcome {
    /// The run; `None`: there was none.
    pub fn ran(&self) -> Option<&Run> {
        if let Outcome::Ran(run) = self {
            Some(run)
        } else {
            None
        }
    }
}

/// Why a program could not be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// What is wrong, and the remedy.
    pub message: String,
    /// The exit code.
    pub code: u8,
}

impl Refusal {
    /// With its exit code.
    pub fn new(code: u8, message: impl Into<String>) -> Refusal {
        Refusal { message: message.into(), code }
    }

    /// As the error of the whole question.
    pub fn into_error(self) -> AnswerError {
        AnswerError::new(self.code, self.message)
    }

    /// A signal came, and the question has no answer without more runs.
    pub fn stopped() -> Refusal {
        Refusal::new(130, "stopped; nothing is left behind")
    }
}

impl From<AnswerError> for Refusal {
    fn from(error: AnswerError) -> Refusal {
        Refusal::new(error.code(), error.to_string())
    }
}
