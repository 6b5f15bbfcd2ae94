//! The settings, in the words of the command line. They are read from `-c config.toml`, overridden by `--set
//! key.path=value`, then by flags.

use coldframe_core::Ps;
use coldframe_device::quantity;
use serde::{Deserialize, Serialize};

use crate::error::ReportError;

/// Settings of one configuration. A missing setting comes from the system, or from the general defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// A paper's system, whose defaults apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// `name:key=value,...`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Handler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// RAM: a size, or a percentage of the trace's footprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ram: Option<String>,
    /// Frames, instead of `ram`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
    /// Page size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// `I`, `D` or `ID`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// Device: a shipped sheet, or the path of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Main memory, if accesses to it have a price: a shipped sheet, or the path of one. Needs the front end `l1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main_memory: Option<String>,
    /// Front end.
    #[serde(default)]
    pub front_end: FrontEnd,
    /// What the machine can do.
    #[serde(default)]
    pub machine: Machine,
    /// Times that override platform and sheet.
    #[serde(default)]
    pub time: Time,
    /// Which part of the trace.
    #[serde(default)]
    pub limit: Limit,
    /// The swap area.
    #[serde(default)]
    pub swap: Swap,
    /// A compressed tier in the RAM of the frames.
    #[serde(default)]
    pub tier: Tier,
    /// Several tasks on one processor.
    #[serde(default)]
    pub tasks: Tasks,
    /// A device that sometimes fails.
    #[serde(default)]
    pub fail: Fail,
}

/// `tier.*`: evicted pages stay in RAM, compressed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// `none`, `lz4`, `zstd`: its compression times are used (default none).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The compression ratio of each page (default: as measured).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<String>,
    /// Instead of `ratio`: `8:10,1170:60,4096:30`, sizes of compressed pages in bytes, and how many of all pages have
    /// each size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<String>,
    /// Seed for the size of each page (default 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// `fail.*`: a device that sometimes fails.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fail {
    /// The part of all transfers that fails, such as `0.001` or `0.1%`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Seed of the failures; the same seed gives the same failures (default 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// `front_end.*`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrontEnd {
    /// `none`, `swl`, or `l1` (also called `ddb`, after the paper whose caches it has).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `A`, `C` or `D`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<String>,
    /// `round-robin` (the default) or `lru`: the line of a cache set that a new line replaces; for the front end
    /// `l1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l1_replacement: Option<String>,
    /// `0x400000-0x4d2000,...`: address ranges that are demand paged; or `all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paged: Option<String>,
    /// Time of an instruction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// Time of an instruction cache miss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icache_miss: Option<String>,
    /// Time of a page reference, for the front end `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

/// `machine.*`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The hardware has reference bits (default true); otherwise they are emulated by unmapping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference_bit: Option<bool>,
    /// The hardware has dirty bits (default true); otherwise clean pages are mapped read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dirty_bit: Option<bool>,
    /// Stopover buffers (default: the device's sheet).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffers: Option<u32>,
    /// Victims that are evicted together (default 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evict_batch: Option<usize>,
    /// The most pages of a sequential stream that are read ahead with a page (default 0: none), as in the live pager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_ahead: Option<u32>,
    /// Tasks: the device moves pages to RAM by itself (default true); otherwise the processor does, as for one
    /// string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dma: Option<bool>,
    /// Tasks: bytes of a cache line. Consecutive references to a page that is read in a buffer or a slot read each of
    /// its lines once (default: there is no cache).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_line: Option<String>,
}

/// `time.*`: the stages' prices, each a time with its unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Time {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pre_process: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub get_freeframe: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub walk_step: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_downgrade: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_stopover: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trans_host_mem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_mmu: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post_process: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub false_fault_reference: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub false_fault_rest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// A cache block read from main memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main_read: Option<String>,
    /// A cache block read in place, from a buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xip_read: Option<String>,
    /// A cache block written to main memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main_write: Option<String>,
}

/// `limit.*`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Trace rows skipped at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip: Option<u64>,
    /// Stop after this many memory accesses below the front end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accesses: Option<u64>,
}

/// `swap.*`: a swap area on flash, or one whose slots are rewritten in place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Swap {
    /// `log`, `linux` on bare flash, or `linux-ftl` on a device with a translation layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// Erase blocks of each area, with its priority if there are several: `1024`, or `512@5,512@5,1024@0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<String>,
    /// Slots of an erase block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots_per_block: Option<u32>,
    /// What is read together with a page: `none`, `block:8`, `aligned:8` or, of swap traces, `pages:8`. Tasks read a page alone if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_ahead: Option<String>,
    /// `greedy`, `cost-benefit`, `cost-age-times:4`: a collector and the most victims it takes at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collector: Option<String>,
    /// A collection starts below this many blocks of erased slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<u32>,
    /// And continues up to this many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<u32>,
    /// Open the least erased free block next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamic_wear_levelling: Option<bool>,
    /// Move cold blocks when erase counts differ by more than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wear_spread_max: Option<u32>,
    /// Most pages in the swap cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<u32>,
    /// When a copy becomes invalid: as in the `trace`, `until-touched`, or `until-read` (also by read-ahead, as in
    /// the slides of LOBI).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<String>,
    /// SWAPFILE_CLUSTER of Linux's layouts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<u32>,
    /// `linux-ftl`: the kernel tells the device of free slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discard: Option<bool>,
    /// `linux-ftl`: percent of its blocks that the device keeps for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spare_percent: Option<u32>,
    /// The place of the area: `dram`, `emmc`, `nvm`, `nvm-dr` (with direct read) or `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backing: Option<String>,
    /// The area's size; for an area with a backing also a percentage of the trace's footprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// Backings that compress: the compression ratio (default: as measured for the backing).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<String>,
    /// Lines after which a page that is read in its slot is copied; or `sheet`: the number of lines that cost as much
    /// as a copy, by the devices' sheets (default: never).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_max: Option<ReadsMax>,
    /// Tasks in the foreground: writes after which start-gap moves its gap, for the area's life (default: no wear
    /// levelling).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_gap: Option<u32>,
    /// Tasks in the foreground: at most this many pages that a task copied lately are loaded before it comes back
    /// (SAP's lists; default: none).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<usize>,
    /// Tasks in the foreground: the time after a switch at which the pages of the next expected task are loaded
    /// (default 45s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activation: Option<String>,
    /// Tasks in the foreground: a file like `data/workloads/phone.toml`, whose `[machine]` applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
}

/// `swap.reads_max`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ReadsMax {
    /// This many lines.
    Lines(u32),
    /// `sheet`; any other word is refused when it is resolved.
    Word(String),
}

/// `tasks.*`: several tasks under a scheduler.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tasks {
    /// `round-robin`, `cfs` or `eevdf`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// The scheduler's knob: the slice of round robin, the latency of CFS, the base slice of EEVDF.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
    /// Period of the scheduler tick.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick: Option<String>,
    /// `sleeps` or `keeps`: whether a fault gives up the processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_fault: Option<String>,
    /// `off`, `75`, `50`, `xi=0.6` or `timer=0.6`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<String>,
    /// The most pages on a task's list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<usize>,
    /// Idle time units after which a page leaves its list; 0: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<u32>,
    /// Loads in the background at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Ready tasks, including the running one, below which nothing is prefetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_min: Option<usize>,
    /// The scheduler follows its prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follow: Option<bool>,
    /// Listed pages that are in RAM become recent, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renew: Option<bool>,
    /// `mapped` or `unmapped`: how a prefetched page waits for its first touch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrival: Option<String>,
    /// How often each task runs through its part of the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// How long a task sleeps after each turn; by default a round is one turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<String>,
    /// Turns of a round; each has the same number of references, to other pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// A task unmaps its memory after each round, as `stress` without `--vm-keep` does: the next round begins with
    /// pages of zeros.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fresh: Option<bool>,
}

impl Settings {
    /// Settings from a configuration file's text, then from `key.path=value` texts.
    ///
    /// # Errors
    /// Not TOML, an unknown key, a value of the wrong type; with file, line and field.
    pub fn read(config: Option<(&str, &str)>, sets: &[String]) -> Result<Settings, ReportError> {
        let mut table = toml::Table::new();
        if let Some((origin, text)) = config {
            let bad = |reason: String| ReportError::Config { origin: origin.into(), reason };
            // First for the message with line and column, then as the table that `--set` changes.
            toml::from_str::<Settings>(text).map_err(|e| bad(e.to_string()))?;
            table = toml::from_str(text).map_err(|e| bad(e.to_string()))?;
        }
        for set in sets {
            let bad = |reason: String| ReportError::Config { origin: format!("--set {set}"), reason };
            let (path, value) =
                set.split_once('=').ok_or_else(|| bad("is not key.path=value, such as limit.skip=1000".into()))?;
            table = with(&table, path, typed(value))
                .or_else(|first| with(&table, path, value.into()).map_err(|_| bad(first)))?;
        }
        let value = toml::Value::Table(table);
        value.try_into().map_err(|e| ReportError::Config { origin: "settings".into(), reason: e.to_string() })
    }
}

impl Settings {
    /// As a configuration file.
    ///
    /// # Errors
    /// A number too large for TOML.
    pub fn to_toml(&self) -> Result<String, ReportError> {
        let bad = |e: toml::ser::Error| ReportError::Config { origin: "settings".into(), reason: e.to_string() };
        toml::to_string(self).map_err(bad)
    }
}

/// A number or a truth value as such, everything else as text.
fn typed(value: &str) -> toml::Value {
    match (value.parse::<i64>(), value) {
        (Ok(number), _) => number.into(),
        (_, "true") => true.into(),
        (_, "false") => false.into(),
        (_, text) => text.into(),
    }
}

/// The table with a value at a path, if such settings are valid.
fn with(table: &toml::Table, path: &str, value: toml::Value) -> Result<toml::Table, String> {
    let mut table = table.clone();
    let mut keys: Vec<&str> = path.split('.').collect();
    let last = keys.pop().filter(|k| !k.is_empty()).ok_or("there is no key before the `=`")?;
    let mut at = &mut table;
    for key in keys {
        let next = at.entry(key).or_insert_with(|| toml::Table::new().into());
        at = next.as_table_mut().ok_or_else(|| format!("`{key}` is a value, not a table"))?;
    }
    at.insert(last.into(), value);
    toml::Value::Table(table.clone()).try_into::<Settings>().map_err(|e| e.to_string())?;
    Ok(table)
}

/// The RAM sizes of a sweep that names none, in percent of the trace's footprint.
pub const SIZES_DEFAULT: [&str; 6] = ["5%", "10%", "25%", "50%", "75%", "100%"];

/// Combines every one of `all` with each value; unchanged if there are no values.
pub fn vary(all: &mut Vec<Settings>, values: &[String], set: impl Fn(&mut Settings, &str)) {
    if values.is_empty() {
        return;
    }
    let mut out = Vec::with_capacity(all.len() * values.len());
    for one in all.iter() {
        for value in values {
            let mut one = one.clone();
            set(&mut one, value);
            out.push(one);
        }
    }
    *all = out;
}

/// A setting that a sweep varies: how to set it, and its values; an empty list means the setting's own value.
pub type Vary = (fn(&mut Settings, &str), Vec<String>);

/// The lists that a run varies; an empty list means the setting's own value. Outermost first: `outer`, system, page,
/// device, policy, handler, frames, `inner`.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Sweep {
    pub outer: Vec<Vary>,
    pub inner: Vec<Vary>,
    pub systems: Vec<String>,
    pub pages: Vec<String>,
    pub devices: Vec<String>,
    pub policies: Vec<String>,
    pub handlers: Vec<String>,
    pub rams: Vec<String>,
    pub frames: Vec<u64>,
}

impl Sweep {
    /// The settings of every combination, in order.
    ///
    /// # Errors
    /// Both RAM and frames are given.
    pub fn expand(&self, base: &Settings) -> Result<Vec<Settings>, ReportError> {
        if !self.rams.is_empty() && !self.frames.is_empty() {
            return Err(ReportError::setting("ram", "give --ram or --frames, not both: they mean the same thing"));
        }
        let mut all = vec![base.clone()];
        let mut vary = |values: &[String], set: fn(&mut Settings, &str)| vary(&mut all, values, set);
        self.outer.iter().for_each(|(set, values)| vary(values, *set));
        vary(&self.systems, |s, v| s.system = Some(v.into()));
        vary(&self.pages, |s, v| s.page = Some(v.into()));
        vary(&self.devices, |s, v| s.device = Some(v.into()));
        vary(&self.policies, |s, v| s.policy = Some(v.into()));
        vary(&self.handlers, |s, v| s.handler = Some(v.into()));
        vary(&self.rams, |s, v| (s.ram, s.frames) = (Some(v.into()), None));
        let frames: Vec<String> = self.frames.iter().map(ToString::to_string).collect();
        vary(&frames, |s, v| (s.ram, s.frames) = (None, v.parse().ok()));
        self.inner.iter().for_each(|(set, values)| vary(values, *set));
        Ok(all)
    }
}

/// An optional time.
pub fn time(field: &str, text: &Option<String>) -> Result<Option<Ps>, ReportError> {
    let read = |t: &String| quantity::time(t).map_err(|e| ReportError::quantity(field, e));
    text.as_ref().map(read).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_overrides_the_file_and_a_bad_key_is_named() {
        let file = "policy = \"fifo\"\n[limit]\nskip = 3\n";
        let sets = ["limit.skip=7", "front_end.reading=C", "swap.blocks=1024"].map(String::from);
        let settings = Settings::read(Some(("c.toml", file)), &sets).unwrap();
        assert_eq!((settings.limit.skip, settings.swap.blocks.as_deref()), (Some(7), Some("1024")));
        assert_eq!(settings.front_end.reading.as_deref(), Some("C"));
        assert_eq!(settings.policy.as_deref(), Some("fifo"));
        for (file, sets, said) in [
            ("polcy = \"fifo\"", vec![], "polcy"),
            ("policy = 3", vec![], "line 1"),
            ("[limit]\nskip = -1", vec![], "line 2"),
            ("policy = ", vec![], "c.toml"),
            ("", vec!["limit.skp=7"], "skp"),
            ("", vec!["limit.skip=x"], "--set limit.skip=x"),
            ("", vec!["limit"], "key.path=value"),
            ("policy = \"fifo\"", vec!["policy.x=1"], "is a value"),
            ("", vec!["=1"], "no key"),
        ] {
            let sets: Vec<String> = sets.into_iter().map(Into::into).collect();
            let error = Settings::read(Some(("c.toml", file)), &sets).unwrap_err();
            assert!(error.to_string().contains(said), "{file} {sets:?}: {error}");
            assert_eq!(error.code(), 2);
        }
    }

    #[test]
    fn a_sweep_has_the_policy_outermost_and_frames_innermost() {
        let sweep = Sweep {
            policies: vec!["fifo".into(), "clock".into()],
            handlers: vec!["sequential".into()],
            frames: vec![1, 2],
            ..Sweep::default()
        };
        let all = sweep.expand(&Settings::default()).unwrap();
        let shown: Vec<_> = all.iter().map(|s| (s.policy.as_deref().unwrap(), s.frames.unwrap())).collect();
        assert_eq!(shown, [("fifo", 1), ("fifo", 2), ("clock", 1), ("clock", 2)]);
    }
}
