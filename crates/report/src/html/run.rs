//! One run of the page: what its JSON says, whatever simulated it.

use coldframe_core::Bytes;
use coldframe_device::quantity::{self, show_bytes};
use serde_json::Value;

use crate::html::words::words;

/// A result of `sim`.
pub struct Run<'a> {
    /// Its number on the page.
    pub number: usize,
    /// Its JSON.
    pub json: &'a Value,
    /// What the page's runs are not all of.
    pub differs: Differs,
}

/// What must stand in a run's name, since the runs of the page differ in it.
#[derive(Clone, Copy, Default)]
pub struct Differs {
    trace: bool,
    system: bool,
    device: bool,
}

impl Differs {
    /// Among these runs.
    pub fn among(all: &[&Value]) -> Differs {
        let differs = |pointer: &str| all.windows(2).any(|pair| pair[0].pointer(pointer) != pair[1].pointer(pointer));
        Differs {
            trace: differs("/trace/sha256"),
            system: differs("/config/system"),
            device: differs("/config/device"),
        }
    }
}

impl Run<'_> {
    /// Whether it is of a swap trace, which has no RAM and no policy.
    pub fn is_swap_trace(&self) -> bool {
        self.json["config"]["policy"].is_null()
    }

    /// Whether a scheduler switched its tasks.
    pub fn is_scheduled(&self) -> bool {
        self.json["tasks"].is_array()
    }

    /// Whether its tasks came to the foreground in turn.
    pub fn is_foreground(&self) -> bool {
        self.json["switches"].is_array()
    }

    /// Whether it is of one string of references.
    pub fn is_one_string(&self) -> bool {
        !self.is_swap_trace() && !self.is_scheduled() && !self.is_foreground()
    }

    /// What distinguishes it but RAM.
    pub fn name(&self) -> String {
        let file = self.json["trace"]["path"].as_str().and_then(|path| path.rsplit('/').next());
        let config = &self.json["config"];
        let also = [
            file.filter(|_| self.differs.trace),
            config["system"].as_str().filter(|_| self.differs.system),
            config["device"].as_str().filter(|_| self.differs.device),
        ];
        also.into_iter().flatten().fold(self.kind(), |name, more| format!("{name}, {more}"))
    }

    /// Policy and handler, or how slots are given out.
    fn kind(&self) -> String {
        let config = &self.json["config"];
        if self.is_swap_trace() {
            let swap = &config["swap"];
            return format!(
                "{}, {}, {} blocks",
                words(&swap["layout"]),
                words(&swap["collector"]),
                words(&swap["blocks"])
            );
        }
        let (tasks, swap) = (&config["tasks"], &config["swap"]);
        if self.is_scheduled() {
            let (scheduler, when) = (words(&tasks["scheduler"]), words(&tasks["prefetch"]));
            return format!(
                "{}, {}, {scheduler}, prefetch {when}",
                words(&config["policy"]),
                words(&config["handler"])
            );
        }
        if self.is_foreground() {
            let size = swap["size"].as_str().map(|size| format!(" of {size}")).unwrap_or_default();
            return format!("{}{size}, {}", words(&swap["backing"]), words(&config["policy"]));
        }
        let ahead = config["machine"]["read_ahead"].as_u64().filter(|pages| *pages > 0);
        let ahead = ahead.map(|pages| format!(", read-ahead {pages}")).unwrap_or_default();
        format!("{}, {}{ahead}", words(&config["policy"]), config["handler"].as_str().unwrap_or("oracle"))
    }

    /// Bytes of RAM.
    pub fn ram(&self) -> Option<u64> {
        let config = &self.json["config"];
        let page = quantity::bytes(config["page"].as_str()?).ok()?;
        Some(config["frames"].as_u64()? * page.0)
    }

    /// RAM for people.
    pub fn ram_text(&self) -> String {
        self.ram().map_or_else(|| "-".into(), |bytes| show_bytes(Bytes(bytes)))
    }

    /// Name and RAM.
    pub fn title(&self) -> String {
        match self.ram() {
            Some(_) => format!("{}, {}", self.name(), self.ram_text()),
            None => self.name(),
        }
    }

    /// As [`crate::RunResult::miss_ratio`].
    pub fn miss_ratio(&self) -> Option<f64> {
        let counts = &self.json["counts"];
        if !self.is_one_string() {
            return None;
        }
        let of = match counts["icache_lookups"].is_u64() {
            true => &self.json["trace"]["instructions"],
            false => &counts["references"],
        };
        Some(counts["true_faults"].as_f64()? / of.as_f64()?.max(1.0))
    }

    /// The attribute by which the script finds its JSON.
    pub fn at(&self) -> String {
        format!(" data-at=\"/runs/{}\"", self.number)
    }

    /// What its swap area went through, by either simulator: the object with `wear_map` and `slots`.
    pub fn swap(&self) -> Option<&Value> {
        [&self.json["swap"], self.json].into_iter().find(|object| object["wear_map"].is_object())
    }
}
