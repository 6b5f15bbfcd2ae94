//! A progress line on stderr. It appears only on a terminal, and only if the work takes more than two seconds.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

const PATIENCE: Duration = Duration::from_secs(2);

/// The line.
pub struct Line {
    began: Instant,
    quiet: bool,
    bar: Option<ProgressBar>,
}

impl Line {
    /// A line that is not shown yet.
    pub fn new(quiet: bool) -> Line {
        Line { began: Instant::now(), quiet: quiet || !std::io::stderr().is_terminal(), bar: None }
    }

    /// Shows `done` of `total`, which may not be known, and a few words.
    ///
    /// # Panics
    /// Never: the template is ours.
    pub fn show(&mut self, done: u64, total: Option<u64>, words: &str) {
        if self.quiet || self.began.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let (bar, template) = match total {
                Some(total) => (ProgressBar::new(total), "{msg} {wide_bar} {percent}% {eta}"),
                None => (ProgressBar::new_spinner(), "{spinner} {msg}"),
            };
            bar.set_style(ProgressStyle::with_template(template).expect("the template is ours"));
            bar
        });
        bar.set_position(done);
        bar.set_message(words.to_string());
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
