//! RAM: the frames, and the policy that chooses a victim among the resident ones.
//!
//! A frame is taken ([`Frames::reserve`], or a victim's with [`Frames::hand_over`]), gets its page, and is returned.
//! The policy holds each frame with a page that is not pinned; it sees them through [`Ram::policy_and_residents`].

use alloc::boxed::Box;

use crate::command::Work;
use crate::config::Config;
use crate::frames::{Frames, Residents};
use crate::ids::FrameId;
use crate::machine::{Caps, Machine};
use crate::policy::{Made, Policy};

pub(crate) struct Ram {
    pub(crate) frames: Frames,
    policy: Box<dyn Policy>,
    /// The reference bit that a page starts with.
    pub(crate) insert_bit: bool,
    caps: Caps,
}

impl Ram {
    pub(crate) fn new(config: &Config, Made { policy, insert_bit }: Made) -> Ram {
        let insert_bit = insert_bit || !config.caps.reference_bit;
        Ram { frames: Frames::new(config.frames), policy, insert_bit, caps: config.caps }
    }

    /// So many of the free frames are given away from now on.
    pub(crate) fn set_lent(&mut self, lent: usize) {
        self.frames.set_lent(lent);
        self.policy.resize(self.frames.len());
    }

    /// Frames among which the policy can choose.
    pub(crate) fn choices(&self) -> usize {
        self.policy.len()
    }

    /// Whether a frame is available now: a frame is free, or a page can leave. Otherwise all frames are reserved for
    /// loads, or pinned.
    pub(crate) fn has_frame_to_give(&self) -> bool {
        self.frames.free() > 0 || self.frames.first_touch_neighbours() > 0 || !self.policy.is_empty()
    }

    pub(crate) fn policy_and_residents<'a>(
        &'a mut self,
        machine: &'a mut dyn Machine,
        work: &'a mut Work,
    ) -> (&'a mut dyn Policy, Residents<'a>) {
        (&mut *self.policy, Residents { frames: &mut self.frames, machine, caps: self.caps, work })
    }

    /// The page in the frame is newer than all other copies.
    pub(crate) fn soil(&mut self, frame: FrameId) {
        self.frames.get_mut(frame).dirty = true;
    }

    /// The page in the frame is gone although the policy did not choose it.
    pub(crate) fn remove(&mut self, frame: FrameId) {
        if self.frames.get(frame).pins == 0 && !self.frames.forget_neighbour(frame) {
            self.policy.remove(frame);
        }
        self.frames.release(frame);
    }

    /// The policy does not see a pinned page.
    pub(crate) fn pin(&mut self, frame: FrameId) {
        if self.frames.pin(frame) && !self.frames.forget_neighbour(frame) {
            self.policy.remove(frame);
        }
    }
}
