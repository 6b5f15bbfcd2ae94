//! The tables of a log: the slots in use, the free segments, the content of each buffer, and the slots that each
//! child sees.
//!
//! All functions here only change the tables, under the log's lock. They make no system call and never wait.
//!
//! ```text
//!   a slot    free ──take──► in use ──release──► free              (no child sees it)
//!                                        └─────► deferred ──bury──► free   (once no child does)
//!   a buffer  Idle ──► Filling ──full──► Full ──writer──► Writing ──done──► Kept ──► Filling (of another segment)
//! ```

use std::ops::Range;

use super::blocks::Blocks;
use super::children::Children;
use super::{BUFFERS, SEGMENT};
use crate::sys;
use crate::sys::table::Table;
use crate::{LiveError, PAGE};

/// Room is reserved for this many segments at a time: 16 MiB.
pub const RESERVE: usize = 128;
/// If fewer segments are left than this, more room is reserved. They are filled while the file system works.
const AHEAD: usize = 2 * BUFFERS;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Idle,
    Filling,
    Full,
    Writing,
    Cached,
}

#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    pub state: State,
    pub address: usize,
    pub segment: usize,
    /// The slots of the segment that it has places for, in order; and the page in each place.
    pub slots: [u8; SEGMENT],
    pub pages: [u32; SEGMENT],
    pub room: usize,
    /// A bit for each place that is taken.
    pub filled: u32,
    /// When it was last filled. The oldest is written first, and the oldest cached one is reused first.
    pub turn: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Job {
    Write(usize),
    /// Room is to be reserved for the segments from the first number up to the second, which is excluded.
    Reserve(usize, usize),
    /// The slots of children that are gone are to be freed.
    Bury,
}

/// Whether a thread that has no slot waits for the slots of children that are gone, and the last answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Burial {
    Requested,
    OfSome,
    OfNone,
}

/// Why a page cannot be taken now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The writer must finish some work first.
    Wait,
    /// There is no slot left, and none will become free.
    Full,
}

impl Buffer {
    pub fn used(&self) -> usize {
        self.filled.count_ones() as usize
    }

    pub fn has(&self, place: usize) -> bool {
        place < SEGMENT && self.filled >> place & 1 != 0
    }

    /// The number of taken places from `first` on whose slots follow each other, so that one write covers them.
    pub fn run(&self, first: usize) -> usize {
        let follows =
            |k: &usize| self.has(*k) && usize::from(self.slots[*k]) == usize::from(self.slots[first]) + k - first;
        (first..SEGMENT).take_while(follows).count()
    }
}

#[derive(Debug)]
pub struct Inside {
    /// A bit for each slot of a segment.
    used: Table<u32>,
    /// The epoch in which a slot was filled.
    birth: Table<u32>,
    /// The page that a slot was last filled for.
    owner: Table<u32>,
    free: Table<u32>,
    free_len: usize,
    /// Segments in use so far, segments with reserved room, and the most segments that there can be.
    segments: usize,
    reserved: usize,
    segments_max: usize,
    live: usize,
    cursor: usize,
    memory: BufferMemory,
    pub buffers: [Buffer; BUFFERS],
    current: Option<usize>,
    turn: u64,
    epoch: u32,
    pub children: Children,
    pub burial: Burial,
    /// Slots that are free once no child can see them, and the epoch in which each page left.
    deferred: Table<u64>,
    deferred_len: usize,
    /// A thread waits for room beyond `reserved`.
    wanted: bool,
    /// The file system has refused to reserve room, and has not been asked again since.
    no_space: bool,
    reserving: bool,
    /// The erase blocks, if the engine has a swap area.
    pub blocks: Option<Blocks>,
}

#[derive(Debug)]
struct BufferMemory(usize);

impl Drop for BufferMemory {
    fn drop(&mut self) {
        // SAFETY: the buffers go with the books, and are no longer written.
        unsafe { sys::unmap_memory(self.0, BUFFERS * SEGMENT * PAGE) };
    }
}

impl Inside {
    pub fn new(segments: usize) -> Result<Inside, LiveError> {
        let slots = segments * SEGMENT;
        let size = SEGMENT * PAGE;
        let base = sys::map_memory(BUFFERS * size).map_err(|e| LiveError::os("memory for the log", e))?;
        let buffer = |i: usize| Buffer {
            state: State::Idle,
            address: base + i * size,
            segment: 0,
            slots: [0; SEGMENT],
            pages: [0; SEGMENT],
            room: 0,
            filled: 0,
            turn: 0,
        };
        Ok(Inside {
            used: Table::new(segments)?,
            birth: Table::new(slots)?,
            owner: Table::new(slots)?,
            free: Table::new(segments)?,
            free_len: 0,
            segments: 0,
            reserved: 0,
            segments_max: segments,
            live: 0,
            cursor: 0,
            memory: BufferMemory(base),
            buffers: std::array::from_fn(buffer),
            current: None,
            turn: 0,
            epoch: 0,
            children: Children::new()?,
            burial: Burial::OfNone,
            deferred: Table::new(slots)?,
            deferred_len: 0,
            wanted: false,
            no_space: false,
            reserving: false,
            blocks: None,
        })
    }

    pub fn memory(&self) -> Range<usize> {
        self.memory.0..self.memory.0 + BUFFERS * SEGMENT * PAGE
    }

    pub fn segments_max(&self) -> usize {
        self.segments_max
    }

    /// The address of a slot's bytes, if they are in a buffer.
    pub fn buffered(&self, slot: usize) -> Option<usize> {
        let (segment, slot) = (slot / SEGMENT, (slot % SEGMENT) as u8);
        let mut filled = self.buffers.iter().filter(|b| b.state != State::Idle && b.segment == segment);
        filled.find_map(|b| {
            let place = (0..b.room).find(|place| b.slots[*place] == slot && b.has(*place))?;
            Some(b.address + place * PAGE)
        })
    }

    /// The page that a slot was last filled for, which may be elsewhere by now.
    pub fn owner(&self, slot: usize) -> u32 {
        self.owner[slot]
    }

    /// Gives a page the next slot. Returns the slot's number, and the place in a buffer for the page's bytes.
    pub fn take(&mut self, page: u32) -> Result<(usize, usize), Refused> {
        let b = match self.current {
            Some(b) => b,
            None => self.begin()?,
        };
        Ok(self.fill(b, self.buffers[b].used(), page))
    }

    /// Assigns the page to a place of a buffer. Returns its slot's number, and the place for its bytes.
    pub(super) fn fill(&mut self, b: usize, place: usize, page: u32) -> (usize, usize) {
        let buffer = &mut self.buffers[b];
        let (slot, into) = (buffer.segment * SEGMENT + usize::from(buffer.slots[place]), buffer.address + place * PAGE);
        buffer.pages[place] = page;
        self.owner.as_mut_slice()[slot] = page;
        buffer.filled |= 1 << place;
        if buffer.used() == buffer.room {
            self.retire(b);
        }
        self.used.as_mut_slice()[slot / SEGMENT] |= 1 << (slot % SEGMENT);
        // A table that is only read costs no RAM. Without forks, every slot is filled in epoch 0.
        if self.birth[slot] != self.epoch {
            self.birth.as_mut_slice()[slot] = self.epoch;
        }
        self.live += 1;
        (slot, into)
    }

    /// A buffer to fill, and its slots.
    fn begin(&mut self) -> Result<usize, Refused> {
        let b = self.spare_buffer()?;
        let (segment, free) = self.segment()?;
        self.open(b, segment, free);
        self.current = Some(b);
        Ok(b)
    }

    /// Assigns these slots of the segment to the buffer.
    pub(super) fn open(&mut self, b: usize, segment: usize, free: u32) {
        // Only one buffer may hold a segment.
        let same = |buffer: &&mut Buffer| buffer.state == State::Cached && buffer.segment == segment;
        self.buffers.iter_mut().filter(same).for_each(|buffer| buffer.state = State::Idle);
        self.turn += 1;
        let buffer = &mut self.buffers[b];
        (buffer.state, buffer.segment, buffer.turn) = (State::Filling, segment, self.turn);
        (buffer.room, buffer.filled) = (0, 0);
        for slot in (0..SEGMENT as u8).filter(|slot| free >> slot & 1 != 0) {
            buffer.slots[buffer.room] = slot;
            buffer.room += 1;
        }
    }

    /// An idle buffer, or the one that was cached longest. If all are being filled, the oldest of them is written as it
    /// is.
    pub(super) fn spare_buffer(&mut self) -> Result<usize, Refused> {
        let spare = |b: &usize| matches!(self.buffers[*b].state, State::Idle | State::Cached);
        let age = |b: &usize| (self.buffers[*b].state == State::Cached, self.buffers[*b].turn);
        let buffer = (0..BUFFERS).filter(spare).min_by_key(age);
        if buffer.is_none() && self.buffers.iter().all(|b| b.state == State::Filling) {
            let oldest = (0..BUFFERS).min_by_key(|b| self.buffers[*b].turn);
            oldest.into_iter().for_each(|b| self.retire(b));
        }
        buffer.ok_or(Refused::Wait)
    }

    fn segment(&mut self) -> Result<(usize, u32), Refused> {
        if let Some(segment) = self.free_segment() {
            return Ok((segment, u32::MAX));
        }
        let dense = self.segments * SEGMENT <= 2 * self.live + 64 * SEGMENT;
        if dense && self.segments < self.reserved {
            return Ok((self.extend(), u32::MAX));
        }
        if dense && self.reserved < self.segments_max && !self.no_space {
            self.wanted = true;
            return Err(Refused::Wait);
        }
        match self.segment_with_holes() {
            Some(buffer) => Ok(buffer),
            None => self.another().map(|segment| (segment, u32::MAX)),
        }
    }

    fn free_segment(&mut self) -> Option<usize> {
        self.free_len = self.free_len.checked_sub(1)?;
        Some(self.free[self.free_len] as usize)
    }

    fn another(&mut self) -> Result<usize, Refused> {
        if self.segments < self.reserved {
            return Ok(self.extend());
        }
        if self.reserved < self.segments_max {
            self.wanted = true;
            return Err(Refused::Wait);
        }
        // Segments being written may have free slots.
        match self.buffers.iter().any(|b| matches!(b.state, State::Full | State::Writing)) {
            true => Err(Refused::Wait),
            false => Err(Refused::Full),
        }
    }

    fn extend(&mut self) -> usize {
        self.segments += 1;
        self.segments - 1
    }

    fn segment_with_holes(&mut self) -> Option<(usize, u32)> {
        let mut best: Option<(usize, u32)> = None;
        for i in 0..self.segments {
            let segment = (self.cursor + i) % self.segments;
            let free = !self.used[segment];
            if free.count_ones() > best.map_or(0, |(_, f)| f.count_ones()) && !self.busy(segment) {
                best = Some((segment, free));
                if free.count_ones() >= SEGMENT as u32 / 2 {
                    break;
                }
            }
        }
        self.cursor = best.map_or(0, |(segment, _)| segment + 1);
        best
    }

    /// Whether bytes of the segment are being written to the device, or the segment belongs to an erase block.
    fn busy(&self, segment: usize) -> bool {
        let on_the_way = |b: &Buffer| matches!(b.state, State::Filling | State::Full | State::Writing);
        self.buffers.iter().any(|b| b.segment == segment && on_the_way(b)) || self.is_owned(segment)
    }

    fn is_owned(&self, segment: usize) -> bool {
        self.blocks.as_ref().is_some_and(|blocks| blocks.own(segment))
    }

    /// A buffer that is being filled is to be written now.
    pub(super) fn retire(&mut self, b: usize) {
        self.buffers[b].state = State::Full;
        self.current = self.current.filter(|current| *current != b);
    }

    pub fn retire_all(&mut self) {
        for b in 0..BUFFERS {
            if self.buffers[b].state == State::Filling {
                self.retire(b);
            }
        }
    }

    /// The next work for the writer. One write at a time, the oldest first. Room is reserved in good time; after a
    /// refusal, only when there is nothing to write.
    pub fn job(&mut self) -> Option<Job> {
        if self.burial == Burial::Requested {
            return Some(Job::Bury);
        }
        if self.wants_room() && !self.no_space {
            return Some(self.make_room());
        }
        if let Some(b) = self.next_full() {
            self.buffers[b].state = State::Writing;
            return Some(Job::Write(b));
        }
        self.wants_room().then(|| self.make_room())
    }

    pub fn has_job(&self) -> bool {
        self.burial == Burial::Requested || self.wants_room() || self.next_full().is_some()
    }

    fn next_full(&self) -> Option<usize> {
        if self.buffers.iter().any(|b| b.state == State::Writing) {
            return None;
        }
        let full = (0..BUFFERS).filter(|b| self.buffers[*b].state == State::Full);
        full.min_by_key(|b| self.buffers[*b].turn)
    }

    fn wants_room(&self) -> bool {
        let short = self.segments > 0 && self.reserved - self.segments < AHEAD && !self.no_space;
        (self.wanted || short) && self.reserved < self.segments_max && !self.reserving
    }

    fn make_room(&mut self) -> Job {
        self.reserving = true;
        Job::Reserve(self.reserved, (self.reserved + RESERVE).min(self.segments_max))
    }

    /// There is room up to segment `to`; `None`: there is no more room than before.
    pub fn reserved(&mut self, to: Option<usize>) {
        (self.reserving, self.no_space) = (false, to.is_none());
        if let Some(to) = to {
            (self.reserved, self.wanted) = (to, false);
        }
    }

    /// Whether a thread waits for room that the file system has refused to reserve.
    pub fn starved(&self) -> bool {
        self.wanted && self.no_space
    }

    /// The buffer is on the device; or, if not `whole`, it is to be written again.
    pub fn written(&mut self, b: usize, whole: bool) {
        self.buffers[b].state = if whole { State::Cached } else { State::Full };
        if whole {
            self.free_if_unused(self.buffers[b].segment);
        }
    }

    pub fn is_settled(&self) -> bool {
        self.buffers.iter().all(|b| matches!(b.state, State::Idle | State::Cached))
    }

    fn push_free(&mut self, segment: usize) {
        self.free.as_mut_slice()[self.free_len] = segment as u32;
        self.free_len += 1;
    }

    /// The slot no longer belongs to its page. It is free now, or when the last child that sees it is gone.
    pub fn release(&mut self, slot: usize) {
        if self.children.see(self.birth[slot], self.epoch) {
            self.deferred.as_mut_slice()[self.deferred_len] = u64::from(self.epoch) << 32 | slot as u64;
            self.deferred_len += 1;
        } else {
            self.free_now(slot);
        }
    }

    fn free_now(&mut self, slot: usize) {
        let segment = slot / SEGMENT;
        self.used.as_mut_slice()[segment] &= !(1 << (slot % SEGMENT));
        self.live -= 1;
        self.free_if_unused(segment);
    }

    pub(super) fn free_if_unused(&mut self, segment: usize) {
        if self.used[segment] == 0 && !self.busy(segment) {
            self.push_free(segment);
        }
    }

    /// A child has been forked. It sees all slots in use, until `alive` is closed at its other end.
    pub fn adopt(&mut self, alive: i32) {
        self.children.add(self.epoch, alive);
        self.epoch = self.epoch.saturating_add(1);
    }

    /// The epoch that the next fork ends.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Whether a child that was forked at the end of `epoch` can see a slot: it was in use then.
    pub fn is_visible(&self, slot: usize, epoch: u32) -> bool {
        let in_use = |used: &u32| used >> (slot % SEGMENT) & 1 != 0;
        slot / SEGMENT < self.segments
            && self.used.as_slice().get(slot / SEGMENT).is_some_and(in_use)
            && self.birth[slot] <= epoch
    }

    /// Frees the slots that only children seen as gone could see, and notes whether any child is gone.
    pub fn bury(&mut self, gone: impl FnMut(i32) -> bool) {
        self.burial = Burial::OfNone;
        if !self.children.bury(gone) {
            return;
        }
        self.burial = Burial::OfSome;
        let mut left = 0;
        for i in 0..self.deferred_len {
            let (slot, death) = (self.deferred[i] as u32 as usize, (self.deferred[i] >> 32) as u32);
            if self.children.see(self.birth[slot], death) {
                self.deferred.as_mut_slice()[left] = self.deferred[i];
                left += 1;
            } else {
                self.free_now(slot);
            }
        }
        self.deferred_len = left;
    }

    /// Gives a page the slot that the engine has chosen, or a slot of the log. Returns the slot's number in the file,
    /// and the place in a buffer for the page's bytes.
    pub fn place(&mut self, page: u32) -> Result<(usize, usize), Refused> {
        let Some(slot) = self.blocks.as_ref().and_then(|blocks| blocks.slot_of(page)) else { return self.take(page) };
        let (block, place) = (slot as usize / SEGMENT, slot as usize % SEGMENT);
        let segment = self.segment_of(block)?;
        assert!(self.used[segment] >> place & 1 == 0, "a slot is written once");
        let b = self.buffer_of(segment)?;
        Ok(self.fill(b, place, page))
    }

    fn segment_of(&mut self, block: usize) -> Result<usize, Refused> {
        if let Some(segment) = self.blocks.as_ref().and_then(|blocks| blocks.segment_of(block)) {
            return Ok(segment);
        }
        let segment = match self.free_segment() {
            Some(segment) => segment,
            None => self.another()?,
        };
        if let Some(blocks) = &mut self.blocks {
            blocks.give(block, segment);
        }
        Ok(segment)
    }

    fn buffer_of(&mut self, segment: usize) -> Result<usize, Refused> {
        let speaks = |state: State| matches!(state, State::Filling | State::Full | State::Writing);
        match self.buffers.iter().position(|b| b.segment == segment && speaks(b.state)) {
            Some(b) if self.buffers[b].state == State::Writing => Err(Refused::Wait),
            Some(b) => Ok(b),
            None => {
                let b = self.spare_buffer()?;
                self.open(b, segment, u32::MAX);
                Ok(b)
            }
        }
    }

    pub fn erase(&mut self, block: usize) {
        let Some(segment) = self.blocks.as_mut().and_then(|blocks| blocks.take_back(block)) else { return };
        if self.used[segment] == 0 {
            // Bytes that have not been written yet are no longer needed.
            let waits = |b: &&mut Buffer| b.segment == segment && matches!(b.state, State::Filling | State::Full);
            self.buffers.iter_mut().filter(waits).for_each(|b| b.state = State::Idle);
        }
        self.free_if_unused(segment);
    }
}
