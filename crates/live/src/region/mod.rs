//! What may happen to managed memory besides faults: ranges are opened and closed, content is dropped or loaded, pages
//! are pinned.
//!
//! [`Regions`] is the one that changes the managed address space and causes events that are no fault. The door
//! ([`crate::Pager`]) calls it for the program, and a fork for the child. This room knows neither threads nor forks.

mod content;
pub mod mapping;
mod unpaged;

use crate::fault::Faults;
use crate::memory::space::Space;
use crate::memory::Memory;
use crate::page::pages::Pages;
use crate::stats::Stats;
use crate::work::Work;

/// The managed memory as a program uses it.
pub struct Regions {
    faults: Faults,
}

impl Regions {
    pub fn new(faults: Faults) -> Regions {
        Regions { faults }
    }

    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    pub fn work(&self) -> &Work {
        self.faults.work()
    }

    pub fn memory(&self) -> &Memory {
        self.faults.memory()
    }

    fn space(&self) -> &Space {
        self.memory().space()
    }

    fn pages(&self) -> &Pages {
        self.memory().pages()
    }

    fn stats(&self) -> &Stats {
        self.memory().stats()
    }
}
