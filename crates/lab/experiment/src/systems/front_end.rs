//! Front ends: the hardware between a program's references and the page table in a system's experiments.

use std::fmt;

use coldframe_core::{Bytes, Ps};
use coldframe_drivers::front_end::instruction::Reading;
use coldframe_drivers::front_end::plain::Plain;
use coldframe_drivers::front_end::{self, Sample, Spaces, Stream};
use coldframe_drivers::run::IdlePrices;
use coldframe_store::Provenance;

use super::ALL;

/// A front end. Two are equal if their names are.
pub struct FrontEnd {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub line: Bytes,
    /// The references that it can see.
    pub sees: Stream,
    /// The references that the memory management unit may see, the default first; empty: there is only one way.
    pub readings: &'static [Reading],
    /// Whether it has a data cache. Its misses are accesses to memory, which can have a price.
    pub data_cache: bool,
    /// The default of what is demand paged.
    pub paged: Paged,
    pub instruction: Ps,
    /// Time of an instruction cache miss.
    pub icache_miss: Ps,
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

pub fn all() -> impl Iterator<Item = &'static FrontEnd> {
    ALL.iter().filter_map(|system| system.front_end)
}

pub fn find(name: &str) -> Option<&'static FrontEnd> {
    all().find(|front_end| front_end.name == name || front_end.aliases.contains(&name))
}

pub fn names(which: impl Fn(&FrontEnd) -> bool) -> String {
    let names: Vec<&str> = all().filter(|front_end| which(front_end)).map(|front_end| front_end.name).collect();
    names.join(" or ")
}

/// Configurations with equal keys can share one pass through a front end.
#[derive(Clone, PartialEq, Debug)]
pub struct FrontKey {
    /// log2 of the page size.
    pub page_shift: u32,
    /// The references that are used.
    pub stream: Stream,
    /// The part before the page table; `None`: there is none.
    pub front_end: Option<&'static FrontEnd>,
    /// The references that the memory management unit sees, if the front end leaves a choice.
    pub reading: Option<Reading>,
    /// Demand-paged ranges; `None`: all.
    pub paged: Option<Vec<(u64, u64)>>,
    pub skip: u64,
    /// The sample of the pages; `None`: all.
    pub sample: Option<Sample>,
    /// Accesses after which to stop.
    pub accesses: Option<u64>,
    /// Prices outside of faults.
    pub idle: IdlePrices,
}

impl FrontKey {
    pub fn build(&self, trace: &Provenance) -> Box<dyn front_end::FrontEnd> {
        match self.front_end {
            Some(front_end) => (front_end.build)(self, spaces(trace)),
            None => {
                let plain = Plain::new(self.stream, self.page_shift, spaces(trace), self.accesses);
                Box::new(plain.sampled(self.sample))
            }
        }
    }

    /// Bytes of a page.
    pub fn page(&self) -> Bytes {
        Bytes(1 << self.page_shift)
    }

    /// The most pages the trace can touch, from the granules that its header counts.
    pub fn pages_max(&self, trace: &Provenance) -> usize {
        let granules = trace.pages_1KiB as usize;
        match self.page_shift {
            shift @ 0..=9 => granules << (10 - shift),
            _ => granules,
        }
    }

    /// Whether there is a data cache before memory, so that accesses to memory are counted.
    pub fn has_data_cache(&self) -> bool {
        self.front_end.is_some_and(|front_end| front_end.data_cache)
    }

    /// The front end that finds every page that the trace can touch behind this one.
    pub fn whole_trace(&self) -> FrontKey {
        let front_end = self.front_end.filter(|front_end| front_end.data_cache);
        let paged = self.paged.clone().filter(|_| front_end.is_some());
        let idle = IdlePrices::default();
        FrontKey { front_end, reading: None, paged, skip: 0, accesses: None, idle, ..self.clone() }
    }
}

/// Threads share the address space of their process.
pub fn spaces(trace: &Provenance) -> Spaces {
    let mut spaces: Vec<u32> = Vec::new();
    for task in &trace.tasks {
        let id = task.id as usize;
        if id < 1 << 20 {
            while spaces.len() <= id {
                spaces.push(spaces.len() as u32);
            }
            spaces[id] = task.space;
        }
    }
    Spaces(spaces)
}
