//! Replaces the sleeps of `live/src/sys`. As with futexes, a thread checks the word and falls asleep in one step. No
//! thread wakes without reason, so a missed wake-up leaves a sleeper forever, and the scheduler reports a deadlock.

#[path = "../../../product/live/src/sys/lock.rs"]
pub mod lock;
pub mod sync;
pub mod table;

use shuttle::sync::atomic::{AtomicU32, Ordering};
use shuttle::sync::{Condvar, Mutex};

/// For each sleeping thread: the address of the word, and whether the thread has been woken.
#[derive(Default)]
struct Sleepers {
    all: Vec<(usize, bool)>,
}

shuttle::lazy_static! {
    static ref SLEEPERS: Mutex<Sleepers> = Mutex::new(Sleepers::default());
    static ref CHANGED: Condvar = Condvar::new();
}

fn place(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word) as usize
}

/// Sleeps while `word` is `value`, until woken.
pub fn futex_wait(word: &AtomicU32, value: u32) {
    let mut sleepers = SLEEPERS.lock().unwrap();
    if word.load(Ordering::SeqCst) != value {
        return;
    }
    sleepers.all.push((place(word), false));
    // The first thread of this word to run takes the first woken entry: sleepers of one word are alike.
    loop {
        if let Some(i) = sleepers.all.iter().position(|(at, woken)| *at == place(word) && *woken) {
            sleepers.all.remove(i);
            return;
        }
        sleepers = CHANGED.wait(sleepers).unwrap();
    }
}

/// Wakes up to this many sleepers.
pub fn futex_wake(word: &AtomicU32, count: usize) {
    let mut sleepers = SLEEPERS.lock().unwrap();
    let asleep = sleepers.all.iter_mut().filter(|(at, woken)| *at == place(word) && !*woken);
    asleep.take(count).for_each(|(_, woken)| *woken = true);
    CHANGED.notify_all();
}

/// Lets other threads run for a while.
pub fn sleep_us(_: u64) {
    shuttle::thread::yield_now();
}

/// The number of this thread.
pub fn thread() -> u32 {
    // The scheduler's thread ids are opaque, but each hashes a small number.
    let mut hasher = std::hash::DefaultHasher::new();
    std::hash::Hash::hash(&shuttle::thread::current().id(), &mut hasher);
    std::hash::Hasher::finish(&hasher) as u32 | 1
}

/// Allocates this many zero bytes.
pub fn map_memory(len: usize) -> Result<usize, crate::LiveError> {
    Ok(Box::leak(vec![0u64; len.div_ceil(8)].into_boxed_slice()).as_mut_ptr() as usize)
}

/// Frees memory.
///
/// # Safety
/// `map_memory` returned the address for this length, and no thread uses the memory any more.
pub unsafe fn unmap_memory(address: usize, len: usize) {
    let words = std::ptr::slice_from_raw_parts_mut(address as *mut u64, len.div_ceil(8));
    // SAFETY: the caller guarantees it.
    drop(unsafe { Box::from_raw(words) });
}

/// Replaces the pager's module that stops the process.
pub mod fatal {
    /// Fails the try.
    pub fn stop(reason: impl std::fmt::Display) -> ! {
        panic!("{reason}")
    }
}
