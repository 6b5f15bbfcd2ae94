//! The pager: one engine, one RAM budget, and the steps of a fault.

use std::cell::UnsafeCell;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use coldframe_core::prefetch::Streams;
use coldframe_core::{Access, Engine, Event, Machine, PageId, Stage, TaskId, Ticket, Transfer};
use coldframe_journal::Entry;

use crate::fault::machine::{Linux, Side};
use crate::life::fork::Ready;
use crate::memory::budget::{Reserve, Sharing};
use crate::memory::space::Space;
use crate::page::pages::{Owner, Pages, Where};
use crate::record::recorder::Recording;
use crate::stats::Stats;
use crate::swap::files::SwapFiles;
use crate::swap::log::Log;
use crate::sys::fatal;
use crate::sys::lock::{Guard, Lock};
use crate::sys::{self, Errno, Source, Uffd};
use crate::task::lead::Lead;
use crate::task::{Laps, Tasks, Todo, Victim, ASLEEP, RESUMED, VICTIMS, WAITING};
use crate::threads::handlers::Crew;
use crate::threads::keeper::{self, Keeper};
use crate::threads::reclaim::Reclaimer;
use crate::work::evict::TakenOut;
use crate::work::pool::Pool;
use crate::{Options, Wait, PAGE};

/// Pages that are compressed before the engine gets their sizes. A fault may be waiting for one of them, or for the
/// engine's lock.
const COMPRESSED_TOGETHER: usize = 4;

/// How often a waiting thread checks before it yields the processor.
const LOOKS: u32 = 200;

/// One RAM budget for any number of regions. It is cheap to clone. All clones are the same pager; it ends with the
/// last of them and of its regions.
#[derive(Clone)]
pub struct Pager {
    pub(crate) inner: Arc<Inner>,
}

impl std::fmt::Debug for Pager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pager({} bytes of RAM)", self.inner.options.ram)
    }
}

/// Data of this process alone, made anew in a forked child. Only the child's one thread changes it.
pub(crate) struct Own<T>(UnsafeCell<T>);

// SAFETY: changed only when the process has one thread (`renew`).
unsafe impl<T: Sync> Sync for Own<T> {}

impl<T> Own<T> {
    pub(crate) fn new(value: T) -> Own<T> {
        Own(UnsafeCell::new(value))
    }

    pub(crate) fn get(&self) -> &T {
        // SAFETY: it does not change while there are several threads.
        unsafe { &*self.0.get() }
    }

    /// # Safety
    /// The process has one thread, which holds no result of `get`.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn renew(&self) -> &mut T {
        // SAFETY: the caller answers for it.
        unsafe { &mut *self.0.get() }
    }
}

/// What the engine's lock guards.
pub(crate) struct Decider {
    pub(crate) engine: Engine,
    pub(crate) streams: Streams,
    pub(crate) side: Side,
}

pub(crate) struct Inner {
    pub(crate) options: Options,
    pub(crate) space: Space,
    pub(crate) pages: Pages,
    /// Whether tasks have rings. A child may get none where its parent did.
    pub(crate) rings: Own<bool>,
    pub(crate) wait: Wait,
    /// How long a thread polls before it sleeps, in nanoseconds.
    pub(crate) poll_ns: u64,
    pub(crate) source: Source,
    pub(crate) uffd: Own<Uffd>,
    /// The threads that handle faults, if they are in this process.
    pub(crate) crew: Lock<Option<Crew>>,
    /// The process that they are in, if they are in one of their own.
    pub(crate) keeper: Own<Option<Keeper>>,
    /// Which handler reads the messages.
    pub(crate) lead: Lead,
    pub(crate) pidfd: Own<OwnedFd>,
    pub(crate) memory: Own<sys::OwnMemory>,
    pub(crate) tasks: Own<Tasks>,
    pub(crate) log: Own<Log>,
    /// Compressed pages.
    pub(crate) pool: Pool,
    /// Erase blocks of the engine's swap area, if it has one.
    pub(crate) blocks: Option<usize>,
    pub(crate) decider: Lock<Decider>,
    /// Buffers whose pages are in place, on their way back to the engine's machine. Giving one back takes no other
    /// lock: the holder of the engine's lock may be waiting for it.
    pub(crate) returned: Lock<Vec<usize>>,
    /// Faults that have been admitted and not yet answered.
    pub(crate) active: AtomicUsize,
    /// A fork is in progress: no fault is admitted.
    pub(crate) gate: AtomicBool,
    pub(crate) epoch: AtomicU32,
    pub(crate) resident: AtomicUsize,
    /// The kernel may hold frames of the program (see [`crate::work::wary`]).
    pub(crate) wary: AtomicBool,
    /// Of the last look for held memory: when it was, how often pages had left, and since when no page has.
    pub(crate) looked: [AtomicU64; 3],
    /// Pages that could not leave, one after the other.
    pub(crate) refused_in_row: AtomicUsize,
    /// The memory of the engine's buffers and of those that replace them.
    pub(crate) loads: Range<usize>,
    pub(crate) reserve: Reserve,
    pub(crate) reclaimer: Reclaimer,
    pub(crate) sharing: Sharing,
    pub(crate) stats: &'static Stats,
    pub(crate) stats_fd: Option<OwnedFd>,
    /// Of 256 pages mapped readable, the number that was written before the page left: a running mean.
    pub(crate) write_share: AtomicU32,
    /// The device's last error; 0: the bytes were wrong.
    pub(crate) last_error: AtomicI32,
    /// The mask of signals before a fork.
    pub(crate) fork_mask: AtomicUsize,
    /// What a child gets; present from `fork_prepare` until the fork is over.
    pub(crate) ready: Lock<Option<Ready>>,
    /// The pipes that show the parent processes that this one lives.
    pub(crate) alive: Lock<Vec<OwnedFd>>,
    /// The source of swap files for children.
    pub(crate) swap_files: SwapFiles,
    /// The recording of this process, if there is one.
    pub(crate) recording: Own<Option<Recording>>,
    /// This process does not page.
    pub(crate) unpaged: AtomicBool,
}

/// The state of the page when the fault was reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The page was absent.
    Missing,
    /// The page was there, and protected.
    Protected,
}

impl Inner {
    pub(crate) fn stats(&self) -> &Stats {
        self.stats
    }

    pub(crate) fn tasks(&self) -> &Tasks {
        self.tasks.get()
    }

    pub(crate) fn address(&self, page: usize) -> usize {
        self.space.start() + page * PAGE
    }

    /// The address of a page while it is on the invalid list.
    pub(crate) fn shelf(&self, page: usize) -> usize {
        self.space.shelf() + page * PAGE
    }

    /// Resolves a fault of `thread` (0: not known). When this returns, the access may be repeated.
    pub(crate) fn serve(&self, address: usize, write: bool, kind: Kind, thread: u32) {
        let started = sys::now();
        let page = (address - self.space.start()) / PAGE;
        if page >= self.space.pages() {
            return stray(thread);
        }
        let mut waited = false;
        loop {
            let state = self.pages.get(page);
            match state {
                Where::Busy | Where::Leaving | Where::Refused if self.help(thread) => return,
                // Not managed: when the access is repeated, the kernel sends SIGSEGV.
                Where::Nowhere if !self.begin(page) => return,
                Where::Nowhere => {}
                Where::Clean if write => {
                    if self.pages.acquire(page, state, Where::Busy, Owner::BRIEF) {
                        return self.unprotect(page, started);
                    }
                }
                Where::Clean | Where::Dirty | Where::Unsure => return self.look_again(page, state, kind, waited),
                // A bare call of the program has dropped it meanwhile.
                Where::Kept => {
                    self.lead.step_aside();
                    sys::sleep_us(20);
                }
                Where::Busy | Where::Leaving | Where::Refused => {
                    if !self.reclaimer.is_done_with(|| self.pages.get(page).is_owned()) {
                        self.lead.step_aside();
                        self.pages.wait(page);
                    }
                }
                Where::Out | Where::Shelved => {
                    if self.fault(page, write, started, thread) {
                        return;
                    }
                }
            }
            waited = true;
        }
    }

    /// The first write to a page that was mapped read-only.
    fn unprotect(&self, page: usize, started: u64) {
        let address = self.address(page);
        self.must(self.uffd.get().protect(address..address + PAGE, false), "allow writes to a page", page);
        self.pages.release(page, Owner::BRIEF, Where::Dirty);
        self.note_written(true);
        Stats::add(&self.stats().write_faults, 1);
        self.stats().write_fault.record(sys::now() - started);
    }

    /// The page is mapped. Either another thread was faster, or the kernel dropped the page without our knowledge,
    /// which makes it zeros. This thread takes the page first, since it may have moved by now. If the page is not
    /// what it was, the access is repeated.
    pub(crate) fn look_again(&self, page: usize, state: Where, kind: Kind, waited: bool) {
        Stats::add(&self.stats().stale_faults, 1);
        let idle = match kind {
            Kind::Protected => state == Where::Clean,
            Kind::Missing => waited,
        };
        if idle || !self.pages.acquire(page, state, Where::Busy, Owner::BRIEF) {
            return;
        }
        let address = self.address(page);
        let after = match kind {
            // A write protection that a fork or a race has left on a writable page.
            Kind::Protected => {
                self.must(self.uffd.get().protect(address..address + PAGE, false), "allow writes to a page", page);
                state
            }
            Kind::Missing if self.refill(page) => Where::Dirty,
            Kind::Missing => state,
        };
        self.pages.release(page, Owner::BRIEF, after);
    }

    /// Reports the fault to the engine. Returns false if the page has moved by now; the caller then looks again.
    fn fault(&self, page: usize, write: bool, started: u64, thread: u32) -> bool {
        let number = self.take_task();
        let task = self.tasks().get(number);
        // SAFETY: the task was free and is this thread's now.
        let todo = unsafe { task.todo() };
        task.resumed.store(WAITING, Ordering::Relaxed);
        let Some(mut decider) = self.admit(page) else {
            self.tasks().give(number);
            return false;
        };
        todo.laps = Laps::begin(self.stats().true_faults.load(Ordering::Relaxed), started);
        todo.laps.lap(Stage::PreProcess);
        let shelved = self.pages.get(page) == Where::Shelved;
        todo.fault = Some((page, write));
        let access = if write { Access::Write } else { Access::Read };
        let event = Event::Fault { task: TaskId::from(number), page: PageId::from(page), access };
        if let (true, Some(journal)) = (self.options.observe, &mut decider.side.journal) {
            journal.event(&Entry::Thread { thread });
        }
        let ahead = if shelved { Ahead::default() } else { self.behind(&mut decider, page) };
        self.deliver(&mut decider, todo, event);
        todo.together = ahead.goes_on;
        ahead.pages().for_each(|page| self.wish(&mut decider, todo, page));
        let short = self.reclaimer.is_short(&decider.engine);
        drop(decider);
        if short {
            self.reclaimer.call();
        }
        self.carry_out(todo);
        let asked = std::mem::take(&mut todo.asked_at);
        (todo.fault, todo.together) = (None, false);
        self.await_resume(number);
        todo.laps.lap(Stage::PostProcess);
        self.record(started, asked, shelved, &todo.laps);
        self.bring_back(todo);
        if let Some(recording) = self.recording.get() {
            recording.entry(page, write, !shelved, thread, started, self.resident.load(Ordering::Relaxed));
        }
        self.leave();
        self.tasks().give(number);
        true
    }

    /// Takes a task; waits for one. Take it before the engine's lock: all tasks may be waiting for the holder of that
    /// lock.
    pub(crate) fn take_task(&self) -> usize {
        debug_assert!(!self.decider.is_mine(), "a task is taken before the engine's lock");
        self.tasks().take()
    }

    /// The engine's lock, if the page still needs a fault.
    fn admit(&self, page: usize) -> Option<Guard<'_, Decider>> {
        let decider = self.enter();
        if matches!(self.pages.get(page), Where::Out | Where::Shelved) {
            return Some(decider);
        }
        self.leave();
        None
    }

    /// The engine's lock; waits while a fork is in progress. No fork can begin until `leave`.
    pub(crate) fn enter(&self) -> Guard<'_, Decider> {
        loop {
            let decider = self.decider.lock();
            if !self.gate.load(Ordering::Relaxed) {
                self.active.fetch_add(1, Ordering::AcqRel);
                return decider;
            }
            drop(decider);
            sys::sleep_us(20);
        }
    }

    pub(crate) fn leave(&self) {
        self.active.fetch_sub(1, Ordering::AcqRel);
    }

    fn record(&self, started: u64, asked: u64, shelved: bool, laps: &Laps) {
        let stats = self.stats();
        let took = sys::now() - started;
        match (shelved, asked > 0) {
            (true, _) => {
                Stats::add(&stats.false_faults, 1);
                stats.false_fault.record(took);
            }
            (false, device) => {
                Stats::add(&stats.true_faults, 1);
                if device { &stats.device_fault } else { &stats.memory_fault }.record(took);
                for (stage, counter) in stats.stages() {
                    Stats::add(counter, laps.of(stage));
                }
            }
        }
    }

    pub(crate) fn deliver(&self, decider: &mut Decider, todo: &mut Todo, event: Event) {
        self.deliver_one(decider, todo, event);
        self.settle_tier(decider, todo);
    }

    pub(crate) fn deliver_one(&self, decider: &mut Decider, todo: &mut Todo, event: Event) {
        let Decider { engine, side, .. } = decider;
        if let Some(journal) = &mut side.journal {
            journal.event(&Entry::Event { now: sys::now() * 1000, event });
        }
        for buffer in todo.spare.drain(..) {
            side.spare.push(buffer);
        }
        engine.handle(event, &mut Linux { pager: self, side, todo } as &mut dyn Machine);
        if let Some(swap) = engine.swap() {
            side.told.tell(swap, self.stats());
        }
        // A program may be killed, or execute another one, at any time. What a recorder has seen must be in the file
        // by then.
        if let (true, Some(journal)) = (self.options.observe, &mut decider.side.journal) {
            journal.flush();
        }
    }

    /// Carries out the engine's commands and their consequences, until nothing is left.
    pub(crate) fn carry_out(&self, todo: &mut Todo) {
        while !todo.done() {
            self.start_loads(todo);
            let taken = if todo.apart {
                self.evict_beside(todo)
            } else {
                self.move_pages(todo);
                self.evict(todo)
            };
            let victims = todo.laps.lap(Stage::GetFreeframe);
            self.finish_loads(todo, victims);
            todo.laps.lap(Stage::LoadStopover);
            self.report(todo, taken);
            // Pages that it has downgraded are `Leaving`. A thread that wants one as a victim waits for it with the
            // engine's lock held, and `copy_in` waits for that lock. So these pages move first.
            self.move_pages(todo);
            todo.laps.lap(Stage::PostProcess);
            self.copy_in(todo);
            todo.laps.lap(Stage::TransHostMem);
        }
    }

    /// The engine takes pages as gone that could not leave: a fault of each says that they are there. The task has no
    /// other fault.
    pub(crate) fn bring_back(&self, todo: &mut Todo) {
        while let Some(page) = todo.kept.pop() {
            let (mut decider, task) = (self.decider.lock(), todo.task);
            // Otherwise another thread took it out after all.
            if self.pages.get(page) == Where::Kept {
                self.tasks().get(task).resumed.store(WAITING, Ordering::Relaxed);
                let (task, page) = (TaskId::from(task), PageId::from(page));
                self.deliver(&mut decider, todo, Event::Fault { task, page, access: Access::Write });
                drop(decider);
                self.carry_out(todo);
                self.await_resume(todo.task);
                todo.asked_at = 0;
            }
        }
    }

    fn report(&self, todo: &mut Todo, taken: TakenOut) {
        let left = todo.victims.len();
        if taken.written + taken.compressed + todo.loads.len() == 0 {
            debug_assert!(todo.victims.is_empty(), "who has nothing to write is done with");
            return;
        }
        let mut ends = [(Ticket(0), false, false); crate::task::LOADS];
        let loads = todo.loads.len();
        for (end, load) in ends.iter_mut().zip(todo.loads.drain(..)) {
            *end = (load.ticket, load.good == Some(true), load.shared);
        }
        let owner = Owner::task(todo.task);
        debug_assert!(todo.moves.is_empty() && todo.copies.is_empty(), "a page on its way waits for the engine's lock");
        let mut victims: [Option<Victim>; VICTIMS] = [None; VICTIMS];
        victims.iter_mut().zip(todo.victims.drain(..)).for_each(|(to, victim)| *to = Some(victim));
        todo.zapped -= left;
        let all = taken.written + taken.compressed;
        for together in victims[taken.written..all].chunks_mut(COMPRESSED_TOGETHER) {
            self.compress_staged(todo.task, together.iter_mut().flatten());
            let mut decider = self.decider.lock();
            together.iter().flatten().for_each(|victim| self.report_compressed(&mut decider, todo, victim));
        }
        let decider = &mut *self.decider.lock();
        for victim in victims[..taken.written].iter().flatten() {
            self.deliver(decider, todo, Event::Written { page: PageId::from(victim.page) });
            self.pages.release(victim.page, owner, Where::Out);
        }
        for (ticket, good, shared) in &ends[..loads] {
            todo.shared = *shared;
            self.deliver(decider, todo, end_of(*ticket, *good));
            todo.shared = false;
        }
    }

    pub(crate) fn resume(&self, task: usize) {
        let word = &self.tasks().get(task).resumed;
        if word.swap(RESUMED, Ordering::AcqRel) == ASLEEP {
            sys::futex_wake(word, 1);
        }
    }

    fn await_resume(&self, task: usize) {
        let word = &self.tasks().get(task).resumed;
        let mut looks = 0;
        while word.load(Ordering::Acquire) != RESUMED {
            looks += 1;
            if looks < LOOKS {
                std::hint::spin_loop();
            } else if looks == LOOKS {
                self.lead.step_aside();
            } else if word.compare_exchange(WAITING, ASLEEP, Ordering::AcqRel, Ordering::Acquire) != Err(RESUMED) {
                sys::futex_wait(word, ASLEEP);
            }
        }
    }

    pub(crate) fn lost(&self, page: usize) -> ! {
        let address = self.address(page);
        Stats::add(&self.stats().halts, 1);
        match (self.device_place(page), self.last_error.load(Ordering::Relaxed)) {
            (Some((device, offset)), 0) => {
                let path = device.path().display();
                fatal::stop(format_args!(
                    "{path}, byte {offset}: the page for {address:#x} is not what was written there (its checksum differs)"
                ))
            }
            (Some((device, offset)), error) => {
                let (path, error) = (device.path().display(), Errno(error).io());
                fatal::stop(format_args!("{path}, byte {offset}: the page for {address:#x} cannot be read: {error}"))
            }
            (None, _) => fatal::stop(format_args!("the page at {address:#x} is lost")),
        }
    }

    /// An operation that must not fail has failed: no promise can be kept any more.
    pub(crate) fn must(&self, result: Result<(), Errno>, what: &str, page: usize) {
        if let Err(error) = result {
            fatal::stop(format_args!("cannot {what} at {:#x}: {}", self.address(page), error.io()));
        }
    }

    /// The pages to load with a fault that continues a stream: those that are out and have content. A stream ends
    /// where the memory ends. Ask this before the engine gets the fault. The fault's own victims leave sooner or
    /// later, by their number and their bytes, and the answer would depend on that.
    fn behind(&self, decider: &mut Decider, page: usize) -> Ahead {
        let ahead = decider.streams.fault(PageId::from(page));
        let extent = self.space.extent_of(page).map_or(page, |extent| extent.end);
        let (first, end) = (ahead.start as usize, (ahead.end as usize).min(extent));
        let worth = |page: usize| {
            let pooled = decider.engine.is_in_tier(PageId::from(page));
            let content = pooled || self.pages.slot(page).is_some();
            content && self.pages.get(page) == Where::Out
        };
        let wanted = (first..end).filter(|page| worth(*page)).fold(0, |all, page| all | 1 << (page - first));
        Ahead { goes_on: !ahead.is_empty(), first, wanted }
    }
}

/// The pages to read ahead with a fault.
#[derive(Clone, Copy, Default)]
struct Ahead {
    /// The fault continues a stream.
    goes_on: bool,
    first: usize,
    /// A bit for each page from the first on.
    wanted: u64,
}

const _: () = assert!(crate::READ_AHEAD_MAX <= u64::BITS);

impl Ahead {
    fn pages(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |i| self.wanted >> i & 1 != 0).map(move |i| self.first + i)
    }
}

fn end_of(ticket: Ticket, good: bool) -> Event {
    match good {
        true => Event::Loaded { ticket },
        false => Event::Failed { transfer: Transfer::Load(ticket) },
    }
}

/// A wild pointer has hit the shelf. No page belongs there; the thread gets the signal that the kernel would
/// send.
fn stray(thread: u32) {
    let signal = [keeper::process(), thread as usize, libc::SIGSEGV as usize, 0, 0, 0];
    // SAFETY: sends a signal to a thread of the program.
    if unsafe { sys::call(libc::SYS_tgkill, signal) }.is_err() {
        fatal::stop("the program has used an address that it does not have");
    }
}
