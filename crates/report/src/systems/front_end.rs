//! Front ends: what stands between a program's references and the page table in a system's experiments.

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
    /// All that it can see.
    pub sees: Stream,
    /// What the memory management unit may see, the usual one first; empty: there is one way only.
    pub readings: &'static [Reading],
    /// It has a data cache, whose misses are accesses to memory that can have a price.
    pub data_cache: bool,
    /// What is demand paged if nothing else is said.
    pub paged: Paged,
    /// An instruction.
    pub instruction: Ps,
    /// An instruction cache miss.
    pub icache_miss: Ps,
    /// Makes it.
    pub build: fn(&FrontKey, Spaces) -> Box<dyn front_end::FrontEnd>,
}

/// What is demand paged, by the trace's mappings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Paged {
    /// Code; everything in a trace without mappings.
    Code,
    /// What is mapped from files and cannot be written. A trace without mappings must be told.
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
