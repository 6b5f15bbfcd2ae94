//! The kernel's sleeps in the place of `live/src/sys.rs`: as futexes they look at the word and fall asleep in one step, and nobody wakes without
//! reason. So a wake-up that is missed leaves a sleeper for ever, which the scheduler reports as a deadlock.

use shuttle::sync::{Condvar, Mutex};

use crate::sync::{AtomicU32, Ordering};

/// Who sleeps where: the address of the word, and whether it has been woken.
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
    // The first entry of this word that was woken is taken by whoever comes first: sleepers of one word are alike.
    loop {
        if let Some(i) = sleepers.all.iter().position(|(at, woken)| *at == place(word) && *woken) {
            sleepers.all.remove(i);
            return;
        }
        sleepers = CHANGED.wait(sleepers).unwrap();
    }
}

/// Wakes so many sleepers.
pub fn futex_wake(word: &AtomicU32, count: usize) {
    let mut sleepers = SLEEPERS.lock().unwrap();
    let asleep = sleepers.all.iter_mut().filter(|(at, woken)| *at == place(word) && !*woken);
    asleep.take(count).for_each(|(_, woken)| *woken = true);
    CHANGED.notify_all();
}

/// Lets others go on for a while.
pub fn sleep_us(_: u64) {
    shuttle::thread::yield_now();
}

/// The number of this thread.
pub fn thread() -> u32 {
    // Ids of the scheduler are opaque, and their hash is one of a small number.
    let mut hasher = std::hash::DefaultHasher::new();
    std::hash::Hash::hash(&shuttle::thread::current().id(), &mut hasher);
    std::hash::Hasher::finish(&hasher) as u32 | 1
}

/// Memory of so many bytes, zero at first.
///
/// # Errors
/// None.
pub fn map_memory(len: usize, _: Option<usize>) -> Result<usize, crate::LiveError> {
    Ok(Box::leak(vec![0u64; len.div_ceil(8)].into_boxed_slice()).as_mut_ptr() as usize)
}

/// Gives it back.
///
/// # Safety
/// `map_memory` gave it for this length, and nobody uses it any more.
pub unsafe fn unmap_memory(address: usize, len: usize) {
    let words = std::ptr::slice_from_raw_parts_mut(address as *mut u64, len.div_ceil(8));
    // SAFETY: the caller answers for it.
    drop(unsafe { Box::from_raw(words) });
}
