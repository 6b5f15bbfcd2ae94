//! Tells a journal: each entry as a sentence, and the place of each page.
//!
//! Time within an event is the event's plus the price of each stage since, as the lane's own clock has it.

use coldframe_core::{Access, Command, Event, Place, Ps, Stage};
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
    /// An empty story, for a lane of this configuration.
    pub fn new(config: &LaneConfig) -> Story {
        let buffers = config.caps.buffers as usize;
        Story {
            prices: config.prices,
            event: 0,
            now: Ps::ZERO,
            began: Ps::ZERO,
            frames: vec![None; config.frames],
            buffers: vec![None; buffers],
            held: vec![false; buffers],
            done: Vec::new(),
            emptied: None,
        }
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
                Some(format!("page {}: its bit is set, it loses it and stays", page.0))
            }
            Entry::Referenced { page, value: false, .. } => {
                Some(format!("page {}: its bit is clear, it leaves", page.0))
            }
            Entry::Dirty { page, value: true } => Some(format!("page {} is dirty", page.0)),
            Entry::Dirty { .. } | Entry::Filled { .. } | Entry::Thread { .. } | Entry::Out { .. } => None,
        }
    }

    fn event(&mut self, now: u64, event: &Event) -> Option<String> {
        let before = std::mem::replace(&mut self.now, Ps(now));
        self.event = now;
        match event {
            Event::Fault { page, access, .. } => {
                self.began = Ps(now);
                let verb = if *access == Access::Write { "written" } else { "read" };
                Some(format!("page {} is {verb} and is not mapped: fault", page.0))
            }
            Event::Loaded { .. } => {
                let loading = self.buffers.iter_mut().flatten().find(|busy| busy.loaded == Ps::ZERO)?;
                loading.loaded = Ps(now);
                // The stage's time is the part of the load during which no other stage runs.
                let (load, wait) = (Ps(now) - loading.loading, Ps(now) - before.max(self.began));
                Some(format!(
                    "LoadStopover: {}, until the device is done, {} after it began",
                    fine_time(wait),
                    fine_time(load)
                ))
            }
            Event::Written { page } => Some(format!("page {} is safe on the device", page.0)),
            _ => None,
        }
    }

    fn command(&mut self, command: &Command) -> Option<String> {
        match *command {
            Command::Stage { stage, work } => {
                let price = self.prices.of(stage, &work);
                self.now += price;
                // Its time is the wait for the device, reported when the wait ends.
                if stage == Stage::LoadStopover && price == Ps::ZERO {
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
                Some(format!("the device begins to load page {} into buffer {buffer}", page.0))
            }
            Command::Move { page, from, to } => {
                self.frames[to.index()] = Some(page.0);
                self.held[from.index()] = false;
                let busy = self.buffers[from.index()].take();
                self.done.extend(busy.map(|busy| Busy { moved: self.now, ..busy }));
                Some(format!("page {} moves from buffer {} to frame {}", page.0, from.index(), to.index()))
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
                Some(format!("page {} leaves frame {}", page.0, from.index()))
            }
            Command::Map { page, place: Place::Buffer(buffer), .. } => {
                self.held[buffer.index()] = true;
                Some(format!("page {} is mapped in buffer {}, to be read in place", page.0, buffer.index()))
            }
            Command::Map { page, place: Place::Frame(frame), .. } => {
                Some(format!("page {} is mapped in frame {}", page.0, frame.index()))
            }
            Command::Resume { .. } => {
                Some(format!("the program goes on, {} after its fault", fine_time(self.latency())))
            }
            _ => None,
        }
    }
}
