//! Managed memory: its faults, and changes that are none: ranges are opened and closed, content is dropped or loaded,
//! pages are pinned, frames are given back.
//!
//! Only methods of [`ManagedMemory`] change the managed address space. The door ([`crate::Pager`]) calls them for the
//! program, a handler thread for a message, and a fork for the child. This room knows neither threads nor forks.

mod content;
mod lending;
pub mod mapping;
mod take_over;
pub mod unpaged;

use std::ops::Deref;

use crate::fault::Faults;

/// The memory that a pager manages: its faults, and all other changes.
pub struct ManagedMemory {
    faults: Faults,
}

impl ManagedMemory {
    pub fn new(faults: Faults) -> ManagedMemory {
        ManagedMemory { faults }
    }
}

/// Its pages, its engine and its work are those of its faults.
impl Deref for ManagedMemory {
    type Target = Faults;

    fn deref(&self) -> &Faults {
        &self.faults
    }
}
