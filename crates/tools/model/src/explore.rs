//! Tries interleavings of a model.

use crate::scheduler;

/// A model that can be run many times.
pub trait Model: Fn() + Send + Sync + Copy + 'static {}
impl<T: Fn() + Send + Sync + Copy + 'static> Model for T {}

/// Tries this many interleavings: for models with many steps.
pub fn explore_some(tries: usize, model: impl Model) {
    let mut config = shuttle::Config::new();
    // More steps than any model needs that makes progress.
    config.max_steps = shuttle::MaxSteps::FailAfter(100_000);
    // The scheduler knows only the strictest order of memory accesses. It cannot check weaker ones, and warns about it.
    config.silence_warnings = true;
    // The scheduler's atomics are large, and a table of them passes through the stack.
    config.stack_size = 1 << 20;
    shuttle::Runner::new(scheduler::Tempers::new(tries), config).run(model);
}

/// Tries many interleavings; none of them may fail.
pub fn explore(model: impl Model) {
    explore_some(4000, model);
}

/// Tries interleavings until one fails; its message must have these words.
pub fn found_out(words: &[&str], model: impl Model) {
    let message = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| explore_some(40_000, model))) {
        Ok(()) => "nothing fails".to_string(),
        Err(panic) => match panic.downcast::<String>() {
            Ok(panic) => *panic,
            Err(panic) => panic.downcast_ref::<&str>().copied().unwrap_or("no words").to_string(),
        },
    };
    words.iter().for_each(|word| assert!(message.contains(word), "{message}"));
}

/// Runs this many threads, and waits for them.
pub fn together(threads: usize, work: impl Fn(usize) + Send + Sync + 'static) {
    let work = std::sync::Arc::new(work);
    let spawn = |i| {
        let work = work.clone();
        shuttle::thread::spawn(move || work(i))
    };
    let all: Vec<_> = (0..threads).map(spawn).collect();
    all.into_iter().for_each(|thread| thread.join().unwrap());
}

/// A word differs from what was written last.
pub const WRONG: &str = "left == right";
/// All threads sleep.
pub const DEADLOCK: &str = "deadlock";
