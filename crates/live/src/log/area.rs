//! The books of a log: which slots are in use, which segments are free, which buffer holds what, and which children see which slots.

use std::os::fd::{AsRawFd, OwnedFd};

use super::SEGMENT;
use crate::sys;
use crate::table::Table;
use crate::{LiveError, PAGE};

/// Buffers: for each task one that its ring is writing and one that it has just filled, one being filled, and some that are kept.
pub const BUFFERS: usize = 2 * crate::task::TASKS + 4;
/// Written buffers that are kept to serve reads, before a new one is touched.
const KEPT: usize = 4;
/// Children that can see this process's slots at one time.
const CHILDREN: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Idle,
    Filling,
    Writing,
    Kept,
}

#[derive(Debug)]
pub struct Buffer {
    pub state: State,
    pub address: usize,
    pub segment: usize,
    /// The slots of the segment that it fills, in order; and whose page lies in each.
    pub slots: [u8; SEGMENT],
    pub pages: [u32; SEGMENT],
    pub room: usize,
    pub used: usize,
    /// When it was last filled, to find the oldest kept one.
    pub turn: u64,
}

#[derive(Debug)]
pub struct Child {
    pub epoch: u32,
    pub alive: OwnedFd,
}

#[derive(Debug)]
pub struct Inside {
    pub used: Table<u32>,
    pub birth: Table<u32>,
    pub free: Table<u32>,
    pub free_len: usize,
    pub segments: usize,
    pub reserved: usize,
    pub segments_max: usize,
    pub live: usize,
    pub cursor: usize,
    pub buffers: Vec<Buffer>,
    pub current: Option<usize>,
    pub turn: u64,
    pub epoch: u32,
    pub children: [Option<Child>; CHILDREN],
    /// Slots that are free once no child can see them, each with the epoch in which its page left it.
    pub deferred: Table<u32>,
    pub death: Table<u32>,
    pub deferred_len: usize,
}

impl Inside {
    pub fn new(segments: usize, sealed: bool) -> Result<Inside, LiveError> {
        let slots = segments * SEGMENT;
        let size = SEGMENT * PAGE * if sealed { 2 } else { 1 };
        let base = sys::map_memory(BUFFERS * size, None).map_err(|e| LiveError::os("memory for the log", e))?;
        let buffer = |i: usize| Buffer {
            state: State::Idle,
            address: base + i * size,
            segment: 0,
            slots: [0; SEGMENT],
            pages: [0; SEGMENT],
            room: 0,
            used: 0,
            turn: 0,
        };
        Ok(Inside {
            used: Table::new(segments)?,
            birth: Table::new(slots)?,
            free: Table::new(segments)?,
            free_len: 0,
            segments: 0,
            reserved: 0,
            segments_max: segments,
            live: 0,
            cursor: 0,
            buffers: (0..BUFFERS).map(buffer).collect(),
            current: None,
            turn: 0,
            epoch: 0,
            children: [const { None }; CHILDREN],
            deferred: Table::new(slots)?,
            death: Table::new(slots)?,
            deferred_len: 0,
        })
    }

    pub fn buffered(&self, segment: usize, slot: u8) -> Option<usize> {
        let mut held = self.buffers.iter().filter(|b| b.state != State::Idle && b.segment == segment);
        held.find_map(|b| Some(b.address + b.slots[..b.used].iter().position(|s| *s == slot)? * PAGE))
    }

    /// An idle buffer, or the one that has been kept longest, for a segment of which no other buffer then speaks.
    pub fn take_buffer(&mut self, segment: usize) -> usize {
        for buffer in &mut self.buffers {
            if buffer.state == State::Kept && buffer.segment == segment {
                buffer.state = State::Idle;
            }
        }
        let kept = || self.buffers.iter().enumerate().filter(|(_, b)| b.state == State::Kept);
        let idle = self.buffers.iter().position(|b| b.state == State::Idle);
        let oldest = kept().min_by_key(|(_, b)| b.turn).map(|(i, _)| i);
        let b = if kept().count() >= KEPT { oldest.or(idle) } else { idle.or(oldest) };
        let b = b.expect("a task has at most two buffers, and there are more than that");
        self.turn += 1;
        let buffer = &mut self.buffers[b];
        (buffer.state, buffer.segment, buffer.turn) = (State::Filling, segment, self.turn);
        b
    }

    pub fn retire(&mut self, b: usize) {
        self.buffers[b].state = State::Writing;
        self.current = None;
    }

    pub fn written(&mut self, b: usize) {
        self.buffers[b].state = State::Kept;
        let segment = self.buffers[b].segment;
        if self.used[segment] == 0 {
            self.push_free(segment);
        }
    }

    pub fn push_free(&mut self, segment: usize) {
        self.free.as_mut_slice()[self.free_len] = segment as u32;
        self.free_len += 1;
    }

    pub fn segment_with_holes(&mut self) -> Option<(usize, u32)> {
        let busy = |segment: usize| {
            let active = |b: &&Buffer| matches!(b.state, State::Filling | State::Writing);
            self.buffers.iter().filter(active).any(|b| b.segment == segment)
        };
        let mut best: Option<(usize, u32)> = None;
        for i in 0..self.segments {
            let segment = (self.cursor + i) % self.segments;
            let free = !self.used[segment];
            if free.count_ones() > best.map_or(0, |(_, f)| f.count_ones()) && !busy(segment) {
                best = Some((segment, free));
                if free.count_ones() >= SEGMENT as u32 / 2 {
                    break;
                }
            }
        }
        self.cursor = best.map_or(0, |(segment, _)| segment + 1);
        best
    }

    /// A slot is not its page's any more: it is free now, or when the last child that sees it is gone.
    pub fn release(&mut self, slot: usize) {
        if self.visible(self.birth[slot], self.epoch) {
            self.deferred.as_mut_slice()[self.deferred_len] = slot as u32;
            self.death.as_mut_slice()[self.deferred_len] = self.epoch;
            self.deferred_len += 1;
        } else {
            self.free_now(slot);
        }
    }

    /// Whether a child was forked while the slot was in use, from `birth` to before `death`.
    pub fn visible(&self, birth: u32, death: u32) -> bool {
        self.children.iter().flatten().any(|c| c.epoch == u32::MAX || (birth <= c.epoch && c.epoch < death))
    }

    pub fn free_now(&mut self, slot: usize) {
        let segment = slot / SEGMENT;
        self.used.as_mut_slice()[segment] &= !(1 << (slot % SEGMENT));
        self.live -= 1;
        let active = |b: &Buffer| b.segment == segment && matches!(b.state, State::Filling | State::Writing);
        if self.used[segment] == 0 && !self.buffers.iter().any(active) {
            self.push_free(segment);
        }
    }

    /// Looks which children are gone and frees what only they could see.
    pub fn bury_children(&mut self) {
        let before = self.children.iter().flatten().count();
        for place in &mut self.children {
            if place.as_ref().is_some_and(|c| hung_up(c.alive.as_raw_fd())) {
                *place = None;
            }
        }
        if before == self.children.iter().flatten().count() {
            return;
        }
        let mut kept = 0;
        for i in 0..self.deferred_len {
            let (slot, death) = (self.deferred[i] as usize, self.death[i]);
            if self.visible(self.birth[slot], death) {
                self.deferred.as_mut_slice()[kept] = slot as u32;
                self.death.as_mut_slice()[kept] = death;
                kept += 1;
            } else {
                self.free_now(slot);
            }
        }
        self.deferred_len = kept;
    }
}

fn hung_up(fd: i32) -> bool {
    let mut poll = libc::pollfd { fd, events: 0, revents: 0 };
    let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let a = [&mut poll as *mut _ as usize, 1, &none as *const _ as usize, 0, 8, 0];
    // SAFETY: one pollfd and a timespec that live through the call.
    unsafe { sys::call(libc::SYS_ppoll, a) }.is_ok() && poll.revents & (libc::POLLHUP | libc::POLLERR) != 0
}
