//! The order of locks: a thread takes a task before the engine's lock, and never under it.

use std::sync::Arc;

use shuttle::thread;

use coldframe_model::sys::lock::Lock;
use coldframe_model::task::free_tasks::FreeTasks;
use coldframe_model::{explore, found_out, DEADLOCK};

/// Tasks: fewer than threads, as with handler threads of the pager.
const TASKS: usize = 2;
const FAULTS: usize = 2;

struct Pager {
    free: FreeTasks,
    engine: Lock<u32>,
}

/// A thread that faults takes a task and then the lock. A thread that pins takes both; `task_first` gives the order.
fn faults_during_a_pin(task_first: bool) {
    let pager = Arc::new(Pager { free: FreeTasks::new(TASKS), engine: Lock::new(0) });
    let mut all: Vec<_> = (0..FAULTS)
        .map(|_| {
            let pager = pager.clone();
            thread::spawn(move || {
                let task = pager.free.take();
                *pager.engine.lock() += 1;
                pager.free.give(task);
            })
        })
        .collect();
    let pins = pager.clone();
    all.push(thread::spawn(move || {
        if task_first {
            let task = pins.free.take();
            *pins.engine.lock() += 1;
            return pins.free.give(task);
        }
        let mut engine = pins.engine.lock();
        let task = pins.free.take();
        *engine += 1;
        pins.free.give(task);
    }));
    all.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(*pager.engine.lock(), FAULTS as u32 + 1);
}

#[test]
fn faults_during_a_pin_come_to_an_end() {
    explore(|| faults_during_a_pin(true));
}

#[test]
fn a_task_that_is_wanted_under_the_engines_lock_is_found_out() {
    found_out(&[DEADLOCK], || faults_during_a_pin(false));
}
