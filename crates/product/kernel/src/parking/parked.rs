//! A parked program: it is stopped, its pages are in swap, and its prefetching list has the pages that it used.
//!
//! ```text
//!   runs ── park: stop, list = in swap at its start & in RAM now, push out ─► stopped
//!    ▲                                                                          │ fetch: loads the list
//!    └── resume: continues; the rest of the list is loaded while it runs ◄──────┘   while other programs run
//! ```
//!
//! Two processes hold the freeze: this one and its [`Guard`]. If either ends, the other lets the program continue.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use coldframe_proc::{advise, check, escaped, scan, touch, Advice, Faults, Place, Process, PAGE};
use rustix::process::{kill_process, pidfd_open, Pid, PidfdFlags, Signal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::files::write;
use crate::group::place::{mounted, path_of};
use crate::group::processes::{is_stopped, waiting};
use crate::group::target::Target;
use crate::group::version::Version;
use crate::parking::lists::Lists;
use crate::parking::order::{first_and_rest, merged};
use crate::parking::pages::{but_one_part, Pages};
use crate::swap::Swaps;
use crate::{Guard, KernelError};
use coldframe_proc::{field, text, Tree};

/// Threads that read if advice is not allowed: three times as fast as one, with random pages of a disk (measured).
const READERS: usize = 8;
/// See [`but_one_part`].
const PARTS: u64 = 8;
/// Ranges that are loaded at a time while the program runs: its own faults wait behind no more than these in the disk's
/// queue.
const AT_A_TIME: usize = 32;
/// Turns after which a page that was not used leaves the list: of pages that are used seldom, each turn has others.
const TURNS: usize = 3;
/// How long a program may take to stop: one in the middle of a read from a disk stops after it.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(1);

/// A program that is or was parked.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// The name that it was parked by.
    pub name: String,
    /// Its first process.
    pub process: u32,
    /// The name of that process's program.
    pub program: String,
    /// The user of that process.
    pub user: String,
    /// Whether it stands still.
    pub parked: bool,
    /// Its memory.
    pub bytes: Bytes,
    /// Why its faults are not recorded, so that its list is loaded in the order of addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unordered: Option<String>,
}

/// The memory of a parked program.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Bytes {
    /// In RAM.
    pub ram: u64,
    /// In swap.
    pub swapped: u64,
    /// Of its list: what it used of what was in swap.
    pub listed: u64,
}

/// How a program is parked, in the process that holds it: if that process ends or drops this, the program runs on.
#[derive(Debug)]
pub struct Parked {
    tree: Tree,
    pub(crate) name: String,
    lists: Lists,
    target: Target,
    /// Processes stopped by a signal, parents first.
    stopped: Vec<u32>,
    /// `None`: it runs.
    guard: Option<Guard>,
    /// A guard with no cleanups left.
    idle: Option<Guard>,
    /// The pages in swap when it began to run.
    out: Pages,
    /// All pages that can leave were pushed out when it was parked.
    pushed: bool,
    list: Pages,
    /// What each of the last turns used.
    used: VecDeque<Pages>,
    /// Of the list, what the last turns touched first, in that order.
    order: BTreeMap<u32, Vec<u64>>,
    /// The faults of this turn.
    faults: BTreeMap<u32, Faults>,
    unordered: Option<String>,
    /// The pages of files that it had mapped when it was stopped. Others' need of RAM takes them away.
    files: Pages,
    turn: u64,
    fetching: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
}

impl Parked {
    /// A program that runs; `lists`: the folder for what programs used, for their next start.
    ///
    /// # Errors
    /// There is no such program, or this user may not park it.
    pub fn find(tree: &Tree, name: &str, lists: &Path) -> Result<Parked, KernelError> {
        let target = Target::find(tree, name)?;
        if let Target::Process(process) = target {
            check_allowed(process)?;
        }
        Ok(Parked {
            tree: tree.clone(),
            name: name.into(),
            lists: Lists(lists.into()),
            target,
            stopped: Vec::new(),
            guard: None,
            idle: None,
            out: Pages::default(),
            pushed: false,
            list: Pages::default(),
            used: VecDeque::new(),
            order: BTreeMap::new(),
            faults: BTreeMap::new(),
            unordered: None,
            files: Pages::default(),
            turn: 0,
            fetching: None,
        })
    }

    /// Its processes that have not ended.
    pub fn processes(&self) -> Vec<u32> {
        let mut processes = self.target.processes();
        processes.retain(|process| is_stopped(&self.tree, *process).is_some());
        processes
    }

    /// Whether its process, or a process of its group, has not ended.
    pub fn is_alive(&self) -> bool {
        let exists = |process: &u32| is_stopped(&self.tree, *process).is_some();
        match &self.target {
            Target::Process(root) => exists(root),
            Target::Group(group) => group.processes().iter().any(exists),
        }
    }

    /// Nanoseconds that it has run; `None`: it waits for a device, or the kernel does not count them.
    pub fn run_ns(&self) -> Option<u64> {
        let processes = self.processes();
        let sum = processes.iter().map(|process| self.tree.process(*process).run_ns()).sum();
        (sum > 0 && !waiting(&self.tree, &processes)).then_some(sum)
    }

    pub(crate) fn is_parked(&self) -> bool {
        self.guard.is_some() && self.is_stopped_whole()
    }

    /// Whether it was parked and not resumed here, even if another program has continued it.
    pub(crate) fn is_held(&self) -> bool {
        self.guard.is_some()
    }

    pub(crate) fn was_parked(&self) -> bool {
        self.turn > 0
    }

    /// Bytes of its list.
    pub fn listed(&self) -> u64 {
        self.list.bytes()
    }

    /// What it is, and its memory now.
    pub fn status(&self) -> Program {
        let bytes_in = |place| Pages::read(&self.processes(), place).bytes();
        let bytes = Bytes { ram: bytes_in(Place::Ram), swapped: bytes_in(Place::Swap), listed: self.listed() };
        let process = self.processes().first().copied().unwrap_or(0);
        let first = Process::of(process);
        let (program, user) = (first.name(), first.owner());
        let (name, unordered) = (self.name.clone(), self.unordered.clone());
        Program { name, process, program, user, parked: self.is_parked(), bytes, unordered }
    }

    /// Stops it and pushes its pages out.
    pub(crate) fn park(
        &mut self,
        guard: &dyn Fn() -> Result<Guard, KernelError>,
        requester: u32,
    ) -> Result<Program, KernelError> {
        self.halt(guard, requester)?;
        self.push_out();
        Ok(self.status())
    }

    /// Stops it. `requester`: the process that asks for this.
    ///
    /// # Errors
    /// It may not be stopped, has ended, does not stop in time, or no swap is free.
    pub fn halt(&mut self, guard: &dyn Fn() -> Result<Guard, KernelError>, requester: u32) -> Result<(), KernelError> {
        self.refusal(requester)?;
        self.cancel_fetch();
        // It was parked, and another program has continued it.
        self.idle = self.idle.take().or(self.guard.take());
        self.end_idle_guard();
        let mut guard = guard()?;
        let stopped = self.stop(&mut guard);
        self.guard = Some(guard);
        stopped.inspect_err(|_| self.continue_all())
    }

    /// Makes the list of one that was stopped, and pushes its pages out.
    pub fn push_out(&mut self) {
        let processes = self.processes();
        let in_ram = Pages::read(&processes, Place::Ram);
        self.used.push_front(match self.turn {
            0 => self.lists.load(&processes).and(&in_ram),
            _ => self.out.and(&in_ram),
        });
        self.used.truncate(TURNS);
        self.list = Pages::of_all(self.used.iter());
        self.files = Pages::read(&processes, Place::File);
        self.order = self.order_of_faults();
        self.turn += 1;
        self.push(&in_ram);
        self.out = Pages::read(&processes, Place::Swap);
        self.lists.save(&self.list);
    }

    /// Records the faults of the turn that begins. Once it is refused, it is not tried again.
    fn record_faults(&mut self) {
        let recorded: io::Result<_> = match self.unordered {
            Some(_) => return,
            None => self.processes().into_iter().map(|process| Ok((process, Faults::record(process)?))).collect(),
        };
        match recorded {
            Ok(faults) => self.faults = faults,
            Err(error) if self.is_alive() => self.unordered = Some(error.to_string()),
            Err(_) => {}
        }
    }

    fn order_of_faults(&mut self) -> BTreeMap<u32, Vec<u64>> {
        let (faults, mut before) = (std::mem::take(&mut self.faults), std::mem::take(&mut self.order));
        let order = |(process, list): (&u32, &Vec<Range<u64>>)| {
            let faults = faults.get(process).map_or_else(Vec::new, Faults::pages);
            (*process, merged(faults, &before.remove(process).unwrap_or_default(), list))
        };
        self.list.0.iter().map(order).collect()
    }

    /// Its list in the order in which it is loaded: of each process what comes first, then the rests.
    fn in_order(&self) -> Vec<(u32, Vec<Range<u64>>)> {
        let none = Vec::new();
        let parts = |(process, list): (&u32, &Vec<Range<u64>>)| {
            let [first, rest] = first_and_rest(self.order.get(process).unwrap_or(&none), list);
            ((*process, first), (*process, rest))
        };
        let (first, rest): (Vec<_>, Vec<_>) = self.list.0.iter().map(parts).unzip();
        first.into_iter().chain(rest).collect()
    }

    fn refusal(&self, requester: u32) -> Result<(), KernelError> {
        let (processes, name) = (self.processes(), &self.name);
        let lacks = |what: String, remedy: &str| Err(KernelError::lacks(what, remedy));
        for process in &processes {
            check_allowed(*process)?;
            if [requester, std::process::id()].contains(process) {
                return lacks(
                    format!("this command (process {process}) is in {name} itself"),
                    "type it where it goes on: in another terminal, or in another group",
                );
            }
            if is_stopped(&self.tree, *process) == Some(true) {
                let remedy = format!("kill -CONT {process} lets it run");
                return lacks(format!("process {process} of {name} is stopped already"), &remedy);
            }
            if let Err(e) = scan(*process, Place::Ram) {
                let what = format!("the kernel does not show where the pages of {name} are ({e})");
                return lacks(what, "it takes Linux 6.7 or newer");
            }
        }
        self.frozen("", Path::new(""))?;
        match Swaps::read(&self.tree).free() {
            0 => lacks(
                "this machine has no free swap, so nothing can leave its RAM".into(),
                "as root, give --swap zram or --swap FILE (a new file on a disk)",
            ),
            _ => Ok(()),
        }
    }

    /// Whether all of its processes are stopped: not if another program has continued one.
    fn is_stopped_whole(&self) -> bool {
        match self.target.freezer() {
            Some(file) => field(&text(&file.with_file_name("cgroup.events")), "frozen") == Some(1),
            None => {
                let stopped =
                    |process| self.stopped.contains(process) && is_stopped(&self.tree, *process) != Some(false);
                self.processes().iter().all(stopped)
            }
        }
    }

    fn stop(&mut self, guard: &mut Guard) -> Result<(), KernelError> {
        let freezer = self.target.freezer();
        self.stopped.clear();
        if let Some(file) = &freezer {
            guard.ask(&["freeze", &escaped(file)])?;
        }
        let until = Instant::now() + PATIENCE;
        loop {
            let processes = self.processes();
            // A child may be born before its parent stops.
            for process in processes.iter().filter(|_| freezer.is_none()) {
                if !self.stopped.contains(process) {
                    self.stopped.push(*process);
                    let done = guard.ask(&["stop", &process.to_string()]);
                    // One that has ended need not stop.
                    done.map(drop).or_else(|e| is_stopped(&self.tree, *process).map_or(Ok(()), |_| Err(e)))?;
                }
            }
            if self.is_stopped_whole() {
                return Ok(());
            }
            if Instant::now() > until {
                let what = format!("{} does not stand still within {} s", self.name, PATIENCE.as_secs());
                return Err(KernelError::lacks(what, "it waits for a device, or another program traces it"));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Pushes these pages out: by advice, without the right to that by its group. Without either they leave when the
    /// kernel needs RAM.
    fn push(&mut self, pages: &Pages) {
        let mut each = pages.0.iter().filter_map(|(process, ranges)| Some((open(*process).ok()?, ranges)));
        self.pushed = each.all(|(process, ranges)| advise(process, ranges, Advice::PageOut, &|| false).is_ok());
        if let (false, Target::Group(group)) = (self.pushed, &self.target) {
            let _ = write(&group.file("memory.reclaim"), group.usage().to_string());
        }
    }

    /// Loads the list while other programs run, then calls `say` with the state before.
    pub fn prefetch(&mut self, say: impl FnOnce(Program) + Send + 'static) {
        self.note_swapped();
        let state = self.status();
        self.fetch(false, move || say(state));
    }

    /// `while_running`: its own program runs.
    fn fetch(&mut self, while_running: bool, done: impl FnOnce() + Send + 'static) {
        self.cancel_fetch();
        let batch = if while_running { AT_A_TIME } else { usize::MAX };
        let files = if while_running { Pages::default() } else { self.files.clone() };
        let (mut list, turn, stop) = (self.in_order(), self.turn, Arc::new(AtomicBool::new(false)));
        // Where RAM is short, what was loaded first has left again.
        list.extend_from_within(..if while_running { 0 } else { list.len() / 2 });
        let stopped = stop.clone();
        let work = move || {
            let stop = || stopped.load(Relaxed);
            for (process, ranges) in &files.0 {
                // Without the right to give advice they come in when they are needed.
                let _ = open(*process).map(|handle| advise(&handle, ranges, Advice::WillNeed, &stop));
            }
            for (process, ranges) in &list {
                let mut batches = ranges.chunks(batch);
                let advised = open(*process).map(|handle| {
                    batches.try_for_each(|batch| {
                        advise(&handle, batch, Advice::WillNeed, &stop)?;
                        // The last one of a batch is read, which waits for it; it looks used.
                        let last = batch.last().filter(|_| while_running).map(|last| last.end - PAGE);
                        last.map_or(Ok(()), |last| touch(*process, &[last], 1, &stop))
                    })
                });
                if let Ok(Err(_)) = advised {
                    let _ = touch(*process, &but_one_part(ranges, turn, PARTS), READERS, &stop);
                }
            }
            done();
        };
        // Without a thread they come in when they are needed.
        self.fetching = std::thread::Builder::new().spawn(work).ok().map(|thread| (stop, thread));
    }

    fn cancel_fetch(&mut self) {
        if let Some((stop, thread)) = self.fetching.take() {
            stop.store(true, Relaxed);
            let _ = thread.join();
        }
    }

    /// Notes what is in swap now, if the pages could not be pushed out and left later. After a fetch this cannot be
    /// found out.
    fn note_swapped(&mut self) {
        if !self.pushed && self.fetching.is_none() {
            self.out = Pages::read(&self.processes(), Place::Swap);
        }
    }

    /// Lets it run; the rest of its list is loaded beside it if swap is on a disk.
    ///
    /// # Errors
    /// It has ended, or another frozen group still contains it.
    pub fn resume(&mut self) -> Result<Program, KernelError> {
        self.note_swapped();
        self.record_faults();
        self.continue_all();
        // Decompression takes the time of the program, not of a disk. A fetch that has begun continues.
        let while_running = Swaps::read(&self.tree).on_disk(&self.tree);
        if while_running && self.fetching.is_none() {
            self.fetch(true, || ());
        }
        let own_group = self.target.freezer().and_then(|file| Some(file.parent()?.to_path_buf())).unwrap_or_default();
        self.frozen("may run, but ", &own_group)?;
        let listed = if while_running { self.list.bytes() } else { 0 };
        Ok(Program { parked: false, bytes: Bytes { listed, ..Bytes::default() }, ..self.status() })
    }

    /// Whether its guard has not ended. Otherwise the program continues.
    pub fn check_guard(&mut self) -> bool {
        let held = self.guard.as_ref().is_none_or(Guard::is_alive);
        if !held {
            self.continue_all();
        }
        held
    }

    /// Lets it run, without its list.
    pub fn continue_all(&mut self) {
        match self.target.freezer() {
            Some(file) => drop(write(&file, "0")),
            None => self.stopped.iter().rev().for_each(|process| {
                let _ = Pid::from_raw(*process as i32).map(|process| kill_process(process, Signal::CONT));
            }),
        }
        self.idle = self.guard.take();
    }

    /// Ends a guard with no cleanups left. Not called while its program waits for its first pages.
    pub fn end_idle_guard(&mut self) {
        self.idle.take().map(Guard::end);
    }

    /// An error if another frozen group (v2) than its own contains it.
    fn frozen(&self, but: &str, own_group: &Path) -> Result<(), KernelError> {
        let Some(process) = self.processes().first().copied() else {
            return Err(KernelError::lacks(format!("{} has ended", self.name), "start it again"));
        };
        let mounted = mounted(&self.tree, Version::Two).zip(path_of(&self.tree.process(process), Version::Two));
        let folder = mounted.map(|(place, path)| place.mount.join(path.trim_matches('/'))).unwrap_or_default();
        let frozen = |folder: &&Path| *folder != own_group && text(&folder.join("cgroup.freeze")) == "1";
        match folder.ancestors().find(frozen).map(Path::display) {
            Some(group) => Err(KernelError::lacks(
                format!("{} {but}stands still in the frozen group {group}", self.name),
                format!("thaw it: echo 0 > {group}/cgroup.freeze"),
            )),
            None => Ok(()),
        }
    }
}

/// Whether this user may park a process.
fn check_allowed(process: u32) -> Result<(), KernelError> {
    check(process).map_err(|e| KernelError::Refused(e.to_string()))
}

fn open(process: u32) -> rustix::io::Result<std::os::fd::OwnedFd> {
    pidfd_open(Pid::from_raw(process as i32).ok_or(rustix::io::Errno::SRCH)?, PidfdFlags::empty())
}
