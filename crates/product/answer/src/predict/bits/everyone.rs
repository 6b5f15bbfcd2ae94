//! All processes of a machine but this one, to be watched. None is ever stopped.

use std::time::{Duration, Instant};

use coldframe_proc::{References, Tree};

use crate::predict::bits::reader::{own_seconds, Reader};

/// All processes of a machine but this one.
pub(crate) struct Everyone {
    tree: Tree,
    began: Instant,
    own_began: f64,
}

impl Everyone {
    /// From now on.
    pub fn new(tree: &Tree) -> Everyone {
        Everyone { tree: tree.clone(), began: Instant::now(), own_began: own_seconds() }
    }
}

impl Reader for Everyone {
    fn clock(&self) -> Duration {
        self.began.elapsed()
    }

    fn spent_seconds(&self) -> f64 {
        own_seconds() - self.own_began
    }

    fn sleep(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn processes(&mut self) -> Vec<u32> {
        let this = std::process::id();
        self.tree.processes().into_iter().filter(|pid| *pid != this).collect()
    }

    /// A thread of the kernel has none.
    fn smaps(&self, process: u32) -> Option<String> {
        self.tree.process(process).smaps().ok()
    }

    fn clear(&mut self, process: u32) -> bool {
        self.tree.process(process).clear_references(References::All).is_ok()
    }

    fn processor_ns(&self, process: u32) -> u64 {
        coldframe_proc::processor_ns(process)
    }
}
