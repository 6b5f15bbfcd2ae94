//! What a terminal shows of work under way: notes on stderr, and a progress line.

use std::sync::{Mutex, PoisonError};

use coldframe_answer::Listener;

use crate::output;
use crate::progress::Line;

/// stderr.
pub struct Terminal {
    quiet: bool,
    line: Mutex<Option<Line>>,
}

impl Terminal {
    /// `quiet`: without notes and progress.
    pub fn new(quiet: bool) -> Terminal {
        Terminal { quiet, line: Mutex::new(None) }
    }
}

impl Listener for Terminal {
    fn note(&self, text: &str) {
        if !self.quiet {
            output::tell(text);
        }
    }

    fn warn(&self, text: &str) {
        output::tell(text);
    }

    fn progress(&self, done: u64, total: Option<u64>, words: &str) {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        line.get_or_insert_with(|| Line::new(self.quiet)).show(done, total, words);
    }

    fn finish(&self) {
        *self.line.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
