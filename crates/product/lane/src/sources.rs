//! Where the pages of a lane come from, and whether the device hides the evictions, for a machine whose events are
//! priced afterwards.
//!
//! The device keeps the pages written last in memory, for example in the buffers of a log. A page that is needed again
//! soon enough comes from there.

use coldframe_core::PageId;

/// Loads by their source, and evictions by what hides them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SourceCounts {
    /// Loads of zeros.
    pub zeros: u64,
    /// Loads from what the device keeps in memory.
    pub memory: u64,
    /// Single pages from the device.
    pub alone: u64,
    /// Pages of sequential streams from the device: that of the fault and those read ahead with it.
    pub ahead: u64,
    /// Clean pages evicted by faults that read nothing from the device.
    pub clean_exposed: u64,
    /// Clean pages evicted by faults that also read from the device.
    pub clean_hidden: u64,
    /// Dirty pages evicted by faults that read nothing from the device.
    pub dirty_exposed: u64,
    /// Dirty pages evicted by faults that also read from the device.
    pub dirty_hidden: u64,
}

/// The meter of one lane.
pub struct Sources {
    /// By page: how many pages had been written at its last write.
    written: Vec<u32>,
    writes: u32,
    /// Pages that the device keeps in memory.
    buffered: u32,
    /// The fault continues a stream.
    stream: bool,
    /// The fault has read from the device.
    device: bool,
    /// The counts so far.
    pub counts: SourceCounts,
}

impl Sources {
    /// For that many pages; the newest `buffered` written pages count as buffered.
    pub fn new(pages: usize, buffered: u32) -> Sources {
        let counts = SourceCounts::default();
        Sources { written: vec![0; pages], writes: 0, buffered, stream: false, device: false, counts }
    }

    /// A fault begins.
    pub fn begins(&mut self, stream: bool) {
        (self.stream, self.device) = (stream, false);
    }

    /// The page is written out.
    pub fn write(&mut self, page: PageId) {
        self.writes += 1;
        self.written[page.index()] = self.writes;
    }

    /// The page is loaded; `zeros`: it was never written out.
    pub fn load(&mut self, page: PageId, zeros: bool) {
        let counts = &mut self.counts;
        let in_buffer = self.writes - self.written[page.index()] < self.buffered;
        *match (zeros, in_buffer, self.stream) {
            (true, ..) => &mut counts.zeros,
            (_, true, _) => &mut counts.memory,
            (_, _, true) => &mut counts.ahead,
            _ => &mut counts.alone,
        } += 1;
        self.device |= !zeros && !in_buffer;
    }

    /// The fault and all that it causes have ended: that many pages were evicted.
    pub fn ends(&mut self, clean: u64, dirty: u64) {
        let SourceCounts { clean_exposed, clean_hidden, dirty_exposed, dirty_hidden, .. } = &mut self.counts;
        let (to_clean, to_dirty) =
            if self.device { (clean_hidden, dirty_hidden) } else { (clean_exposed, dirty_exposed) };
        *to_clean += clean;
        *to_dirty += dirty;
    }
}
