//! Models of what is dangerous in the live pager, under a scheduler that tries interleavings. The modules in which threads meet are compiled as they
//! are, from `crates/live/src`, with the scheduler's words (`sync`), sleeps (`sys`) and tables (`table`) in the place of the machine's, and beside
//! a kernel that is a table of pages. The models themselves are tests: `tests/models`.
//!
//! Each protocol that was found wrong is kept as a mutant there: a model that cannot fail proves nothing. What a mutant does wrong is said where
//! it is chosen; the test of it demands the failure.

// The modules of the pager are public here, where nobody else needs all that they have.
#![allow(clippy::len_without_is_empty)]

pub mod kernel;
pub mod log;
mod scheduler;
pub mod sync;
pub mod sys;
pub mod table;

#[path = "../../live/src/lock.rs"]
pub mod lock;
#[path = "../../live/src/pages.rs"]
pub mod pages;
#[path = "../../live/src/parking.rs"]
pub mod parking;
#[path = "../../live/src/pool.rs"]
pub mod pool;
#[path = "../../live/src/state.rs"]
pub mod state;

/// A page of a model has a word.
pub const PAGE: usize = 8;

/// What the modules of the pager call an error; nothing fails here.
#[derive(Debug)]
pub struct LiveError;

impl LiveError {
    fn os(_: &'static str, error: LiveError) -> LiveError {
        error
    }
}

/// What the modules of the pager call when nothing can be promised any more.
pub mod fatal {
    /// Fails the try.
    pub fn stop(reason: impl std::fmt::Display) -> ! {
        panic!("{reason}")
    }
}

/// A model that can be tried again and again.
pub trait Model: Fn() + Send + Sync + Copy + 'static {}
impl<T: Fn() + Send + Sync + Copy + 'static> Model for T {}

fn try_often(model: impl Model, tries: usize) {
    let mut config = shuttle::Config::new();
    // Longer than any model takes that is not in a circle.
    config.max_steps = shuttle::MaxSteps::FailAfter(100_000);
    // It knows one order of memory accesses, the strictest; which weaker ones are right it cannot say, and says so.
    config.silence_warnings = true;
    // The scheduler's words are large, and a table of them passes through the stack.
    config.stack_size = 1 << 20;
    shuttle::Runner::new(scheduler::Tempers::new(tries), config).run(model);
}

/// Tries interleavings, none of which may fail.
pub fn explore(model: impl Model) {
    explore_some(4000, model);
}

/// As many as one says: for models with many steps.
pub fn explore_some(tries: usize, model: impl Model) {
    try_often(model, tries);
}

/// What the first interleaving that fails says.
pub fn failure(model: impl Model) -> String {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| try_often(model, 40_000))) {
        Ok(()) => "nothing fails".to_string(),
        Err(said) => match said.downcast::<String>() {
            Ok(said) => *said,
            Err(said) => said.downcast_ref::<&str>().copied().unwrap_or("no words").to_string(),
        },
    }
}

/// A word that is not what was written last.
pub const WRONG: &str = "left == right";
/// Everybody sleeps.
pub const DEADLOCK: &str = "deadlock";
/// Somebody runs in a circle.
pub const CIRCLE: &str = "exceeded max_steps";
