//! Watches all processes of a machine by the referenced bits of their pages.
//!
//! ```text
//!   round │ clear look │ clear look │ ... a third of it: windows │ clear   look  look    look      look  a stretch │ round ...
//! ```
//! Windows show how much is referenced in a short time, again and again. A stretch has looks at growing times, so it
//! shows what is not referenced for long. A look reads the page tables of all processes; what it costs is measured, and
//! looks wait until watching is a hundredth of a processor again.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::machine::costs::page_read;
use coldframe_proc::{mappings, Area, Process, Random, Tree};
use coldframe_sheet::quantity::human_size;
use rustix::time::{clock_gettime, ClockId};

use crate::device::counts::{disks, moved, zrams, Disk, Memory, Traffic};
use crate::device::seen::{Look, Owner, Seen, Stretch, Window};
use crate::error::AnswerError;
use crate::listener::Listener;
use crate::run::child::Signals;
use crate::run::program::default_backing;

/// The part of a processor that looks may take, so that watching takes at most a hundredth with its last look and the
/// pages that it compresses. Looks at the start may take these seconds of it in advance.
const SHARE: f64 = 0.008;
const PATIENCE: f64 = 0.2;
/// The part of a round that has windows.
const WINDOWS: u32 = 3;
/// The longest round.
const ROUND: Duration = Duration::from_secs(3600);
/// Windows of a time, if their length is not given, and the shortest and longest of that.
const PARTS: u32 = 30;
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
/// A stretch's first look, and how the time grows to the next.
const FIRST: Duration = Duration::from_millis(500);
const GROWTH: f64 = 1.5;
/// If looks may not be that many: the first one's part of the time, and the growth.
const FEW: u32 = 8;
const FEW_GROWTH: f64 = 2.0;
/// How often a signal is noticed.
const TICK: Duration = Duration::from_millis(200);
/// Pages that are compressed at a time, and how often in a round: at least, and at most, if watching may take the time.
const SOME: usize = 50;
const PAGES_LEAST: usize = 5;
const PAGES: usize = 20;
/// Owners that are kept.
const OWNERS: usize = 10;

/// What to watch, and where it is kept.
pub struct Order {
    /// How long.
    pub time: Duration,
    /// A window for working sets; `None`: a thirtieth of the time, from 1 s to a minute.
    pub every: Option<Duration>,
    /// A file that has all that was watched so far, at any time.
    pub save: Option<PathBuf>,
    /// Whether watching goes on with what that file has.
    pub resume: bool,
}

/// Watches for a time, after what was known before.
pub(crate) fn watch(tree: &Tree, order: &Order, before: Seen, listener: &dyn Listener) -> Result<Seen, AnswerError> {
    let signals = Signals::catch()?;
    // The disk is measured first, beside nothing that is watched.
    let disk_us =
        page_read(&default_backing()).ok().map(|read| [read.low, read.mean, read.high].map(|ps| ps.0 as f64 / 1e6));
    let (seconds, own, disks_before) = (before.seconds, before.own_seconds, before.disks.clone());
    let mut watch = Watch {
        tree,
        order,
        listener,
        signals,
        began: Instant::now(),
        own_began: own_seconds(),
        traffic: (Traffic::now(tree), before.traffic),
        disks: [disks(tree), disks_before],
        known: (seconds, own),
        seen: before,
        before: HashMap::new(),
        again: 0.0,
        cost: 0.0,
        random: Random::default(),
    };
    watch.seen.begin(tree);
    watch.seen.disk_us = disk_us;
    while watch.goes_on() {
        watch.round()?;
    }
    watch.note()?;
    listener.finish();
    Ok(watch.seen)
}

struct Watch<'a> {
    tree: &'a Tree,
    order: &'a Order,
    listener: &'a dyn Listener,
    signals: Signals,
    began: Instant,
    own_began: f64,
    /// At the start, and what was known before.
    traffic: (Traffic, Traffic),
    disks: [Vec<Disk>; 2],
    /// Seconds that were watched before, and the processor time for that.
    known: (f64, f64),
    seen: Seen,
    /// KiB in RAM and referenced at the last look, by process and start.
    before: HashMap<(u32, u64), (u64, u64)>,
    /// KiB that came back since the clearing.
    again: f64,
    /// Seconds of processor time of the last look, and of the clearing after it.
    cost: f64,
    random: Random,
}

/// What a look at all page tables shows, in bytes.
#[derive(Default)]
struct All {
    own: f64,
    referenced: f64,
    files: u64,
    owners: HashMap<(String, bool), Owner>,
    areas: Vec<(u32, Area, f64)>,
}

impl All {
    /// What was referenced since a clearing.
    fn window(&self, cleared: Instant) -> Window {
        let seconds = cleared.elapsed().as_secs_f64();
        Window { seconds, own_bytes: self.referenced as u64, file_bytes: self.files }
    }
}

impl Watch<'_> {
    fn goes_on(&self) -> bool {
        self.began.elapsed() < self.order.time && !self.signals.came()
    }

    /// Whether watching may take the time of one more look.
    fn affordable(&self) -> bool {
        let (all, done) = (self.order.time.as_secs_f64(), self.began.elapsed().as_secs_f64());
        self.own() + self.cost < PATIENCE + (SHARE - PATIENCE / all).max(0.0) * done
    }

    fn own(&self) -> f64 {
        own_seconds() - self.own_began
    }

    /// Windows, then a stretch, then pages of what it did not reference.
    fn round(&mut self) -> Result<(), AnswerError> {
        let (began, left) = (Instant::now(), self.order.time.saturating_sub(self.began.elapsed()));
        let long = left.min(ROUND);
        let every = self.order.every.unwrap_or((self.order.time / PARTS).clamp(SHORTEST, LONGEST));
        // The first look says what is there, and what a look costs.
        drop(self.look());
        while began.elapsed() + every.max(self.pause()) <= long / WINDOWS && self.goes_on() {
            self.clear();
            let cleared = Instant::now();
            self.wait(cleared + every, began + long / WINDOWS);
            let all = self.look();
            self.seen.windows.push(all.window(cleared));
            self.note()?;
        }
        self.clear();
        let (cleared, end) = (Instant::now(), began + long);
        let rest = end.saturating_duration_since(cleared);
        // A machine so slow that looks may not be many has a few, and says what they took.
        let slow = self.pause() > rest / FEW;
        let (mut next, growth) = if slow { (rest / FEW, FEW_GROWTH) } else { (FIRST, GROWTH) };
        let mut stretch = Stretch::default();
        let mut all;
        loop {
            let until = (cleared + next).min(end);
            self.wait(until, if slow { until } else { end });
            all = self.look();
            let window = all.window(cleared);
            stretch.looks.push(Look { window, again_bytes: (self.again * 1024.0) as u64 });
            stretch.own_bytes = stretch.own_bytes.max(all.own as u64);
            if Instant::now() >= end || !self.goes_on() {
                break;
            }
            next = cleared.elapsed().mul_f64(growth);
        }
        self.seen.stretches.push(stretch);
        for taken in 0..PAGES {
            if taken < PAGES_LEAST || self.affordable() {
                self.seen.pages.take(&all.areas, SOME, &mut self.random);
            }
        }
        let mut owners: Vec<Owner> = all.owners.into_values().collect();
        owners.sort_by(|a, b| b.cold_bytes.cmp(&a.cold_bytes).then(a.name.cmp(&b.name)));
        owners.truncate(OWNERS);
        self.seen.owners = owners;
        self.note()
    }

    /// The time after a look until watching may take that of another one.
    fn pause(&self) -> Duration {
        Duration::from_secs_f64(self.cost / SHARE)
    }

    /// Until then, and until watching may take time again, but not after the end.
    fn wait(&self, until: Instant, end: Instant) {
        while (Instant::now() < until || Instant::now() < end && !self.affordable()) && self.goes_on() {
            let left = until.saturating_duration_since(Instant::now());
            std::thread::sleep(if left.is_zero() { TICK } else { left.min(TICK) });
            let (done, all) = (self.began.elapsed().as_secs(), self.order.time.as_secs());
            let own = human_size(self.seen.memory.own_bytes);
            self.listener.progress(done, Some(all), &format!("watching {} processes with {own}", self.seen.processes));
        }
    }

    fn clear(&mut self) {
        let began = own_seconds();
        for pid in self.others() {
            // It may have ended.
            let _ = std::fs::write(Process::of(pid).file("clear_refs"), "1");
        }
        self.before.values_mut().for_each(|(_, referenced)| *referenced = 0);
        self.again = 0.0;
        self.cost += own_seconds() - began;
    }

    fn others(&self) -> Vec<u32> {
        let own = std::process::id();
        self.tree.processes().into_iter().filter(|pid| *pid != own).collect()
    }

    fn look(&mut self) -> All {
        let began = own_seconds();
        let (mut all, mut files, mut now, mut processes) = (All::default(), HashMap::new(), HashMap::new(), 0);
        for pid in self.others() {
            let process = self.tree.process(pid);
            // A thread of the kernel has none, and a process may have ended.
            let text = process.smaps().unwrap_or_default();
            if text.is_empty() {
                continue;
            }
            processes += 1;
            let (mut own, mut cold) = (0.0, 0.0);
            for mapping in mappings(&text) {
                let (area, counts) = (Area::of(&mapping), mapping.counts);
                // A page of several processes is one page.
                let each = 1024.0 * counts.pss as f64 / counts.rss.max(1) as f64;
                let anonymous = counts.anonymous as f64 / counts.rss.max(1) as f64;
                if mapping.inode != 0 && counts.rss > counts.anonymous {
                    // A part of a file that several processes map is there once.
                    let most: &mut u64 =
                        files.entry((mapping.device.to_string(), mapping.inode, mapping.offset)).or_default();
                    *most = (*most).max((1024.0 * counts.referenced as f64 * (1.0 - anonymous)) as u64);
                }
                if counts.anonymous == 0 && counts.swap == 0 {
                    continue;
                }
                let (rss, referenced) = self.before.get(&(pid, area.start)).copied().unwrap_or_default();
                let new = counts.rss.saturating_sub(rss);
                let again = counts.referenced.saturating_sub(referenced).saturating_sub(new);
                self.again += again as f64 * anonymous * each / 1024.0;
                now.insert((pid, area.start), (counts.rss, counts.referenced));
                let hot = counts.referenced as f64 * anonymous * each;
                let whole = counts.rss as f64 * anonymous * each + counts.swap as f64 * 1024.0;
                all.referenced += hot;
                (own, cold) = (own + whole, cold + whole - hot);
                if area.heap && counts.rss > 0 {
                    all.areas.push((pid, area, counts.rss as f64 * each));
                }
            }
            all.own += own;
            let owner = all.owners.entry(owner(&process)).or_default();
            (owner.process, owner.processes) = (pid, owner.processes + 1);
            (owner.own_bytes, owner.cold_bytes) = (owner.own_bytes + own as u64, owner.cold_bytes + cold as u64);
        }
        for ((name, unit), owner) in &mut all.owners {
            (owner.name, owner.unit) = (name.clone(), *unit);
        }
        all.files = files.values().sum();
        self.before = now;
        self.cost = own_seconds() - began;
        (self.seen.reads, self.seen.processes) = (self.seen.reads + 1, self.seen.processes.max(processes));
        let memory = Memory::now(self.tree);
        if memory.own_bytes + memory.shared_bytes >= self.seen.memory.own_bytes + self.seen.memory.shared_bytes {
            self.seen.memory = memory;
        }
        all
    }

    /// Takes the counters, and saves.
    fn note(&mut self) -> Result<(), AnswerError> {
        let tree = self.tree;
        self.seen.seconds = self.known.0 + self.began.elapsed().as_secs_f64();
        self.seen.own_seconds = self.known.1 + self.own();
        self.seen.traffic = Traffic::now(tree).since(self.traffic.0).and(self.traffic.1);
        self.seen.disks = moved(&self.disks[0], disks(tree), &self.disks[1]);
        self.seen.swaps = tree.swap_areas().into_iter().map(|area| (area.name, area.size, area.used)).collect();
        self.seen.zrams = zrams(tree);
        self.order.save.as_ref().map_or(Ok(()), |path| self.seen.write(path))
    }
}

/// The systemd unit of a process, or else the name of its program; and whether it is a unit.
fn owner(process: &Process) -> (String, bool) {
    let groups = process.cgroups();
    let unit =
        groups.iter().filter(|group| group.hierarchy == 0 || group.controllers.iter().any(|one| one == "memory"));
    let named = unit
        .filter_map(|group| group.path.rsplit('/').find(|part| part.ends_with(".service") || part.ends_with(".scope")));
    match named.last() {
        Some(unit) => (unit.to_string(), true),
        None => (process.name(), false),
    }
}

/// Processor time of this process.
fn own_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
