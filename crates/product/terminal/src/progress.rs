//! A progress line on stderr. It appears only on a terminal, and only if the work takes more than two seconds; then
//! once a second, also while the work says nothing new.

use std::io::IsTerminal;
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

const PATIENCE: Duration = Duration::from_secs(2);
const INTERVAL: Duration = Duration::from_secs(1);

/// The line.
pub struct Line {
    work: Arc<Mutex<Work>>,
    /// What draws it, until the sender is gone.
    drawing: Option<(Sender<()>, JoinHandle<()>)>,
}

/// How far the work is.
#[derive(Default)]
struct Work {
    done: u64,
    total: Option<u64>,
    words: String,
}

impl Line {
    /// A line that is not shown yet.
    pub fn new(quiet: bool) -> Line {
        let (work, began) = (Arc::<Mutex<Work>>::default(), Instant::now());
        let shared = Arc::clone(&work);
        let drawing = (!quiet && std::io::stderr().is_terminal()).then(|| -> Option<_> {
            let (end, ended) = channel();
            let draw = move || {
                let (bar, mut wait) = (ProgressBar::new(1), PATIENCE);
                while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                    wait = INTERVAL;
                    locked(&shared).draw(&bar, began.elapsed());
                }
                bar.finish_and_clear();
            };
            Some((end, std::thread::Builder::new().spawn(draw).ok()?))
        });
        Line { work, drawing: drawing.flatten() }
    }

    /// Shows `done` of `total`, which may not be known, and a few words.
    pub fn show(&mut self, done: u64, total: Option<u64>, words: &str) {
        *locked(&self.work) = Work { done, total, words: words.into() };
    }
}

impl Work {
    fn draw(&self, bar: &ProgressBar, elapsed: Duration) {
        let template = if self.total.is_some() { "{msg} {wide_bar} {percent}% {prefix}" } else { "{msg}, {prefix}" };
        bar.set_style(ProgressStyle::with_template(template).expect("the template is ours"));
        bar.set_length(self.total.unwrap_or(self.done));
        bar.set_position(self.done);
        bar.set_message(self.words.clone());
        bar.set_prefix(self.time(elapsed));
        bar.tick();
    }

    /// How much longer it takes if it goes on so; how long it has taken, if its end is not known.
    fn time(&self, elapsed: Duration) -> String {
        match (self.total, self.done) {
            (Some(_), 0) => String::new(),
            (Some(total), done) => {
                let left = elapsed.as_secs_f64() * total.saturating_sub(done) as f64 / done as f64;
                if left < 90.0 {
                    format!("{left:.0} s left")
                } else {
                    format!("{:.0} min left", left / 60.0)
                }
            }
            (None, _) => format!("{} s", elapsed.as_secs()),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some((end, drawing)) = self.drawing.take() {
            drop(end);
            let _ = drawing.join();
        }
    }
}

fn locked(work: &Mutex<Work>) -> MutexGuard<'_, Work> {
    work.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_the_time_is_as_the_work_went() {
        let time = |done, total| Work { done, total, words: String::new() }.time(Duration::from_secs(4));
        assert_eq!(
            [time(2, Some(8)), time(8, Some(8)), time(0, Some(8)), time(0, None)],
            ["12 s left", "0 s left", "", "4 s"]
        );
    }
}
