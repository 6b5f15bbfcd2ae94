//! The result of one string of references, with all that a table needs.

use coldframe_core::{Bytes, Pj, Ps};
use coldframe_drivers::front_end::FrontEndCounts;
use coldframe_drivers::oracle::OracleCounts;
use coldframe_lane::LaneResult;
use coldframe_sheet::paging::{e_paging, t_paging, t_total, AccessCounts, Ledger};
use coldframe_sheet::quantity::human_count;
use coldframe_sheet::StagePrices;

use crate::in_force::InForce;
use crate::memory::{self, MemoryPrices};
use crate::traced::Trace;

mod certainty;

pub use certainty::Certainty;

/// The findings of a lane or an oracle.
#[derive(Clone, Debug)]
pub enum Simulated {
    Lane(Box<LaneResult>),
    Oracle(OracleCounts),
}

#[derive(Clone, Debug)]
pub struct RunResult {
    pub trace: Trace,
    /// Different pages touched.
    pub pages: usize,
    pub config: InForce,
    pub policy: String,
    /// Handler; empty for an oracle.
    pub handler: String,
    pub frames: usize,
    pub page: Bytes,
    /// The front end's counts; cache and TLB only if there are some.
    pub front_end: FrontEndCounts,
    /// Whether the front end has an instruction cache.
    pub has_icache: bool,
    /// Whether the front end has a data cache.
    pub has_dcache: bool,
    /// Time outside of faults and of accesses to memory, if it has a price.
    pub idle: Option<Ps>,
    /// The lane's times are of a device that somebody named, or of a program's references.
    pub priced: bool,
    /// The costs of a fault's stages; `None` for an oracle.
    pub prices: Option<StagePrices>,
    pub memory: Option<MemoryPrices>,
    /// Time of all accesses to memory as if none were in place.
    pub memory_time: Ps,
    pub simulated: Simulated,
    /// The share of the pages that was simulated; `None`: all. Misses are estimates then, and there is nothing else.
    pub sample: Option<f64>,
    /// How sure its misses are.
    pub certainty: Certainty,
    /// Energy of the pages moved, by term, if main memory has no price and the device's sheet has energies.
    pub device_energy: Vec<(&'static str, Pj)>,
    /// Seconds that the whole run took on this machine, all configurations together.
    pub host_seconds: f64,
}

impl RunResult {
    /// Page references that the memory management unit saw.
    pub fn references(&self) -> u64 {
        let quiet_faults = match &self.simulated {
            Simulated::Lane(lane) => lane.quiet_faults,
            Simulated::Oracle(_) => self.front_end.quiet,
        };
        self.front_end.references - self.front_end.quiet + quiet_faults
    }

    pub fn true_faults(&self) -> u64 {
        let counted = match &self.simulated {
            Simulated::Lane(lane) => lane.counts.true_faults,
            Simulated::Oracle(counts) => counts.true_faults,
        };
        self.sample.map_or(counted, |share| (counted as f64 / share).round() as u64)
    }

    pub fn false_faults(&self) -> u64 {
        match &self.simulated {
            Simulated::Lane(lane) => lane.counts.false_faults,
            Simulated::Oracle(_) => 0,
        }
    }

    /// True faults per reference, or per instruction if an instruction cache hides most references.
    pub fn miss_ratio(&self) -> f64 {
        let of = if self.has_icache { self.front_end.instructions } else { self.references() };
        self.true_faults() as f64 / of.max(1) as f64
    }

    /// The miss ratio as text; empty for a recording through a window, since its hits are not known.
    pub fn miss_ratio_text(&self) -> String {
        match self.certainty {
            Certainty::Exact => format!("{:.6}", self.miss_ratio()),
            Certainty::Estimate { error } => {
                format!("{:.4} ± {:.4}", self.miss_ratio(), error as f64 / self.references().max(1) as f64)
            }
            Certainty::Between { .. } => "-".into(),
        }
    }

    /// True faults as text: one number, with its error if it is an estimate, or two bounds.
    pub fn true_faults_text(&self) -> String {
        match self.certainty {
            Certainty::Exact => human_count(self.true_faults()),
            Certainty::Estimate { error } => format!("{} ± {}", human_count(self.true_faults()), human_count(error)),
            Certainty::Between { low, high } => format!("{} to {}", human_count(low), human_count(high)),
        }
    }

    /// How the misses of a sample were estimated.
    pub fn estimated(&self) -> Option<String> {
        let percent = 100.0 * self.sample?;
        Some(format!(
            "Estimated from {percent:.3} % of the pages, chosen by a hash of each, in as much less RAM (SHARDS, FAST \
             2015): misses are within the error with 95 %, by the differences between 8 parts of the sample. \
             Parameters of a policy that count frames were not reduced."
        ))
    }

    /// The lane's findings; `None` for an oracle and a sample.
    pub fn lane(&self) -> Option<&LaneResult> {
        match &self.simulated {
            Simulated::Lane(lane) if self.sample.is_none() => Some(lane),
            _ => None,
        }
    }

    /// The lane's findings, if its times say something.
    pub fn timed(&self) -> Option<&LaneResult> {
        self.lane().filter(|_| self.priced)
    }

    pub fn ram(&self) -> Bytes {
        Bytes(self.frames as u64 * self.page.0)
    }

    /// Time of the whole run by the virtual clock, if it has a price.
    pub fn time(&self) -> Option<Ps> {
        let lane = self.lane()?;
        Some(self.idle? + self.memory_time + lane.xip_surplus + lane.paging)
    }

    /// The number of each event in equations 1 and 3 of DDB, if accesses to memory have prices.
    pub fn accesses(&self) -> Option<AccessCounts> {
        self.memory.as_ref()?;
        Some(memory::counts(&self.front_end, self.lane()?))
    }

    /// Equation 1, by term.
    pub fn t_paging(&self) -> Option<Ledger<Ps>> {
        Some(t_paging(&self.accesses()?, &self.memory.as_ref()?.times))
    }

    /// Equation 2.
    pub fn t_total(&self) -> Option<Ps> {
        Some(t_total(&self.t_paging()?, self.idle?))
    }

    /// Equation 3, by term, if the sheets have energies.
    pub fn e_paging(&self) -> Option<Ledger<Pj>> {
        Some(e_paging(&self.accesses()?, self.memory.as_ref()?.energies.as_ref().ok()?))
    }

    /// Mean time per instruction, including paging, if it has a price.
    pub fn time_per_instruction(&self) -> Option<f64> {
        let total = self.time()?;
        (self.front_end.instructions > 0).then(|| total.0 as f64 / self.front_end.instructions as f64)
    }
}
