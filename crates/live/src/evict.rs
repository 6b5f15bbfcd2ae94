//! Evictions: hold, zap, read back.
//!
//! The dirty victims are held in a pipe, all victims are dropped by one call, and the final bytes come out of the pipe: a write that
//! lands between hold and drop is in them, one that comes later faults and waits.

use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

use crate::fatal;
use crate::log::SEGMENT;
use crate::pager::Inner;
use crate::pages::Where;
use crate::stats::Stats;
use crate::sys::{self, Errno};
use crate::task::{Todo, Victim, VICTIMS, WRITE};
use crate::PAGE;

/// How an eviction went: so many anonymous pages are safe in the log, so many file pages were tried, and a bit for each that failed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Outcome {
    pub written: usize,
    pub files: usize,
    pub failed: u64,
}

impl Inner {
    /// Takes the victims out. Returns how many of `todo.victims` had bytes to bring to safety; those stand first.
    pub(crate) fn evict(&self, todo: &mut Todo) -> Outcome {
        let outcome = Outcome::default();
        if todo.victims.is_empty() && todo.retries.is_empty() {
            return outcome;
        }
        // Anonymous pages first, then those of files, then those with nothing to write: the order in which the pipe gives them back.
        let rank = |v: &Victim| if !v.write { 2 } else { u8::from(self.pages.file(v.page).is_some()) };
        todo.victims.sort_unstable_by_key(rank);
        let anonymous = todo.victims.iter().filter(|v| rank(v) == 0).count();
        let dirty = todo.victims.iter().filter(|v| v.write).count();
        self.hold_and_zap(todo, dirty);
        for victim in &todo.victims[dirty..] {
            self.pages.set(victim.page, Where::Out);
        }
        self.read_back(todo, anonymous, dirty)
    }

    fn hold_and_zap(&self, todo: &Todo, dirty: usize) {
        let victims = &todo.victims;
        if victims.is_empty() {
            return;
        }
        let epoch = self.epoch.load(Ordering::Relaxed);
        for victim in victims[..dirty].iter().filter(|v| !v.held && self.pages.epoch(v.page) != epoch) {
            let range = victim.address..victim.address + PAGE;
            self.must(self.uffd.get().protect(range, true), "protect a page", victim.page);
        }
        let vector: [libc::iovec; VICTIMS] =
            std::array::from_fn(|i| sys::iovec(victims.get(i).map_or(0, |v| v.address), PAGE));
        let pipe = self.tasks().get(todo.task).pipe.1.as_raw_fd();
        self.hold(pipe, &vector[..dirty], self.tasks().get(todo.task).staging);
        // SAFETY: the engine has given these pages up, and their bytes are held.
        let flushes = unsafe { sys::drop_pages(self.pidfd.get().as_raw_fd(), &vector[..victims.len()]) };
        Stats::add(&self.stats().flushes, flushes);
        self.resident.fetch_sub(victims.len(), Ordering::Relaxed);
        Stats::sub(&self.stats().resident, victims.len() as u64);
    }

    /// Holds all pages. A page that the program has made inaccessible cannot be held: it is write-protected, so that it stays as it is
    /// even if it is made accessible just now, and copied.
    fn hold(&self, pipe: i32, mut pages: &[libc::iovec], scratch: usize) {
        while let Some(first) = pages.first() {
            let address = first.iov_base as usize;
            let held = match sys::hold(pipe, pages) {
                Err(Errno::FAULT) => self.uffd.get().protect(address..address + PAGE, true).and_then(|()| {
                    // SAFETY: the scratch page is this thread's.
                    unsafe { sys::peek(address, scratch).and_then(|()| sys::write_pipe(pipe, scratch)) }.map(|()| 1)
                }),
                other => other,
            };
            match held {
                Ok(held) => pages = &pages[held..],
                Err(error) => {
                    fatal::stop(format_args!("the page at {address:#x} cannot be held (vmsplice): {}", error.io()))
                }
            }
        }
    }

    fn read_back(&self, todo: &mut Todo, anonymous: usize, dirty: usize) -> Outcome {
        let task = self.tasks().get(todo.task);
        let (pipe, staging) = (task.pipe.0.as_raw_fd(), task.staging);
        // SAFETY: the staging area takes as many pages as there can be victims.
        if unsafe { sys::read_pipe(pipe, staging, dirty * PAGE) }.is_err() {
            fatal::stop("the kernel did not give held pages back (read of a pipe)");
        }
        let victims: [u32; VICTIMS] = std::array::from_fn(|i| todo.victims.get(i).map_or(0, |v| v.page as u32));
        let saved = self.append(todo, &victims[..anonymous]);
        Stats::add(&self.stats().writes_saved, saved as u64);
        self.learn_write_share(saved, anonymous);
        let mut outcome = Outcome { written: anonymous, files: dirty - anonymous, failed: 0 };
        for i in 0..outcome.files {
            let (page, from) = (victims[anonymous + i] as usize, staging + (anonymous + i) * PAGE);
            outcome.failed |= u64::from(!self.write_file_page(page, from)) << i;
        }
        outcome
    }

    /// The staged bytes of these pages go into the log. Returns how many were the old ones.
    fn append(&self, todo: &mut Todo, victims: &[u32]) -> usize {
        let (log, staging) = (self.log.get(), self.tasks().get(todo.task).staging);
        let sums: [u128; VICTIMS] = std::array::from_fn(|k| match k < victims.len() {
            // SAFETY: the staged pages are this thread's.
            true => unsafe { log.sum(staging + k * PAGE) },
            false => 0,
        });
        let (mut done, mut saved) = (0, 0);
        while done < victims.len() {
            let left = done..victims.len();
            let appended = log.append(staging + done * PAGE, &victims[left.clone()], &sums[left], &self.pages);
            done += appended.taken;
            saved += appended.saved;
            if let Some(buffer) = appended.full {
                self.write_log(todo, buffer);
            }
        }
        saved
    }

    /// A full buffer goes to the device. With a ring nobody waits for it: its pages are served from the buffer until it is there.
    fn write_log(&self, todo: &mut Todo, buffer: usize) {
        let log = self.log.get();
        if !self.rings || !log.is_whole(buffer) {
            return log.write_out(buffer, &self.pages, self.stats());
        }
        self.settle(todo);
        todo.writing = Some(buffer);
        let (from, offset) = log.sealed(buffer, &self.pages);
        let ring = self.ring(todo.task);
        ring.write(log.device().raw(), from, SEGMENT * PAGE, offset);
        ring.submit();
    }

    /// Waits for the write that a task has under way. Loads that arrive meanwhile keep for whoever waits for them.
    pub(crate) fn settle(&self, todo: &mut Todo) {
        while todo.writing.is_some() {
            let ring = self.ring(todo.task);
            match ring.next() {
                Some((WRITE, result)) => self.log_written(todo, result),
                Some((number, result)) => todo.loads[number].good = Some(result == PAGE as i32),
                None => ring.sleep(1),
            }
        }
    }

    /// The ring's write is over. What the device did not take whole is written again, plainly.
    pub(crate) fn log_written(&self, todo: &mut Todo, result: i32) {
        let buffer = todo.writing.take().expect("a write is under way");
        match result == (SEGMENT * PAGE) as i32 {
            true => self.log.get().written(buffer, self.stats()),
            false => self.log.get().write_out(buffer, &self.pages, self.stats()),
        }
    }

    /// Brings a file's page to its place. False: the device refused.
    pub(crate) fn write_file_page(&self, page: usize, from: usize) -> bool {
        // SAFETY: the bytes are this thread's.
        let sum = unsafe { self.log.get().sum(from) };
        if self.pages.slot(page).is_some() && self.pages.sum(page) == sum {
            Stats::add(&self.stats().writes_saved, 1);
            return true;
        }
        let (device, offset) = self.device_place(page).expect("a file's page has a place");
        Stats::add(&self.stats().device_writes, 1);
        // SAFETY: as above.
        if let Err(error) = unsafe { device.write(from, PAGE, offset) } {
            Stats::add(&self.stats().failures, 1);
            fatal::warn(format_args!("{}: {}, writing at {offset}", device.path().display(), error.io()));
            return false;
        }
        Stats::add(&self.stats().pages_written, 1);
        Stats::add(&self.stats().device_bytes_written, PAGE as u64);
        self.pages.set_sum(page, sum);
        self.pages.set_slot(page, Some(0));
        true
    }

    /// Of the readable pages mapped lately, the share that was written to; above a tenth, hashing is cheaper than write faults.
    pub(crate) fn note_written(&self, written: bool) {
        let old = self.write_share.load(Ordering::Relaxed);
        let aim = if written { 256 } else { 0 };
        let new = (old * 63 + aim) / 64;
        self.write_share.store(if written { new.max(old + 1).min(256) } else { new }, Ordering::Relaxed);
    }

    fn learn_write_share(&self, saved: usize, all: usize) {
        (0..saved).for_each(|_| self.note_written(false));
        (saved..all).for_each(|_| self.note_written(true));
    }
}
