//! Oracles: algorithms that see every hit, or the future, and therefore cannot be policies of the engine.

use coldframe_core::policy::Param;

use crate::front_end::PageRef;

pub mod arc;
pub mod lru;
pub mod opt;
pub mod opt_curve;

/// Faults and evictions of an oracle at one number of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OracleCounts {
    /// Page misses.
    pub true_faults: u64,
    /// Misses of pages that were never touched before.
    pub cold_faults: u64,
    /// Evicted pages.
    pub evictions: u64,
    /// Dirty ones of these.
    pub dirty_evictions: u64,
}

/// An oracle in use.
pub trait Oracle: Send {
    /// Takes references. Quiet ones count as all others, since an oracle has no page table.
    fn feed(&mut self, references: &[PageRef]);

    /// The counts for each number of frames that it was made for, in that order. `pages` are the true page numbers
    /// (address divided by page size) by dense number.
    fn finish(&mut self, pages: &[u64]) -> Vec<OracleCounts>;
}

/// An oracle's name, help and maker.
pub struct OracleSpec {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// Its source: paper and section.
    pub source: &'static str,
    /// Its parameters (none has any so far).
    pub params: &'static [Param],
    /// Makes the oracle for several numbers of frames.
    pub build: fn(frames: &[usize]) -> Box<dyn Oracle>,
}

impl std::fmt::Debug for OracleSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Every oracle, in the order in which help shows them.
pub const ALL: &[&OracleSpec] = &[&lru::SPEC, &opt::SPEC, &arc::SPEC];

/// The oracle of this name.
pub fn find(name: &str) -> Option<&'static OracleSpec> {
    ALL.iter().copied().find(|spec| spec.name == name)
}
