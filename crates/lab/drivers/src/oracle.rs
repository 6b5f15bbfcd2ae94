//! Oracles: algorithms that need every hit, or the future, and so cannot be policies of the engine.

use coldframe_lane::PageRef;

pub mod arc;
pub mod lfu;
pub mod lru;
pub mod opt;
pub mod opt_curve;

/// Faults and evictions of an oracle with one number of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OracleCounts {
    pub true_faults: u64,
    /// Faults on pages that were never touched before.
    pub cold_faults: u64,
    pub evictions: u64,
    pub dirty_evictions: u64,
}

pub trait Oracle: Send {
    /// Takes references. Quiet references count like all others, because an oracle has no page table.
    fn feed(&mut self, references: &[PageRef]);

    /// The counts for each of the given numbers of frames, in the given order. `pages[i]` is the true page number (the
    /// address divided by the page size) of dense number `i`.
    fn finish(&mut self, pages: &[u64]) -> Vec<OracleCounts>;
}

/// An oracle with one number of frames.
pub(crate) trait OneSize: Send {
    fn reference(&mut self, page: u32, writing: bool);
    fn counts(&self) -> OracleCounts;
}

/// One for each number of frames.
pub(crate) struct Sizes<T>(Vec<T>);

impl<T: OneSize> Oracle for Sizes<T> {
    fn feed(&mut self, references: &[PageRef]) {
        for one in &mut self.0 {
            references.iter().for_each(|r| one.reference(r.page() as u32, r.writing()));
        }
    }

    fn finish(&mut self, _: &[u64]) -> Vec<OracleCounts> {
        self.0.iter().map(OneSize::counts).collect()
    }
}

/// An oracle's name, help text and constructor.
#[derive(Debug)]
pub struct OracleSpec {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// Its source: paper and section.
    pub source: &'static str,
    /// Makes the oracle for these numbers of frames.
    pub build: fn(frames: &[usize]) -> Box<dyn Oracle>,
}

/// Every oracle, in the order in which help shows them.
pub const ALL: &[&OracleSpec] = &[&lru::SPEC, &opt::SPEC, &arc::SPEC, &lfu::SPEC];

pub fn find(name: &str) -> Option<&'static OracleSpec> {
    ALL.iter().copied().find(|spec| spec.name == name)
}
