//! Downgrades: a page goes to the aside mapping while its frame stays, and a touch brings it back. Three threads meet:
//! one moves the page, one wants the page back, and one wants its frame. A thread can also meet a page that it has
//! promised to map and has not yet.

use std::sync::Arc;

use coldframe_model::kernel::Kernel;
use coldframe_model::page::pages::{Owner, Pages, Where};
use coldframe_model::sys::lock::Lock;
use coldframe_model::{explore, found_out, together, DEADLOCK};

const PAGES: usize = 3;
/// Pages that may be mapped: as many as threads. With fewer, two threads could take each other's page away forever.
const VALID: usize = 2;

/// The correct protocol, or an error that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rules {
    /// A thread that has the engine's lock and finds a page that it owes itself settles that page first.
    Sound,
    /// The thread waits for this page, and so for itself, while it has the lock.
    WaitsForItself,
}

struct Pager {
    kernel: Kernel,
    pages: Pages,
    /// The mapped pages, the oldest first. The others are in the aside mapping.
    valid: Lock<Vec<usize>>,
    rules: Rules,
}

/// What a thread must do after it releases the engine's lock.
enum Owed {
    Hold(usize),
    Back(usize),
}

impl Pager {
    fn new(rules: Rules) -> Arc<Pager> {
        let pages = Pages::new(PAGES).unwrap();
        let kernel = Kernel::new(2 * PAGES);
        for page in 0..PAGES {
            pages.set(page, Where::Aside);
            kernel.copy(PAGES + page, Default::default(), false).unwrap();
        }
        Arc::new(Pager { kernel, pages, valid: Lock::new(Vec::new()), rules })
    }

    fn write(&self, page: usize, word: usize, value: u32) {
        while self.kernel.write(page, word, value).is_err() {
            self.bring(&[page], word);
        }
    }

    fn read(&self, page: usize, word: usize) -> u32 {
        loop {
            match self.kernel.read(page, word) {
                Ok(value) => return value,
                Err(_) => self.bring(&[page], word),
            }
        }
    }

    /// Maps pages, one event of the engine for each, under one lock. Pages that exceed the valid list leave it at once.
    fn bring(&self, wanted: &[usize], task: usize) {
        let owner = Owner::task(task);
        let mut owed = Vec::new();
        {
            let mut valid = self.valid.lock();
            for page in wanted.iter().copied() {
                self.come_to_rest(page, &mut owed, owner);
                // Another thread may have mapped it.
                if !self.pages.acquire(page, Where::Aside, Where::Busy, owner) {
                    continue;
                }
                if valid.len() == VALID {
                    self.unmap(valid.remove(0), &mut owed, owner);
                }
                valid.push(page);
                owed.push(Owed::Back(page));
            }
        }
        owed.into_iter().for_each(|one| self.settle(one, owner));
    }

    fn unmap(&self, page: usize, owed: &mut Vec<Owed>, owner: Owner) {
        while !self.pages.acquire(page, Where::Dirty, Where::Leaving, owner) {
            self.come_to_rest(page, owed, owner);
        }
        owed.push(Owed::Hold(page));
    }

    /// Called with the lock. Other threads settle their pages without the lock; this thread settles its own page now.
    fn come_to_rest(&self, page: usize, owed: &mut Vec<Owed>, owner: Owner) {
        let mine = self.pages.look(page, owner).1;
        if mine && self.rules == Rules::Sound {
            let i = owed.iter().position(|one| matches!(one, Owed::Back(p) | Owed::Hold(p) if *p == page));
            self.settle(owed.remove(i.expect("what is mine is owed")), owner);
        } else {
            self.pages.wait(page);
        }
    }

    fn settle(&self, one: Owed, owner: Owner) {
        match one {
            Owed::Hold(page) => {
                assert!(self.kernel.move_page(PAGES + page, page), "page {page} to the aside mapping");
                self.pages.release(page, owner, Where::Aside);
            }
            Owed::Back(page) => {
                assert!(self.kernel.move_page(page, PAGES + page), "page {page} from the aside mapping");
                self.pages.release(page, owner, Where::Dirty);
            }
        }
    }
}

fn two_writers(rules: Rules, both: bool) {
    let pager = Pager::new(rules);
    together(2, move |word| {
        if both {
            pager.bring(&[word, 1 - word, 2], word);
        }
        (1..3).for_each(|value| (0..PAGES).for_each(|page| pager.write(page, word, value)));
        (0..PAGES).for_each(|page| assert_eq!(pager.read(page, word), 2));
    });
}

#[test]
fn pages_come_back_from_the_aside_mapping_with_what_was_written() {
    explore(|| two_writers(Rules::Sound, false));
}

/// One report of three loads, with room for two mapped pages: mapping the third page evicts the first before it is
/// mapped.
#[test]
fn a_thread_that_meets_its_own_page_puts_it_in_place_first() {
    explore(|| two_writers(Rules::Sound, true));
}

#[test]
fn a_thread_that_waits_for_itself_is_found_out() {
    found_out(&[DEADLOCK], || two_writers(Rules::WaitsForItself, true));
}
