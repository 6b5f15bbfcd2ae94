//! The head of a journal: the configuration of its engine, as lines of text.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use coldframe_core::fault::handler::{self, Handler};
use coldframe_core::policy::PolicyChoice;
use coldframe_core::prefetch::Arrival;
use coldframe_core::swap::{collect, AreaConfig, Layout, SwapAreas, AREAS_MAX};
use coldframe_core::{Below, Caps, Config, ConfigError, Engine, SlotsConfig};

use crate::{Entries, JournalError};

const NAME: &str = "coldframe journal ";
/// The first line of an engine's journal.
pub(crate) const VERSION: &str = "coldframe journal 10";
/// What follows in the first line of a swap area's journal.
pub(crate) const OF_AREA: &str = " of a swap area";

/// Most slots of a journal's areas, and pages of a journal without an engine.
pub(crate) const SLOTS_MAX: usize = 1 << 28;

/// The configuration of an engine, as in the journal's head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// Policy with its parameters, as on the command line.
    pub policy: String,
    /// Handler's name.
    pub handler: String,
    /// Bounds and abilities.
    pub config: Config,
    /// What is below its frames.
    pub below: Below,
    /// How prefetched pages enter RAM.
    pub arrival: Arrival,
}

impl Head {
    /// The head for an engine with one task and home slots only.
    pub fn new(policy: impl Into<String>, handler: &Handler, config: Config) -> Head {
        let (policy, handler) = (policy.into(), handler.name.into());
        Head { policy, handler, config, below: Below::default(), arrival: Arrival::default() }
    }

    /// A fresh engine with this configuration.
    pub fn engine(&self) -> Result<Engine, JournalError> {
        let bad = |line, field, reason: String| JournalError::Head { line, field, reason };
        let choice = PolicyChoice::parse(&self.policy).map_err(|e| bad(2, "policy", e.to_string()))?;
        let Config { frames, pages, .. } = self.config;
        if frames == 0 || pages == 0 || frames > 1 << 26 || pages > 1 << 30 {
            return Err(bad(4, "frames", format!("{frames} frames and {pages} pages cannot be")));
        }
        let policy = choice.build(frames, pages).map_err(|e| bad(2, "policy", e.to_string()))?;
        let handler = handler::find(&self.handler)
            .ok_or_else(|| bad(3, "handler", format!("there is no handler `{}`", self.handler)))?;
        if self.below.slots.is_some_and(|slots| slots.slots > SLOTS_MAX) {
            return Err(bad(13, "slots", "there are fewer than 2^28 slots".to_string()));
        }
        let engine =
            Engine::builder(self.config, policy, handler).below(self.below.clone()).arrival(self.arrival).build();
        engine.map_err(|e| match e {
            ConfigError::Zero { .. } | ConfigError::TooLarge { .. } => bad(4, "frames", e.to_string()),
            ConfigError::Placed => bad(12, "places", e.to_string()),
            ConfigError::Swap(_) => bad(17, "areas", e.to_string()),
        })
    }
}

/// How prefetched pages enter RAM, by the name in a head.
pub(crate) const ARRIVALS: [(&str, Arrival); 3] = [
    ("mapped", Arrival::Mapped),
    ("behind-slice", Arrival::BehindSlice),
    ("mapped-behind-slice", Arrival::MappedBehindSlice),
];

pub(crate) fn area_line(area: &AreaConfig) -> String {
    let AreaConfig { blocks, priority, layout, collector, victims, start, stop, spread_max, logs } = area;
    let cluster = if let Layout::Linux { cluster } = layout { *cluster } else { 0 };
    let spread = spread_max.map_or("-".to_string(), |n| n.to_string());
    let collector = collector.name;
    // A journal of one log has no number of logs, as before there were several.
    let logs = if *logs == 1 { String::new() } else { format!(" {logs}") };
    format!("area={blocks} {priority} {cluster} {collector} {victims} {start} {stop} true {spread}{logs}\n")
}

pub(crate) fn read_area(text: &str) -> Option<AreaConfig> {
    let mut words = text.split(' ');
    let mut next = || words.next();
    let area = AreaConfig {
        blocks: next()?.parse().ok()?,
        priority: next()?.parse().ok()?,
        layout: match next()?.parse().ok()? {
            0 => Layout::Log,
            cluster => Layout::Linux { cluster },
        },
        collector: collect::find(next()?)?,
        victims: next()?.parse().ok()?,
        start: next()?.parse().ok()?,
        stop: next()?.parse().ok()?,
        // The first word: free blocks with the fewest erases are opened first. There is no other order now.
        spread_max: match (next()?, next()?) {
            ("true", "-") => None,
            ("true", n) => Some(n.parse().ok()?),
            _ => return None,
        },
        logs: next().map_or(Some(1), |logs| logs.parse().ok())?,
    };
    next().is_none().then_some(area)
}

/// Whether these are the bytes of a journal without an engine.
pub(crate) fn is_of_area(bytes: &[u8]) -> bool {
    bytes.split(|byte| *byte == b'\n').next().is_some_and(|line| line.ends_with(OF_AREA.as_bytes()))
}

/// The lines of a head, in their order.
pub(crate) struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    /// Reads the first line: name and version, and `kind` behind them.
    pub(crate) fn open(bytes: &'a [u8], kind: &str) -> Result<Lines<'a>, JournalError> {
        let mut lines = Lines { bytes, at: 0, line: 0 };
        let first = lines.next("head").unwrap_or_default();
        if first.strip_prefix(VERSION) == Some(kind) {
            return Ok(lines);
        }
        let version = first.strip_prefix(NAME).and_then(|rest| rest.split(' ').next()?.parse::<u32>().ok());
        let reason = version.map_or("this is no journal of coldframe".to_string(), |found| {
            let wanted = &VERSION[NAME.len()..];
            format!(
                "this journal has version {found}, and version {wanted} is read here; record it again, or replay \
                     it with the coldframe that wrote it"
            )
        });
        Err(lines.bad("head", reason))
    }

    fn bad(&self, field: &'static str, reason: String) -> JournalError {
        JournalError::Head { line: self.line, field, reason }
    }

    fn next(&mut self, field: &'static str) -> Result<&'a str, JournalError> {
        self.line += 1;
        let rest = &self.bytes[self.at..self.bytes.len().min(self.at + 4096)];
        let end = rest.iter().position(|b| *b == b'\n').ok_or_else(|| self.bad(field, "the line has no end".into()))?;
        self.at += end + 1;
        core::str::from_utf8(&rest[..end]).map_err(|_| self.bad(field, "not text".into()))
    }

    /// The value of the next line, which must be of this field, as `read` takes it.
    fn value<T>(&mut self, field: &'static str, read: impl Fn(&'a str) -> Option<T>) -> Result<T, JournalError> {
        let text = self.next(field)?.strip_prefix(field).and_then(|text| text.strip_prefix('='));
        let text = text.ok_or_else(|| self.bad(field, "is missing here".into()))?;
        read(text).ok_or_else(|| self.bad(field, format!("`{text}` cannot be read")))
    }

    pub(crate) fn number(&mut self, field: &'static str, max: usize) -> Result<usize, JournalError> {
        self.value(field, |text| text.parse().ok().filter(|n| *n <= max))
    }

    fn bit(&mut self, field: &'static str) -> Result<bool, JournalError> {
        self.value(field, |text| text.parse().ok())
    }

    /// The areas of a swap area on flash; none if there is no such area.
    pub(crate) fn areas(&mut self) -> Result<SwapAreas, JournalError> {
        let slots_per_block = self.number("slots_per_block", SLOTS_MAX)? as u32;
        let (line, count) = (self.line + 1, self.number("areas", AREAS_MAX)?);
        let areas: Vec<_> = (0..count).map(|_| self.value("area", read_area)).collect::<Result<_, _>>()?;
        let blocks: u64 = areas.iter().map(|area| u64::from(area.blocks)).sum();
        if blocks.saturating_mul(slots_per_block.into()) > SLOTS_MAX as u64 {
            return Err(JournalError::Head { line, field: "areas", reason: "there are fewer than 2^28 slots".into() });
        }
        Ok(SwapAreas { slots_per_block, areas })
    }

    /// The empty line at the end.
    pub(crate) fn end(&mut self) -> Result<(), JournalError> {
        match self.next("end of the head")? {
            "" => Ok(()),
            _ => Err(self.bad("end of the head", "is missing here".into())),
        }
    }

    /// What follows the head.
    pub(crate) fn entries(self) -> Entries<'a> {
        Entries::from(self.bytes, self.at)
    }
}

/// Reads the head of a journal; the entries follow.
pub fn open(bytes: &[u8]) -> Result<(Head, Entries<'_>), JournalError> {
    const MAX: usize = 1 << 31;
    let mut lines = Lines::open(bytes, "")?;
    let (policy, handler) = (lines.value("policy", text)?, lines.value("handler", text)?);
    let (frames, pages) = (lines.number("frames", MAX)?, lines.number("pages", MAX)?);
    let (tasks, evict_batch) = (lines.number("tasks", MAX)?, lines.number("evict_batch", MAX)?);
    let caps = Caps {
        reference_bit: lines.bit("reference_bit")?,
        dirty_bit: lines.bit("dirty_bit")?,
        buffers: lines.number("buffers", MAX)? as u32,
        direct_read: lines.bit("direct_read")?,
        places: lines.bit("places")?,
    };
    let (slots, files_min) = (lines.number("slots", MAX)?, lines.number("files_min", MAX)?);
    let arrival = lines.value("arrival", |name| ARRIVALS.iter().find(|(known, _)| *known == name))?.1;
    let swap = Some(lines.areas()?).filter(|swap| !swap.areas.is_empty());
    lines.end()?;
    let slots = slots.checked_sub(1).map(|slots| SlotsConfig { slots, files_min });
    let config = Config { frames, pages, tasks, evict_batch, caps };
    Ok((Head { policy, handler, config, below: Below { slots, swap }, arrival }, lines.entries()))
}

fn text(text: &str) -> Option<String> {
    Some(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_is_read_as_it_was_written_and_one_log_is_not_named() {
        for logs in [1, 3] {
            let area = AreaConfig { logs, spread_max: Some(4), ..AreaConfig::log(9) };
            let line = area_line(&area);
            assert_eq!(read_area(line.trim_end().strip_prefix("area=").unwrap()), Some(area));
            assert_eq!(line, format!("area=9 0 0 greedy 1 2 2 true 4{}\n", if logs > 1 { " 3" } else { "" }));
        }
        assert_eq!(read_area("9 0 0 greedy 1 2 2 true - 3 3"), None);
    }

    #[test]
    fn a_journal_of_another_version_names_both_and_something_else_is_none() {
        let of = |bytes: &[u8]| crate::replay(bytes).unwrap_err().to_string();
        for kind in ["", OF_AREA] {
            let old = of(format!("coldframe journal 9{kind}\npolicy=clock\n\n").as_bytes());
            assert!(old.starts_with("line 1") && old.contains("version 9, and version 10 is read here"), "{old}");
        }
        for other in [&b""[..], b"# a CSV file\n1,2\n", b"coldframe journal ten\n", b"\xff\xfe\n"] {
            assert!(of(other).contains("this is no journal of coldframe"), "{}", of(other));
        }
    }
}
