//! Regions: managed memory with an owner.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::device::Device;
use crate::mapping::Spot;
use crate::memory::Signals;
use crate::pager::{Inner, Pager, FILES};
use crate::pages::{Owner, Where};
use crate::stats::Stats;
use crate::sys;
use crate::{LiveError, Snapshot, PAGE};

/// Advice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    /// The range will be needed soon: load it.
    WillNeed,
    /// The range is not needed. Anonymous memory then reads as zeros; a file's memory reads as the file has it
    /// (unflushed writes are lost).
    DontNeed,
}

/// A file that pages belong to.
#[derive(Debug)]
pub(crate) struct FileRegion {
    pub(crate) device: Device,
    /// Its first page.
    pub(crate) first: AtomicUsize,
    /// A forked child has no memory here; other mappings may be at these addresses.
    process: u32,
}

/// Managed memory, aligned to a page. It is unmapped when dropped; a file's dirty pages are written first.
///
/// A *system call* on an absent page is served if the process has the rights for it ([`crate::Options::handlers`]).
/// Otherwise it fails with EFAULT: `pin` the range first.
#[derive(Debug)]
pub struct Region {
    pager: Pager,
    first: usize,
    pages: usize,
    len: usize,
    file: Option<usize>,
}

/// Keeps pages in RAM while it lives: for system calls, and for code that must not wait.
#[derive(Debug)]
pub struct Pin<'a> {
    region: &'a Region,
    range: Range<usize>,
}

impl Pager {
    /// A region of private memory, zero at first, backed by the swap file.
    ///
    /// # Errors
    /// A length of 0, or more than is left of `max_memory`.
    pub fn anonymous(&self, len: usize) -> Result<Region, LiveError> {
        self.region(len, None)
    }

    /// A region that is a file, as in a shared file mapping. Writes reach the file when their page leaves RAM, at
    /// `flush`, and when the region is dropped. It is as long as the file.
    ///
    /// # Errors
    /// A file that cannot be opened for reading and writing, or is empty or not regular; too many files; no address
    /// space.
    pub fn file(&self, path: &Path) -> Result<Region, LiveError> {
        if self.inner.is_unpaged() {
            let reason = "this process was forked and runs without paging".to_string();
            return Err(LiveError::Backing { path: path.to_path_buf(), reason });
        }
        if self.inner.options.swap.is_some() {
            let reason =
                "a page of a file has its place there, but with a swap area the engine gives each page one".to_string();
            return Err(LiveError::Setting { field: "swap", reason });
        }
        let device = Device::region(path, self.inner.options.inject)?;
        let len = device.len.unwrap_or(0) as usize;
        let pages = len.div_ceil(PAGE);
        let _signals = Signals::block();
        let Some(file) =
            self.inner.enter_file(FileRegion { device, first: AtomicUsize::new(0), process: std::process::id() })
        else {
            let reason = format!("a pager can have {FILES} files at a time; drop a region first");
            return Err(LiveError::Backing { path: path.to_path_buf(), reason });
        };
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let mapped = self.inner.map(Spot::Anywhere(PAGE), pages * PAGE, rights, Some(file));
        let first =
            mapped.map(|range| self.inner.space.pages_of(&range).start).inspect_err(|_| self.inner.leave_file(file))?;
        // No other thread knows the memory yet.
        self.inner.file(file).first.store(first, Ordering::Release);
        Ok(Region { pager: self.clone(), first, pages, len, file: Some(file) })
    }

    fn region(&self, len: usize, file: Option<usize>) -> Result<Region, LiveError> {
        if len == 0 {
            return Err(LiveError::Setting {
                field: "len",
                reason: "a region of 0 bytes; give at least 1".to_string(),
            });
        }
        let pages = len.div_ceil(PAGE);
        let _signals = Signals::block();
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let range = self.inner.map(Spot::Anywhere(PAGE), pages * PAGE, rights, file)?;
        let first = self.inner.space.pages_of(&range).start;
        Ok(Region { pager: self.clone(), first, pages, len, file })
    }
}

impl Region {
    /// Its first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.pager.inner.address(self.first) as *mut u8
    }

    /// Its bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Always false: a region has at least one byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// As a slice.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the range is this region's while it lives; absent pages are brought in by the fault handler.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len) }
    }

    /// As a slice.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the region is borrowed once.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.len) }
    }

    /// Its pager.
    pub fn pager(&self) -> &Pager {
        &self.pager
    }

    /// Statistics of its pager.
    pub fn stats(&self) -> Snapshot {
        self.pager.stats()
    }

    /// Loads the range and keeps it in RAM while the result lives.
    ///
    /// # Errors
    /// A range that is not the region's; more pages than may be pinned.
    pub fn pin(&self, range: Range<usize>) -> Result<Pin<'_>, LiveError> {
        let pages = self.pages_of(&range)?;
        self.pager.inner.pin_pages(pages)?;
        Ok(Pin { region: self, range })
    }

    /// Loads the range, many pages at a time, and waits until it is loaded. Of a range larger than RAM, only the end
    /// is then in RAM.
    ///
    /// # Errors
    /// A range that is not the region's.
    pub fn prefault(&self, range: Range<usize>) -> Result<(), LiveError> {
        let pages = self.pages_of(&range)?;
        self.pager.inner.load_pages(pages);
        Ok(())
    }

    /// Loads scattered ranges with as few submissions as possible: a list of 32 pages takes a fraction of the time of
    /// 32 faults.
    ///
    /// # Errors
    /// A range that is not the region's.
    pub fn will_need(&self, ranges: &[Range<usize>]) -> Result<(), LiveError> {
        let pages: Result<Vec<Range<usize>>, LiveError> = ranges.iter().map(|range| self.pages_of(range)).collect();
        self.pager.inner.load_pages(pages?.into_iter().flatten());
        Ok(())
    }

    /// Advice.
    ///
    /// # Errors
    /// A range that is not the region's.
    pub fn advise(&self, range: Range<usize>, advice: Advice) -> Result<(), LiveError> {
        match advice {
            Advice::WillNeed => self.prefault(range),
            Advice::DontNeed => {
                let pages = self.pages_of(&range)?;
                self.pager.inner.discard_pages(pages);
                Ok(())
            }
        }
    }

    /// Writes every page of a file region that was changed before the call to the file, durably. Flushed bytes
    /// survive a crash of the program or the machine. Anonymous memory has nothing to flush.
    ///
    /// # Errors
    /// The file cannot be written; pages that were not written stay dirty.
    pub fn flush(&self) -> Result<(), LiveError> {
        match self.file {
            Some(file) => self.pager.inner.flush_file(file, self.first..self.first + self.pages),
            None => Ok(()),
        }
    }

    /// False for a file's region in a child of the process that has made it.
    fn is_here(&self) -> bool {
        self.file.is_none_or(|file| self.pager.inner.file(file).process == std::process::id())
    }

    fn pages_of(&self, range: &Range<usize>) -> Result<Range<usize>, LiveError> {
        if range.start > range.end || range.end > self.len {
            return Err(LiveError::Range { start: range.start, end: range.end, len: self.len });
        }
        Ok(self.first + range.start / PAGE..self.first + range.end.div_ceil(PAGE))
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        if let Ok(pages) = self.region.pages_of(&self.range) {
            self.region.pager.inner.unpin_pages(pages);
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let flushed = if self.is_here() { self.flush() } else { Ok(()) };
        if let Err(error) = flushed {
            crate::fatal::warn(format_args!("a region is dropped with pages that could not be written: {error}"));
        }
        let inner = &self.pager.inner;
        let _signals = Signals::block();
        if self.is_here() {
            inner.close_pages(self.first..self.first + self.pages);
        }
        if let Some(file) = self.file {
            inner.leave_file(file);
        }
    }
}

impl Inner {
    /// Gives a file its number, which no other thread can take meanwhile; `None`: all are in use.
    fn enter_file(&self, file: FileRegion) -> Option<usize> {
        let (new, none) = (Box::into_raw(Box::new(file)), std::ptr::null_mut());
        let takes = |place: &AtomicPtr<FileRegion>| {
            place.compare_exchange(none, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let number = self.files.iter().position(takes);
        if number.is_none() {
            // SAFETY: made just above, and no other thread has seen it.
            drop(unsafe { Box::from_raw(new) });
        }
        number
    }

    /// Frees the file's number. The file has no pages any more.
    fn leave_file(&self, number: usize) {
        let file = self.files[number].swap(std::ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: made by `Box::into_raw`, and its pages are free now.
        drop(unsafe { Box::from_raw(file) });
    }

    fn flush_file(&self, file: usize, pages: Range<usize>) -> Result<(), LiveError> {
        let _signals = Signals::block();
        let device = &self.file(file).device;
        let buffer = sys::map_memory(PAGE, None).map_err(|e| LiveError::os("memory to write from", e))?;
        let (mut failed, mut lost) = (0, 0);
        for page in pages {
            match self.clean_page(page, buffer) {
                Flushed::Good => {}
                Flushed::Failed => failed += 1,
                Flushed::Lost => lost += 1,
            }
        }
        // SAFETY: no other thread knows it.
        unsafe { sys::unmap_memory(buffer, PAGE) };
        let refuse = |reason: String| LiveError::Backing { path: device.path().to_path_buf(), reason };
        if lost > 0 {
            return Err(refuse(format!(
                "{lost} pages are lost: they could not be written when they had to leave memory"
            )));
        }
        if failed > 0 {
            return Err(refuse(format!("{failed} pages could not be written; they are still in memory, flush again")));
        }
        device.sync().map_err(|error| refuse(format!("cannot be made durable: {}", error.io())))
    }

    /// Writes a page that is in RAM, if it was written to. It stays in RAM, and the engine need not know.
    fn clean_page(&self, page: usize, buffer: usize) -> Flushed {
        loop {
            let was = self.pages.get(page);
            let good = match was {
                Where::Clean | Where::Out | Where::Nowhere => true,
                Where::Lost => return Flushed::Lost,
                Where::Dirty | Where::Unsure if self.pages.acquire(page, was, Where::Busy, Owner::BRIEF) => {
                    self.write_in_place(page, buffer)
                }
                Where::Dirty | Where::Unsure => continue,
                Where::Held => match self.write_held(page, buffer) {
                    Some(good) => good,
                    None => continue,
                },
                Where::Busy | Where::Leaving => {
                    self.pages.wait(page);
                    continue;
                }
            };
            return if good { Flushed::Good } else { Flushed::Failed };
        }
    }

    /// Writes a page that lies in the holding area. No thread can write to it; under the lock no thread moves it
    /// either. `None`: it is not there.
    fn write_held(&self, page: usize, buffer: usize) -> Option<bool> {
        let decider = self.decider.lock();
        if self.pages.get(page) != Where::Held {
            return None;
        }
        // SAFETY: the page lies in the holding area, and the buffer is ours.
        unsafe { copy_page(self.holding(page), buffer) };
        let good = self.write_file_page(page, buffer);
        drop(decider);
        Some(good)
    }

    fn write_in_place(&self, page: usize, buffer: usize) -> bool {
        let address = self.address(page);
        self.peek(page, buffer);
        if !sys::is_there(address) {
            self.must(self.uffd.get().copy(address, buffer, true), "put a page back", page);
        }
        let good = self.write_file_page(page, buffer);
        // The kernel can write to a pinned page without the page table. A page is not pinned while it is busy.
        let clean = good && self.pages.pins(page) == 0;
        if !clean {
            self.must(self.uffd.get().protect(address..address + PAGE, false), "allow writes to a page", page);
        }
        self.pages.release(page, Owner::BRIEF, if clean { Where::Clean } else { Where::Dirty });
        Stats::add(&self.stats().flushes, 1);
        good
    }
}

/// The result of a flush for a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flushed {
    Good,
    /// It is still in memory.
    Failed,
    Lost,
}

/// # Safety
/// Both must be good for a page.
unsafe fn copy_page(from: usize, to: usize) {
    // SAFETY: the caller answers for it.
    unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, PAGE) };
}
