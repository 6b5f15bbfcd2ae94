//! The statistics of a run by the kernel, as a table and as JSON.

use std::time::Duration;

use coldframe_kernel::{Counters, Group, Stall, SwapSpace, Watched};
use coldframe_sheet::quantity::{human_count, human_size};
use serde_json::{json, Value};

/// What the kernel has counted.
pub struct Summary {
    ram: u64,
    swap: String,
    counters: Counters,
    peak: Option<u64>,
    stall: Option<Stall>,
    watched: Watched,
    out: u64,
    back: u64,
    code: u8,
    took: Duration,
}

impl Summary {
    /// Reads the counters of a group whose program has ended.
    pub fn new(ram: u64, group: &Group, space: &SwapSpace, watched: Watched, code: u8, took: Duration) -> Summary {
        Summary {
            ram,
            swap: space.words(),
            counters: group.counters(),
            peak: group.peak(),
            stall: group.stall(),
            watched,
            out: space.out(),
            back: space.back(),
            code,
            took,
        }
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let counters = &self.counters;
        json!({
            "schema_version": 1,
            "version": env!("CARGO_PKG_VERSION"),
            "by": "kernel",
            "config": { "ram": self.ram, "swap": self.swap },
            "counts": {
                "faults": counters.faults,
                "major_faults": counters.major_faults,
                "refaults": counters.refaults,
                "file_refaults": counters.file_refaults,
                "swap_out_bytes": self.out,
                "swap_in_bytes": self.back,
                "killed": counters.killed,
            },
            "memory": {
                "peak_bytes": self.peak,
                "files_bytes": counters.files,
                "limit_bytes": self.watched.limit,
                "beside_bytes": self.watched.beside,
                "compressed_bytes": self.watched.compressed,
            },
            "stall": {
                "some_seconds": self.stall.map(|stall| stall.some.as_secs_f64()),
                "full_seconds": self.stall.map(|stall| stall.full.as_secs_f64()),
                "device_seconds": self.watched.delay.as_secs_f64(),
            },
            "program": { "status": self.code, "seconds": self.took.as_secs_f64() },
        })
    }

    /// As text.
    pub fn table(&self) -> String {
        let counters = &self.counters;
        let compressed = match self.watched.compressed {
            0 => String::new(),
            bytes => format!(", {} of it for compressed pages", human_size(bytes)),
        };
        format!(
            "by the kernel: {} faults, {} of them from swap or files; {} pages came back\n\
             RAM {}{compressed}\n\
             on top: {} beside the heap{}\n\
             swap {}: {} out, {} in (of the whole machine)\n\
             {}\n{}{:.2} s\n",
            human_count(counters.faults),
            human_count(counters.major_faults),
            human_count(counters.refaults),
            human_size(self.ram),
            human_size(self.watched.beside),
            self.peak.map_or_else(String::new, |peak| format!("; at most {} in the group", human_size(peak))),
            self.swap,
            human_size(self.out),
            human_size(self.back),
            self.waited(),
            match counters.killed {
                0 => String::new(),
                n => format!("the kernel has killed {n} of its processes: no memory; give more --ram, or more swap\n"),
            },
            self.took.as_secs_f64(),
        )
    }

    fn waited(&self) -> String {
        match self.stall {
            Some(stall) => format!(
                "waited for memory: {:.2} s some thread, {:.2} s all of them",
                stall.some.as_secs_f64(),
                stall.full.as_secs_f64()
            ),
            None if self.watched.delay.is_zero() => {
                "waited for memory: not known (this kernel counts it with psi=1 on its command line)".into()
            }
            None => format!("waited for swap or files: {:.2} s or more", self.watched.delay.as_secs_f64()),
        }
    }
}
