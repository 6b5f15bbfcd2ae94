//! The result of one configuration, and its JSON.

use coldframe_core::{Bytes, Pj, Ps, Stage};
use coldframe_device::energy::{e_paging, t_paging, t_total, AccessCounts, Ledger};
use coldframe_device::flash;
use coldframe_device::quantity::{show_bytes, show_time};
use coldframe_device::StagePrices;
use coldframe_sim::front_end::FrontEndCounts;
use coldframe_sim::oracle::OracleCounts;
use coldframe_sim::{LaneResult, Latency, SwapDone};
use coldframe_trace::{Cut, Reduction};
use serde_json::{json, Map, Value};

use crate::certainty::{caveat, Certainty};
use crate::memory::{self, MemoryPrices};
use crate::table::human_count;
use crate::tasks;

/// Version of the JSON's schema.
pub const SCHEMA_VERSION: u32 = 1;

/// Facts about the trace that every result carries.
#[derive(Clone, Debug)]
pub struct TraceFacts {
    /// Path as given.
    pub path: String,
    /// Of the file.
    pub sha256: String,
    /// What its rows can be trusted for.
    pub fidelity: String,
    /// In the whole trace.
    pub references: u64,
    /// In the whole trace.
    pub instructions: u64,
    /// Pages of the window that it was recorded through.
    pub window: Option<u64>,
    /// How it was reduced, and of what.
    pub reduction: Option<Reduction>,
    /// What it was cut out of.
    pub cuts: Vec<Cut>,
}

impl TraceFacts {
    /// As every result has them, with what a reader must know of a trace that is not every reference. `pages`: how many it touches.
    pub fn json(&self, pages: Option<usize>) -> Value {
        let mut object = json!({
            "path": self.path,
            "sha256": self.sha256,
            "fidelity": self.fidelity,
            "references": self.references,
            "instructions": self.instructions,
        });
        if let Some(pages) = pages {
            object["pages"] = pages.into();
        }
        if let Some(window) = self.window {
            object["window_pages"] = window.into();
        }
        if let Some(reduction) = self.reduction {
            object["reduction"] = json!(reduction);
        }
        if !self.cuts.is_empty() {
            object["cuts"] = json!(self.cuts);
        }
        if let Some(caveat) = caveat(self) {
            object["caveat"] = caveat.into();
        }
        object
    }

    /// What it is a sample of, if it is one.
    pub fn sampled(&self) -> Option<Reduction> {
        self.reduction.filter(|reduction| reduction.rate().is_some())
    }
}

/// What a lane or an oracle has found out.
#[derive(Clone, Debug)]
pub enum Found {
    /// The engine.
    Lane(Box<LaneResult>),
    /// An oracle.
    Oracle(OracleCounts),
}

/// The result of one configuration.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// The trace.
    pub trace: TraceFacts,
    /// Different pages touched.
    pub pages: usize,
    /// Every setting in force.
    pub config: Value,
    /// Policy as shown.
    pub policy: String,
    /// Handler; empty for an oracle.
    pub handler: String,
    /// Frames.
    pub frames: usize,
    /// Page size.
    pub page: Bytes,
    /// The front end's counts; cache and TLB only where there are some.
    pub front_end: FrontEndCounts,
    /// Whether the front end has an instruction cache.
    pub has_icache: bool,
    /// Whether the front end has a data cache.
    pub has_dcache: bool,
    /// Time outside of faults and of accesses to memory, where priced.
    pub idle: Option<Ps>,
    /// What the stages of a fault cost; `None` for an oracle.
    pub prices: Option<StagePrices>,
    /// Prices of accesses to memory, where they have some.
    pub memory: Option<MemoryPrices>,
    /// Time of all accesses to memory as if none were in place.
    pub memory_time: Ps,
    /// What was found out.
    pub found: Found,
    /// How sure its misses are.
    pub certainty: Certainty,
    /// Who owned what slot of its swap area, as [`crate::slots`] draws it; `None` without one.
    pub slots: Option<Value>,
    /// Energy of the pages moved, by term, where nothing prices main memory and the device's sheet has energies.
    pub device_energy: Vec<(&'static str, Pj)>,
    /// Seconds that the whole run took on this machine, all configurations together.
    pub host_seconds: f64,
}

impl RunResult {
    /// Page references that the memory management unit saw.
    pub fn references(&self) -> u64 {
        if let Some(whole) = self.trace.sampled() {
            return whole.references;
        }
        let quiet_faults = match &self.found {
            Found::Lane(lane) => lane.quiet_faults,
            Found::Oracle(_) => self.front_end.quiet,
        };
        self.front_end.references - self.front_end.quiet + quiet_faults
    }

    /// True faults.
    pub fn true_faults(&self) -> u64 {
        match &self.found {
            Found::Lane(lane) => lane.counts.true_faults,
            Found::Oracle(counts) => counts.true_faults,
        }
    }

    /// False faults.
    pub fn false_faults(&self) -> u64 {
        match &self.found {
            Found::Lane(lane) => lane.counts.false_faults,
            Found::Oracle(_) => 0,
        }
    }

    /// True faults per reference, or per instruction where an instruction cache hides most references.
    pub fn miss_ratio(&self) -> f64 {
        self.per_reference(self.true_faults() as f64)
    }

    fn per_reference(&self, misses: f64) -> f64 {
        let of = if self.has_icache { self.front_end.instructions } else { self.references() };
        misses / of.max(1) as f64
    }

    /// The miss ratio as shown: with its error; none for a recording through a window, of which nobody knows the hits.
    pub fn miss_ratio_text(&self) -> String {
        match self.certainty {
            Certainty::Exact => format!("{:.6}", self.miss_ratio()),
            Certainty::Between { .. } => "-".into(),
            Certainty::Estimated { error } => format!("{:.6} +- {:.6}", self.miss_ratio(), self.per_reference(error)),
        }
    }

    /// True faults as shown: one number, or two bounds, or with the standard error.
    pub fn true_faults_text(&self) -> String {
        match self.certainty {
            Certainty::Exact => human_count(self.true_faults()),
            Certainty::Between { low, high } => format!("{} to {}", human_count(low), human_count(high)),
            Certainty::Estimated { error } => {
                format!("{} +- {}", human_count(self.true_faults()), human_count(error.ceil() as u64))
            }
        }
    }

    /// The lane's findings; `None` for an oracle.
    pub fn lane(&self) -> Option<&LaneResult> {
        match &self.found {
            Found::Lane(lane) => Some(lane),
            Found::Oracle(_) => None,
        }
    }

    /// RAM in bytes.
    pub fn ram(&self) -> Bytes {
        Bytes(self.frames as u64 * self.page.0)
    }

    /// RAM as shown.
    pub fn ram_text(&self) -> String {
        show_bytes(self.ram())
    }

    /// Time of the whole run by the virtual clock, where priced.
    pub fn time(&self) -> Option<Ps> {
        let lane = self.lane()?;
        Some(self.idle? + self.memory_time + lane.xip_surplus + lane.paging)
    }

    /// How often each thing happened that equations 1 and 3 of DDB price; where accesses to memory have prices.
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

    /// Equation 3, by term; where the sheets have energies.
    pub fn e_paging(&self) -> Option<Ledger<Pj>> {
        Some(e_paging(&self.accesses()?, self.memory.as_ref()?.energies.as_ref().ok()?))
    }

    /// Mean time per instruction, paging included, where priced.
    pub fn time_per_instruction(&self) -> Option<f64> {
        let total = self.time()?;
        (self.front_end.instructions > 0).then(|| total.0 as f64 / self.front_end.instructions as f64)
    }

    /// The JSON object.
    pub fn json(&self) -> Value {
        let mut counts = Map::new();
        let mut put = |key: &str, value: u64| drop(counts.insert(key.into(), value.into()));
        put("references", self.references());
        if self.has_icache {
            put("icache_lookups", self.front_end.icache_lookups);
            put("icache_misses", self.front_end.icache_misses);
        }
        if self.has_dcache {
            put("dcache_lookups", self.front_end.dcache_lookups);
            put("dcache_misses", self.front_end.dcache_misses);
            put("memory_reads", self.front_end.memory_reads);
            put("paged_reads", self.front_end.paged_reads);
            put("memory_writes", self.front_end.memory_writes);
        } else if self.has_icache {
            put("tlb_misses", self.front_end.tlb_misses);
        }
        let mut object = json!({
            "schema_version": SCHEMA_VERSION,
            "version": env!("CARGO_PKG_VERSION"),
            "trace": self.trace.json(Some(self.pages)),
            "config": self.config,
        });
        match &self.found {
            Found::Oracle(found) => {
                match self.certainty {
                    Certainty::Exact => {
                        put("true_faults", found.true_faults);
                        put("cold_faults", found.cold_faults);
                        put("evictions", found.evictions);
                        put("dirty_evictions", found.dirty_evictions);
                    }
                    Certainty::Between { low, high } => {
                        put("true_faults_min", low);
                        put("true_faults_max", high);
                        counts.remove("references");
                    }
                    Certainty::Estimated { error } => {
                        put("true_faults", found.true_faults);
                        put("true_faults_error", error.ceil() as u64);
                        put("cold_faults", found.cold_faults);
                    }
                }
                object["counts"] = counts.into();
            }
            Found::Lane(lane) => {
                let c = &lane.counts;
                put("true_faults", c.true_faults);
                put("false_faults", c.false_faults);
                put("cold_faults", c.cold_faults);
                put("write_faults", c.write_faults);
                put("evictions", c.evictions);
                put("dirty_evictions", c.dirty_evictions);
                put("walk_sum", c.walk_sum.0);
                put("walk_max", c.walk_max.0);
                put("forced_evictions", c.forced_evictions);
                put("prefetches", c.prefetches);
                put("prefetches_dropped", c.prefetches_dropped);
                put("prefetch_waits", c.prefetch_waits);
                put("page_loads", c.page_loads);
                put("page_moves", c.page_moves);
                put("page_moves_dual", c.page_moves_dual);
                if c.failures > 0 {
                    put("failures", c.failures);
                    put("halts", c.halts);
                }
                if let Some(n) = self.accesses() {
                    put("page_moves_overlapped", n.page_moves_dual);
                    put("reads_main", n.main_reads);
                    put("reads_xip", n.xip_reads);
                    put("writes_main", n.main_writes);
                }
                object["counts"] = counts.into();
                self.put_ledger(&mut object);
                self.put_device_energy(&mut object);
                if let Some(swap) = &lane.swap {
                    object["swap"] = swap_json(swap);
                    if let Some(slots) = &self.slots {
                        object["swap"]["slots"] = slots.clone();
                    }
                }
                object["time_ps"] = self.times(lane);
                object["fault_latency_ps"] =
                    json!({ "true": latency(&lane.true_latency), "false": latency(&lane.false_latency) });
                let notes = self.notes(lane);
                if !notes.is_empty() {
                    object["notes"] = notes.into();
                }
            }
        }
        object["host"] = json!({
            "seconds": self.host_seconds,
            "references_per_second": self.front_end.references as f64 / self.host_seconds.max(1e-9),
        });
        object
    }

    /// What a failing device came to, as a line; nothing if it did not fail.
    pub fn failures_text(&self) -> String {
        let of = |lane: &LaneResult| tasks::failures(lane.counts.failures, u64::from(lane.halted.is_some()));
        self.lane().map(of).unwrap_or_default()
    }

    fn notes(&self, lane: &LaneResult) -> Vec<String> {
        let writes = "the device's sheet gives no program time: the times leave out the writing of dirty pages; set time.program";
        let energy = self.memory.as_ref().and_then(|m| m.energies.as_ref().err());
        let energy = energy.map(|lacks| format!("energy is left out: {lacks}"));
        let halted = lane.halted.map(|at| {
            format!("the device failed three times in a row, a page was lost and the program was stopped after {}; counts are those until then", show_time(at))
        });
        lane.writes_unpriced.then(|| writes.to_string()).into_iter().chain(energy).chain(halted).collect()
    }

    /// DDB's equations: counts, time and energy by term.
    fn put_ledger(&self, object: &mut Value) {
        let (Some(counts), Some(time), Some(total)) = (self.accesses(), self.t_paging(), self.t_total()) else {
            return;
        };
        let mut terms = memory::terms_json(&time, |t| t.0);
        terms.insert("idle".into(), self.idle.unwrap_or_default().0.into());
        terms.insert("total".into(), total.0.into());
        object["ledger"] = json!({ "counts": memory::counts_json(&counts), "time_ps": terms });
        if let Some(energy) = self.e_paging() {
            object["energy_pj"] = memory::terms_json(&energy, |e| e.0).into();
        }
    }

    fn put_device_energy(&self, object: &mut Value) {
        if !self.device_energy.is_empty() {
            let terms = self.device_energy.iter().map(|(name, energy)| ((*name).to_string(), energy.0.into()));
            let sum = self.device_energy.iter().map(|(_, energy)| energy.0).sum::<u64>();
            object["energy_pj"] = Value::Object(terms.chain([("paging".to_string(), sum.into())]).collect());
        }
    }

    fn times(&self, lane: &LaneResult) -> Value {
        let names = ["pre_process", "get_freeframe", "load_stopover", "trans_host_mem", "update_mmu", "post_process"];
        let stages: Map<String, Value> =
            names.iter().zip(Stage::ALL).map(|(n, s)| (n.to_string(), lane.stages[s as usize].0.into())).collect();
        let mut times = json!({ "paging": lane.paging.0, "hidden": lane.hidden.0, "stages": stages });
        if let Some(idle) = self.idle {
            times["idle"] = idle.0.into();
            times["total"] = self.time().unwrap_or_default().0.into();
        }
        times
    }
}

/// What a swap area on flash did.
pub(crate) fn swap_json(swap: &SwapDone) -> Value {
    let (c, wear) = (&swap.counts, flash::wear(&swap.erases));
    json!({
        "programs": c.programs, "copies": c.copies, "erases": c.erases, "collections": c.collections,
        "area_full": c.areas_full, "erases_max": wear.max, "erases_deviation": wear.deviation,
        "wear_map": wear_map(&swap.erases),
    })
}

/// Most cells of a map of erase blocks.
const WEAR_CELLS_MAX: usize = 256;

/// The erases of the most worn block of each so many, in the blocks' order.
pub fn wear_map(erases: &[u32]) -> Value {
    let each = erases.len().div_ceil(WEAR_CELLS_MAX).max(1);
    let most: Vec<u32> = erases.chunks(each).filter_map(|blocks| blocks.iter().copied().max()).collect();
    json!({ "blocks": erases.len(), "blocks_per_cell": each, "erases_max": most })
}

fn latency(of: &Latency) -> Value {
    let mut object = Map::new();
    object.insert("count".into(), of.count().into());
    let quantiles = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)];
    if let Some(mean) = of.mean() {
        object.insert("mean".into(), mean.0.into());
        for (name, q) in quantiles {
            object.insert(name.into(), of.quantile(q).unwrap_or_default().0.into());
        }
        object.insert("max".into(), of.max().0.into());
        let bins: Vec<Value> = of.bins().iter().map(|bin| json!([bin.from.0, bin.to.0, bin.count])).collect();
        object.insert("bins".into(), bins.into());
    }
    object.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wear_map_is_bounded_and_shows_the_most_worn_of_each_cell() {
        let few = wear_map(&[3, 0, 7]);
        assert_eq!((&few["blocks_per_cell"], &few["erases_max"]), (&json!(1), &json!([3, 0, 7])));
        let many: Vec<u32> = (0..1000).collect();
        let many = wear_map(&many);
        assert_eq!(many["blocks_per_cell"], 4);
        assert_eq!((&many["erases_max"][0], &many["erases_max"][249]), (&json!(3), &json!(999)));
        assert_eq!(many["erases_max"].as_array().unwrap().len(), 250);
    }
}
