//! The journal of an engine: every event, every bit that was read, every command, in order, and the proof it makes possible.
//!
//! An engine's decisions depend on nothing but events and bits. So a fresh engine of the same configuration that is given the events
//! and bits of a journal must issue the same commands: [`replay`] checks that, for a journal of any machine.
//!
//! ```text
//! "coldframe journal 5\n"   key=value\n ...   "\n"   entries
//! entry: tag byte, then its numbers as LEB128; an event carries the time since the event before it
//! ```

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use coldframe_core::fault::handler::{self, Handler};
use coldframe_core::policy::PolicyChoice;
use coldframe_core::prefetch::Arrival;
use coldframe_core::swap::{collect, AreaConfig, Layout, Swap, WearLevelling, AREAS_MAX};
use coldframe_core::{
    Access, After, Backed, BlockId, BufferId, Caps, Command, Config, Engine, Event, FrameId, Machine, PageId, Place,
    SlotId, SlotsConfig, Stage, TaskId, Ticket, Transfer, Walk, Work,
};

mod area;

pub use area::Noted;

const MAGIC: &str = "coldframe journal 5";

/// One entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// An event was delivered.
    Event {
        /// The machine's time, in picoseconds.
        now: u64,
        /// The event.
        event: Event,
    },
    /// A command was issued.
    Command(Command),
    /// A reference bit was read.
    Referenced {
        /// Of this page.
        page: PageId,
        /// What became of it.
        after: After,
        /// What it was.
        value: bool,
    },
    /// A page was given to a swap area that stands alone; an engine's journal has none.
    Out {
        /// The driver's time, in picoseconds.
        now: u64,
        /// The page.
        page: PageId,
    },
    /// Which thread the next event comes from. An engine does not hear of it.
    Thread {
        /// The system's number of it; 0: not known.
        thread: u32,
    },
    /// A dirty bit was read.
    Dirty {
        /// Of this page.
        page: PageId,
        /// What it was.
        value: bool,
    },
}

/// The configuration an engine was made with, as the journal's head keeps it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// Policy with its parameters, as on the command line.
    pub policy: String,
    /// Handler's name.
    pub handler: String,
    /// Bounds and abilities.
    pub config: Config,
    /// Slots that are rewritten in place, if it was given some.
    pub slots: Option<SlotsConfig>,
    /// The swap area on flash, if it was given one.
    pub swap: Option<SwapHead>,
    /// How pages enter RAM for which nobody stands still.
    pub arrival: Arrival,
}

/// A swap area on flash, erased.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SwapHead {
    /// Slots of an erase block.
    pub slots_per_block: u32,
    /// The areas.
    pub areas: Vec<AreaConfig>,
}

impl Head {
    /// Of an engine of one task with home slots only.
    pub fn new(policy: impl Into<String>, handler: &Handler, config: Config) -> Head {
        let (policy, handler) = (policy.into(), handler.name.into());
        Head { policy, handler, config, slots: None, swap: None, arrival: Arrival::default() }
    }

    /// A fresh engine as the head says.
    ///
    /// # Errors
    /// A head that no engine can have, with its line and field.
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
        let mut engine = Engine::new(self.config, policy, handler).map_err(|e| bad(4, "frames", e.to_string()))?;
        if self.config.caps.places && (self.slots.is_some() || self.swap.is_some()) {
            return Err(bad(12, "places", "a machine that places pages itself has no swap area".to_string()));
        }
        if let Some(slots) = self.slots {
            if slots.slots > 1 << 28 {
                return Err(bad(13, "slots", format!("{} slots cannot be; there are fewer than 2^28", slots.slots)));
            }
            engine.set_slots(slots);
        }
        if let Some(SwapHead { slots_per_block, areas }) = &self.swap {
            let blocks: u64 = areas.iter().map(|area| u64::from(area.blocks)).sum();
            if self.slots.is_some() || blocks * u64::from(*slots_per_block) > 1 << 28 {
                return Err(bad(17, "areas", "there is one swap area of fewer than 2^28 slots".to_string()));
            }
            let swap = Swap::new(pages, *slots_per_block, areas).map_err(|e| bad(17, "areas", e.to_string()))?;
            engine.set_swap(swap);
        }
        engine.set_arrival(self.arrival);
        Ok(engine)
    }
}

const ARRIVALS: [(&str, Arrival); 3] = [
    ("mapped", Arrival::Mapped),
    ("behind-slice", Arrival::BehindSlice),
    ("mapped-behind-slice", Arrival::MappedBehindSlice),
];

fn area_line(area: &AreaConfig) -> String {
    let AreaConfig { blocks, priority, layout, collector, victims, start, stop, wear } = area;
    let cluster = if let Layout::Linux { cluster } = layout { *cluster } else { 0 };
    let spread = wear.spread_max.map_or("-".to_string(), |n| n.to_string());
    let (collector, dynamic) = (collector.name, wear.dynamic);
    format!("area={blocks} {priority} {cluster} {collector} {victims} {start} {stop} {dynamic} {spread}\n")
}

fn read_area(text: &str) -> Option<AreaConfig> {
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

/// A journal being written, in memory. Machines that cannot hold it take [`Journal::drain`] from time to time.
#[derive(Clone, Debug)]
pub struct Journal {
    bytes: Vec<u8>,
    now: u64,
}

impl Journal {
    /// A journal with this head.
    pub fn new(head: &Head) -> Journal {
        let Config { frames, pages, tasks, evict_batch, caps } = head.config;
        let Caps { reference_bit, dirty_bit, buffers, direct_read, places } = caps;
        // One more than there are, so that 0 says that there is no such area.
        let (slots, files_min) = head.slots.map_or((0, 0), |s| (s.slots + 1, s.files_min));
        let arrival = ARRIVALS.iter().find(|(_, arrival)| *arrival == head.arrival).map_or("", |(name, _)| name);
        let (slots_per_block, areas) = head.swap.as_ref().map_or((0, &[][..]), |s| (s.slots_per_block, &s.areas));
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

    /// What has been written since the last call.
    pub fn drain(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.bytes)
    }

    /// Bytes written since the last call of [`Journal::drain`] or [`Journal::drain_with`].
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that it can have between two such calls without taking more memory.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Makes room for so many bytes between two calls of [`Journal::drain_with`], so that nothing is allocated later.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve_exact(bytes);
    }

    /// Shows what has been written since the last call, and keeps the memory for what comes.
    pub fn drain_with(&mut self, write: impl FnOnce(&[u8])) {
        write(&self.bytes);
        self.bytes.clear();
    }

    /// Appends an entry.
    pub fn write(&mut self, entry: &Entry) {
        let mut tag = |tag: u8, numbers: &[u64]| {
            self.bytes.push(tag);
            numbers.iter().for_each(|n| put(&mut self.bytes, *n));
        };
        match *entry {
            Entry::Event { now, event } => {
                let since = now.wrapping_sub(self.now);
                match event {
                    Event::Fault { task, page, access: Access::Read } => tag(1, &[since, task.0.into(), page.0.into()]),
                    Event::Fault { task, page, access: Access::Write } => {
                        tag(2, &[since, task.0.into(), page.0.into()])
                    }
                    Event::Loaded { ticket } => tag(3, &[since, ticket.0.into()]),
                    Event::Written { page } => tag(4, &[since, page.0.into()]),
                    Event::Failed { transfer: Transfer::Load(ticket) } => tag(5, &[since, ticket.0.into()]),
                    Event::Failed { transfer: Transfer::Write(page) } => tag(6, &[since, page.0.into()]),
                    Event::Failed { transfer: Transfer::Copy { page, to } } => {
                        tag(25, &[since, page.0.into(), to.0.into()])
                    }
                    Event::Failed { transfer: Transfer::Erase(block) } => tag(26, &[since, block.0.into()]),
                    Event::Slice => tag(24, &[since]),
                    Event::Released { page } => tag(7, &[since, page.0.into()]),
                    Event::WillNeed { page } => tag(10, &[since, page.0.into()]),
                    Event::Pinned { page } => tag(11, &[since, page.0.into()]),
                    Event::Unpinned { page } => tag(12, &[since, page.0.into()]),
                    Event::Owned { task, page, backed: Backed::Anonymous } => {
                        tag(13, &[since, task.0.into(), page.0.into()])
                    }
                    Event::Owned { task, page, backed: Backed::File } => {
                        tag(14, &[since, task.0.into(), page.0.into()])
                    }
                    Event::Foreground { task } => tag(15, &[since, task.0.into()]),
                    Event::ReadOften { page } => tag(23, &[since, page.0.into()]),
                    Event::Forked { page, child } => tag(22, &[since, page.0.into(), child.0.into()]),
                }
                self.now = now;
            }
            Entry::Command(command) => match command {
                Command::Stage { stage, work } => {
                    tag(16 + stage as u8, &[work.walk.0, work.delayed_downgrades.into(), u64::from(work.false_fault)])
                }
                Command::Load { ticket, page, from, into } => {
                    tag(32, &[ticket.0.into(), page.0.into(), from.0.into(), into.0.into()])
                }
                Command::Move { page, from, to } => tag(33, &[page.0.into(), from.0.into(), to.0.into()]),
                Command::Protect { page } => tag(34, &[page.0.into()]),
                Command::Write { page, from, to } => {
                    tag(35, &[page.0.into(), from.map_or(0, |f| u64::from(f.0) + 1), to.0.into()])
                }
                Command::Unmap { page } => tag(36, &[page.0.into()]),
                Command::Evict { page, from } => tag(40, &[page.0.into(), from.0.into()]),
                Command::Map { page, place, writable, referenced } => {
                    let (kind, number) = match place {
                        Place::Frame(frame) => (0, frame.0),
                        Place::Buffer(buffer) => (1, buffer.0),
                        Place::Slot(slot) => (2, slot.0),
                    };
                    tag(
                        37,
                        &[page.0.into(), kind | u64::from(writable) << 2 | u64::from(referenced) << 3, number.into()],
                    )
                }
                Command::Resume { task } => tag(38, &[task.0.into()]),
                Command::CopySlot { page, from, to } => {
                    tag(42, &[page.0.into(), from.map_or(0, |s| u64::from(s.0) + 1), to.0.into()])
                }
                Command::EraseBlock { block } => tag(43, &[block.0.into()]),
                Command::Kill { task } => tag(41, &[task.0.into()]),
                Command::Halt { task, page } => tag(39, &[task.0.into(), page.0.into()]),
            },
            Entry::Referenced { page, after, value } => {
                tag(8, &[page.0.into(), u64::from(value) | u64::from(after == After::Clear) << 1])
            }
            Entry::Dirty { page, value } => tag(9, &[page.0.into(), u64::from(value)]),
            Entry::Thread { thread } => tag(50, &[thread.into()]),
            Entry::Out { now, page } => {
                tag(area::OUT, &[now.wrapping_sub(self.now), page.0.into()]);
                self.now = now;
            }
        }
    }
}

fn put(bytes: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
}

/// Why a journal cannot be replayed, or does not prove what it should.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JournalError {
    /// The head is not one.
    Head {
        /// Line of the head, from 1.
        line: usize,
        /// The field.
        field: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// An entry cannot be read.
    Entry {
        /// Where in the file.
        byte: usize,
        /// What is wrong.
        reason: &'static str,
    },
    /// The fresh engine did something else.
    Differs {
        /// Where in the file.
        byte: usize,
        /// Entries that agreed before.
        entries: u64,
        /// What the journal has.
        journal: String,
        /// What the engine did.
        engine: String,
    },
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JournalError::Head { line, field, reason } => write!(f, "line {line}, field `{field}`: {reason}"),
            JournalError::Entry { byte, reason } => write!(f, "byte {byte}: {reason}; the file is cut off or damaged"),
            JournalError::Differs { byte, entries, journal, engine } => {
                write!(
                    f,
                    "byte {byte}, after {entries} entries that agree: the journal has {journal}, the engine {engine}"
                )
            }
        }
    }
}

impl core::error::Error for JournalError {}

/// A journal being read.
#[derive(Clone)]
pub struct Entries<'a> {
    bytes: &'a [u8],
    at: usize,
    now: u64,
}

/// Reads the head of a journal; the entries follow.
///
/// # Errors
/// A head that is not one.
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
    let swap = (count > 0).then_some(SwapHead { slots_per_block, areas });
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
    let slots = slots.checked_sub(1).map(|slots| SlotsConfig { slots, files_min });
    let config = Config { frames, pages, tasks, evict_batch, caps };
    Ok((Head { policy, handler, config, slots, swap, arrival }, Entries { bytes, at, now: 0 }))
}

impl<'a> Entries<'a> {
    /// The entries of a piece of a journal behind its head, where the event before it was at `now`.
    pub fn resume(bytes: &'a [u8], now: u64) -> Entries<'a> {
        Entries { bytes, at: 0, now }
    }

    /// The time of the last event, in picoseconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Bytes read so far.
    pub fn at(&self) -> usize {
        self.at
    }

    fn byte(&mut self) -> Result<u8, JournalError> {
        let byte =
            *self.bytes.get(self.at).ok_or(JournalError::Entry { byte: self.at, reason: "an entry has no end" })?;
        self.at += 1;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64, JournalError> {
        let start = self.at;
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            n |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(n);
            }
        }
        Err(JournalError::Entry { byte: start, reason: "a number is too long" })
    }

    fn index(&mut self) -> Result<u32, JournalError> {
        let start = self.at;
        u32::try_from(self.number()?).map_err(|_| JournalError::Entry { byte: start, reason: "an index is too large" })
    }

    /// The next entry; `None` at the end.
    ///
    /// # Errors
    /// Something that is no entry.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, JournalError> {
        if self.at == self.bytes.len() {
            return Ok(None);
        }
        let start = self.at;
        let bad = |reason| JournalError::Entry { byte: start, reason };
        let tag = self.byte()?;
        if let 1..=7 | 10..=15 | 22..=27 = tag {
            self.now = self.now.wrapping_add(self.number()?);
        }
        let event = match tag {
            1 | 2 => {
                let access = if tag == 1 { Access::Read } else { Access::Write };
                Some(Event::Fault { task: TaskId(self.index()?), page: PageId(self.index()?), access })
            }
            3 => Some(Event::Loaded { ticket: Ticket(self.index()?) }),
            4 => Some(Event::Written { page: PageId(self.index()?) }),
            5 => Some(Event::Failed { transfer: Transfer::Load(Ticket(self.index()?)) }),
            6 => Some(Event::Failed { transfer: Transfer::Write(PageId(self.index()?)) }),
            7 => Some(Event::Released { page: PageId(self.index()?) }),
            10 => Some(Event::WillNeed { page: PageId(self.index()?) }),
            11 => Some(Event::Pinned { page: PageId(self.index()?) }),
            12 => Some(Event::Unpinned { page: PageId(self.index()?) }),
            13 | 14 => {
                let backed = if tag == 13 { Backed::Anonymous } else { Backed::File };
                Some(Event::Owned { task: TaskId(self.index()?), page: PageId(self.index()?), backed })
            }
            15 => Some(Event::Foreground { task: TaskId(self.index()?) }),
            24 => Some(Event::Slice),
            25 => Some(Event::Failed {
                transfer: Transfer::Copy { page: PageId(self.index()?), to: SlotId(self.index()?) },
            }),
            26 => Some(Event::Failed { transfer: Transfer::Erase(BlockId(self.index()?)) }),
            23 => Some(Event::ReadOften { page: PageId(self.index()?) }),
            22 => Some(Event::Forked { page: PageId(self.index()?), child: PageId(self.index()?) }),
            _ => None,
        };
        if let Some(event) = event {
            return Ok(Some(Entry::Event { now: self.now, event }));
        }
        let page = |entries: &mut Self| entries.index().map(PageId);
        let command = match tag {
            8 => {
                let (page, bits) = (page(self)?, self.number()?);
                let after = if bits & 2 == 0 { After::Keep } else { After::Clear };
                return Ok(Some(Entry::Referenced { page, after, value: bits & 1 != 0 }));
            }
            9 => return Ok(Some(Entry::Dirty { page: page(self)?, value: self.number()? != 0 })),
            area::OUT => return Ok(Some(Entry::Out { now: self.now, page: page(self)? })),
            50 => return Ok(Some(Entry::Thread { thread: self.index()? })),
            16..=21 => {
                let stage = Stage::ALL[usize::from(tag - 16)];
                let work = Work {
                    walk: Walk(self.number()?),
                    delayed_downgrades: self.index()?,
                    false_fault: self.number()? != 0,
                };
                Command::Stage { stage, work }
            }
            32 => Command::Load {
                ticket: Ticket(self.index()?),
                page: page(self)?,
                from: SlotId(self.index()?),
                into: BufferId(self.index()?),
            },
            33 => Command::Move { page: page(self)?, from: BufferId(self.index()?), to: FrameId(self.index()?) },
            34 => Command::Protect { page: page(self)? },
            35 => Command::Write {
                page: page(self)?,
                from: self.index()?.checked_sub(1).map(FrameId),
                to: SlotId(self.index()?),
            },
            36 => Command::Unmap { page: page(self)? },
            40 => Command::Evict { page: page(self)?, from: FrameId(self.index()?) },
            37 => {
                let (page, bits, number) = (page(self)?, self.number()?, self.index()?);
                let place = match bits & 3 {
                    0 => Place::Frame(FrameId(number)),
                    1 => Place::Buffer(BufferId(number)),
                    2 => Place::Slot(SlotId(number)),
                    _ => return Err(bad("a page is mapped nowhere")),
                };
                Command::Map { page, place, writable: bits & 4 != 0, referenced: bits & 8 != 0 }
            }
            38 => Command::Resume { task: TaskId(self.index()?) },
            42 => Command::CopySlot {
                page: page(self)?,
                from: self.index()?.checked_sub(1).map(SlotId),
                to: SlotId(self.index()?),
            },
            43 => Command::EraseBlock { block: BlockId(self.index()?) },
            41 => Command::Kill { task: TaskId(self.index()?) },
            39 => Command::Halt { task: TaskId(self.index()?), page: page(self)? },
            _ => return Err(bad("there is no such kind of entry")),
        };
        Ok(Some(Entry::Command(command)))
    }
}

/// What a replay has shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Replayed {
    /// Events delivered.
    pub events: u64,
    /// Bits answered.
    pub bits: u64,
    /// Commands that were the same.
    pub commands: u64,
}

/// Gives the journal's events and bits to a fresh engine, or to a fresh swap area, and compares the commands.
///
/// # Errors
/// A journal that cannot be read, or the first difference.
pub fn replay(bytes: &[u8]) -> Result<Replayed, JournalError> {
    if bytes.starts_with(area::MAGIC.as_bytes()) {
        return area::replay(bytes);
    }
    let (head, mut entries) = open(bytes)?;
    let mut engine = head.engine()?;
    let mut entry = entries.next_entry()?;
    let mut replayed = Replayed::default();
    while let Some(found) = entry {
        let at = entries.at;
        if let Entry::Thread { .. } = found {
            entry = entries.next_entry()?;
            continue;
        }
        let Entry::Event { event, .. } = found else {
            return Err(JournalError::Differs {
                byte: at,
                entries: replayed.events + replayed.bits + replayed.commands,
                journal: format!("{found:?}"),
                engine: "has nothing more to do for the last event".to_string(),
            });
        };
        if !engine.accepts(&event) {
            return Err(JournalError::Entry { byte: at, reason: "the event cannot come at this point" });
        }
        replayed.events += 1;
        let mut machine = Replayer { entries, seen: replayed, error: None };
        engine.handle(event, &mut machine);
        (entries, replayed) = (machine.entries, machine.seen);
        if let Some(error) = machine.error {
            return Err(*error);
        }
        entry = entries.next_entry()?;
    }
    Ok(replayed)
}

/// A machine whose journal is kept: every command and every bit is noted on its way.
pub struct Journaled<'a> {
    /// The machine.
    pub machine: &'a mut dyn Machine,
    /// Its journal.
    pub journal: &'a mut Journal,
}

impl Machine for Journaled<'_> {
    fn issue(&mut self, command: Command) {
        self.journal.write(&Entry::Command(command));
        self.machine.issue(command);
    }

    fn referenced(&mut self, page: PageId, after: After) -> bool {
        let value = self.machine.referenced(page, after);
        self.journal.write(&Entry::Referenced { page, after, value });
        value
    }

    fn dirty(&mut self, page: PageId) -> bool {
        let value = self.machine.dirty(page);
        self.journal.write(&Entry::Dirty { page, value });
        value
    }
}

/// Gives the event to the engine and notes in the journal, if one is kept, what follows from it. `now` in picoseconds.
pub fn handle(engine: &mut Engine, event: Event, now: u64, machine: &mut dyn Machine, journal: Option<&mut Journal>) {
    match journal {
        None => engine.handle(event, machine),
        Some(journal) => {
            journal.write(&Entry::Event { now, event });
            engine.handle(event, &mut Journaled { machine, journal });
        }
    }
}

struct Replayer<'a> {
    entries: Entries<'a>,
    seen: Replayed,
    error: Option<Box<JournalError>>,
}

impl Replayer<'_> {
    fn next(&mut self, engine: &dyn fmt::Debug, same: impl FnOnce(&Entry) -> bool) -> Option<Entry> {
        if self.error.is_some() {
            return None;
        }
        let at = self.entries.at;
        let entries = self.seen.events + self.seen.bits + self.seen.commands;
        match self.entries.next_entry() {
            Ok(Some(entry)) if same(&entry) => return Some(entry),
            Ok(entry) => {
                let journal = entry.map_or_else(|| "its end".to_string(), |e| format!("{e:?}"));
                let engine = format!("{engine:?}");
                self.error = Some(Box::new(JournalError::Differs { byte: at, entries, journal, engine }));
            }
            Err(error) => self.error = Some(Box::new(error)),
        }
        None
    }
}

impl Machine for Replayer<'_> {
    fn issue(&mut self, command: Command) {
        if self.next(&command, |entry| *entry == Entry::Command(command)).is_some() {
            self.seen.commands += 1;
        }
    }

    fn referenced(&mut self, page: PageId, after: After) -> bool {
        let asked = |e: &Entry| matches!(e, Entry::Referenced { page: p, after: a, .. } if *p == page && *a == after);
        let entry = self.next(&("a reference bit is asked for", page, after), asked);
        self.seen.bits += 1;
        matches!(entry, Some(Entry::Referenced { value: true, .. }))
    }

    fn dirty(&mut self, page: PageId) -> bool {
        let entry =
            self.next(&("a dirty bit is asked for", page), |e| matches!(e, Entry::Dirty { page: p, .. } if *p == page));
        self.seen.bits += 1;
        matches!(entry, Some(Entry::Dirty { value: true, .. }))
    }
}
