//! The result of one string of references.

use coldframe_boards::energy::AccessCounts;
use coldframe_core::Pj;
use coldframe_drivers::oracle::OracleCounts;
use coldframe_lane::LaneResult;
use coldframe_sheet::quantity::show_time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Distribution, Failed, Latencies, Sections, SimResult, SwapArea, Terms, Trace};
use crate::result::{Certainty, RunResult, Simulated};

/// The findings for one string of references; an oracle only has counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneString {
    /// Counts.
    pub counts: Counts,
    /// DDB's equations 1 and 2, if accesses to memory have prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<PricedLedger>,
    /// Energy of paging, if the sheets have energies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_pj: Option<PagingEnergy>,
    /// The swap area, if it is a log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<SwapArea>,
    /// Times, in picoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ps: Option<Times>,
    /// Latencies of faults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault_latency_ps: Option<FaultLatencies>,
    /// Notes on the numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The simulator's own time.
    pub host: Host,
}

/// Counts of events. Events that neither the front end nor the engine counts are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Page references that the memory management unit saw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub references: Option<u64>,
    /// The instruction cache's.
    #[serde(flatten)]
    pub icache: Option<InstructionCache>,
    /// The data cache's.
    #[serde(flatten)]
    pub dcache: Option<DataCache>,
    /// Translations that were not in the TLB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tlb_misses: Option<u64>,
    /// Faults on pages that had to be loaded; `None` if only two bounds are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub true_faults: Option<u64>,
    /// The lower bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub true_faults_min: Option<u64>,
    /// The upper bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub true_faults_max: Option<u64>,
    /// Standard error, if they are estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub true_faults_error: Option<u64>,
    /// Faults on pages never touched before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cold_faults: Option<u64>,
    /// Pages that left a frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evictions: Option<u64>,
    /// Of those, pages that had to be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dirty_evictions: Option<u64>,
    /// Counts of engines only.
    #[serde(flatten)]
    pub engine: Option<EngineCounts>,
    /// Failures of the device, if there were any.
    #[serde(flatten)]
    pub failed: Option<Failed>,
    /// Accesses to memory, if they have prices.
    #[serde(flatten)]
    pub memory: Option<MemoryCounts>,
}

/// Lines of the instruction cache.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InstructionCache {
    /// Looked up.
    pub icache_lookups: u64,
    /// Misses.
    pub icache_misses: u64,
}

/// Lines of the data cache, and accesses to memory below both caches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DataCache {
    /// Looked up.
    pub dcache_lookups: u64,
    /// Misses.
    pub dcache_misses: u64,
    /// Cache blocks read.
    pub memory_reads: u64,
    /// Of these, those of paged pages.
    pub paged_reads: u64,
    /// Cache blocks written back.
    pub memory_writes: u64,
}

/// Counts of engines only.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EngineCounts {
    /// Faults on pages in RAM that were not mapped.
    pub false_faults: u64,
    /// First writes to pages mapped read-only.
    pub write_faults: u64,
    /// Frames examined in all searches.
    pub walk_sum: u64,
    /// Frames examined in the longest search.
    pub walk_max: u64,
    /// Evictions forced because the walk budget was used up.
    pub forced_evictions: u64,
    /// Prefetches; no task waited for them.
    pub prefetches: u64,
    /// Prefetch hints that were dropped.
    pub prefetches_dropped: u64,
    /// Faults on pages that a prefetch was loading.
    pub prefetch_waits: u64,
    /// Loads started.
    pub page_loads: u64,
    /// Pages moved from a buffer to a frame.
    pub page_moves: u64,
    /// Of those, while the device was loading another page.
    pub page_moves_dual: u64,
}

/// Accesses to memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryCounts {
    /// Page moves while the device was loading another page.
    pub page_moves_overlapped: u64,
    /// Reads from main memory.
    pub reads_main: u64,
    /// Reads in the device's buffers.
    pub reads_xip: u64,
    /// Writes to main memory.
    pub writes_main: u64,
}

/// DDB's equations 1 and 2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PricedLedger {
    /// By the paper's names.
    pub counts: Terms,
    /// In picoseconds.
    pub time_ps: LedgerTimes,
}

/// Time by equation 1, and the total.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerTimes {
    /// By term.
    #[serde(flatten)]
    pub terms: Terms,
    /// Their sum.
    pub paging: u64,
    /// Outside of faults and accesses to memory.
    pub idle: u64,
    /// Both together.
    pub total: u64,
}

/// Energy of paging, in picojoules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PagingEnergy {
    /// By term.
    #[serde(flatten)]
    pub terms: Terms,
    /// Their sum.
    pub paging: u64,
}

/// Times, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    /// In faults.
    pub paging: u64,
    /// Processor time that loads hid.
    pub hidden: u64,
    /// `paging` by stage.
    pub stages: Stages,
    /// Outside of faults and accesses to memory, if it has a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<u64>,
    /// The whole run, if it has a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

/// Times in the stages of faults, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stages {
    /// PreProcess.
    pub pre_process: u64,
    /// GetFreeframe.
    pub get_freeframe: u64,
    /// LoadStopover.
    pub load_stopover: u64,
    /// TransHostMem.
    pub trans_host_mem: u64,
    /// UpdateMMU.
    pub update_mmu: u64,
    /// PostProcess.
    pub post_process: u64,
}

/// Latencies of faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultLatencies {
    /// Faults that had to load.
    #[serde(rename = "true")]
    pub true_faults: Latencies,
    /// Faults on pages in RAM.
    #[serde(rename = "false")]
    pub false_faults: Latencies,
}

/// The simulator's own time on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// All configurations together.
    pub seconds: f64,
    /// References of this configuration for each of these seconds.
    pub references_per_second: f64,
}

impl From<&RunResult> for SimResult {
    fn from(run: &RunResult) -> SimResult {
        let trace = Trace { pages: Some(run.pages), ..run.trace.clone() };
        SimResult::new(trace, run.config.clone(), Sections::String(Box::new(run.into())))
    }
}

impl From<&RunResult> for OneString {
    fn from(run: &RunResult) -> OneString {
        let lane = run.lane();
        let host = Host {
            seconds: run.host_seconds,
            references_per_second: run.front_end.references as f64 / run.host_seconds.max(1e-9),
        };
        OneString {
            counts: run.into(),
            ledger: PricedLedger::of(run),
            energy_pj: PagingEnergy::of(run),
            swap: lane.and_then(|lane| Some(SwapArea::new(lane.swap.as_ref()?, run.slots.clone()))),
            time_ps: lane.map(|lane| Times::of(run, lane)),
            fault_latency_ps: lane.map(|lane| FaultLatencies {
                true_faults: (&lane.true_latency).into(),
                false_faults: (&lane.false_latency).into(),
            }),
            notes: lane.map(|lane| notes(run, lane)).unwrap_or_default(),
            host,
        }
    }
}

impl OneString {
    /// Latencies of true faults; `None` without one.
    pub fn true_latency(&self) -> Option<&Distribution> {
        self.fault_latency_ps.as_ref()?.true_faults.distribution.as_ref()
    }
}

impl From<&RunResult> for Counts {
    fn from(run: &RunResult) -> Counts {
        let f = &run.front_end;
        let counts = Counts {
            references: Some(run.references()),
            icache: run
                .has_icache
                .then_some(InstructionCache { icache_lookups: f.icache_lookups, icache_misses: f.icache_misses }),
            dcache: run.has_dcache.then_some(DataCache {
                dcache_lookups: f.dcache_lookups,
                dcache_misses: f.dcache_misses,
                memory_reads: f.memory_reads,
                paged_reads: f.paged_reads,
                memory_writes: f.memory_writes,
            }),
            tlb_misses: (run.has_icache && !run.has_dcache).then_some(f.tlb_misses),
            ..Counts::default()
        };
        match &run.simulated {
            Simulated::Oracle(simulated) => counts.of_oracle(simulated, run.certainty),
            Simulated::Lane(lane) => counts.of_lane(lane, run.accesses()),
        }
    }
}

impl Counts {
    fn of_oracle(self, simulated: &OracleCounts, certainty: Certainty) -> Counts {
        let (true_faults, cold_faults) = (Some(simulated.true_faults), Some(simulated.cold_faults));
        match certainty {
            Certainty::Exact => {
                let (evictions, dirty_evictions) = (Some(simulated.evictions), Some(simulated.dirty_evictions));
                Counts { true_faults, cold_faults, evictions, dirty_evictions, ..self }
            }
            Certainty::Between { low, high } => {
                Counts { references: None, true_faults_min: Some(low), true_faults_max: Some(high), ..self }
            }
            Certainty::Estimated { error } => {
                Counts { true_faults, cold_faults, true_faults_error: Some(error.ceil() as u64), ..self }
            }
        }
    }

    fn of_lane(self, lane: &LaneResult, accesses: Option<AccessCounts>) -> Counts {
        let c = &lane.counts;
        let engine = EngineCounts {
            false_faults: c.false_faults,
            write_faults: c.write_faults,
            walk_sum: c.walk_sum.0,
            walk_max: c.walk_max.0,
            forced_evictions: c.forced_evictions,
            prefetches: c.prefetches,
            prefetches_dropped: c.prefetches_dropped,
            prefetch_waits: c.prefetch_waits,
            page_loads: c.page_loads,
            page_moves: c.page_moves,
            page_moves_dual: c.page_moves_dual,
        };
        Counts {
            true_faults: Some(c.true_faults),
            cold_faults: Some(c.cold_faults),
            evictions: Some(c.evictions),
            dirty_evictions: Some(c.dirty_evictions),
            engine: Some(engine),
            failed: Failed::new(c.failures, c.halts),
            memory: accesses.map(|n| MemoryCounts {
                page_moves_overlapped: n.page_moves_dual,
                reads_main: n.main_reads,
                reads_xip: n.xip_reads,
                writes_main: n.main_writes,
            }),
            ..self
        }
    }

    /// Faults of any kind.
    pub fn faults(&self) -> u64 {
        self.true_faults.unwrap_or(0) + self.engine.map_or(0, |engine| engine.false_faults + engine.write_faults)
    }
}

impl PricedLedger {
    fn of(run: &RunResult) -> Option<PricedLedger> {
        let (n, time) = (run.accesses()?, run.t_paging()?);
        let counts = [
            ("N_pl", n.page_loads),
            ("N_pm", n.page_moves),
            ("N_pmdual", n.page_moves_dual),
            ("N_rdmain", n.main_reads),
            ("N_rdxip", n.xip_reads),
            ("N_wrmain", n.main_writes),
        ];
        let time_ps = LedgerTimes {
            terms: time.terms().into_iter().map(|(name, t)| (name.into(), t.0)).collect(),
            paging: time.total().0,
            idle: run.idle.unwrap_or_default().0,
            total: run.t_total()?.0,
        };
        Some(PricedLedger { counts: counts.into_iter().map(|(name, n)| (name.into(), n)).collect(), time_ps })
    }
}

impl PagingEnergy {
    /// By DDB's equation 3; without prices of main memory, the energy of the pages moved.
    fn of(run: &RunResult) -> Option<PagingEnergy> {
        let by_equation = run.t_total().and(run.e_paging()).map(|ledger| PagingEnergy::sum(&ledger.terms()));
        by_equation.or_else(|| (!run.device_energy.is_empty()).then(|| PagingEnergy::sum(&run.device_energy)))
    }

    fn sum(terms: &[(&'static str, Pj)]) -> PagingEnergy {
        let paging = terms.iter().map(|(_, energy)| energy.0).sum();
        PagingEnergy { terms: terms.iter().map(|(name, energy)| ((*name).into(), energy.0)).collect(), paging }
    }
}

impl Times {
    fn of(run: &RunResult, lane: &LaneResult) -> Times {
        let [pre_process, get_freeframe, load_stopover, trans_host_mem, update_mmu, post_process] =
            lane.stages.map(|time| time.0);
        Times {
            paging: lane.paging.0,
            hidden: lane.hidden.0,
            stages: Stages { pre_process, get_freeframe, load_stopover, trans_host_mem, update_mmu, post_process },
            idle: run.idle.map(|t| t.0),
            total: run.time().map(|t| t.0),
        }
    }
}

impl Stages {
    /// With the paper's names, in its order.
    pub fn named(&self) -> [(&'static str, u64); 6] {
        [
            ("PreProcess", self.pre_process),
            ("GetFreeframe", self.get_freeframe),
            ("LoadStopover", self.load_stopover),
            ("TransHostMem", self.trans_host_mem),
            ("UpdateMMU", self.update_mmu),
            ("PostProcess", self.post_process),
        ]
    }
}

fn notes(run: &RunResult, lane: &LaneResult) -> Vec<String> {
    let writes =
        "the device's sheet gives no program time: the times leave out the writing of dirty pages; set time.program";
    let energy = run.memory.as_ref().and_then(|m| m.energies.as_ref().err());
    let energy = energy.map(|lacks| format!("energy is left out: {lacks}"));
    let halted = lane.halted.map(|at| {
        format!("the device failed three times in a row, a page was lost and the program was stopped after {}; counts are those until then", show_time(at))
    });
    lane.writes_unpriced.then(|| writes.to_string()).into_iter().chain(energy).chain(halted).collect()
}
