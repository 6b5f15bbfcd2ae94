//! Front ends: the hardware between a program's references and the page table in a system's experiments.

use std::fmt;

use coldframe_core::{Bytes, Ps};
use coldframe_sim::front_end::instruction::Reading;
use coldframe_sim::front_end::{self, Spaces, Stream};

use super::ALL;
use crate::resolve::FrontKey;

/// A front end. Two are equal if their names are.
pub struct FrontEnd {
    /// The name in settings.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// A line of its caches.
    pub line: Bytes,
    /// The references that it can see.
    pub sees: Stream,
    /// The references that the memory management unit may see, the default first; empty: there is only one way.
    pub readings: &'static [Reading],
    /// Whether it has a data cache. Its misses are accesses to memory, which can have a price.
    pub data_cache: bool,
    /// The default of what is demand paged.
    pub paged: Paged,
    /// Time of an instruction.
    pub instruction: Ps,
    /// Time of an instruction cache miss.
    pub icache_miss: Ps,
    /// Makes it.
    pub build: fn(&FrontKey, Spaces) -> Box<dyn front_end::FrontEnd>,
}

/// The demand-paged memory, by the trace's mappings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Paged {
    /// Code; everything if the trace has no mappings.
    Code,
    /// Read-only mappings of files. Without mappings in the trace, the ranges must be given.
    ReadOnly,
}

impl PartialEq for FrontEnd {
    fn eq(&self, other: &FrontEnd) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for FrontEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Every front end of every system.
pub fn all() -> impl Iterator<Item = &'static FrontEnd> {
    ALL.iter().filter_map(|system| system.front_end)
}

/// The front end of this name.
pub fn find(name: &str) -> Option<&'static FrontEnd> {
    all().find(|front_end| front_end.name == name || front_end.aliases.contains(&name))
}

/// The names of those front ends, for messages.
pub fn names(which: impl Fn(&FrontEnd) -> bool) -> String {
    let names: Vec<&str> = all().filter(|front_end| which(front_end)).map(|front_end| front_end.name).collect();
    names.join(" or ")
}
