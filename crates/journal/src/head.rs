//! The head of a journal: the configuration of its engine, as lines of text.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use coldframe_core::fault::handler::{self, Handler};
use coldframe_core::policy::PolicyChoice;
use coldframe_core::prefetch::Arrival;
use coldframe_core::swap::{collect, AreaConfig, Layout, SwapAreas, WearLevelling, AREAS_MAX};
use coldframe_core::{Below, Caps, Config, ConfigError, Engine, SlotsConfig};

use crate::{Entries, Journal, JournalError};

const MAGIC: &str = "coldframe journal 10";

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
    ///
    /// # Errors
    /// No engine can have this head; the error gives line and field.
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
        match &self.below {
            Below::Slots(slots) | Below::SlotsThenSwap(slots, _) if slots.slots > 1 << 28 => {
                return Err(bad(13, "slots", format!("{} slots cannot be; there are fewer than 2^28", slots.slots)));
            }
            Below::Swap(SwapAreas { slots_per_block, areas })
            | Below::SlotsThenSwap(_, SwapAreas { slots_per_block, areas }) => {
                let blocks: u64 = areas.iter().map(|area| u64::from(area.blocks)).sum();
                if blocks * u64::from(*slots_per_block) > 1 << 28 {
                    return Err(bad(17, "areas", "there are fewer than 2^28 slots".to_string()));
                }
            }
            _ => {}
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

const ARRIVALS: [(&str, Arrival); 3] = [
    ("mapped", Arrival::Mapped),
    ("behind-slice", Arrival::BehindSlice),
    ("mapped-behind-slice", Arrival::MappedBehindSlice),
];

pub(crate) fn area_line(area: &AreaConfig) -> String {
    let AreaConfig { blocks, priority, layout, collector, victims, start, stop, wear } = area;
    let cluster = if let Layout::Linux { cluster } = layout { *cluster } else { 0 };
    let spread = wear.spread_max.map_or("-".to_string(), |n| n.to_string());
    let (collector, dynamic) = (collector.name, wear.dynamic);
    format!("area={blocks} {priority} {cluster} {collector} {victims} {start} {stop} {dynamic} {spread}\n")
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
        wear: WearLevelling {
            dynamic: next()?.parse().ok()?,
            spread_max: match next()? {
                "-" => None,
                n => Some(n.parse().ok()?),
            },
        },
    };
    next().is_none().then_some(area)
}

impl Journal {
    /// A journal with this head.
    pub fn new(head: &Head) -> Journal {
        let Config { frames, pages, tasks, evict_batch, caps } = head.config;
        let Caps { reference_bit, dirty_bit, buffers, direct_read, places } = caps;
        // One more than the number of slots, so that 0 means that there is no such area.
        let (slots, swap) = match &head.below {
            Below::Slots(slots) => (Some(slots), None),
            Below::Swap(swap) => (None, Some(swap)),
            Below::SlotsThenSwap(slots, swap) => (Some(slots), Some(swap)),
            Below::Homes => (None, None),
        };
        let (slots, files_min) = slots.map_or((0, 0), |s| (s.slots + 1, s.files_min));
        let arrival = ARRIVALS.iter().find(|(_, arrival)| *arrival == head.arrival).map_or("", |(name, _)| name);
        let (slots_per_block, areas) = swap.map_or((0, &[][..]), |swap| (swap.slots_per_block, &swap.areas[..]));
        let lines: String = areas.iter().map(area_line).collect();
        let text = format!(
            "{MAGIC}\npolicy={}\nhandler={}\nframes={frames}\npages={pages}\ntasks={tasks}\nevict_batch={evict_batch}\nreference_bit={reference_bit}\n\
             dirty_bit={dirty_bit}\nbuffers={buffers}\ndirect_read={direct_read}\nplaces={places}\nslots={slots}\nfiles_min={files_min}\n\
             arrival={arrival}\nslots_per_block={slots_per_block}\nareas={}\n{lines}\n",
            head.policy,
            head.handler,
            areas.len()
        );
        Journal { bytes: text.into_bytes(), now: 0 }
    }
}

/// Reads the head of a journal; the entries follow.
///
/// # Errors
/// The head is not valid.
pub fn open(bytes: &[u8]) -> Result<(Head, Entries<'_>), JournalError> {
    let mut at = 0;
    let mut lines = 0;
    let mut line = |field: &'static str| -> Result<String, JournalError> {
        lines += 1;
        let bad = |reason: &str| match field {
            MAGIC => {
                JournalError::Head { line: 1, field: "head", reason: "this is no journal of coldframe".to_string() }
            }
            _ => JournalError::Head { line: lines, field, reason: reason.to_string() },
        };
        let rest = &bytes[at..bytes.len().min(at + 4096)];
        let end = rest.iter().position(|b| *b == b'\n').ok_or_else(|| bad("the line has no end"))?;
        let text = core::str::from_utf8(&rest[..end]).map_err(|_| bad("not text"))?;
        at += end + 1;
        if field == MAGIC || field.is_empty() {
            return if text == field { Ok(String::new()) } else { Err(bad("this is no journal of coldframe")) };
        }
        let value = text.strip_prefix(field).and_then(|t| t.strip_prefix('='));
        value.map(ToString::to_string).ok_or_else(|| bad("is missing here"))
    };
    line(MAGIC)?;
    let (policy, handler) = (line("policy")?, line("handler")?);
    let fields = [
        "frames",
        "pages",
        "tasks",
        "evict_batch",
        "reference_bit",
        "dirty_bit",
        "buffers",
        "direct_read",
        "places",
        "slots",
        "files_min",
    ];
    let mut numbers = [0usize; 11];
    for (i, field) in fields.into_iter().enumerate() {
        let text = line(field)?;
        let number = match text.as_str() {
            "true" => Some(1),
            "false" => Some(0),
            text => text.parse().ok().filter(|n| *n < 1 << 31),
        };
        let reason = || format!("`{text}` cannot be read");
        numbers[i] = number.ok_or_else(|| JournalError::Head { line: 4 + i, field, reason: reason() })?;
    }
    let name = line("arrival")?;
    let arrival = ARRIVALS.iter().find(|(known, _)| *known == name).map(|(_, arrival)| *arrival);
    let unreadable =
        |line, field, text: &str| JournalError::Head { line, field, reason: format!("`{text}` cannot be read") };
    let arrival = arrival.ok_or_else(|| unreadable(15, "arrival", &name))?;
    let text = line("slots_per_block")?;
    let slots_per_block: u32 = text.parse().map_err(|_| unreadable(16, "slots_per_block", &text))?;
    let text = line("areas")?;
    let count = text.parse().ok().filter(|n| *n <= AREAS_MAX).ok_or_else(|| unreadable(17, "areas", &text))?;
    let mut areas = Vec::with_capacity(count);
    for i in 0..count {
        let text = line("area")?;
        areas.push(read_area(&text).ok_or_else(|| unreadable(18 + i, "area", &text))?);
    }
    line("")?;
    let [frames, pages, tasks, evict_batch, reference_bit, dirty_bit, buffers, direct_read, places, slots, files_min] =
        numbers;
    let caps = Caps {
        reference_bit: reference_bit != 0,
        dirty_bit: dirty_bit != 0,
        buffers: buffers as u32,
        direct_read: direct_read != 0,
        places: places != 0,
    };
    let below = match (slots.checked_sub(1), count) {
        (None, 0) => Below::Homes,
        (Some(slots), 0) => Below::Slots(SlotsConfig { slots, files_min }),
        (None, 1..) => Below::Swap(SwapAreas { slots_per_block, areas }),
        (Some(slots), 1..) => {
            Below::SlotsThenSwap(SlotsConfig { slots, files_min }, SwapAreas { slots_per_block, areas })
        }
    };
    let config = Config { frames, pages, tasks, evict_batch, caps };
    Ok((Head { policy, handler, config, below, arrival }, Entries { bytes, at, now: 0 }))
}
