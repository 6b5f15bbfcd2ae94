//! The device's stopover buffers. Each is free, or the target of a load (the flight knows which), or holds a page
//! that stays there (delayed dual buffering).

use alloc::vec::Vec;

use crate::ids::{BufferId, PageId};

/// A page and the buffer that holds it.
pub(crate) type Held = (PageId, BufferId);

pub(crate) struct Buffers {
    free: Vec<BufferId>,
    /// Oldest first.
    held: Vec<Held>,
    count: usize,
}

impl Buffers {
    /// `count` buffers; `holds`: whether pages may stay in them.
    pub(crate) fn new(count: usize, holds: bool) -> Buffers {
        let held = Vec::with_capacity(if holds { count } else { 0 });
        Buffers { free: (0..count).rev().map(BufferId::from).collect(), held, count }
    }

    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }

    /// Whether a page may stay in its buffer: there must be another one for the next load.
    pub(crate) fn can_hold(&self) -> bool {
        self.count > 1
    }

    /// A buffer to load into.
    pub(crate) fn take(&mut self) -> BufferId {
        self.free.pop().expect("the engine lets no more faults in than there are buffers")
    }

    pub(crate) fn give_back(&mut self, buffer: BufferId) {
        self.free.push(buffer);
    }

    /// The page stays in the buffer that it was loaded into.
    pub(crate) fn hold(&mut self, held: Held) {
        self.held.push(held);
    }

    /// Held pages, oldest first.
    pub(crate) fn held(&self) -> &[Held] {
        &self.held
    }

    pub(crate) fn oldest(&self) -> Option<Held> {
        self.held.first().copied()
    }

    /// The page has left its buffer, and the buffer is free again.
    pub(crate) fn forget(&mut self, page: PageId) {
        let at = self.held.iter().position(|(held, _)| *held == page).expect("the page is held");
        let (_, buffer) = self.held.remove(at);
        self.free.push(buffer);
    }

    /// Checks that each buffer is free, holds one page, or is the target of a load.
    pub(crate) fn check(&self, loaded_into: impl Iterator<Item = BufferId> + Clone) {
        let count = self.free.len() + loaded_into.clone().count() + self.held.len();
        assert_eq!(count, self.count, "a buffer has leaked");
        for (i, (_, buffer)) in self.held.iter().enumerate() {
            assert!(self.held[..i].iter().all(|(_, other)| other != buffer), "two pages in one buffer");
            assert!(!self.free.contains(buffer), "a free buffer holds a page");
            assert!(loaded_into.clone().all(|other| other != *buffer), "a page is loaded over another");
        }
    }
}
