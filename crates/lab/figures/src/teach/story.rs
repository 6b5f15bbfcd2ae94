//! Tells a journal: each entry as a sentence, and the place of each page.
//!
//! Time within an event is the event's plus the price of each stage since, as the lane's own clock has it.

use coldframe_core::{Access, Command, Event, PageId, Place, Ps, SlotId, Stage};
use coldframe_journal::Entry;
use coldframe_lane::LaneConfig;
use coldframe_sheet::quantity::fine_time;
use coldframe_sheet::StagePrices;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Busy {
    pub buffer: usize,
    pub page: u32,
    /// When the device began to load it.
    pub loading: Ps,
    /// When it was loaded.
    pub loaded: Ps,
    /// When it was moved to a frame.
    pub moved: Ps,
}

/// The events so far.
pub struct Story {
    prices: StagePrices,
    /// Whether times are shown, and the stages that take them.
    priced: bool,
    /// By page of several tasks: its number in the lesson.
    names: Vec<u32>,
    /// The slots of a log by block: a page, or `None` for one that has moved on; empty: it is erased.
    log: Vec<Vec<Option<u32>>>,
    /// Slots of a block of the log, and the first slot that is the log's.
    block: (usize, usize),
    /// Time of the last event; the journal counts from it.
    event: u64,
    now: Ps,
    began: Ps,
    frames: Vec<Option<u32>>,
    buffers: Vec<Option<Busy>>,
    held: Vec<bool>,
    done: Vec<Busy>,
    emptied: Option<usize>,
}

impl Story {
    /// An empty story of several tasks, whose pages have these numbers in the order of their first touch.
    pub fn of_tasks(references: impl Iterator<Item = u32>) -> Story {
        let mut names = Vec::new();
        references.for_each(|page| {
            if !names.contains(&page) {
                names.push(page)
            }
        });
        let mut story = Story::empty(StagePrices::uniform(Ps::ZERO), names.len(), 16);
        story.names = names;
        story
    }

    /// An empty story, for a lane of this configuration.
    pub fn new(config: &LaneConfig, pages: usize, priced: bool) -> Story {
        let mut story = Story::empty(config.prices, config.frames, config.caps.buffers as usize);
        if let Some((areas, _)) = &config.area {
            let blocks = areas.areas.iter().map(|area| area.blocks as usize).sum();
            (story.log, story.block) = (vec![Vec::new(); blocks], (areas.slots_per_block as usize, pages));
        }
        story.priced = priced;
        story
    }

    fn empty(prices: StagePrices, frames: usize, buffers: usize) -> Story {
        Story {
            prices,
            priced: false,
            names: Vec::new(),
            log: Vec::new(),
            block: (1, 0),
            event: 0,
            now: Ps::ZERO,
            began: Ps::ZERO,
            frames: vec![None; frames],
            buffers: vec![None; buffers],
            held: vec![false; buffers],
            done: Vec::new(),
            emptied: None,
        }
    }

    /// The number of a page in the lesson.
    pub fn name(&self, page: PageId) -> u32 {
        self.names.get(page.index()).copied().unwrap_or(page.0)
    }

    /// The blocks of the log, slot by slot.
    pub fn log(&self) -> Vec<Vec<String>> {
        let slot = |block: &Vec<Option<u32>>, i: usize| match block.get(i) {
            None => "-".into(),
            Some(page) => page.map_or_else(|| "x".into(), |page| page.to_string()),
        };
        self.log.iter().map(|block| (0..self.block.0).map(|i| slot(block, i)).collect()).collect()
    }

    /// A page is in a slot of the log now, and nowhere else in it; its block.
    fn logged(&mut self, page: PageId, slot: SlotId) -> Option<usize> {
        let at = slot.index().checked_sub(self.block.1)?;
        let block = at / self.block.0;
        self.log.iter_mut().flatten().filter(|other| **other == Some(page.0)).for_each(|other| *other = None);
        let slots = self.log.get_mut(block)?;
        slots.resize(at % self.block.0, None);
        slots.push(Some(page.0));
        Some(block)
    }

    /// The time from which a journal's next part continues.
    pub fn event_time(&self) -> u64 {
        self.event
    }

    /// The time of the last event or stage.
    pub fn end(&self) -> Ps {
        self.now
    }

    /// From the last fault to now.
    pub fn latency(&self) -> Ps {
        self.now - self.began
    }

    pub fn in_frame(&self, frame: usize) -> Option<u32> {
        self.frames[frame]
    }

    /// Pages that stay in buffers.
    pub fn buffers(&self) -> Vec<Option<u32>> {
        self.buffers.iter().zip(&self.held).map(|(busy, held)| busy.filter(|_| *held).map(|b| b.page)).collect()
    }

    pub fn emptied(&self) -> Option<usize> {
        self.emptied
    }

    /// The use of the buffers until `end`.
    pub fn busy(&self, end: Ps) -> Vec<Busy> {
        let still = self.buffers.iter().flatten().map(|busy| Busy { moved: end, ..*busy });
        self.done.iter().copied().chain(still).collect()
    }

    /// The meaning of an entry; `None` if it adds nothing.
    pub fn tell(&mut self, entry: &Entry) -> Option<String> {
        match entry {
            Entry::Event { now, event } => self.event(*now, event),
            Entry::Command(command) => self.command(command),
            Entry::Referenced { page, value: true, .. } => {
                Some(format!("page {}: its bit is set, it loses it and stays", self.name(*page)))
            }
            Entry::Referenced { page, value: false, .. } => {
                Some(format!("page {}: its bit is clear, it leaves", self.name(*page)))
            }
            Entry::Dirty { page, value: true } => Some(format!("page {} is dirty", self.name(*page))),
            Entry::Dirty { .. } | Entry::Filled { .. } | Entry::Thread { .. } | Entry::Out { .. } => None,
        }
    }

    fn event(&mut self, now: u64, event: &Event) -> Option<String> {
        let before = std::mem::replace(&mut self.now, Ps(now));
        self.event = now;
        match event {
            Event::Fault { task, page, access } => {
                self.began = Ps(now);
                let verb = if *access == Access::Write { "written" } else { "read" };
                let of = (!self.names.is_empty()).then(|| format!(" by task {}", (b'A' + task.0 as u8) as char));
                let of = of.unwrap_or_default();
                Some(format!("page {} is {verb}{of} and is not mapped: fault", self.name(*page)))
            }
            Event::WillNeed { page } => {
                Some(format!("page {} is on the list of the task that runs next", self.name(*page)))
            }
            Event::Slice => Some("another task runs".into()),
            Event::Foreground { task } => Some(format!("task {} is in the foreground", (b'A' + task.0 as u8) as char)),
            Event::ReadOften { page } => {
                Some(format!("page {} was read in place so often that a copy pays", self.name(*page)))
            }
            Event::Loaded { .. } => {
                let loading = self.buffers.iter_mut().flatten().find(|busy| busy.loaded == Ps::ZERO)?;
                loading.loaded = Ps(now);
                if !self.priced {
                    return None;
                }
                // The stage's time is the part of the load during which no other stage runs.
                let (load, wait) = (Ps(now) - loading.loading, Ps(now) - before.max(self.began));
                Some(format!(
                    "LoadStopover: {}, until the device is done, {} after it began",
                    fine_time(wait),
                    fine_time(load)
                ))
            }
            Event::Written { page } if self.priced => Some(format!("page {} is safe on the device", page.0)),
            _ => None,
        }
    }

    fn command(&mut self, command: &Command) -> Option<String> {
        match *command {
            Command::Stage { stage, work } => {
                let price = self.prices.of(stage, &work);
                self.now += price;
                // Its time is the wait for the device, reported when the wait ends.
                if !self.priced || stage == Stage::LoadStopover && price == Ps::ZERO {
                    return None;
                }
                let walk = match work.walk.0 {
                    0 => String::new(),
                    1 => ", 1 frame examined".into(),
                    frames => format!(", {frames} frames examined"),
                };
                Some(format!("{stage:?}: {}{walk}", fine_time(price)))
            }
            Command::Load { page, into, .. } => {
                let (loading, zero) = (self.now, Ps::ZERO);
                let buffer = into.index();
                self.buffers[buffer] = Some(Busy { buffer, page: page.0, loading, loaded: zero, moved: zero });
                match self.priced {
                    true => Some(format!("the device begins to load page {} into buffer {buffer}", page.0)),
                    false if self.names.is_empty() => None,
                    false => Some(format!("the device begins to load page {}", self.name(page))),
                }
            }
            Command::Move { page, from, to } => {
                self.frames[to.index()] = Some(page.0);
                self.held[from.index()] = false;
                let busy = self.buffers[from.index()].take();
                self.done.extend(busy.map(|busy| Busy { moved: self.now, ..busy }));
                self.priced
                    .then(|| format!("page {} moves from buffer {} to frame {}", page.0, from.index(), to.index()))
            }
            Command::Write { page, to, .. } if !self.priced => {
                let block = self.logged(page, to).map(|block| format!(" to the log, in block {block}"));
                Some(format!("page {} is written{}", self.name(page), block.unwrap_or_default()))
            }
            Command::CopySlot { page, to, .. } => {
                let block = self.logged(page, to)?;
                Some(format!("the collector copies page {} to block {block}", page.0))
            }
            Command::EraseBlock { block } => {
                self.log.get_mut(block.index())?.clear();
                Some(format!("block {} is erased", block.0))
            }
            Command::Write { page, .. } => {
                // The processor brings the bytes over the bus.
                self.now += self.prices.trans_host_mem;
                Some(format!(
                    "page {} goes over the bus and is written: {}",
                    page.0,
                    fine_time(self.prices.trans_host_mem)
                ))
            }
            Command::Evict { page, from } => {
                self.frames[from.index()] = None;
                self.emptied = Some(from.index());
                match self.names.is_empty() {
                    true => Some(format!("page {} leaves frame {}", page.0, from.index())),
                    false => Some(format!("page {} leaves RAM", self.name(page))),
                }
            }
            Command::Map { page, place: Place::Buffer(buffer), .. } => {
                self.held[buffer.index()] = true;
                Some(format!("page {} is mapped in buffer {}, to be read in place", page.0, buffer.index()))
            }
            Command::Map { page, place: Place::Frame(frame), .. } => {
                self.frames[frame.index()] = Some(page.0);
                match self.names.is_empty() {
                    true => Some(format!("page {} is mapped in frame {}", page.0, frame.index())),
                    false => Some(format!("page {} is in RAM", self.name(page))),
                }
            }
            Command::Map { page, place: Place::Slot(_), .. } => {
                Some(format!("page {} is read where it is, on the device: no frame, no copy", self.name(page)))
            }
            Command::Resume { .. } => {
                self.priced.then(|| format!("the program goes on, {} after its fault", fine_time(self.latency())))
            }
            _ => None,
        }
    }
}
