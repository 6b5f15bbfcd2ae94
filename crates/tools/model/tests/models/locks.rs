//! The pager's lock, compiled unchanged: it lets in one thread at a time, and wakes every sleeper.

use std::sync::Arc;

use shuttle::thread;

use coldframe_model::sys::lock::Lock;
use coldframe_model::sys::sync::{AtomicU32, Ordering};
use coldframe_model::{explore, found_out, sys, together, DEADLOCK, WRONG};

const THREADS: usize = 3;

fn count_together(lock: fn(&Lock<u32>) -> u32) {
    let sum = Arc::new(Lock::new(0u32));
    let shared = sum.clone();
    together(THREADS, move |_| (0..2).for_each(|_| _ = lock(&shared)));
    assert_eq!(*sum.lock(), 2 * THREADS as u32);
}

#[test]
fn threads_are_let_in_one_by_one_and_none_is_forgotten() {
    explore(|| {
        count_together(|lock| {
            let mut value = lock.lock();
            let before = *value;
            thread::yield_now();
            *value = before + 1;
            before
        });
    });
}

#[test]
fn a_value_that_is_changed_without_the_lock_is_found_out() {
    found_out(&[WRONG], || {
        count_together(|lock| {
            let before = *lock.lock();
            thread::yield_now();
            *lock.lock() = before + 1;
            before
        });
    });
}

/// How a sleeper could be forgotten: the last thread to leave wakes none, because it checked before the sleeper
/// announced itself.
#[test]
fn a_sleeper_that_nobody_wakes_is_found_out() {
    found_out(&[DEADLOCK], || {
        let word = Arc::new(AtomicU32::new(1));
        let waiter = {
            let word = word.clone();
            thread::spawn(move || {
                while word.load(Ordering::SeqCst) != 0 {
                    sys::futex_wait(&word, 1);
                }
            })
        };
        word.store(0, Ordering::SeqCst);
        waiter.join().unwrap();
    });
}
