//! A region of one thread. The thread writes and reads whole pages, discards and pins them, and gives prefetch hints;
//! it also drops the region and takes another one. No other thread touches the region, so every byte is known at all
//! times.

use std::os::fd::AsRawFd;

use coldframe_live::{Pager, Region, PAGE};
use fastrand::Rng;

use crate::setting::Setting;
use crate::wrong;

const WORDS: usize = PAGE / 8;

/// The thread's region, and the version of each page; 0: zeros.
pub struct Own<'a> {
    pager: &'a Pager,
    setting: &'a Setting,
    thread: usize,
    region: Region,
    versions: Vec<u32>,
    file: std::fs::File,
}

impl<'a> Own<'a> {
    pub fn new(pager: &'a Pager, setting: &'a Setting, thread: usize, random: &mut Rng) -> Own<'a> {
        let pages = random.usize(1..=setting.own);
        let region = pager.anonymous(pages * PAGE).unwrap_or_else(|e| wrong(format_args!("no region: {e}")));
        let file = tempfile::tempfile().expect("a file for system calls");
        Own { pager, setting, thread, region, versions: vec![0; pages], file }
    }

    fn pages(&self) -> usize {
        self.versions.len()
    }

    fn value(&self, page: usize, k: usize) -> u64 {
        match self.versions[page] {
            0 => 0,
            v => 0xF << 60 | (self.thread as u64) << 52 | (page as u64) << 36 | u64::from(v as u16) << 20 | k as u64,
        }
    }

    fn at(&self, page: usize, k: usize) -> *mut u64 {
        // SAFETY: inside the region.
        unsafe { self.region.as_ptr().cast::<u64>().add(page * WORDS + k) }
    }

    fn check_word(&self, page: usize, k: usize) {
        // SAFETY: inside the region and aligned; no other thread uses it.
        let word = unsafe { self.at(page, k).read_volatile() };
        if word != self.value(page, k) {
            // SAFETY: as above.
            let again = unsafe { self.at(page, k).read_volatile() };
            let (thread, expected) = (self.thread, self.value(page, k));
            let address = self.at(page, k);
            wrong(format_args!(
                "own page {page} of thread {thread}, word {k} ({address:?}): {word:#x} instead of {expected:#x}; now \
                 {again:#x}"
            ))
        }
    }

    fn check(&self, page: usize) {
        (0..WORDS).for_each(|k| self.check_word(page, k));
    }

    fn write(&mut self, page: usize) {
        self.versions[page] = (self.versions[page] + 1) & 0x7FFF | 1 << 14;
        for k in 0..WORDS {
            // SAFETY: inside the region and aligned; no other thread uses it.
            unsafe { self.at(page, k).write_volatile(self.value(page, k)) };
        }
    }

    /// Checks a word of a random page, and may write the page.
    pub fn touch(&mut self, random: &mut Rng) {
        let page = random.usize(..self.pages());
        self.check_word(page, random.usize(..WORDS));
        if random.u8(..100) < self.setting.writes {
            self.write(page);
        }
    }

    pub fn call(&mut self, random: &mut Rng) {
        let start = random.usize(..self.pages());
        let end = random.usize(start..(start + 40).min(self.pages())) + 1;
        let bytes = start * PAGE..end * PAGE;
        match random.u8(..10) {
            0 | 1 => self.discard(start, end),
            2 => self.region.will_need(&[bytes]).expect("a range of the region"),
            3 => self.wish(random),
            4 | 5 => self.pin(start, end.min(start + 3), random),
            6 => self.through_the_kernel(start, end),
            7 => self.replace(random),
            _ => (start..end).for_each(|page| self.check(page)),
        }
    }

    fn discard(&mut self, start: usize, end: usize) {
        self.region.discard(start * PAGE..end * PAGE).expect("a range of the region");
        self.versions[start..end].fill(0);
        self.check(start);
    }

    fn wish(&self, random: &mut Rng) {
        let mut ranges = Vec::new();
        for _ in 0..random.usize(1..40) {
            let page = random.usize(..self.pages());
            ranges.push(page * PAGE..(page + 1) * PAGE);
        }
        self.region.will_need(&ranges).expect("ranges of the region");
    }

    /// Pinned pages may be given to the kernel, whichever thread handles faults. The pager refuses too many pins at a
    /// time; that is no failure.
    fn pin(&mut self, start: usize, end: usize, random: &mut Rng) {
        // Forgetting the guard keeps the pin, so that the region can be written until then.
        match self.region.pin(start * PAGE..end * PAGE) {
            Ok(guard) => std::mem::forget(guard),
            Err(_) => return,
        }
        (start..end).for_each(|page| self.check(page));
        if random.bool() {
            self.write(start);
        }
        std::thread::yield_now();
        self.through_the_kernel(start, end);
        self.region.unpin(start * PAGE..end * PAGE).expect("a range of the region");
    }

    fn through_the_kernel(&mut self, start: usize, end: usize) {
        let (fd, len) = (self.file.as_raw_fd(), (end - start) * PAGE);
        let address = self.at(start, 0).cast::<libc::c_void>();
        // SAFETY: pages of the region; no other thread uses them.
        let results = unsafe { [libc::pwrite(fd, address, len, 0), libc::pread(fd, address, len, 0)] };
        if results != [len as isize; 2] {
            let error = std::io::Error::last_os_error();
            wrong(format_args!("pwrite and pread of {len} bytes at {address:?} gave {results:?}: {error}"));
        }
        (start..end).for_each(|page| self.check(page));
    }

    fn replace(&mut self, random: &mut Rng) {
        *self = Own::new(self.pager, self.setting, self.thread, random);
        self.check(random.usize(..self.pages()));
    }

    pub fn finish(self) {
        (0..self.pages()).for_each(|page| self.check(page));
    }
}
