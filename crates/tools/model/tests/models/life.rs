//! The life of pages in too few frames: fault, stale fault, first write, eviction, reload, a drop that the pager does
//! not see, a fork.
//!
//! The steps are those of `pager.rs`, `page_table.rs` and `evict.rs`. The pages' states are the real ones (`pages.rs`);
//! the policy is a queue. Each thread writes its own word of each page and remembers the last value.

use std::sync::Arc;

use shuttle::sync::Mutex;
use shuttle::thread::{self, JoinHandle};

use coldframe_model::kernel::{Bytes, Fault, Kernel, WORDS};
use coldframe_model::page::pages::{Owner, Pages, Where};
use coldframe_model::sys::lock::Lock;
use coldframe_model::sys::sync::{AtomicU32, Ordering};
use coldframe_model::task::free_tasks::FreeTasks;
use coldframe_model::{explore, found_out, sys, together, WRONG};

/// The most pages of a model.
const PAGES: usize = 4;

/// The correct protocol, or an error that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rules {
    /// A thread owns a page before it changes it.
    Sound,
    /// After a fault on an absent page, a thread that finds the page mapped puts zeros there without owning the page. A
    /// load that finds bytes in place takes them for its own.
    StaleMissing,
    /// After a fault on a protected page, a thread that finds the page writable allows writes without owning the page.
    StaleProtected,
    /// Zeros replace a page that was dropped unseen, and count as the loaded bytes.
    DroppedIsClean,
    /// A frame that is shared with a child goes into the pipe of an eviction as if no write could go to a copy.
    HoldShared,
}

struct Pager {
    kernel: Kernel,
    pages: Pages,
    count: usize,
    pool: FreeTasks,
    /// Mapped pages, the oldest first.
    engine: Lock<Vec<usize>>,
    frames: usize,
    swap: Mutex<[Bytes; PAGES]>,
    epoch: AtomicU32,
    active: AtomicU32,
    rules: Rules,
}

impl Pager {
    fn new(rules: Rules, frames: usize, count: usize) -> Arc<Pager> {
        let pages = Pages::new(count).unwrap();
        (0..count).for_each(|page| pages.set(page, Where::Out));
        Arc::new(Pager {
            kernel: Kernel::new(count),
            pages,
            count,
            pool: FreeTasks::new(2),
            engine: Lock::new(Vec::new()),
            frames,
            swap: Mutex::new([[0; WORDS]; PAGES]),
            epoch: AtomicU32::new(0),
            active: AtomicU32::new(0),
            rules,
        })
    }

    fn read(&self, page: usize, word: usize) -> u32 {
        loop {
            match self.kernel.read(page, word) {
                Ok(value) => return value,
                Err(fault) => self.serve(page, false, fault),
            }
        }
    }

    fn write(&self, page: usize, word: usize, value: u32) {
        while let Err(fault) = self.kernel.write(page, word, value) {
            self.serve(page, true, fault);
        }
    }

    fn serve(&self, page: usize, write: bool, fault: Fault) {
        loop {
            let state = self.pages.get(page);
            match state {
                Where::Clean if write && self.pages.acquire(page, state, Where::Busy, Owner::BRIEF) => {
                    self.kernel.protect(page, false);
                    return self.pages.release(page, Owner::BRIEF, Where::Dirty);
                }
                Where::Clean if write => {}
                Where::Clean | Where::Dirty => return self.look_again(page, state, fault),
                Where::Busy | Where::Leaving => self.pages.wait(page),
                _ if self.fault(page, write) => return,
                _ => {}
            }
        }
    }

    /// The page is mapped: another thread was faster, or the program dropped the page and the pager did not see it.
    fn look_again(&self, page: usize, was: Where, fault: Fault) {
        let unowned = match fault {
            Fault::Missing => self.rules == Rules::StaleMissing,
            Fault::Protected => self.rules == Rules::StaleProtected,
        };
        if unowned {
            _ = self.mend(page, was, fault);
        } else if self.pages.acquire(page, was, Where::Busy, Owner::BRIEF) {
            let after = self.mend(page, was, fault);
            self.pages.release(page, Owner::BRIEF, after);
        }
    }

    fn mend(&self, page: usize, was: Where, fault: Fault) -> Where {
        match fault {
            Fault::Protected if was == Where::Dirty => {
                self.kernel.protect(page, false);
                was
            }
            Fault::Missing if self.kernel.copy(page, [0; WORDS], false).is_ok() => match self.rules {
                Rules::DroppedIsClean => was,
                _ => Where::Dirty,
            },
            _ => was,
        }
    }

    /// False: the page is in another state by now.
    fn fault(&self, page: usize, write: bool) -> bool {
        let task = self.pool.take();
        let owner = Owner::task(task);
        let mut engine = self.engine.lock();
        let mine = self.pages.acquire(page, Where::Out, Where::Busy, owner);
        if mine {
            self.active.fetch_add(1, Ordering::SeqCst);
            let victim = (engine.len() == self.frames).then(|| engine.remove(0));
            let victim = victim.map(|page| (page, self.protect(page, owner)));
            drop(engine);
            if let Some((page, was)) = victim {
                self.evict(page, was, owner);
            }
            self.copy_in(page, write, owner);
            self.engine.lock().push(page);
            self.active.fetch_sub(1, Ordering::SeqCst);
        } else {
            drop(engine);
        }
        self.pool.give(task);
        mine
    }

    fn protect(&self, page: usize, owner: Owner) -> Where {
        loop {
            let was = self.pages.get(page);
            match was {
                Where::Clean | Where::Dirty if self.pages.acquire(page, was, Where::Leaving, owner) => return was,
                Where::Clean | Where::Dirty => {}
                _ => self.pages.wait(page),
            }
        }
    }

    fn evict(&self, page: usize, was: Where, owner: Owner) {
        if was == Where::Dirty {
            if self.rules != Rules::HoldShared && self.pages.epoch(page) != self.epoch.load(Ordering::SeqCst) {
                self.kernel.protect(page, true);
            }
            let piped = self.kernel.to_pipe(page);
            self.kernel.zap(page);
            self.swap.lock().unwrap()[page] = piped.map_or([0; WORDS], |piped| piped.read());
        } else {
            self.kernel.zap(page);
        }
        self.pages.release(page, owner, Where::Out);
    }

    fn copy_in(&self, page: usize, write: bool, owner: Owner) {
        let bytes = self.swap.lock().unwrap()[page];
        let there = self.kernel.copy(page, bytes, !write).is_err();
        assert!(!there || self.rules == Rules::StaleMissing, "page {page} was mapped while it was out");
        self.pages.set_epoch(page, self.epoch.load(Ordering::SeqCst));
        self.pages.release(page, owner, if write { Where::Dirty } else { Where::Clean });
    }

    /// Touches all other pages. They exceed the frames, so the page is evicted.
    fn send_away(&self, page: usize) {
        (0..self.count).filter(|other| *other != page).for_each(|other| _ = self.read(other, 0));
    }

    /// A child: its page table and the bytes on its swap device, at one moment with no fault in flight.
    fn fork(&self) -> (Kernel, [Bytes; PAGES]) {
        loop {
            let engine = self.engine.lock();
            if self.active.load(Ordering::SeqCst) == 0 {
                let child = (self.kernel.fork(), *self.swap.lock().unwrap());
                self.epoch.fetch_add(1, Ordering::SeqCst);
                drop(engine);
                return child;
            }
            drop(engine);
            sys::sleep_us(1);
        }
    }
}

/// Each thread writes its word of every page and reads it in the next round; at the end all words are checked. There
/// are as many frames as threads. With fewer, two threads could take each other's page away forever, as on any machine
/// with less RAM than its instructions need.
fn writers(rules: Rules, threads: usize, rounds: u32) {
    let pager = Pager::new(rules, threads, PAGES);
    let shared = pager.clone();
    together(threads, move |word| {
        for round in 0..rounds {
            for page in (0..PAGES).map(|page| (page + word) % PAGES) {
                assert_eq!(shared.read(page, word), round, "page {page}");
                shared.write(page, word, round + 1);
            }
        }
    });
    for word in 0..threads {
        (0..PAGES).for_each(|page| assert_eq!(pager.read(page, word), rounds, "page {page} in the end"));
    }
}

#[test]
fn what_is_written_is_read_whatever_the_interleaving() {
    explore(|| writers(Rules::Sound, 2, 2));
    explore(|| writers(Rules::Sound, 3, 1));
}

/// What another thread does with the pager.
fn beside<T: Send + 'static>(pager: &Arc<Pager>, what: impl FnOnce(&Pager) -> T + Send + 'static) -> JoinHandle<T> {
    let pager = pager.clone();
    thread::spawn(move || what(&pager))
}

/// One thread touches an absent page while another thread loads it, writes it and evicts it.
fn brought_by_another(rules: Rules) {
    let pager = Pager::new(rules, 1, 2);
    let other = beside(&pager, |pager| pager.read(0, 0));
    pager.write(0, 1, 8);
    pager.send_away(0);
    assert_eq!(pager.read(0, 1), 8);
    assert_eq!(other.join().unwrap(), 0);
}

#[test]
fn a_page_that_is_brought_by_another_is_that_page() {
    explore(|| brought_by_another(Rules::Sound));
}

#[test]
fn zeros_in_the_place_of_a_page_that_has_left_are_found_out() {
    found_out(&[WRONG], || brought_by_another(Rules::StaleMissing));
}

/// Two threads write to a clean page. One of them then evicts it and reloads it clean.
fn first_writes(rules: Rules) {
    let pager = Pager::new(rules, 1, 2);
    pager.read(0, 0);
    let other = beside(&pager, |pager| pager.write(0, 0, 7));
    pager.write(0, 1, 8);
    pager.send_away(0);
    pager.read(0, 1);
    other.join().unwrap();
    pager.send_away(0);
    assert_eq!([0, 1].map(|word| pager.read(0, word)), [7, 8]);
}

#[test]
fn two_first_writes_are_both_kept() {
    explore(|| first_writes(Rules::Sound));
}

#[test]
fn writes_allowed_to_a_page_that_is_not_owned_are_found_out() {
    found_out(&[WRONG], || first_writes(Rules::StaleProtected));
}

/// The program's own MADV_DONTNEED, which the pager does not see, of a clean page that was loaded; the page is then
/// read and written.
fn dropped(rules: Rules) {
    let pager = Pager::new(rules, 1, 2);
    let other = beside(&pager, |pager| (0..2).for_each(|_| _ = pager.read(1, 1)));
    for value in 1..3 {
        pager.write(0, 0, value);
        pager.send_away(0);
        assert_eq!(pager.read(0, 0), value);
        pager.kernel.zap(0);
        let now = pager.read(0, 0);
        assert!(now == 0 || now == value, "{now}");
        pager.write(0, 0, value + 10);
        pager.send_away(0);
        assert_eq!(pager.read(0, 0), value + 10);
    }
    other.join().unwrap();
}

#[test]
fn a_page_that_is_dropped_behind_the_pagers_back_keeps_what_is_written_afterwards() {
    explore(|| dropped(Rules::Sound));
}

#[test]
fn zeros_that_count_as_what_was_loaded_are_found_out() {
    found_out(&[WRONG], || dropped(Rules::DroppedIsClean));
}

/// A fork between another thread's writes: the child sees one moment, and the parent loses no later write.
fn forks() {
    let pager = Pager::new(Rules::Sound, 1, 2);
    let writer = beside(&pager, |pager| {
        for value in 1..3 {
            (0..2).for_each(|page| pager.write(page, 0, value));
            (0..2).for_each(|page| assert_eq!(pager.read(page, 0), value, "page {page}"));
        }
    });
    let (kernel, swap) = pager.fork();
    let look = || (0..2).map(|page| kernel.read(page, 0).unwrap_or(swap[page][0])).collect::<Vec<_>>();
    let versions = look();
    // The writer goes through the pages in order. So at any moment the first pages are of one round, and the rest of
    // the round before.
    assert!(versions[0] == versions[1] || versions[0] == versions[1] + 1, "{versions:?}");
    writer.join().unwrap();
    assert_eq!(look(), versions, "the child's memory changed");
}

#[test]
fn a_child_sees_one_moment_and_its_parent_loses_nothing() {
    explore(forks);
}

/// After a fork, one thread writes to a page while another evicts it.
fn written_while_it_leaves(rules: Rules) {
    let pager = Pager::new(rules, 1, 2);
    pager.write(0, 0, 1);
    let (child, _) = pager.fork();
    let writer = beside(&pager, |pager| pager.write(0, 0, 2));
    pager.send_away(0);
    writer.join().unwrap();
    assert_eq!(pager.read(0, 0), 2);
    assert_eq!(child.read(0, 0), Ok(1));
}

#[test]
fn what_is_written_to_a_shared_frame_while_it_leaves_is_kept() {
    explore(|| written_while_it_leaves(Rules::Sound));
}

#[test]
fn a_shared_frame_that_is_held_without_protection_is_found_out() {
    found_out(&[WRONG], || written_while_it_leaves(Rules::HoldShared));
}
