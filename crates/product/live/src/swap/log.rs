//! The swap area: a log. Dirty pages are appended to a buffer of 32 pages. A thread of the pager writes a full buffer
//! with one write of 128 KiB (`log/writer.rs`). A thread that evicts waits only if all buffers are full.
//!
//! ```text
//!   swap file   | segment 0 (32 slots) | segment 1 | ...        a slot is a page; its bytes never change in their slot
//!   buffers     Filling ──full──► Full ──► Writing ──done──► Kept     all serve reads; Kept until its memory is needed
//! ```
//! A slot is freed when its page gets another one or is discarded; a segment without used slots is free. When the
//! file has grown to twice the space in use, free slots within segments are filled. A slot that a forked child can
//! still see is freed only when no such child is left, so it is never overwritten under a child.

use std::ops::Range;
use std::os::fd::RawFd;

use crate::page::pages::Pages;
use crate::swap::device::Device;
use crate::swap::parent::Parent;
use crate::swap::seal::Sealer;
use crate::swap::secret::Secret;
use crate::swap::slow::Slow;
use crate::swap::sum::Summer;
use crate::sys::lock::{Guard, Lock};
use crate::sys::Signals;
use crate::sys::{self, fatal, Errno, High, Sys};
use crate::{LiveError, PAGE};

pub use coldframe_recording::plan::{LOG_BUFFERS as BUFFERS, SEGMENT};

mod blocks;
mod children;
mod orders;
mod segments;
mod writer;

use blocks::Blocks;
use children::FOR_EVER;
use segments::{Burial, Inside, Refused};
use writer::Writer;

/// Bits of a slot's number below the number of its file.
const FILE_SHIFT: u32 = 40;
/// The most segments of a file: the number of a slot fits into 32 bits.
const SEGMENTS_MAX: usize = u32::MAX as usize / SEGMENT;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    /// There are none: the page is zeros.
    Zeros,
    /// In a buffer in RAM; they have been copied to the given place.
    Memory,
    Device(u64),
}

/// The swap area of one process. Pages that left before it was forked are in the files of its forebears. Its parent's
/// pager reads them for it, if that is a process of its own; otherwise this process has inherited the files.
#[derive(Debug)]
pub struct Log {
    state: Lock<Inside>,
    pub writer: Writer,
    device: Device,
    /// The connection with the child of a fork that is being made, and whether one is.
    forked: Lock<(Option<High>, bool)>,
    /// The number of its file: that of the parent's, plus one.
    number: u64,
    parent: Option<Parent>,
    forebears: Vec<Device>,
    summer: Summer,
    /// The log chooses the places of pages (and not the engine).
    places: bool,
    /// One for each file, or none without encryption.
    sealers: Vec<Sealer>,
    /// In place of the log: each page has its own slot, and is written there at once.
    pub slow: Option<Slow>,
}

impl Log {
    /// A log on a device, for `pages` managed pages, of at most `bytes_max` bytes; with `blocks` erase blocks if the
    /// engine places pages. It may use all of the device: children that see old bytes of every page need room besides
    /// that of the present pages.
    pub fn new(
        device: Device,
        pages: usize,
        bytes_max: Option<u64>,
        sealer: Option<Sealer>,
        blocks: Option<usize>,
    ) -> Result<Log, LiveError> {
        let least = (2 * pages).div_ceil(SEGMENT) + BUFFERS;
        let segments = segments_of(&device, least, bytes_max);
        let mut inside = Inside::new(segments)?;
        inside.blocks = blocks.map(|blocks| Blocks::new(pages, blocks, segments)).transpose()?;
        Ok(Log {
            summer: Summer::new(sealer.is_some())?,
            places: blocks.is_none(),
            state: Lock::new(inside),
            writer: Writer::new(sealer.is_some())?,
            device,
            forked: Lock::new((None, false)),
            number: 0,
            parent: None,
            forebears: Vec::new(),
            sealers: sealer.into_iter().collect(),
            slow: None,
        })
    }

    pub fn bytes_max(&self) -> u64 {
        let _signals = Signals::block();
        (self.state.lock().segments_max() * SEGMENT * PAGE) as u64
    }

    /// The keyed hash of a page.
    ///
    /// # Safety
    /// `address` must be good for a page that no thread writes to.
    pub unsafe fn sum(&self, address: usize) -> u128 {
        // SAFETY: the caller answers for it.
        self.summer.of(unsafe { &*(address as *const [u8; PAGE]) })
    }

    /// The file that this process writes to.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Finds a page's bytes. If they are in a buffer, copies them to `into`.
    pub fn find(&self, pages: &Pages, page: usize, into: usize) -> Location {
        // If the engine places pages, it may move them from buffer to buffer while the lock is free.
        let locked = (!self.places).then(|| self.state.lock());
        let Some(slot) = pages.slot(page) else { return Location::Zeros };
        if self.slow.is_some() || slot >> FILE_SHIFT != self.own_number() {
            return Location::Device(slot);
        }
        let state = locked.unwrap_or_else(|| self.state.lock());
        let Some(address) = state.buffered(index(slot)) else { return Location::Device(slot) };
        // SAFETY: both are pages of the pager, and the buffer cannot change under the lock.
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, into as *mut u8, PAGE) };
        Location::Memory
    }

    /// The place of a slot in its file, and whether that file is this process's own.
    pub fn place(&self, slot: u64) -> (u64, bool) {
        ((index(slot) * PAGE) as u64, slot >> FILE_SHIFT == self.number)
    }

    /// Reads the bytes in a slot, in this process's file or in one of its forebears'.
    ///
    /// # Safety
    /// `into` must be good for a page, aligned to one.
    pub unsafe fn read(&self, slot: u64, into: usize) -> Sys<()> {
        // SAFETY: the caller answers for the memory.
        match (self.place(slot), &self.parent) {
            ((offset, true), _) => unsafe { self.device.read(into, offset) },
            (_, Some(parent)) => unsafe { parent.read(slot, into) },
            ((offset, _), None) => {
                let file = self.forebears.get((slot >> FILE_SHIFT) as usize);
                unsafe { file.unwrap_or(&self.device).read(into, offset) }
            }
        }
    }

    /// Reads a slot for a child that was forked at the end of `epoch`. EACCES: the child cannot see it.
    ///
    /// # Safety
    /// As for `read`.
    pub unsafe fn read_for_child(&self, slot: u64, epoch: u32, into: usize) -> Sys<()> {
        let _signals = Signals::block();
        let own = self.place(slot).1;
        if own && self.slow.is_none() && !self.state.lock().is_visible(index(slot), epoch) {
            return Err(Errno::ACCESS);
        }
        // SAFETY: the caller answers for it.
        unsafe { self.read(slot, into) }
    }

    /// In a forked child that has all of its parent's pages: it reads no more.
    pub fn leave_parent(&mut self) -> Option<Parent> {
        self.parent.take()
    }

    /// The pages in the other slots of the aligned block of that many slots, a power of two up to [`SEGMENT`], in which
    /// a page of this process is. `None` stands for a slot that is free.
    pub fn neighbours(&self, pages: &Pages, page: usize, many: usize) -> [Option<u32>; SEGMENT] {
        let mut neighbours = [None; SEGMENT];
        let own = |slot: u64| slot >> FILE_SHIFT == self.own_number();
        let Some(slot) = pages.slot(page).filter(|slot| own(*slot)) else { return neighbours };
        let first = index(slot) & !(many - 1);
        let state = self.state.lock();
        for (i, neighbour) in neighbours.iter_mut().enumerate().take(many).filter(|(i, _)| first + i != index(slot)) {
            let other = state.owner(first + i);
            let lies = pages.slot(other as usize) == Some(slot - index(slot) as u64 + (first + i) as u64);
            *neighbour = lies.then_some(other);
        }
        neighbours
    }

    fn own_number(&self) -> u64 {
        self.number
    }

    /// Decrypts the slot of a page if it is encrypted, and checks that the bytes are those that were written: the tag
    /// if there is a key, and always the hash of the page.
    ///
    /// # Safety
    /// `address` must be good for a page that no other thread has.
    pub unsafe fn verify(&self, pages: &Pages, page: usize, address: usize) -> bool {
        let slot = pages.slot(page).unwrap_or(0);
        if let Some(sealer) = self.sealers.get((slot >> FILE_SHIFT) as usize) {
            let (nonce, tag) = pages.seal(page);
            // SAFETY: the caller answers for it.
            if !unsafe { sealer.open(address, page, nonce, tag) } {
                return false;
            }
        }
        // SAFETY: as above.
        unsafe { self.sum(address) == pages.sum(page) }
    }

    /// Takes the final bytes of pages into the log: each page, where its bytes are, and their hash. A page with
    /// unchanged bytes keeps its slot. When this returns, the bytes of each page are safe, here or in their slot.
    /// Returns the number of pages that need not be written. Waits, without the lock, while all buffers are full.
    pub fn append(&self, bytes: &[(u32, usize, u128)], pages: &Pages) -> usize {
        let (mut saved, mut state) = (0, self.state.lock());
        for (page, from, sum) in bytes {
            let taken = self.with_room(state, |state| self.take(state, *from, *sum, *page, pages));
            state = taken.0;
            saved += usize::from(!taken.1);
        }
        self.unlock(state);
        saved
    }

    /// In slow memory: the page's slot holds its bytes, also if they are zeros (`zeros`: a page of them).
    pub fn fill_slot(&self, page: usize, zeros: usize, pages: &Pages) {
        if let Some(slow) = self.slow.as_ref().filter(|_| pages.slot(page).is_none()) {
            slow.put(self.device(), page, zeros, true);
            pages.set_sum(page, self.summer.zero());
            pages.set_slot(page, Some(page as u64));
        }
    }

    /// In slow memory: the slot of a page that was written in place has its bytes again.
    pub fn write_slot(&self, page: usize, from: usize, pages: &Pages) {
        if let Some(slow) = &self.slow {
            slow.put(self.device(), page, from, true);
            // SAFETY: the caller's page.
            pages.set_sum(page, unsafe { self.sum(from) });
        }
    }

    /// The result of `take` once there is room for what it takes.
    fn with_room<'a, T>(
        &'a self,
        mut state: Guard<'a, Inside>,
        take: impl Fn(&mut Inside) -> Result<T, Refused>,
    ) -> (Guard<'a, Inside>, T) {
        loop {
            match take(&mut state) {
                Ok(taken) => return (state, taken),
                Err(Refused::Wait) => state = self.await_writer(state),
                Err(Refused::Full) => state = self.make_free(state),
            }
        }
    }

    /// One page. Returns false if it is unchanged or zeros, so that it need not be written.
    fn take(&self, state: &mut Inside, from: usize, sum: u128, page: u32, pages: &Pages) -> Result<bool, Refused> {
        if !self.places {
            return self.take_sent(state, from, sum, page, pages);
        }
        let (index, old) = (page as usize, pages.slot(page as usize));
        if sum == old.map_or(self.summer.zero(), |_| pages.sum(index)) {
            return Ok(false);
        }
        if let Some(slow) = &self.slow {
            slow.put(self.device(), index, from, old.is_none());
            pages.set_sum(index, sum);
            pages.set_slot(index, Some(index as u64));
            return Ok(true);
        }
        if sum == self.summer.zero() {
            pages.set_slot(index, None);
            self.free_slot(state, old);
            return Ok(false);
        }
        self.put(state, from, page, pages)?;
        pages.set_sum(index, sum);
        Ok(true)
    }

    /// No slot is free. Frees the slots of children that are gone by now.
    fn make_free<'a>(&'a self, mut state: Guard<'a, Inside>) -> Guard<'a, Inside> {
        state.burial = Burial::Requested;
        while state.burial == Burial::Requested {
            state = self.await_writer(state);
        }
        if state.burial == Burial::OfNone {
            fatal::stop(format_args!("the swap area on {} is full", self.device().path().display()));
        }
        state
    }

    fn free_slot(&self, state: &mut Inside, slot: Option<u64>) {
        // Slots of the parent processes are not this process's to free.
        match (slot.filter(|slot| slot >> FILE_SHIFT == self.own_number()), &self.slow) {
            (Some(slot), None) => state.release(index(slot)),
            (Some(slot), Some(slow)) => slow.free(index(slot), 1),
            (None, _) => {}
        }
    }

    /// Before a fork: writes everything to the device, so that the child finds it there. The tables do not change
    /// until `fork_parent` or `fork_child`. No thread may append any more.
    pub fn fork_prepare(&self) {
        let mut state = self.state.lock();
        state.retire_all();
        while !state.is_settled() {
            state = self.await_writer(state);
        }
        std::mem::forget(state);
        self.forked.lock().1 = true;
    }

    /// During a fork: the child is gone when the other end of this is closed.
    pub fn expect_child(&self, child: High) {
        self.forked.lock().0 = Some(child);
    }

    /// After a fork, even a failed one: a child may exist that sees all slots in use. Without a connection its end
    /// cannot be known, and what it sees is kept for ever (`for_ever`).
    pub fn fork_parent(&self, for_ever: bool) {
        let child = std::mem::take(&mut *self.forked.lock()).0;
        // SAFETY: `fork_prepare` has taken the lock.
        let state = unsafe { self.state.held() };
        state.bury(hung_up);
        if let Some(child) = child.map(High::into_raw).or(for_ever.then_some(FOR_EVER)) {
            state.adopt(child);
        }
        self.state.free();
    }

    /// In the pager of a process that has ended: perhaps during a fork.
    pub fn end_fork(&self) {
        let _signals = Signals::block();
        if self.forked.lock().1 {
            self.fork_parent(false);
        }
    }

    /// The epoch that a fork ends which is being made.
    pub fn epoch_of_fork(&self) -> u32 {
        // SAFETY: `fork_prepare` has taken the lock.
        unsafe { self.state.held() }.epoch()
    }

    /// Whether any child can see slots of this process. Those of the others are freed.
    pub fn has_children(&self) -> bool {
        let _signals = Signals::block();
        let mut state = self.state.lock();
        state.bury(hung_up);
        state.children.any()
    }

    /// In a forked child, even one that does not page: its parent's pager reads what is in the files so far. `None`: it
    /// reads them itself.
    pub fn read_by(&mut self, parent: Option<Parent>) {
        self.parent = parent;
        self.number += 1;
    }

    /// In a child that reads the files of its forebears itself: their descriptors are its own, to keep and to close.
    pub fn inherit(&mut self) {
        self.forebears.iter_mut().chain([&mut self.device]).for_each(Device::inherit);
    }

    /// The files of a process, and those of its forebears that it has.
    pub fn files(&self) -> impl Iterator<Item = &Device> {
        self.forebears.iter().chain([&self.device])
    }

    /// In a forked child: old slots stay readable, and new pages go to a file of the child's own. There is no writer
    /// yet.
    pub fn fork_child(&mut self, device: Device) -> Result<(), LiveError> {
        // SAFETY: `fork_prepare` has taken the lock. The parent's children are this process's siblings, so it does not
        // keep track of them.
        let state = unsafe { self.state.held() };
        self.forked = Lock::new((None, false));
        let mut new = Inside::new(state.segments_max())?;
        new.blocks = state.blocks.take().map(Blocks::inherited).transpose()?;
        if !self.sealers.is_empty() {
            self.sealers.push(Sealer::new()?);
        }
        self.lock_keys();
        self.writer.forget();
        // The parent's tables describe the parent's file.
        self.state = Lock::new(new);
        self.writer = Writer::new(!self.sealers.is_empty())?;
        let parents = std::mem::replace(&mut self.device, device);
        if self.parent.is_none() {
            self.forebears.push(parents);
        }
        Ok(())
    }

    #[cfg(test)]
    pub fn keys(&self) -> Vec<usize> {
        self.all_keys().map(Secret::address).collect()
    }

    fn all_keys(&self) -> impl Iterator<Item = &Secret<[u8; 32]>> {
        self.sealers.iter().map(|sealer| &sealer.key).chain([&self.summer.key])
    }

    /// Locks the inherited keys in a forked child. The child cannot be stopped if the limit was lowered since the
    /// start.
    fn lock_keys(&self) {
        if !self.sealers.is_empty() && self.all_keys().any(|key| key.lock_again().is_err()) {
            fatal::say(
                "a forked process may not keep its keys in RAM (ulimit -l): the kernel may write them to its swap",
            );
        }
    }

    /// The address ranges of the buffers, which hold pages in plain text, and of their encrypted copies.
    pub fn buffers(&self) -> [Range<usize>; 2] {
        let _signals = Signals::block();
        [self.state.lock().memory(), self.writer.memory()]
    }

    fn unlock(&self, state: Guard<'_, Inside>) {
        let wanted = state.has_job();
        drop(state);
        if wanted {
            self.writer.call();
        }
    }
}

/// Segments that a file on the device may have: as many as fit, at least as many as are needed, up to its limits.
pub fn segments_of(device: &Device, least: usize, bytes_max: Option<u64>) -> usize {
    let fits = |bytes: u64| usize::try_from(bytes / (SEGMENT * PAGE) as u64).unwrap_or(usize::MAX);
    let limits = [bytes_max, device.limit()].into_iter().flatten().map(fits);
    limits.fold(fits(device.room()).max(least).min(SEGMENTS_MAX), usize::min)
}

fn index(slot: u64) -> usize {
    (slot & ((1 << FILE_SHIFT) - 1)) as usize
}

/// Whether a child has ended, or runs another program. If so, its connection is closed.
fn hung_up(fd: RawFd) -> bool {
    let [events, _] = sys::await_events([fd, -1], false).unwrap_or_default();
    let gone = events & (libc::POLLHUP | libc::POLLERR) != 0;
    if gone {
        // SAFETY: the books own it, and it goes off their list.
        drop(unsafe { High::from_raw(fd) });
    }
    gone
}
