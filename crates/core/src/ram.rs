//! RAM: the frames, and the policy that chooses among those with a page.
//!
//! A frame is taken ([`Ram::take_free`], or a victim's with [`Ram::keep`]), gets its page, and is returned. The
//! policy holds each frame with a page that is not pinned; it sees them through [`Ram::policy_and_residents`].

use alloc::boxed::Box;

use crate::command::Work;
use crate::config::Config;
use crate::frames::{Frames, Residents};
use crate::ids::{FrameId, PageId};
use crate::machine::{Caps, Machine};
use crate::policy::Policy;

pub(crate) struct Ram {
    frames: Frames,
    policy: Box<dyn Policy>,
    caps: Caps,
}

impl Ram {
    pub(crate) fn new(config: &Config, policy: Box<dyn Policy>) -> Ram {
        Ram { frames: Frames::new(config.frames), policy, caps: config.caps }
    }

    pub(crate) fn frames(&self) -> &Frames {
        &self.frames
    }

    /// Frames among which the policy can choose.
    pub(crate) fn choices(&self) -> usize {
        self.policy.len()
    }

    /// A frame can be had now: it is free, or its page can leave. Otherwise all are promised to loads, or pinned.
    pub(crate) fn has_frame_to_give(&self) -> bool {
        self.frames.free() > 0 || !self.policy.is_empty()
    }

    /// The reference bit that a page starts with.
    pub(crate) fn insert_bit(&self) -> bool {
        self.policy.insert_bit() || !self.caps.reference_bit
    }

    pub(crate) fn policy_and_residents<'a>(
        &'a mut self,
        machine: &'a mut dyn Machine,
        work: &'a mut Work,
    ) -> (&'a mut dyn Policy, Residents<'a>) {
        (&mut *self.policy, Residents { frames: &mut self.frames, machine, caps: self.caps, work })
    }

    /// A free frame, promised to the caller.
    pub(crate) fn take_free(&mut self) -> Option<FrameId> {
        self.frames.reserve()
    }

    /// The frame of a page that was evicted is promised to the caller.
    pub(crate) fn keep(&mut self, frame: FrameId) {
        self.frames.hand_over(frame);
    }

    /// The frame that was promised is the pool's of compressed pages.
    pub(crate) fn lend(&mut self, frame: FrameId) {
        self.frames.lend(frame);
    }

    /// The frame is nobody's any more.
    pub(crate) fn give_back(&mut self, frame: FrameId) {
        self.frames.release(frame);
    }

    /// The page's bytes are in the frame that was promised to it. The policy is still to be told.
    pub(crate) fn settle(&mut self, frame: FrameId, page: PageId) {
        self.frames.settle(frame, page);
    }

    /// The page in the frame has no other copy that is as new.
    pub(crate) fn soil(&mut self, frame: FrameId) {
        self.frames.get_mut(frame).dirty = true;
    }

    /// The page in the frame is gone though the policy did not choose it.
    pub(crate) fn remove(&mut self, frame: FrameId) {
        if self.frames.get(frame).pins == 0 {
            self.policy.remove(frame);
        }
        self.frames.release(frame);
    }

    /// A pinned page is out of the policy's sight.
    pub(crate) fn pin(&mut self, frame: FrameId) {
        if self.frames.pin(frame) {
            self.policy.remove(frame);
        }
    }

    /// True: it is pinned no more, and the policy is to be told.
    pub(crate) fn unpin(&mut self, frame: FrameId) -> bool {
        self.frames.unpin(frame)
    }
}
