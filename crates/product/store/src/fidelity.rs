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
    /// Each entry of a page into a window of N mapped pages (first in, first out); references to pages in the window
    /// are missing. The misses of LRU and OPT at C pages are between those of the trace at C - N and C + N: see
    /// [`crate::window`].
    Window,
    /// Only requests that reached a block device, after a page cache of unknown size: policies over these requests,
    /// as over those of a swap device. No energy and no time of the program, since its hits are unknown.
    BlockOnly,
    /// Requests for objects by their key, as a cache sees them: policies over these requests, for objects of one size.
    /// They are no program's references: no energy, no time.
    KeyRequests,
    /// A sample: working sets and heat, no miss counts.
    #[default]
    Sampled,
}

impl Fidelity {
    /// All classes, best first.
    pub const ALL: [Fidelity; 6] = [
        Fidelity::ExactReferences,
        Fidelity::PageReferences,
        Fidelity::Window,
        Fidelity::BlockOnly,
        Fidelity::KeyRequests,
        Fidelity::Sampled,
    ];

    /// Whether the rows are a program's: requests for blocks and keys have no time and no energy of their own.
    pub const fn of_a_program(self) -> bool {
        !matches!(self, Fidelity::BlockOnly | Fidelity::KeyRequests)
    }

    /// The name in files and reports, such as `exact-references` or `block-only`.
    pub const fn name(self) -> &'static str {
        match self {
            Fidelity::ExactReferences => "exact-references",
            Fidelity::PageReferences => "page-references",
            Fidelity::Window => "window",
            Fidelity::BlockOnly => "block-only",
            Fidelity::KeyRequests => "key-requests",
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
