//! The settings, in the words of the command line. They are read from `-c config.toml`, overridden by `--set
//! key.path=value`, then by flags. One table makes the types here, the types of the Python package and the page
//! `docs/book/src/settings.md`.

use std::path::Path;

use coldframe_core::Ps;
use coldframe_sheet::quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ExperimentError;

/// A setting, as the reference describes it.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name within its table.
    pub name: &'static str,
    /// Its type in Rust.
    pub kind: &'static str,
    /// The unit or form of its value.
    pub unit: &'static str,
    /// Its value if it is not given.
    pub default: &'static str,
    /// What it does.
    pub about: &'static str,
}

/// A table of a configuration file; the settings of the first stand before all tables.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// The name of its type.
    pub kind: &'static str,
    /// What its settings are about.
    pub about: &'static str,
    /// Its settings.
    pub settings: &'static [Setting],
    /// The tables in it: name and type.
    pub groups: &'static [(&'static str, &'static str)],
}

macro_rules! settings {
    ($($(#[doc = $about:literal])+ $group:ident {
        $($(#[doc = $text:literal])+ $name:ident: $kind:ty, $unit:literal, $default:literal;)+
        $(+ $inner:ident: $of:ident;)*
    })+) => {
        $(
            $(#[doc = $about])+
            #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
            #[serde(deny_unknown_fields)]
            pub struct $group {
                $($(#[doc = $text])+ #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<$kind>,)+
                $(
                    #[doc = concat!("`", stringify!($inner), ".*`.")]
                    #[serde(default, skip_serializing_if = "is_default")]
                    pub $inner: $of,
                )*
            }
        )+

        /// Every setting.
        pub const ALL: &[Group] = &[$(Group {
            kind: stringify!($group),
            about: concat!($($about),+),
            settings: &[$(Setting {
                name: stringify!($name),
                kind: stringify!($kind),
                unit: $unit,
                default: $default,
                about: concat!($($text),+),
            }),+],
            groups: &[$((stringify!($inner), stringify!($of))),*],
        }),+];
    };
}

settings! {
    /// Settings of one configuration. A missing setting comes from the system, or from the general defaults.
    Settings {
        /// A paper's system, whose defaults apply: `swl`, `ddb`, `sap`, `drswap`, `lobi` or `zram`.
        system: String, "name", "none; tasks: sap";
        /// The page replacement policy or oracle; `coldframe-lab policies` lists names and parameters.
        policy: String, "name:key=value,...", "the system's, or clock";
        /// The page fault handler: the order of search, load and move.
        handler: String, "name", "the system's, or parallel; in the foreground sequential";
        /// RAM for pages; a percentage is of the trace's footprint.
        ram: String, "size or %", "`sim`: six sizes from 5% to 100%";
        /// RAM as a number of frames, instead of `ram`.
        frames: u64, "frames", "none";
        /// The size of a page.
        page: String, "size", "the system's, or 4KiB";
        /// The references that are used: instructions, data or both.
        stream: String, "I, D or ID", "the system's, or what the front end sees";
        /// The device with the pages: a shipped data sheet (`coldframe-lab devices`), or the path of one.
        device: String, "name or path", "the system's, or KFG1G16Q2M; swap traces LOBI-NAND";
        /// The sheet of main memory, if accesses to it have a price; needs the front end `l1`.
        main_memory: String, "name or path", "the system's, or none";
        + front_end: FrontEnd;
        + machine: Machine;
        + time: Time;
        + limit: Limit;
        + swap: Swap;
        + tasks: Tasks;
        + sap: Sap;
        + fail: Fail;
    }

    /// The hardware between the program's references and the page table.
    FrontEnd {
        /// The front end: `none`, `swl`, or `l1` (also called `ddb`, after the paper whose caches it has).
        name: String, "name", "the system's, or none";
        /// The references behind the front end `swl` that the page table sees.
        reading: String, "A, C or D", "A";
        /// The address ranges that are demand paged, as `0x400000-0x4d2000,...`, or `all`.
        paged: String, "ranges", "swl: the trace's code; l1: its read-only mappings; none: all";
        /// An instruction takes this time.
        instruction: String, "time", "the front end's, or 0";
        /// A page reference takes this time, without a front end.
        reference: String, "time", "0; tasks 100ns; in the foreground 1ns";
    }

    /// What the machine can do.
    Machine {
        /// The hardware has reference bits; otherwise they are emulated by unmapping.
        reference_bit: bool, "true or false", "true";
        /// The hardware has dirty bits; otherwise clean pages are mapped read-only.
        dirty_bit: bool, "true or false", "true";
        /// Stopover buffers of the device.
        buffers: u32, "buffers", "the device's sheet";
        /// Victims that are evicted together.
        evict_batch: usize, "pages", "1";
        /// The most pages of a sequential stream that are read ahead with a page, as in the live pager.
        read_ahead: u32, "pages", "0";
        /// Tasks: the device moves pages to RAM by itself; otherwise the processor does, as for one string.
        dma: bool, "true or false", "true";
        /// Tasks: consecutive references to a page in a buffer or a slot read each of its cache lines once.
        cache_line: String, "size", "none: there is no cache";
    }

    /// Times that override the sheets.
    Time {
        /// A page is written to the device.
        program: String, "time", "the device's sheet";
        /// A cache block is read from main memory.
        main_read: String, "time", "the sheet of main memory; tasks 0";
        /// A cache block is read in place, from a buffer.
        xip_read: String, "time", "the device's sheet";
    }

    /// Which part of the trace.
    Limit {
        /// Trace rows skipped at the start.
        skip: u64, "rows", "0";
        /// Stop after this many memory accesses below the front end.
        accesses: u64, "accesses", "none";
        /// The share of the pages that is simulated, chosen by a hash of each (SHARDS, FAST 2015): misses are
        /// estimates, each with its error.
        sample: String, "part or %", "all";
    }

    /// A swap area on flash, or one whose slots are rewritten in place.
    Swap {
        /// How slots are allocated: `log`, `linux` on bare flash, or (swap traces) on a device with a translation
        /// layer: `linux-ftl`, or `linux-discard` if it is told of free slots.
        layout: String, "name", "log";
        /// Swap traces, `log`: logs, to which processes are distributed by their numbers; each has an open block.
        logs: u32, "logs", "1";
        /// Erase blocks of each area, with its priority if there are several: `1024`, or `512@5,512@5,1024@0`.
        blocks: String, "erase blocks", "2048; with a backing: `swap.size`";
        /// Slots of an erase block.
        slots_per_block: u32, "slots", "32";
        /// What is read together with a page: `none`, `block:8`, `aligned:8` or (swap traces) `pages:8`.
        read_ahead: String, "name:slots", "log: block:8; linux: aligned:8; tasks: none";
        /// The collector, such as `cost-benefit` or `cost-age-times:4`, and the most victims it takes at a time.
        collector: String, "name:blocks", "greedy:1";
        /// Swap traces: a copy becomes invalid as in the `trace`, `until-touched`, or `until-read` (also by
        /// read-ahead).
        keep: String, "word", "trace";
        /// The place of the area, for tasks: `dram`, `emmc`, `nvm`, `nvm-dr` (with direct read), `zram-lz4`,
        /// `zram-zstd` or `none`.
        backing: String, "name", "the system's, or none";
        /// The area's size; for an area with a backing also a percentage of the trace's footprint. With `blocks` as
        /// well, tasks have both: flash takes what the backing has no room for.
        size: String, "size or %", "with a backing: 128MiB; else `swap.blocks`";
        /// Backings that compress: how many times smaller a page becomes.
        ratio: String, "times", "as measured: 3.5 (lz4), 6.9 (zstd)";
        /// A page that is read in its slot is copied after this many lines.
        reads_max: u32, "lines", "never";
        /// Tasks in the foreground: a file whose `[machine]` describes the phone.
        phone: String, "path", "data/workloads/phone.toml";
    }

    /// Several tasks on one processor, under a scheduler.
    Tasks {
        /// The scheduler: `round-robin`, `cfs` or `eevdf`.
        scheduler: String, "name", "cfs";
        /// When the next task's pages are loaded: `off`, after 75 or 50 percent of the slice, `xi=0.6` or `timer=0.6`.
        prefetch: String, "% or word", "75";
        /// The scheduler keeps its prediction, even if another task wakes up.
        follow: bool, "true or false", "false";
    }

    /// SAP, where its paper leaves a choice open, and the guard that the paper does not have.
    Sap {
        /// A full list of 1,024 pages: the `oldest-leaves`, or it is `full` and takes no more; `majors-of-8`: each of
        /// 1,024 faults stands for the 8 pages that Linux reads with one, and the oldest leaves.
        list: String, "word", "oldest-leaves";
        /// Prefetching stops where it costs more major faults than it spares; the paper has no such guard.
        guard: bool, "true or false", "true";
        /// A list is worked through also after the switch to its task.
        past_switch: bool, "true or false", "false";
    }

    /// A device that sometimes fails.
    Fail {
        /// The part of all transfers that fails, such as `0.001` or `0.1%`.
        rate: String, "part or %", "0";
        /// The same seed gives the same failures.
        seed: u64, "number", "1";
    }
}

/// Whether a table has no setting.
pub(crate) fn is_default<T: Default + PartialEq>(table: &T) -> bool {
    *table == T::default()
}

impl Settings {
    /// Settings from a configuration file's text, then from `key.path=value` texts.
    pub fn read(config: Option<(&str, &str)>, sets: &[String]) -> Result<Settings, ExperimentError> {
        let mut table = toml::Table::new();
        if let Some((origin, text)) = config {
            let bad = |reason: String| ExperimentError::Config { origin: origin.into(), reason };
            // First for the message with line and column, then as the table that `--set` changes.
            toml::from_str::<Settings>(text).map_err(|e| bad(e.to_string()))?;
            table = toml::from_str(text).map_err(|e| bad(e.to_string()))?;
        }
        for set in sets {
            let bad = |reason: String| ExperimentError::Config { origin: format!("--set {set}"), reason };
            let (path, value) =
                set.split_once('=').ok_or_else(|| bad("is not key.path=value, such as limit.skip=1000".into()))?;
            table = with(&table, path, typed(value))
                .or_else(|first| with(&table, path, value.into()).map_err(|_| bad(first)))?;
        }
        let value = toml::Value::Table(table);
        value.try_into().map_err(|e| ExperimentError::Config { origin: "settings".into(), reason: e.to_string() })
    }
}

impl Settings {
    /// As [`Settings::read`], with the text of a file.
    pub fn of(config: Option<&Path>, sets: &[String]) -> Result<Settings, ExperimentError> {
        let Some(path) = config else { return Settings::read(None, sets) };
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|e| ExperimentError::Io { path: name.clone(), reason: e.to_string() })?;
        Settings::read(Some((&name, &text)), sets)
    }

    /// As a configuration file.
    pub fn to_toml(&self) -> Result<String, ExperimentError> {
        let bad = |e: toml::ser::Error| ExperimentError::Config { origin: "settings".into(), reason: e.to_string() };
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
    pub fn expand(&self, base: &Settings) -> Result<Vec<Settings>, ExperimentError> {
        if !self.rams.is_empty() && !self.frames.is_empty() {
            return Err(ExperimentError::setting("ram", "give --ram or --frames, not both: they mean the same thing"));
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
pub fn time(field: &str, text: &Option<String>) -> Result<Option<Ps>, ExperimentError> {
    let read = |t: &String| quantity::time(t).map_err(|e| ExperimentError::quantity(field, e));
    text.as_ref().map(read).transpose()
}

/// `a,b:k=v,k=v,c` is three policies: a part with `=` and without `:` before it belongs to the policy before.
pub fn policies(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for part in text.split(',') {
        let continues = part.split_once('=').is_some_and(|(key, _)| !key.contains(':'));
        match out.last_mut() {
            Some(last) if continues => *last = format!("{last},{part}"),
            _ => out.push(part.to_string()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTRO: &str = "# Settings

You want to set something that has no option of its own: give `--set KEY=VALUE` to `coldframe-lab sim` or \
`coldframe-lab advise`,
or write it in a file for `-c config.toml`, under the table that the part of the key before the dot names.
An option is stronger than `--set`, and `--set` is stronger than the file. In Python, `coldframe.Config` takes the \
same names.
Times, sizes and parts have their unit with them, as `40us`, `64KiB` or `50%`.
";

    /// The table name of a group in a configuration file; `None`: its settings stand before all tables.
    fn table(group: &Group) -> Option<&'static str> {
        ALL[0].groups.iter().find(|(_, kind)| *kind == group.kind).map(|(name, _)| *name)
    }

    /// The page of the book.
    fn page() -> String {
        let mut page = INTRO.to_string();
        for group in ALL {
            let prefix = table(group).map(|name| format!("{name}.")).unwrap_or_default();
            let heading = table(group).map_or("Before all tables".into(), |name| format!("`[{name}]`"));
            page += &format!("\n## {heading}\n\n{}\n\n", group.about.trim());
            page += "| key | unit | default | what it does |\n|---|---|---|---|\n";
            for Setting { name, unit, default, about, .. } in group.settings {
                page += &format!("| `{prefix}{name}` | {unit} | {default} | {} |\n", about.trim());
            }
        }
        page
    }

    /// The types of the Python package.
    fn python() -> String {
        let mut text = String::from(
            "\"\"\"Every setting, with its unit and default; written by the tests of \
             ``crates/lab/experiment/src/settings.rs``.\"\"\"\n\n\
             from __future__ import annotations\n\nfrom typing import TypedDict\n",
        );
        for group in ALL.iter().skip(1).chain(&ALL[..1]) {
            let prefix = table(group).map(|name| format!("``{name}.*``: ")).unwrap_or_default();
            let about = group.about.trim().replace('`', "``");
            text += &format!("\n\nclass {}(TypedDict, total=False):\n    \"\"\"{prefix}{about}\"\"\"\n\n", group.kind);
            for Setting { name, kind, unit, default, about } in group.settings {
                let kind = match (*kind, *name) {
                    ("String", "ram" | "page") => "str | int",
                    ("String", _) => "str",
                    ("bool", _) => "bool",
                    _ => "int",
                };
                let about = format!("{} ({unit}; default: {default})", about.trim()).replace('`', "``");
                text += &format!("    {name}: {kind}\n    \"\"\"{about}\"\"\"\n");
            }
            for (name, kind) in group.groups {
                text += &format!("    {name}: {kind}\n");
            }
        }
        text
    }

    #[test]
    fn the_reference_and_the_types_of_python_are_those_of_the_table() {
        let count: usize = ALL.iter().map(|group| group.settings.len()).sum();
        assert!(count <= 47, "{count} settings; one that only figures use is set in the plan");
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        for (name, made) in
            [("docs/book/src/settings.md", page()), ("crates/lab/py/python/coldframe/_settings.py", python())]
        {
            let path = root.join(name);
            if std::env::var_os("COLDFRAME_WRITE_SETTINGS").is_some() {
                std::fs::write(&path, &made).unwrap();
            }
            let there = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(there == made, "{name} is not what the table says; run `make settings`");
        }
    }

    #[test]
    fn set_overrides_the_file_and_a_bad_key_is_named() {
        let file = "policy = \"fifo\"\n[limit]\nskip = 3\n";
        let sets = ["limit.skip=7", "front_end.reading=C", "swap.blocks=1024"].map(String::from);
        let settings = Settings::read(Some(("c.toml", file)), &sets).unwrap();
        assert_eq!((settings.limit.skip, settings.swap.blocks.as_deref()), (Some(7), Some("1024")));
        assert_eq!(settings.front_end.reading.as_deref(), Some("C"));
        assert_eq!(settings.policy.as_deref(), Some("fifo"));
        for (file, sets, reason) in [
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
            assert!(error.to_string().contains(reason), "{file} {sets:?}: {error}");
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
