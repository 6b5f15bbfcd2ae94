//! The result of one configuration, and its JSON.

use coldframe_core::{Bytes, Ps, Stage};
use coldframe_device::flash;
use coldframe_device::quantity::show_bytes;
use coldframe_sim::front_end::FrontEndCounts;
use coldframe_sim::oracle::OracleCounts;
use coldframe_sim::{LaneResult, Latency};
use serde_json::{json, Map, Value};

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
    /// Time outside of faults, where priced.
    pub idle: Option<Ps>,
    /// What was found out.
    pub found: Found,
    /// Seconds that the whole run took on this machine, all configurations together.
    pub host_seconds: f64,
}

impl RunResult {
    /// Page references that the memory management unit saw.
    pub fn references(&self) -> u64 {
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
        let of = if self.has_icache { self.front_end.instructions } else { self.references() };
        self.true_faults() as f64 / of.max(1) as f64
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

    /// Mean time per instruction, paging included, where priced.
    pub fn time_per_instruction(&self) -> Option<f64> {
        let total = self.idle? + self.lane()?.paging;
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
            put("tlb_misses", self.front_end.tlb_misses);
        }
        let mut object = json!({
            "schema_version": SCHEMA_VERSION,
            "version": env!("CARGO_PKG_VERSION"),
            "trace": {
                "path": self.trace.path,
                "sha256": self.trace.sha256,
                "fidelity": self.trace.fidelity,
                "references": self.trace.references,
                "instructions": self.trace.instructions,
                "pages": self.pages,
            },
            "config": self.config,
        });
        match &self.found {
            Found::Oracle(found) => {
                put("true_faults", found.true_faults);
                put("cold_faults", found.cold_faults);
                put("evictions", found.evictions);
                put("dirty_evictions", found.dirty_evictions);
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
                put("page_loads", c.page_loads);
                put("page_moves", c.page_moves);
                object["counts"] = counts.into();
                if let Some(swap) = &lane.swap {
                    let (c, wear) = (&swap.counts, flash::wear(&swap.erases));
                    object["swap"] = json!({
                        "programs": c.programs, "copies": c.copies, "erases": c.erases, "collections": c.collections,
                        "area_full": c.areas_full, "erases_max": wear.max, "erases_deviation": wear.deviation,
                    });
                }
                object["time_ps"] = self.times(lane);
                object["fault_latency_ps"] =
                    json!({ "true": latency(&lane.true_latency), "false": latency(&lane.false_latency) });
                if lane.writes_unpriced {
                    object["notes"] = json!(["the device's sheet gives no program time: the times leave out the writing of dirty pages; set time.program"]);
                }
            }
        }
        object["host"] = json!({
            "seconds": self.host_seconds,
            "references_per_second": self.front_end.references as f64 / self.host_seconds.max(1e-9),
        });
        object
    }

    fn times(&self, lane: &LaneResult) -> Value {
        let names = ["pre_process", "get_freeframe", "load_stopover", "trans_host_mem", "update_mmu", "post_process"];
        let stages: Map<String, Value> =
            names.iter().zip(Stage::ALL).map(|(n, s)| (n.to_string(), lane.stages[s as usize].0.into())).collect();
        let mut times = json!({ "paging": lane.paging.0, "hidden": lane.hidden.0, "stages": stages });
        if let Some(idle) = self.idle {
            times["idle"] = idle.0.into();
            times["total"] = (idle + lane.paging).0.into();
        }
        times
    }
}

fn latency(of: &Latency) -> Value {
    let mut object = Map::new();
    object.insert("count".into(), of.count().into());
    let quantiles = [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)];
    if let Some(mean) = of.mean() {
        object.insert("mean".into(), mean.0.into());
        for (name, q) in quantiles {
            object.insert(name.into(), of.quantile(q).unwrap_or_default().0.into());
        }
        object.insert("max".into(), of.max().0.into());
    }
    object.into()
}
