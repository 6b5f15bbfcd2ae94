//! The frames of RAM: the page in each, and what the engine knows of it.
//!
//! A frame is free, reserved for a load in flight, or resident. Free frames are first handed out in the order 0, 1, 2,
//! ... The record of a frame takes memory from its first use on, so frames that are never used cost nothing. A policy
//! sees the resident frames through [`Residents`]; there is no other way from a policy to the machine.

use alloc::vec::Vec;

use crate::command::{Command, Work};
use crate::ids::{FrameId, PageId};
use crate::lists::{Links, List};
use crate::machine::{After, Caps, Machine};
use crate::place::Place;
use crate::units::Walk;

/// What a frame is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Not used.
    Free,
    /// Reserved for a load in flight.
    Reserved,
    /// Holds a page.
    Resident(PageId),
}

/// One frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Its use.
    pub used: Use,
    /// The page table points at it. A resident page that is not mapped is on a policy's invalid list, or its reference
    /// bit is emulated and clear.
    pub mapped: bool,
    /// The emulated reference bit; meaningful only without `Caps::reference_bit`.
    pub referenced: bool,
    /// The page is known to be dirty: from a dirty bit read before it was unmapped, or from a write fault.
    pub dirty: bool,
    /// How often the page is pinned. A policy does not see pinned pages.
    pub pins: u32,
    /// The page came in beside a first touch and was not looked at yet. A policy does not see it.
    pub first_touch_neighbour: bool,
}

impl Frame {
    const FREE: Frame = Frame {
        used: Use::Free,
        mapped: false,
        referenced: false,
        dirty: false,
        pins: 0,
        first_touch_neighbour: false,
    };
}

/// All frames.
#[derive(Debug)]
pub struct Frames {
    /// Frames that have been handed out so far; the capacity is for all of them.
    frames: Vec<Frame>,
    count: usize,
    /// So many of the free ones are given away.
    lent: usize,
    /// Frames that have been returned.
    free: List,
    /// Frames whose pages came in beside first touches, the oldest first.
    first_touch_neighbours: List,
    links: Links,
    pinned: usize,
}

impl Frames {
    /// `n` free frames.
    pub fn new(n: usize) -> Frames {
        Frames {
            frames: Vec::with_capacity(n),
            count: n,
            lent: 0,
            free: List::new(),
            first_touch_neighbours: List::new(),
            links: Links::new(n),
            pinned: 0,
        }
    }

    /// How many the engine has now.
    pub fn len(&self) -> usize {
        self.count - self.lent
    }

    /// How many it has given away.
    pub fn lent(&self) -> usize {
        self.lent
    }

    /// So many of the free frames are given away from now on.
    pub(crate) fn set_lent(&mut self, lent: usize) {
        debug_assert!(lent <= self.free() + self.lent);
        self.lent = lent;
    }

    /// Always false: an engine has at least one frame.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many are free.
    pub fn free(&self) -> usize {
        self.count - self.frames.len() + self.free.len() - self.lent
    }

    /// How many are pinned.
    pub fn pinned(&self) -> usize {
        self.pinned
    }

    /// Returns true if it was not pinned before.
    pub(crate) fn pin(&mut self, frame: FrameId) -> bool {
        let frame = &mut self.frames[frame.index()];
        frame.pins += 1;
        self.pinned += usize::from(frame.pins == 1);
        frame.pins == 1
    }

    /// Returns true if it is not pinned any more.
    pub(crate) fn unpin(&mut self, frame: FrameId) -> bool {
        let frame = &mut self.frames[frame.index()];
        frame.pins -= 1;
        self.pinned -= usize::from(frame.pins == 0);
        frame.pins == 0
    }

    /// One frame.
    pub fn get(&self, frame: FrameId) -> &Frame {
        &self.frames[frame.index()]
    }

    pub(crate) fn get_mut(&mut self, frame: FrameId) -> &mut Frame {
        &mut self.frames[frame.index()]
    }

    /// The page in a resident frame.
    ///
    /// # Panics
    /// If the frame is not resident. That is a bug of the caller.
    pub fn page(&self, frame: FrameId) -> PageId {
        match self.frames[frame.index()].used {
            Use::Resident(page) => page,
            other => panic!("frame {} is {other:?}, not resident", frame.0),
        }
    }

    /// All frames that have ever been used, in order.
    pub fn iter(&self) -> impl Iterator<Item = (FrameId, &Frame)> {
        self.frames.iter().enumerate().map(|(i, frame)| (FrameId::from(i), frame))
    }

    pub(crate) fn reserve(&mut self) -> Option<FrameId> {
        let reserved = Frame { used: Use::Reserved, ..Frame::FREE };
        if self.free() == 0 {
            return None;
        }
        if self.frames.len() < self.count {
            self.frames.push(reserved);
            return Some(FrameId::from(self.frames.len() - 1));
        }
        let i = self.free.pop_head(&mut self.links)?;
        self.frames[i] = reserved;
        Some(FrameId::from(i))
    }

    /// A victim's frame goes directly to the load that needs it.
    pub(crate) fn hand_over(&mut self, frame: FrameId) {
        self.frames[frame.index()] = Frame { used: Use::Reserved, ..Frame::FREE };
    }

    pub(crate) fn settle(&mut self, frame: FrameId, page: PageId) {
        debug_assert_eq!(self.frames[frame.index()].used, Use::Reserved);
        self.frames[frame.index()] = Frame { used: Use::Resident(page), ..Frame::FREE };
    }

    /// A page of zeros is in a reserved frame, beside a first touch.
    pub(crate) fn settle_neighbour(&mut self, frame: FrameId, page: PageId, dirty: bool) {
        self.settle(frame, page);
        let state = self.get_mut(frame);
        (state.mapped, state.dirty, state.first_touch_neighbour) = (true, dirty, true);
        self.first_touch_neighbours.push_tail(&mut self.links, frame.index());
    }

    /// Pages that came in beside first touches and were not looked at yet.
    pub(crate) fn first_touch_neighbours(&self) -> usize {
        self.first_touch_neighbours.len()
    }

    /// The oldest of them; it is none of them any more.
    pub(crate) fn take_neighbour(&mut self) -> Option<FrameId> {
        let frame = FrameId::from(self.first_touch_neighbours.head()?);
        self.forget_neighbour(frame);
        Some(frame)
    }

    /// Returns whether the frame was one of them.
    pub(crate) fn forget_neighbour(&mut self, frame: FrameId) -> bool {
        let was = core::mem::take(&mut self.get_mut(frame).first_touch_neighbour);
        if was {
            self.first_touch_neighbours.unlink(&mut self.links, frame.index());
        }
        was
    }

    pub(crate) fn release(&mut self, frame: FrameId) {
        debug_assert_ne!(self.frames[frame.index()].used, Use::Free);
        self.pinned -= usize::from(self.frames[frame.index()].pins > 0);
        self.frames[frame.index()] = Frame::FREE;
        self.free.push_tail(&mut self.links, frame.index());
    }
}

/// A policy's window on the resident pages.
pub struct Residents<'a> {
    pub(crate) frames: &'a mut Frames,
    pub(crate) machine: &'a mut dyn Machine,
    pub(crate) caps: Caps,
    pub(crate) work: &'a mut Work,
}

impl Residents<'_> {
    /// How many frames there are in all.
    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// The page in a frame, for policies that remember evicted pages.
    pub fn page(&self, frame: FrameId) -> PageId {
        self.frames.page(frame)
    }

    /// Whether the page in `frame` was touched since its bit was last cleared.
    ///
    /// Without hardware bits a cleared bit means an unmapped page, and the fault that maps it again is the reference.
    pub fn referenced(&mut self, frame: FrameId, after: After) -> bool {
        let Frame { mapped, referenced, .. } = *self.frames.get(frame);
        if self.caps.reference_bit {
            return mapped && self.machine.referenced(self.frames.page(frame), after);
        }
        if referenced && after == After::Clear {
            self.frames.get_mut(frame).referenced = false;
            self.unmap(frame);
        }
        referenced
    }

    /// Frames examined so far in this search.
    pub fn walked(&self) -> Walk {
        self.work.walk
    }

    /// Frames were examined, and no victim found.
    pub(crate) fn walked_in_vain(&mut self, walk: Walk) {
        self.work.walk += walk;
    }

    /// Whether clearing a reference bit costs nothing.
    pub fn has_reference_bits(&self) -> bool {
        self.caps.reference_bit
    }

    /// Takes the page in `frame` out of the page table but keeps it in RAM: its next touch is a false fault.
    pub fn downgrade(&mut self, frame: FrameId) {
        self.unmap(frame);
    }

    /// A downgrade that an earlier false fault had made necessary (PA-FIFO-SC). It is counted as extra work.
    pub fn downgrade_delayed(&mut self, frame: FrameId) {
        self.work.delayed_downgrades += 1;
        self.unmap(frame);
    }

    /// Reads the dirty bit before the page table forgets it.
    fn unmap(&mut self, frame: FrameId) {
        if !self.frames.get(frame).mapped {
            return;
        }
        let page = self.frames.page(frame);
        self.protect(frame);
        self.machine.issue(Command::Unmap { page });
        self.frames.get_mut(frame).mapped = false;
    }

    /// After this no write can succeed, and `Frame::dirty` is final.
    fn protect(&mut self, frame: FrameId) {
        let page = self.frames.page(frame);
        self.machine.issue(Command::Protect { page });
        if self.caps.dirty_bit && self.machine.dirty(page) {
            self.frames.get_mut(frame).dirty = true;
        }
    }

    /// Protect, read the dirty bit, write, evict: in this order no write of the task can be lost. Returns whether the
    /// page was dirty. `write` gives the command for the bytes of a dirty page.
    pub(crate) fn evict(&mut self, frame: FrameId, write: impl FnOnce(&mut dyn Machine) -> Command) -> bool {
        let page = self.frames.page(frame);
        let mapped = self.frames.get(frame).mapped;
        if mapped {
            self.protect(frame);
        }
        let dirty = self.frames.get(frame).dirty;
        if dirty {
            let command = write(self.machine);
            self.machine.issue(command);
        }
        self.machine.issue(Command::Evict { page, from: frame });
        dirty
    }

    /// Maps the page in `frame` with the given reference bit; `writing` if a write comes next.
    pub(crate) fn map(&mut self, frame: FrameId, referenced: bool, writing: bool) {
        let (caps, page) = (self.caps, self.frames.page(frame));
        let state = self.frames.get_mut(frame);
        state.mapped = true;
        state.referenced = referenced;
        state.dirty |= writing && !caps.dirty_bit;
        let writable = caps.dirty_bit || state.dirty;
        self.machine.issue(Command::Map { page, place: Place::Frame(frame), writable, referenced });
    }
}
