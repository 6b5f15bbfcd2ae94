//! What the live pager decides from sizes and measured times, as pure functions. The pager calls them at its start;
//! the answer for this machine calls them to simulate the same pager.
//!
//! ```text
//!   Measured ─► policy, wait, batch of victims ─┐
//!   RAM ────────────────────────────────────────┴─► Plan: frames, reserve, batch, buffers ─► the engine's Config
//! ```

use coldframe_core::{Bytes, Caps, Config};

/// Bytes of a page.
pub const PAGE: usize = 4096;
/// The least RAM, in frames: eight times the least batch of victims, since a batch takes at most an eighth.
pub const FRAMES_MIN: usize = 8 * BATCH_MIN;
/// The fewest frames of a process that shares a budget with others: 512 KiB. A half is for all loads that can be in
/// flight; of the rest, a reserve and a batch of victims leave some for pins.
pub const FLOOR: usize = 128;
/// Faults that can be served at a time. A guess: more than the processors of most machines.
pub const TASKS: usize = 32;
/// Loads that one fault or one list of prefetch hints can have in flight: twice the pages that come with one fault or
/// are hinted at a time, so that the next ones can start.
pub const LOADS: usize = 2 * HINTS;
/// Pages that are loaded at a time for a list of prefetch hints. A guess: 128 KiB, as much as Linux reads ahead at
/// most by default (`VM_READAHEAD_PAGES`).
pub const HINTS: usize = 32;
/// The most pages of read-ahead. With the page of the fault, they are half of the loads that can be in flight.
pub const READ_AHEAD_MAX: u32 = LOADS as u32 / 2 - 1;
/// The default of the most pages of read-ahead. A guess: half of what is possible.
pub const READ_AHEAD: u32 = LOADS as u32 / 4;
/// The default policy.
pub const POLICY: &str = "multi-queue";
/// The default handler: the load starts before the search for a frame.
pub const HANDLER: &str = "parallel";

/// Slots of a segment of the log. One write has that many pages: 128 KiB.
pub const SEGMENT: usize = 32;
/// Buffers of the log, a segment each: 1 MiB. One is filled, one is written, and the others absorb a slow write and
/// serve reads at the same time.
pub const LOG_BUFFERS: usize = 8;
/// Written pages that the log's buffers still have: all buffers but the one that is being filled.
pub const BUFFERED: usize = (LOG_BUFFERS - 1) * SEGMENT;

/// A device this fast is read synchronously: a ring costs more than it hides. Measured: with a device of 5 us a fault
/// takes 13 us by reads and 19 us by the ring. At 15 us both take the same time, and a stream with read-ahead is
/// three times as fast through the ring.
const FAST_NS: u64 = 8_000;
/// A victim is evicted in about 4 us during a read: set aside, copied, hashed, dropped. Measured: 4.1 to 5.0 us in a
/// Python program that thrashes, whose disk read takes 51 us.
const VICTIM_NS: u64 = 4_000;
/// The fewest victims that are evicted together, unless fewer are asked for: a read of 17 us hides as many.
const BATCH_MIN: usize = 8;
/// The most victims that are evicted together. A guess: more hardly save time, since they share only two switches and
/// a flush of the TLB.
pub const BATCH_MAX: usize = 32;
/// A false fault in steps of a walk: the signal and the move back (4.2 us if a move takes 1.0 us).
const FALSE_FAULT_STEPS: u64 = 4;

/// Medians that a pager measures at its start, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// A read of one page.
    pub read_ns: u64,
    /// One step of a walk that clears an emulated reference bit: the page is taken out of the page table.
    pub step_ns: u64,
}

impl Measured {
    /// Whether waiting threads let work overlap with the device: they ask through a ring, poll for about one device
    /// time, then sleep. Otherwise they read synchronously.
    pub fn overlaps(&self) -> bool {
        self.read_ns >= FAST_NS
    }

    /// Victims that are evicted together: as many as can be taken out during a read; [`BATCH_MAX`] if nothing
    /// `overlaps`.
    pub fn evict_batch(&self, overlaps: bool) -> usize {
        match overlaps {
            false => BATCH_MAX,
            true => ((self.read_ns / VICTIM_NS) as usize).clamp(BATCH_MIN, BATCH_MAX),
        }
    }

    /// The policy that was asked for, or the default, with the parameters that depend on this machine filled in.
    pub fn policy(&self, name: Option<&str>) -> String {
        let name = name.unwrap_or(POLICY);
        let missing = |parameter: &str| !name.contains(&format!("{parameter}="));
        let joined = |parameter: String| {
            let joint = if name.contains(':') { ',' } else { ':' };
            format!("{name}{joint}{parameter}")
        };
        match name.split(':').next().unwrap_or_default() {
            "pa-clock" if missing("budget") => joined(format!("budget={}", self.budget())),
            "fifo-sc" | "pa-fifo-sc" if missing("valid") => joined(format!("valid={}%", 100 - self.invalid_percent())),
            _ => name.to_string(),
        }
    }

    /// Steps of a search that a read hides, if each of them ends in an eviction: SWL section 3.2, equation 2.
    pub fn budget(&self) -> u64 {
        (self.read_ns / (self.step_ns + VICTIM_NS)).max(1)
    }

    /// Percentage of frames to keep unmapped. A false fault pays if it saves more load time than it costs. With half
    /// the frames unmapped, FIFO loads 12 % fewer pages of a Zipf string and has 0.6 false faults for each load
    /// (measured: 18.5 % to 16.3 % of accesses for 9.7 %). So this pays if a read takes at least about 5 false faults;
    /// with an eighth of the frames unmapped, at least about 2.
    pub fn invalid_percent(&self) -> u64 {
        match self.read_ns / (self.step_ns.max(1) * FALSE_FAULT_STEPS) {
            0..=1 => 1,
            2..=4 => 12,
            5..=9 => 25,
            _ => 50,
        }
    }
}

/// The pager's choices that do not depend on its RAM.
#[derive(Clone, PartialEq, Debug)]
pub struct Pager {
    /// Policy, as on the command line.
    pub policy: String,
    /// Most pages read ahead.
    pub read_ahead: u32,
    /// Victims that are evicted together, if RAM allows.
    pub evict_batch: usize,
}

impl Pager {
    /// The defaults of `coldframe run` on a machine with these times.
    pub fn of(measured: &Measured) -> Pager {
        let evict_batch = measured.evict_batch(measured.overlaps());
        Pager { policy: measured.policy(None), read_ahead: READ_AHEAD, evict_batch }
    }

    /// The pager with this much RAM, in bytes.
    pub fn with(&self, ram: u64) -> Plan {
        let frames = ram as usize / PAGE;
        Plan::of_share(frames, self.evict_batch)
    }

    /// The least RAM whose engine has this many frames.
    pub fn ram_for(&self, frames: u64) -> Bytes {
        let mut ram = (frames as usize).max(FRAMES_MIN);
        while (self.with((ram * PAGE) as u64).frames as u64) < frames {
            ram += 1;
        }
        Bytes((ram * PAGE) as u64)
    }
}

/// The batch for this many frames: with little RAM, an eighth of it.
pub fn fitting(batch: usize, frames: usize) -> usize {
    batch.min(frames / 8)
}

/// A pager's numbers for some RAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Frames of the engine.
    pub frames: usize,
    /// Frames that the engine does not get. The engine reuses a frame as soon as it has commanded that the page leaves,
    /// but the page stays in memory until its thread has taken it out. The reserve covers the pages in between.
    pub reserve: usize,
    /// Victims that are evicted together.
    pub evict_batch: usize,
    /// Loads in flight.
    pub buffers: usize,
}

impl Plan {
    /// For this many frames of RAM and this batch. The reserve is four batches where that is little (a 64th of RAM),
    /// and at least one; with little RAM, it is an eighth. Each task can have a load in flight and half of them can be
    /// a list of hints besides, within a quarter of the frames.
    pub fn of(frames: usize, evict_batch: usize) -> Plan {
        let wanted = evict_batch.max((4 * evict_batch).min(frames / 64));
        let (reserve, buffers) = (wanted.min(frames / 8), (TASKS + LOADS / 2).min(frames / 4));
        Plan { frames: frames - reserve, reserve, evict_batch, buffers }
    }

    /// For a share of a budget: the batch follows, too.
    pub fn of_share(frames: usize, evict_batch: usize) -> Plan {
        Plan::of(frames, fitting(evict_batch, frames))
    }

    /// The same with no frame in reserve: a recorder's window has exactly the frames that were asked for.
    pub fn without_reserve(self) -> Plan {
        Plan { frames: self.frames + self.reserve, reserve: 0, ..self }
    }

    /// The same for a share of all pages, and of the frames for them. With fewer than 8 frames, an engine has no room
    /// for a batch of victims and the pages in flight.
    pub fn sampled(self, share: f64) -> Plan {
        if share >= 1.0 {
            return self;
        }
        let frames = ((self.frames as f64 * share).round() as usize).max(8);
        let (evict_batch, buffers) = (fitting(self.evict_batch, frames), self.buffers.min(frames / 4));
        Plan { frames, evict_batch: evict_batch.max(1), buffers: buffers.max(1), ..self }
    }

    /// The engine's configuration for this many pages. Reference bits are emulated by unmapping; dirty bits by
    /// write-protection, which is the machine's business. `places`: the pager chooses the place of each page on the
    /// device, not a swap area.
    pub fn config(&self, pages: usize, places: bool) -> Config {
        let Plan { frames, evict_batch, buffers, .. } = *self;
        let caps = Caps { reference_bit: false, dirty_bit: true, buffers: buffers as u32, direct_read: false, places };
        Config { frames, pages, tasks: TASKS, evict_batch, caps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_device_gives_a_long_walk_and_a_long_invalid_list() {
        let (disk, ram) = (Measured { read_ns: 70_000, step_ns: 1_000 }, Measured { read_ns: 4_000, step_ns: 1_000 });
        assert_eq!(disk.policy(Some("pa-clock")), "pa-clock:budget=14");
        assert_eq!(disk.policy(Some("pa-clock:insert-bit=set")), "pa-clock:insert-bit=set,budget=14");
        assert_eq!(disk.policy(Some("pa-clock:budget=3")), "pa-clock:budget=3");
        assert_eq!(disk.policy(Some("fifo-sc")), "fifo-sc:valid=50%");
        assert_eq!(ram.policy(Some("pa-fifo-sc")), "pa-fifo-sc:valid=99%");
        assert_eq!((ram.policy(Some("clock")), ram.policy(None)), ("clock".into(), POLICY.into()));
        assert_eq!((disk.overlaps(), ram.overlaps()), (true, false));
        assert_eq!([disk.evict_batch(true), ram.evict_batch(true), ram.evict_batch(false)], [17, 8, 32]);
    }

    #[test]
    fn the_reserve_is_small_where_ram_is_large_and_never_most_of_it() {
        let of = |frames, batch| Plan::of(frames, batch).reserve;
        assert_eq!((of(64, 8), of(64, 32), of(1024, 8), of(1 << 20, 32)), (8, 8, 16, 128));
    }

    #[test]
    fn the_least_ram_for_some_frames_has_them_and_a_page_less_has_not() {
        let pager = Pager::of(&Measured { read_ns: 50_000, step_ns: 1 });
        for frames in [100u64, 2_000, 100_000] {
            let ram = pager.ram_for(frames).0;
            assert!(pager.with(ram).frames as u64 >= frames);
            assert!((pager.with(ram - PAGE as u64).frames as u64) < frames);
        }
        assert_eq!(pager.ram_for(1).0 as usize, FRAMES_MIN * PAGE);
    }
}
