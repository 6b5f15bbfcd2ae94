//! Who hears of the work while an answer is made: `answer` itself prints nothing.

/// Hears of the work. `coldframe` prints it on stderr.
pub trait Listener: Sync {
    /// Something that the user should know; `--quiet` drops it.
    fn note(&self, text: &str);
    /// The same, which is never dropped.
    fn warn(&self, text: &str);
    /// How far a long work is: `done` of `all`, if that is known, and a few words.
    fn progress(&self, done: u64, all: Option<u64>, words: &str);
    /// The long work has ended.
    fn finish(&self);
}

/// Nobody hears of it.
pub struct Silent;

impl Listener for Silent {
    fn note(&self, _: &str) {}
    fn warn(&self, _: &str) {}
    fn progress(&self, _: u64, _: Option<u64>, _: &str) {}
    fn finish(&self) {}
}
