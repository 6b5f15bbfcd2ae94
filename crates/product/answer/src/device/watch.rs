//! Watches all processes of a machine by the referenced bits of their pages.
//!
//! ```text
//!   round │ clear look │ clear look │ ... windows: a third │ clear   look  look    look      look  a stretch │ ...
//! ```
//! Windows show how much is referenced in a short time, again and again. A stretch has looks at growing times, so it
//! shows what is not referenced for long. A look reads the page tables of all processes; what it costs is measured, and
//! looks wait until watching is a hundredth of a processor again.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use coldframe_kernel::{group_of, Group};
use coldframe_proc::{page_in_ram, printable, processor_ns, Mapping, Process, Tree};
use coldframe_sheet::quantity::{human_size, things};
use fastrand::Rng;

use crate::device::counts::{disks, moved, zrams, Disk, MachineMemory, Traffic};
use crate::device::seen::{Owner, Seen};
use crate::error::AnswerError;
use crate::listener::Listener;
use crate::machine::costs::page_read;
use crate::predict::bits::budget::Budget;
use crate::predict::bits::everyone::Everyone;
use crate::predict::bits::look::{Look, Stretch};
use crate::predict::bits::page_sample::{touch_us, Algorithms};
use crate::predict::bits::reader::Reader;
use crate::predict::bits::watcher::{Count, Observer, Pace, Private, Scope, Watcher, GROWTH};
use crate::run::program::default_backing;
use crate::run::signals::Signals;

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
/// A stretch's first look.
const FIRST: Duration = Duration::from_millis(500);
/// If looks may not be that many: the first one's part of the time, and how the time grows to the next.
const FEW: u32 = 8;
const FEW_GROWTH: f64 = 2.0;
/// Pages that are compressed at a time, and how often in a round: at least, and at most, if watching may take the time.
const SOME: usize = 50;
const SAMPLES_MIN: usize = 5;
const SAMPLES: usize = 20;
/// Owners that are kept.
const OWNERS: usize = 10;

/// What to watch, and where it is kept.
pub struct WatchOptions {
    /// How long.
    pub time: Duration,
    /// A window for working sets; `None`: a thirtieth of the time, from 1 s to a minute.
    pub every: Option<Duration>,
    /// A file that has all that was watched so far, at any time.
    pub save: Option<PathBuf>,
    /// Whether watching goes on with what that file has.
    pub resume: bool,
}

impl WatchOptions {
    fn window(&self) -> Duration {
        self.every.unwrap_or((self.time / PARTS).clamp(SHORTEST, LONGEST))
    }
}

/// Watches for a time, after what was known before.
pub(crate) fn watch(
    tree: &Tree,
    options: &WatchOptions,
    before: Seen,
    listener: &dyn Listener,
) -> Result<Seen, AnswerError> {
    let signals = Signals::catch()?;
    // The disk is measured first, beside nothing that is watched.
    let disk_us =
        page_read(&default_backing()).ok().map(|read| [read.low, read.mean, read.high].map(|ps| ps.0 as f64 / 1e6));
    let budget = Budget { share: SHARE, patience: PATIENCE, advance: Some(options.time) };
    let mut watcher = Watcher::new(Everyone::new(tree), Scope::Machine, budget);
    let mut notes = DeviceNotes {
        tree,
        options,
        listener,
        signals,
        traffic: (Traffic::now(tree), before.traffic),
        disks: [disks(tree), before.disks.clone()],
        known: (before.seconds, before.own_seconds),
        reads_before: before.reads,
        seen: before,
        owners: HashMap::new(),
        busy: HashMap::new(),
    };
    notes.seen.begin(tree);
    notes.seen.disk_us = disk_us;
    let mut random = Rng::with_seed(1);
    while notes.goes_on(&mut watcher.reader) {
        let mut keep = |notes: &mut DeviceNotes, reader: &Everyone, look| {
            notes.seen.windows.push(look);
            notes.keep(reader)
        };
        let stretch = round(&mut watcher, &mut notes, options.time, options.window(), &mut keep)?;
        notes.seen.stretches.push(stretch);
        notes.seen.owners = notes.owners(watcher.reader.clock());
        let sample = &mut notes.seen.pages;
        if sample.touch_us == 0.0 {
            sample.touch_us = touch_us();
        }
        for taken in 0..SAMPLES {
            if taken < SAMPLES_MIN || watcher.affordable() {
                let page = |pid, pages| page_in_ram(&tree.process(pid), pages);
                sample.take(&watcher.heaps, SOME, Algorithms::Both, &mut random, page);
            }
        }
        notes.keep(&watcher.reader)?;
    }
    listener.finish();
    Ok(notes.seen)
}

/// Windows, then a stretch, in what is left of `time`. `keep` has the look of each window.
fn round<R: Reader, O: Observer<R>>(
    watcher: &mut Watcher<R>,
    observer: &mut O,
    time: Duration,
    window: Duration,
    keep: &mut dyn FnMut(&mut O, &R, Look) -> Result<(), AnswerError>,
) -> Result<Stretch, AnswerError> {
    let began = watcher.reader.clock();
    let long = time.saturating_sub(began).min(ROUND);
    let (windows_end, end) = (began + long / WINDOWS, began + long);
    // The first look says what is there, and what a look costs.
    watcher.look(observer);
    while watcher.reader.clock() + window.max(watcher.pause()) <= windows_end && observer.goes_on(&mut watcher.reader) {
        watcher.clear();
        watcher.wait(watcher.reader.clock() + window, Some(windows_end), observer);
        let look = watcher.look(observer).unwrap_or_default().look;
        keep(observer, &watcher.reader, look)?;
    }
    watcher.clear();
    let left = end.saturating_sub(watcher.reader.clock());
    // A machine so slow that looks may not be many has a few, and says what they took.
    let slow = watcher.pause() > left / FEW;
    let (first, growth) = if slow { (left / FEW, FEW_GROWTH) } else { (FIRST, GROWTH) };
    Ok(watcher.stretch(&Pace { first, growth, end: Some(end), waits: !slow }, observer))
}

/// What is known of the machine so far.
struct DeviceNotes<'a> {
    tree: &'a Tree,
    options: &'a WatchOptions,
    listener: &'a dyn Listener,
    signals: Signals,
    /// At the start, and what was known before.
    traffic: (Traffic, Traffic),
    disks: [Vec<Disk>; 2],
    /// Seconds that were watched before, and the processor time for that.
    known: (f64, f64),
    seen: Seen,
    /// Of the last look, by name and whether it is a unit.
    owners: HashMap<(String, bool), Owner>,
    /// Processor time of the processes of the first look, before it; those that come later had none.
    busy: HashMap<u32, u64>,
    reads_before: u64,
}

impl DeviceNotes<'_> {
    /// Takes the counters, and saves.
    fn keep(&mut self, reader: &Everyone) -> Result<(), AnswerError> {
        let tree = self.tree;
        self.seen.seconds = self.known.0 + reader.clock().as_secs_f64();
        self.seen.own_seconds = self.known.1 + reader.spent_seconds();
        self.seen.traffic = Traffic::now(tree).since(self.traffic.0).and(self.traffic.1);
        self.seen.disks = moved(&self.disks[0], disks(tree), &self.disks[1]);
        self.seen.swaps = tree.swap_areas().into_iter().map(|area| (area.name(), area.size, area.used)).collect();
        self.seen.zrams = zrams(tree);
        self.options.save.as_ref().map_or(Ok(()), |path| self.seen.write(path))
    }

    /// Those with most unused memory at the last look.
    fn owners(&self, clock: Duration) -> Vec<Owner> {
        let named = self.owners.iter().map(|((name, unit), owner)| Owner {
            name: name.clone(),
            unit: *unit,
            busy: owner.busy.map(|seconds| seconds / clock.as_secs_f64().max(1e-9)),
            ..owner.clone()
        });
        let mut owners: Vec<Owner> = named.collect();
        owners.sort_by(|a, b| b.cold_bytes.cmp(&a.cold_bytes).then(a.name.cmp(&b.name)));
        owners.truncate(OWNERS);
        owners.iter_mut().filter(|owner| owner.unit).for_each(|owner| owner.charged_bytes = charged(self.tree, owner));
        owners
    }
}

impl Observer<Everyone> for DeviceNotes<'_> {
    fn goes_on(&mut self, reader: &mut Everyone) -> bool {
        let (clock, time) = (reader.clock(), self.options.time);
        let private = human_size(self.seen.memory.own_bytes);
        let words = format!("watching {} with {private}", things(self.seen.processes, "process"));
        self.listener.progress(clock.as_secs(), Some(time.as_secs()), &words);
        clock < time && !self.signals.came()
    }

    fn begin(&mut self) {
        self.owners.clear();
    }

    fn process(&mut self, _: &Everyone, process: u32, _: &[Mapping], private: Private) {
        let (busy, first) = (processor_ns(process), self.seen.reads == self.reads_before);
        let owner = self.owners.entry(owner(&self.tree.process(process))).or_default();
        (owner.process, owner.processes) = (process, owner.processes + 1);
        let before =
            if first { *self.busy.entry(process).or_insert(busy) } else { *self.busy.get(&process).unwrap_or(&0) };
        *owner.busy.get_or_insert(0.0) += busy.saturating_sub(before) as f64 / 1e9;
        owner.own_bytes += (private.resident + private.swap) as u64;
        owner.cold_bytes += (private.resident + private.swap - private.referenced) as u64;
    }

    fn count(&mut self, count: &Count) {
        let seen = &mut self.seen;
        (seen.reads, seen.processes) = (seen.reads + 1, seen.processes.max(count.processes));
        let memory = MachineMemory::now(self.tree);
        if memory.own_bytes + memory.shared_bytes >= seen.memory.own_bytes + seen.memory.shared_bytes {
            seen.memory = memory;
        }
    }
}

/// What the group of a unit is charged now; 0: not known.
fn charged(tree: &Tree, owner: &Owner) -> u64 {
    let Ok(group) = group_of(tree, &owner.process.to_string()) else { return 0 };
    // Some units have groups of their own below them.
    let unit = group.folder().ancestors().find(|folder| folder.ends_with(&owner.name));
    unit.map_or(0, |unit| Group::new(group.version(), unit, None).usage())
}

/// The systemd unit of a process, or else the name of its program; and whether it is a unit.
fn owner(process: &Process) -> (String, bool) {
    let groups = process.cgroups();
    let unit =
        groups.iter().filter(|group| group.hierarchy == 0 || group.controllers.iter().any(|one| one == "memory"));
    let mut named = unit
        .filter_map(|group| group.path.rsplit('/').find(|part| part.ends_with(".service") || part.ends_with(".scope")));
    match named.next_back() {
        Some(unit) => (printable(unit), true),
        None => (process.name(), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::bits::fake::{Row, Table};

    struct Always;

    impl Observer<Table> for Always {
        fn goes_on(&mut self, _: &mut Table) -> bool {
            true
        }
    }

    /// Watches a machine with a process of 100 MiB for ten minutes; the looks of windows, the stretch, and the watcher.
    fn watched(cost: f64, window: Duration) -> (Vec<Look>, Stretch, Watcher<Table>) {
        let time = Duration::from_secs(600);
        let rows = [(1, Row::new(102_400, |seconds| 20_000.0 + 100.0 * seconds))].into();
        let budget = Budget { share: SHARE, patience: PATIENCE, advance: Some(time) };
        let mut watcher = Watcher::new(Table { rows, cost, ..Table::default() }, Scope::Machine, budget);
        let mut looks = Vec::new();
        let mut keep = |_: &mut Always, _: &Table, look| {
            looks.push(look);
            Ok(())
        };
        let stretch = round(&mut watcher, &mut Always, time, window, &mut keep).unwrap();
        (looks, stretch, watcher)
    }

    #[test]
    fn a_third_of_a_round_has_windows_and_the_rest_is_one_stretch() {
        let (windows, stretch, watcher) = watched(0.001, Duration::from_secs(20));
        assert_eq!(windows.len(), 9, "the tenth would not end in time: {windows:?}");
        assert!(windows.iter().all(|look| (look.seconds - 20.0).abs() < 0.1), "{windows:?}");
        assert!(windows.iter().all(|look| look.referenced_bytes.abs_diff(22_000 << 10) < 20 << 10), "{windows:?}");
        assert!((400.0..421.0).contains(&stretch.seconds()) && stretch.looks.len() > 14, "{stretch:?}");
        assert!((599.9..601.0).contains(&watcher.reader.clock().as_secs_f64()));
        assert!((0.4..0.6).contains(&stretch.looks[0].seconds), "{stretch:?}");
    }

    #[test]
    fn a_machine_whose_looks_are_dear_has_few_of_them_and_they_take_a_hundredth_of_a_processor() {
        let (windows, stretch, watcher) = watched(0.3, Duration::from_secs(20));
        assert!(windows.len() < 5 && stretch.looks.len() <= 5, "{} windows, {stretch:?}", windows.len());
        assert!(watcher.reader.spent_seconds() < 0.01 * 600.0, "{}", watcher.reader.spent_seconds());
        let (_, stretch, _) = watched(2.0, Duration::from_secs(20));
        assert!((3..=5).contains(&stretch.looks.len()), "a few all the same: {stretch:?}");
    }
}
