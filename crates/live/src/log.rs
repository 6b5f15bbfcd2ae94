//! The swap area: a log. Dirty pages are appended to a buffer of 32, and a full buffer leaves with one write of 128 KiB.
//!
//! ```text
//!   swap file   | segment 0 (32 slots) | segment 1 | ...        a slot is a page; a page's bytes never change in their slot
//!   buffers     Filling ──full──► Writing ──done──► Kept        all three serve reads; Kept until another segment needs it
//! ```
//! A slot is freed when its page gets another one or is discarded; a segment without slots in use is free. When the file has grown
//! to twice what is in use, the holes of a segment are filled instead. A slot that a forked child can still see is freed only
//! when no such child is left, so it is never overwritten under a child.

use std::os::fd::OwnedFd;

use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::device::Device;
use crate::fatal;
use crate::lock::Lock;
use crate::pages::Pages;
use crate::seal::Sealer;
use crate::stats::Stats;
use crate::sys::{self, Errno};
use crate::{LiveError, PAGE};

mod area;

use area::{Child, Inside, BUFFERS};

/// Slots of a segment.
pub const SEGMENT: usize = 32;
/// Segments for which room is made at a time: 16 MiB.
const RESERVE: usize = 128;
/// Bits of a slot's number below the number of its file.
const FILE_SHIFT: u32 = 40;

/// What `Log::append` has done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Appended {
    /// Pages taken.
    pub taken: usize,
    /// Of those, pages that need not be written.
    pub saved: usize,
    /// A buffer that is full now and is to be written.
    pub full: Option<usize>,
}

/// The swap area of one process; with the files of the processes it was forked from, which it only reads.
#[derive(Debug)]
pub struct Log {
    state: Lock<Inside>,
    files: Vec<Device>,
    seed: u64,
    zero: u128,
    /// One for each file, or none.
    sealers: Vec<Sealer>,
}

impl Log {
    /// A log on a device, for so many managed pages and at most `bytes_max` bytes.
    pub fn new(device: Device, pages: usize, bytes_max: Option<u64>, sealer: Option<Sealer>) -> Result<Log, LiveError> {
        let mut segments = (2 * pages).div_ceil(SEGMENT) + BUFFERS;
        for bytes in [bytes_max, device.len].into_iter().flatten() {
            segments = segments.min((bytes / (SEGMENT * PAGE) as u64) as usize);
        }
        let seed = random()?;
        let state = Lock::new(Inside::new(segments, sealer.is_some())?);
        let sealers = sealer.into_iter().collect();
        let zero = xxh3_128_with_seed(&[0; PAGE], seed);
        Ok(Log { state, files: vec![device], seed, zero, sealers })
    }

    /// The keyed hash of a page.
    ///
    /// # Safety
    /// `address` must be good for a page that nobody writes to.
    pub unsafe fn sum(&self, address: usize) -> u128 {
        // SAFETY: the caller answers for it.
        xxh3_128_with_seed(unsafe { std::slice::from_raw_parts(address as *const u8, PAGE) }, self.seed)
    }

    /// The file that is written to.
    pub fn device(&self) -> &Device {
        self.files.last().expect("a log has a file")
    }

    /// All files.
    pub fn files(&self) -> &[Device] {
        &self.files
    }

    /// Brings a page of which the bytes are wanted into `into`, if a buffer has it.
    pub fn find(&self, slot: u64, into: usize) -> bool {
        let own = self.files.len() as u64 - 1;
        if slot >> FILE_SHIFT != own {
            return false;
        }
        let index = (slot & ((1 << FILE_SHIFT) - 1)) as usize;
        let state = self.state.lock();
        let Some(address) = state.buffered(index / SEGMENT, (index % SEGMENT) as u8) else { return false };
        // SAFETY: both are pages of ours, and the buffer cannot change under the lock.
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, into as *mut u8, PAGE) };
        true
    }

    /// Where a slot lies.
    pub fn place(&self, slot: u64) -> (&Device, u64) {
        (&self.files[(slot >> FILE_SHIFT) as usize], (slot & ((1 << FILE_SHIFT) - 1)) * PAGE as u64)
    }

    /// Opens what was sealed and checks that these are the bytes that were written: with a key the tag, always the sum.
    ///
    /// # Safety
    /// `address` must be good for a page that nobody else has.
    pub unsafe fn verify(&self, pages: &Pages, page: usize, address: usize) -> bool {
        let file = pages.slot(page).map_or(0, |slot| slot >> FILE_SHIFT) as usize;
        if let Some(sealer) = self.sealers.get(file) {
            let (nonce, tag) = pages.seal(page);
            // SAFETY: the caller answers for it.
            if !unsafe { sealer.open(address, page, nonce, tag) } {
                return false;
            }
        }
        // SAFETY: as above.
        unsafe { self.sum(address) == pages.sum(page) }
    }

    /// Takes the final bytes of pages, which lie one after the other at `staged` and have these sums, into the log, until a buffer is
    /// full. Bytes that are the old ones keep their slot. When it returns, the bytes of each page taken are safe here or in their slot.
    pub fn append(&self, staged: usize, victims: &[u32], sums: &[u128], pages: &Pages) -> Appended {
        let mut appended = Appended::default();
        let mut state = self.state.lock();
        while appended.full.is_none() && appended.taken < victims.len() {
            let (page, sum) = (victims[appended.taken] as usize, sums[appended.taken]);
            let known = if pages.slot(page).is_some() { pages.sum(page) } else { self.zero };
            let from = staged + appended.taken * PAGE;
            if sum == known || !self.take(&mut state, from, sum, page, pages, &mut appended.full) {
                appended.saved += 1;
            }
            appended.taken += 1;
        }
        appended
    }

    /// One page that has changed. False: it is zeros and need not be written.
    fn take(
        &self,
        state: &mut Inside,
        from: usize,
        sum: u128,
        page: usize,
        pages: &Pages,
        full: &mut Option<usize>,
    ) -> bool {
        let old = pages.slot(page);
        if sum == self.zero {
            pages.set_slot(page, None);
            self.free_slot(state, old);
            return false;
        }
        let own = (self.files.len() as u64 - 1) << FILE_SHIFT;
        let b = self.filling(state);
        let buffer = &mut state.buffers[b];
        // SAFETY: a page of the caller's, and a page of the buffer.
        unsafe {
            std::ptr::copy_nonoverlapping(from as *const u8, (buffer.address + buffer.used * PAGE) as *mut u8, PAGE);
        }
        let slot = buffer.segment * SEGMENT + usize::from(buffer.slots[buffer.used]);
        buffer.pages[buffer.used] = page as u32;
        buffer.used += 1;
        let is_full = buffer.used == buffer.room;
        state.used.as_mut_slice()[slot / SEGMENT] |= 1 << (slot % SEGMENT);
        state.birth.as_mut_slice()[slot] = state.epoch;
        state.live += 1;
        pages.set_sum(page, sum);
        pages.set_slot(page, Some(own | slot as u64));
        self.free_slot(state, old);
        if is_full {
            state.retire(b);
            *full = Some(b);
        }
        true
    }

    /// The page's bytes are not wanted any more.
    pub fn free(&self, slot: Option<u64>) {
        self.free_slot(&mut self.state.lock(), slot);
    }

    fn free_slot(&self, state: &mut Inside, slot: Option<u64>) {
        let Some(slot) = slot else { return };
        // Slots of the processes before this one are theirs to free.
        if slot >> FILE_SHIFT == self.files.len() as u64 - 1 {
            state.release((slot & ((1 << FILE_SHIFT) - 1)) as usize);
        }
    }

    /// The buffer being filled.
    fn filling(&self, state: &mut Inside) -> usize {
        if let Some(b) = state.current {
            return b;
        }
        let (segment, free) = self.segment(state);
        let b = state.take_buffer(segment);
        let buffer = &mut state.buffers[b];
        (buffer.room, buffer.used) = (0, 0);
        for slot in (0..SEGMENT as u8).filter(|slot| free >> slot & 1 != 0) {
            buffer.slots[buffer.room] = slot;
            buffer.room += 1;
        }
        state.current = Some(b);
        b
    }

    /// A segment with free slots, and which they are.
    fn segment(&self, state: &mut Inside) -> (usize, u32) {
        state.bury_children();
        if state.free_len > 0 {
            state.free_len -= 1;
            return (state.free[state.free_len] as usize, u32::MAX);
        }
        if state.segments * SEGMENT <= 2 * state.live + 64 * SEGMENT {
            if let Some(segment) = self.extend(state) {
                return (segment, u32::MAX);
            }
        }
        let holes = state.segment_with_holes();
        let found = holes.or_else(|| self.extend(state).map(|segment| (segment, u32::MAX)));
        found
            .unwrap_or_else(|| fatal::stop(format_args!("the swap area on {} is full", self.device().path().display())))
    }

    fn extend(&self, state: &mut Inside) -> Option<usize> {
        if state.segments == state.segments_max {
            return None;
        }
        let mut said = false;
        while state.segments == state.reserved {
            let bytes = |segments: usize| (segments * SEGMENT * PAGE) as u64;
            let to = (state.reserved + RESERVE).min(state.segments_max);
            match self.device().reserve(bytes(state.reserved), bytes(to)) {
                Ok(()) => state.reserved = to,
                Err(Errno::NOSPC) => {
                    wait_for_space(self.device(), &mut said);
                }
                Err(error) => {
                    fatal::stop(format_args!("{}: {}", self.device().path().display(), error.io()));
                }
            }
        }
        state.segments += 1;
        Some(state.segments - 1)
    }

    /// Whether a full buffer goes to one place whole, through a device that does not tamper with it.
    pub fn is_whole(&self, b: usize) -> bool {
        self.state.lock().buffers[b].used == SEGMENT && !self.device().injects()
    }

    /// The bytes of a full buffer that are to be written (its own, or sealed copies of them), and the place of its segment.
    pub fn sealed(&self, b: usize, pages: &Pages) -> (usize, u64) {
        let (address, segment, used) = {
            let state = self.state.lock();
            let x = &state.buffers[b];
            (x.address, x.segment, x.used)
        };
        let offset = (segment * SEGMENT * PAGE) as u64;
        let Some(sealer) = self.sealers.last() else { return (address, offset) };
        let sealed = address + SEGMENT * PAGE;
        for i in 0..used {
            self.seal(sealer, b, i, sealed + i * PAGE, pages);
        }
        (sealed, offset)
    }

    /// Seals one page of a buffer. Its page knows nonce and tag only if its bytes are still these: it may have been loaded from the
    /// buffer, written to, and appended again.
    fn seal(&self, sealer: &Sealer, b: usize, i: usize, into: usize, pages: &Pages) {
        let (from, page, slot) = {
            let x = &self.state.lock().buffers[b];
            (x.address + i * PAGE, x.pages[i] as usize, x.segment * SEGMENT + usize::from(x.slots[i]))
        };
        // SAFETY: both halves of the buffer are ours while it is being written.
        let (nonce, tag) = unsafe { sealer.seal(from, into, page) };
        let own = (self.files.len() as u64 - 1) << FILE_SHIFT;
        let _state = self.state.lock();
        if pages.slot(page) == Some(own | slot as u64) {
            pages.set_seal(page, nonce, tag);
        }
    }

    /// Writes a full buffer. It waits where the device is full and ends the program where it fails: the bytes are nowhere else.
    pub fn write_out(&self, b: usize, pages: &Pages, stats: &Stats) {
        let (slots, used) = {
            let state = self.state.lock();
            (state.buffers[b].slots, state.buffers[b].used)
        };
        let (bytes, start) = self.sealed(b, pages);
        let mut i = 0;
        while i < used {
            let run = (i + 1..used).take_while(|k| usize::from(slots[*k]) == usize::from(slots[i]) + k - i).count() + 1;
            let offset = start + u64::from(slots[i]) * PAGE as u64;
            self.write_run(bytes + i * PAGE, run * PAGE, offset, stats);
            i += run;
        }
        Stats::add(&stats.pages_written, used as u64);
        self.state.lock().written(b);
    }

    /// A buffer that was given away whole is on the device.
    pub fn written(&self, b: usize, stats: &Stats) {
        Stats::add(&stats.device_writes, 1);
        Stats::add(&stats.device_bytes_written, (SEGMENT * PAGE) as u64);
        Stats::add(&stats.pages_written, SEGMENT as u64);
        self.state.lock().written(b);
    }

    fn write_run(&self, from: usize, len: usize, offset: u64, stats: &Stats) {
        let (mut tries, mut said) = (0, false);
        loop {
            Stats::add(&stats.device_writes, 1);
            // SAFETY: the buffer's pages, which nobody else changes while they are written.
            match unsafe { self.device().write(from, len, offset) } {
                Ok(()) => break,
                Err(Errno::NOSPC) => wait_for_space(self.device(), &mut said),
                Err(error) => {
                    Stats::add(&stats.failures, 1);
                    tries += 1;
                    if tries == coldframe_core::engine::TRIES {
                        let (path, error) = (self.device().path().display(), error.io());
                        fatal::stop(format_args!("{path}: {error}, writing {len} bytes at {offset}, {tries} times"));
                    }
                }
            }
        }
        Stats::add(&stats.device_bytes_written, len as u64);
    }

    /// Brings what is in the buffer being filled to the device. Before a fork, so that the child finds it there.
    pub fn flush(&self, pages: &Pages, stats: &Stats) {
        let mut state = self.state.lock();
        let Some(b) = state.current else { return };
        if state.buffers[b].used > 0 {
            state.retire(b);
            drop(state);
            self.write_out(b, pages, stats);
        }
    }

    /// A child has been forked that sees all slots in use; it is gone when the other end of `alive` is closed.
    pub fn adopt(&self, alive: OwnedFd) {
        let mut state = self.state.lock();
        let epoch = state.epoch;
        state.epoch += 1;
        state.bury_children();
        match state.children.iter_mut().find(|c| c.is_none()) {
            Some(place) => *place = Some(Child { epoch, alive }),
            // Too many to follow: what they see is never freed.
            None => {
                state.children[0].as_mut().expect("all are taken").epoch = u32::MAX;
                std::mem::forget(alive);
            }
        }
    }

    /// In a forked child: what there is stays readable, and what is written goes to a file of its own.
    pub fn inherit(&mut self, device: Device) -> Result<(), LiveError> {
        let max = self.state.lock().segments_max;
        let sealed = !self.sealers.is_empty();
        if sealed {
            self.sealers.push(Sealer::new()?);
        }
        // The tables that the parent filled speak of the parent's file.
        std::mem::forget(std::mem::replace(&mut self.state, Lock::new(Inside::new(max, sealed)?)));
        self.files.push(device);
        Ok(())
    }
}

/// Nothing is lost while the program stands still, and it goes on when there is space.
fn wait_for_space(device: &Device, said: &mut bool) {
    if !*said {
        let path = device.path().display();
        fatal::warn(format_args!("{path}: no space left for the swap file; the program waits until there is some"));
        *said = true;
    }
    sys::sleep_us(100_000);
}

fn random() -> Result<u64, LiveError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|e| LiveError::os("a random key", std::io::Error::other(e)))?;
    Ok(u64::from_ne_bytes(bytes))
}
