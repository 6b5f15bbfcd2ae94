//! The fidelity of a trace: how close it is to what the program did, and which results it allows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The fidelity class of a trace, printed with every result drawn from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fidelity {
    /// Every access with its address and size: any page size, caches and all policies.
    ExactReferences,
    /// Every access, reduced to its page: all policies at that page size and larger ones; no caches.
    PageReferences,
    /// References to pages, without those that make no difference in any memory above a stated size. The misses of
    /// LRU and OPT are exact from that size on. See [`mod@coldframe_formats::reduce`].
    Compacted,
    /// Each entry of a page into a window of N mapped pages (first in, first out); references to pages in the window
    /// are missing. The misses of LRU and OPT at C pages are between those of the trace at C - N and C + N: see
    /// [`crate::window`].
    Window,
    /// Only the accesses that faulted on the recording machine. Hits are missing, so only the recorded policy is
    /// exact.
    Faults,
    /// Only requests that reached a block device, after a page cache of unknown size: policies over these requests,
    /// as over those of a swap device. No energy and no time of the program, since its hits are unknown.
    BlockOnly,
    /// All references to some pages, chosen by hash: misses of LRU and reuse distances, with a sampling error. See
    /// [`mod@coldframe_formats::reduce`].
    HashSampled,
    /// A sample: working sets and heat, no miss counts.
    #[default]
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
