//! The log's tables, compiled unchanged. One thread appends, one writes, and forked children read at any time. A page's
//! slot always has the page's last bytes, in a buffer or on the device. A child finds in its slots the bytes of its
//! fork.

use std::sync::Arc;

use shuttle::thread;

use coldframe_model::log::segments::{Inside, Job, Refused};
use coldframe_model::log::SEGMENT;
use coldframe_model::sys::lock::Lock;
use coldframe_model::sys::sync::{AtomicU32, AtomicU64, Ordering};
use coldframe_model::{explore_some, found_out, sys, WRONG};

/// Pages on a device so small that slots are reused: one segment, with room for two children and the pages.
const PAGES: usize = 8;
const SEGMENTS: usize = 1;
const ROUNDS: usize = 7;
const CHILDREN: usize = 2;

/// The correct protocol, or an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rules {
    Sound,
    /// A living child counts as ended, so its slots are released.
    ForgetsChildren,
    /// A fork does not wait until all bytes are on the device.
    ForksUnsettled,
}

struct Log {
    books: Lock<Inside>,
    device: Vec<AtomicU64>,
    gone: [AtomicU32; CHILDREN],
    stop: AtomicU32,
    rules: Rules,
}

/// Slot and bytes of each page.
type Known = Vec<Option<(usize, u64)>>;

impl Log {
    fn new(rules: Rules) -> Arc<Log> {
        Arc::new(Log {
            books: Lock::new(Inside::new(SEGMENTS).unwrap()),
            device: (0..SEGMENTS * SEGMENT).map(|_| AtomicU64::new(0)).collect(),
            gone: Default::default(),
            stop: AtomicU32::new(0),
            rules,
        })
    }

    fn is_gone(&self, child: i32) -> bool {
        self.rules == Rules::ForgetsChildren || self.gone[child as usize].load(Ordering::SeqCst) != 0
    }

    fn append(&self, page: usize, bytes: u64, known: &mut Known) {
        loop {
            let mut books = self.books.lock();
            match books.take(page as u32) {
                Ok((slot, into)) => {
                    // SAFETY: a page of a buffer, which is written only under the lock.
                    unsafe { (into as *mut u64).write(bytes) };
                    let old = known[page].replace((slot, bytes));
                    old.into_iter().for_each(|(slot, _)| books.release(slot));
                    return;
                }
                Err(Refused::Wait) => {}
                Err(Refused::Full) => books.bury(|child| self.is_gone(child)),
            }
            drop(books);
            sys::sleep_us(1);
        }
    }

    fn check(&self, page: usize, known: &Known) {
        let Some((slot, bytes)) = known[page] else { return };
        // SAFETY: a page of a buffer, which cannot change under the lock.
        let buffered = self.books.lock().buffered(slot).map(|address| unsafe { *(address as *const u64) });
        let content = buffered.unwrap_or_else(|| self.device[slot].load(Ordering::SeqCst));
        assert_eq!(content, bytes, "page {page} in slot {slot}");
    }

    fn write_until_stopped(&self) {
        while self.stop.load(Ordering::SeqCst) == 0 {
            let job = self.books.lock().job();
            match job {
                Some(Job::Write(b)) => self.write(b),
                Some(Job::Reserve(_, to)) => self.books.lock().reserved(Some(to)),
                Some(Job::Bury) => self.books.lock().bury(|child| self.is_gone(child)),
                None => sys::sleep_us(1),
            }
        }
    }

    fn write(&self, b: usize) {
        let buffer = self.books.lock().buffers[b];
        for i in (0..SEGMENT).filter(|i| buffer.has(*i)) {
            let slot = buffer.segment * SEGMENT + usize::from(buffer.slots[i]);
            // SAFETY: a page of a buffer, which does not change while it is written to the device.
            self.device[slot].store(unsafe { *(buffer.address as *const u64).add(i) }, Ordering::SeqCst);
        }
        let mut books = self.books.lock();
        books.written(b, true);
        books.bury(|child| self.is_gone(child));
    }

    fn fork(self: &Arc<Log>, child: usize, known: &Known) -> thread::JoinHandle<()> {
        self.books.lock().retire_all();
        loop {
            let mut books = self.books.lock();
            if books.is_settled() || self.rules == Rules::ForksUnsettled {
                books.adopt(child as i32);
                break;
            }
            drop(books);
            sys::sleep_us(1);
        }
        let (log, known) = (self.clone(), known.clone());
        thread::spawn(move || {
            for (slot, bytes) in known.iter().flatten() {
                assert_eq!(log.device[*slot].load(Ordering::SeqCst), *bytes, "slot {slot} of child {child}");
            }
            log.gone[child].store(1, Ordering::SeqCst);
        })
    }
}

fn append_and_fork(rules: Rules) {
    let log = Log::new(rules);
    let writer = {
        let log = log.clone();
        thread::spawn(move || log.write_until_stopped())
    };
    let (mut known, mut bytes, mut children) = (vec![None; PAGES], 0, Vec::new());
    for round in 0..ROUNDS {
        for page in 0..PAGES {
            bytes += 1;
            log.append(page, bytes, &mut known);
            log.check((page * 3) % PAGES, &known);
        }
        if round < CHILDREN {
            children.push(log.fork(round, &known));
        }
    }
    (0..PAGES).for_each(|page| log.check(page, &known));
    children.into_iter().for_each(|child| child.join().unwrap());
    log.stop.store(1, Ordering::SeqCst);
    writer.join().unwrap();
}

#[test]
fn a_slot_has_its_pages_bytes_until_nobody_can_see_them() {
    explore_some(400, || append_and_fork(Rules::Sound));
}

#[test]
fn a_child_that_is_forgotten_while_it_lives_is_found_out() {
    found_out(&[WRONG, "of child"], || append_and_fork(Rules::ForgetsChildren));
}

#[test]
fn a_fork_that_does_not_wait_for_the_device_is_found_out() {
    found_out(&[WRONG, "of child"], || append_and_fork(Rules::ForksUnsettled));
}
