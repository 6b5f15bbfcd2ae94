//! The result of one string of references.

use coldframe_core::{Counts as EventCounts, Pj, Ps};
use coldframe_drivers::front_end::FrontEndCounts;
use coldframe_drivers::oracle::OracleCounts;
use coldframe_lane::LaneResult;
use coldframe_sheet::paging::{t_total, AccessCounts, Ledger};
use coldframe_sheet::quantity::show_time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Distribution, Failed, Latencies, Sections, SimResult, SwapArea, Terms, Trace};
use crate::result::{Certainty, RunResult, Simulated};

section! {
    /// The findings for one string of references; an oracle only has counts.
    OneString(run: &RunResult) {
        /// Counts.
        counts: Counts = run.into();
        /// DDB's equations 1 and 2, if accesses to memory have prices.
        #[serde(skip_serializing_if = "Option::is_none")]
        ledger: Option<PricedLedger> = PricedLedger::of(run);
        /// Energy of paging, if the sheets have energies.
        #[serde(skip_serializing_if = "Option::is_none")]
        energy_pj: Option<PagingEnergy> = PagingEnergy::of(run);
        /// The swap area, if it is a log.
        #[serde(skip_serializing_if = "Option::is_none")]
        swap: Option<SwapArea> = run.lane().and_then(|lane| lane.swap.as_ref()).map(SwapArea::new);
        /// Times, in picoseconds; requests have none without a named device.
        #[serde(skip_serializing_if = "Option::is_none")]
        time_ps: Option<Times> = run.timed().map(|lane| Times::new(run, lane));
        /// Latencies of faults.
        #[serde(skip_serializing_if = "Option::is_none")]
        fault_latency_ps: Option<FaultLatencies> = run.timed().map(FaultLatencies::new);
        /// Notes on the numbers.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String> = run.lane().map_or_else(|| run.estimated().into_iter().collect(), |lane| notes(run, lane));
        /// The simulator's own time.
        host: Host = Host::new(run);
    }
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
    /// The lower bound; of an estimate from a sample, the lower end of the range that has the number with 95 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub true_faults_min: Option<u64>,
    /// The upper bound, or end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub true_faults_max: Option<u64>,
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

section! {
    /// Lines of the instruction cache.
    #[derive(Copy)]
    InstructionCache(f: &FrontEndCounts) {
        /// Looked up.
        icache_lookups: u64 = f.icache_lookups;
        /// Misses.
        icache_misses: u64 = f.icache_misses;
    }
}

section! {
    /// Lines of the data cache, and accesses to memory below both caches.
    #[derive(Copy)]
    DataCache(f: &FrontEndCounts) {
        /// Looked up.
        dcache_lookups: u64 = f.dcache_lookups;
        /// Misses.
        dcache_misses: u64 = f.dcache_misses;
        /// Cache blocks read.
        memory_reads: u64 = f.memory_reads;
        /// Of these, those of paged pages.
        paged_reads: u64 = f.paged_reads;
        /// Cache blocks written back.
        memory_writes: u64 = f.memory_writes;
    }
}

section! {
    /// Counts of engines only.
    #[derive(Copy)]
    EngineCounts(c: &EventCounts) {
        /// Faults on pages in RAM that were not mapped.
        false_faults: u64 = c.false_faults;
        /// First writes to pages mapped read-only.
        write_faults: u64 = c.write_faults;
        /// Frames examined in all searches.
        walk_sum: u64 = c.walk_sum.0;
        /// Frames examined in the longest search.
        walk_max: u64 = c.walk_max.0;
        /// Evictions forced because the walk budget was used up.
        forced_evictions: u64 = c.forced_evictions;
        /// Prefetches; no task waited for them.
        prefetches: u64 = c.prefetches;
        /// Prefetch hints that were dropped.
        prefetches_dropped: u64 = c.prefetches_dropped;
        /// Faults on pages that a prefetch was loading.
        prefetch_waits: u64 = c.prefetch_waits;
        /// Loads started.
        page_loads: u64 = c.page_loads;
        /// Pages moved from a buffer to a frame.
        page_moves: u64 = c.page_moves;
        /// Of those, while the device was loading another page.
        page_moves_dual: u64 = c.page_moves_dual;
    }
}

section! {
    /// Accesses to memory.
    #[derive(Copy)]
    MemoryCounts(n: AccessCounts) {
        /// Page moves while the device was loading another page.
        page_moves_overlapped: u64 = n.page_moves_dual;
        /// Reads from main memory.
        reads_main: u64 = n.main_reads;
        /// Reads in the device's buffers.
        reads_xip: u64 = n.xip_reads;
        /// Writes to main memory.
        writes_main: u64 = n.main_writes;
    }
}

section! {
    /// DDB's equations 1 and 2.
    PricedLedger(n: AccessCounts, time: Ledger<Ps>, idle_time: Ps) {
        /// By the paper's names.
        counts: Terms = named(n);
        /// In picoseconds.
        time_ps: LedgerTimes = LedgerTimes::new(&time, idle_time);
    }
}

section! {
    /// Time by equation 1, and the total.
    LedgerTimes(time: &Ledger<Ps>, idle_time: Ps) {
        /// By term.
        #[serde(flatten)]
        terms: Terms = time.terms().into_iter().map(|(name, t)| (name.into(), t.0)).collect();
        /// Their sum.
        paging: u64 = time.total().0;
        /// Outside of faults and accesses to memory.
        idle: u64 = idle_time.0;
        /// Both together.
        total: u64 = t_total(time, idle_time).0;
    }
}

section! {
    /// Energy of paging, in picojoules.
    PagingEnergy(by_term: &[(&'static str, Pj)]) {
        /// By term.
        #[serde(flatten)]
        terms: Terms = by_term.iter().map(|(name, energy)| ((*name).into(), energy.0)).collect();
        /// Their sum.
        paging: u64 = by_term.iter().map(|(_, energy)| energy.0).sum();
    }
}

section! {
    /// Times, in picoseconds.
    #[derive(Copy)]
    Times(run: &RunResult, lane: &LaneResult) {
        /// In faults.
        paging: u64 = lane.paging.0;
        /// Processor time that loads hid.
        hidden: u64 = lane.hidden.0;
        /// `paging` by stage.
        stages: Stages = Stages::new(lane);
        /// Outside of faults and accesses to memory, if it has a price.
        #[serde(skip_serializing_if = "Option::is_none")]
        idle: Option<u64> = run.idle.map(|t| t.0);
        /// The whole run, if it has a price.
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<u64> = run.time().map(|t| t.0);
    }
}

section! {
    /// Times in the stages of faults, in picoseconds.
    #[derive(Copy)]
    Stages(lane: &LaneResult) {
        /// PreProcess.
        pre_process: u64 = lane.stages[0].0;
        /// GetFreeframe.
        get_freeframe: u64 = lane.stages[1].0;
        /// LoadStopover.
        load_stopover: u64 = lane.stages[2].0;
        /// TransHostMem.
        trans_host_mem: u64 = lane.stages[3].0;
        /// UpdateMMU.
        update_mmu: u64 = lane.stages[4].0;
        /// PostProcess.
        post_process: u64 = lane.stages[5].0;
    }
}

section! {
    /// Latencies of faults.
    FaultLatencies(lane: &LaneResult) {
        /// Faults that had to load.
        #[serde(rename = "true")]
        true_faults: Latencies = Latencies::new(&lane.true_latency);
        /// Faults on pages in RAM.
        #[serde(rename = "false")]
        false_faults: Latencies = Latencies::new(&lane.false_latency);
    }
}

section! {
    /// The simulator's own time on this machine.
    #[derive(Copy)]
    Host(run: &RunResult) {
        /// All configurations together.
        seconds: f64 = run.host_seconds;
        /// References of this configuration for each of these seconds.
        references_per_second: f64 = run.front_end.references as f64 / run.host_seconds.max(1e-9);
    }
}

impl From<&RunResult> for SimResult {
    fn from(run: &RunResult) -> SimResult {
        let trace = Trace { pages: Some(run.pages), ..run.trace.clone() };
        SimResult::new(trace, run.config.clone(), Sections::String(Box::new(OneString::new(run))))
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
            icache: run.has_icache.then(|| InstructionCache::new(f)),
            dcache: run.has_dcache.then(|| DataCache::new(f)),
            tlb_misses: (run.has_icache && !run.has_dcache).then_some(f.tlb_misses),
            ..Counts::default()
        };
        if run.sample.is_some() {
            let (low, high) = run.certainty.range(run.true_faults());
            let true_faults = Some(run.true_faults());
            return Counts { true_faults, true_faults_min: Some(low), true_faults_max: Some(high), ..counts };
        }
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
            Certainty::Exact | Certainty::Estimate { .. } => {
                let (evictions, dirty_evictions) = (Some(simulated.evictions), Some(simulated.dirty_evictions));
                Counts { true_faults, cold_faults, evictions, dirty_evictions, ..self }
            }
            Certainty::Between { low, high } => {
                Counts { references: None, true_faults_min: Some(low), true_faults_max: Some(high), ..self }
            }
        }
    }

    fn of_lane(self, lane: &LaneResult, accesses: Option<AccessCounts>) -> Counts {
        let c = &lane.counts;
        Counts {
            true_faults: Some(c.true_faults),
            cold_faults: Some(c.cold_faults),
            evictions: Some(c.evictions),
            dirty_evictions: Some(c.dirty_evictions),
            engine: Some(EngineCounts::new(c)),
            failed: Failed::new(c.failures, c.halts),
            memory: accesses.map(MemoryCounts::new),
            ..self
        }
    }

    pub fn faults(&self) -> u64 {
        self.true_faults.unwrap_or(0) + self.engine.map_or(0, |engine| engine.false_faults + engine.write_faults)
    }
}

impl PricedLedger {
    fn of(run: &RunResult) -> Option<PricedLedger> {
        Some(PricedLedger::new(run.accesses()?, run.t_paging()?, run.idle?))
    }
}

/// With the paper's names.
fn named(n: AccessCounts) -> Terms {
    let counts = [
        ("N_pl", n.page_loads),
        ("N_pm", n.page_moves),
        ("N_pmdual", n.page_moves_dual),
        ("N_rdmain", n.main_reads),
        ("N_rdxip", n.xip_reads),
        ("N_wrmain", n.main_writes),
    ];
    counts.into_iter().map(|(name, n)| (name.into(), n)).collect()
}

impl PagingEnergy {
    /// By DDB's equation 3; without prices of main memory, the energy of the pages moved.
    fn of(run: &RunResult) -> Option<PagingEnergy> {
        let by_equation = run.t_total().and(run.e_paging()).map(|ledger| PagingEnergy::new(&ledger.terms()));
        by_equation.or_else(|| (!run.device_energy.is_empty()).then(|| PagingEnergy::new(&run.device_energy)))
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
        format!(
            "the device failed three times in a row, a page was lost and the program was stopped{}; counts are those \
             until then",
            if run.priced { format!(" after {}", show_time(at)) } else { String::new() }
        )
    });
    (run.priced && lane.writes_unpriced).then(|| writes.to_string()).into_iter().chain(energy).chain(halted).collect()
}
