//! The fidelity of a trace: how close it is to what the program did, and which results it allows.

use serde::{Deserialize, Serialize};

/// The fidelity class of a trace, printed with every result drawn from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fidelity {
    /// Every access with its address and size: any page size, caches and all policies.
    ExactReferences,
    /// Every access, reduced to its page: all policies at that page size and larger ones; no caches.
    PageReferences,
    /// References to pages without those that no memory above a stated size can tell: misses of LRU and OPT, exact from that size on. See
    /// [`mod@crate::reduce`].
    Compacted,
    /// Each entry of a page into a window of N mapped pages (first in, first out), and none of the references to pages in it. LRU and OPT
    /// at C pages are bounded by those of the trace at C - N and C + N: see [`crate::window`].
    Window,
    /// Only the accesses that faulted on the recording machine: no hits, so no policy but the recorded one is exact.
    Faults,
    /// Only what reached a block device, after a page cache of unknown size: policies over those requests, as over a swap
    /// device's; no energy and no time of the program, whose hits are unknown.
    BlockOnly,
    /// All references to some pages, chosen by hash: LRU's misses and reuse distances, with an error. See [`mod@crate::reduce`].
    HashSampled,
    /// A sample: working sets and heat, no miss counts.
    Sampled,
}

impl Fidelity {
    /// All classes, best first.
    pub const ALL: [Fidelity; 8] = [
        Fidelity::ExactReferences,
        Fidelity::PageReferences,
        Fidelity::Compacted,
        Fidelity::Window,
        Fidelity::Faults,
        Fidelity::BlockOnly,
        Fidelity::HashSampled,
        Fidelity::Sampled,
    ];

    /// The name in files and reports: `exact-references`, `page-references`, `compacted`, `window`, `faults`,
    /// `block-only`, `hash-sampled` or `sampled`.
    pub const fn name(self) -> &'static str {
        match self {
            Fidelity::ExactReferences => "exact-references",
            Fidelity::PageReferences => "page-references",
            Fidelity::Compacted => "compacted",
            Fidelity::Window => "window",
            Fidelity::Faults => "faults",
            Fidelity::BlockOnly => "block-only",
            Fidelity::HashSampled => "hash-sampled",
            Fidelity::Sampled => "sampled",
        }
    }
}

impl std::fmt::Display for Fidelity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_uses_the_printed_name() {
        for fidelity in Fidelity::ALL {
            assert_eq!(serde_json::to_string(&fidelity).unwrap(), format!("{:?}", fidelity.name()));
        }
    }
}
