//! The pager: one engine, one RAM budget, and the way of a fault through them.

use std::cell::UnsafeCell;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::Arc;

use coldframe_core::{Access, Engine, Event, Machine, PageId, TaskId, Ticket, Transfer};
use coldframe_trace::journal::Entry;

use crate::device::Device;
use crate::fatal;
use crate::lock::{Guard, Lock};
use crate::log::Log;
use crate::machine::{Linux, Side};
use crate::pages::{Pages, Where};
use crate::region::FileRegion;
use crate::space::Space;
use crate::stats::Stats;
use crate::sys::{self, Errno, Uffd};
use crate::task::{CopyIn, Load, Ring, Source, Tasks, Todo, Victim};
use crate::{Options, Wait, PAGE};

/// Regions that are files.
pub(crate) const FILES: usize = 255;

/// Looks before a waiting thread gives the processor away.
const LOOKS: u32 = 200;

/// One RAM budget, over any number of regions. Cheap to clone; all clones are the same pager, which ends with the last of them and of its
/// regions.
#[derive(Clone)]
pub struct Pager {
    pub(crate) inner: Arc<Inner>,
}

impl std::fmt::Debug for Pager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pager({} bytes of RAM)", self.inner.options.ram)
    }
}

/// What is the process's own and is made anew in a forked child. Only the child's one thread changes it.
pub(crate) struct Own<T>(UnsafeCell<T>);

// SAFETY: changed only when the process has one thread (`renew`).
unsafe impl<T: Sync> Sync for Own<T> {}

impl<T> Own<T> {
    pub(crate) fn new(value: T) -> Own<T> {
        Own(UnsafeCell::new(value))
    }

    pub(crate) fn get(&self) -> &T {
        // SAFETY: nobody changes it while there are several threads.
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
    pub(crate) side: Side,
}

pub(crate) struct Inner {
    pub(crate) options: Options,
    pub(crate) space: Space,
    pub(crate) pages: Pages,
    pub(crate) rings: bool,
    pub(crate) wait: Wait,
    /// How long a thread polls before it sleeps, in nanoseconds.
    pub(crate) poll_ns: u64,
    pub(crate) uffd: Own<Uffd>,
    pub(crate) pidfd: Own<OwnedFd>,
    pub(crate) tasks: Own<Tasks>,
    pub(crate) log: Own<Log>,
    pub(crate) decider: Lock<Decider>,
    /// Faults that have been admitted and not been answered.
    pub(crate) active: AtomicUsize,
    /// A fork is under way: no fault is admitted.
    pub(crate) gate: AtomicBool,
    pub(crate) epoch: AtomicU32,
    pub(crate) resident: AtomicUsize,
    pub(crate) stats: &'static Stats,
    pub(crate) stats_fd: Option<OwnedFd>,
    pub(crate) files: [AtomicPtr<FileRegion>; FILES],
    /// Of 256 pages that were mapped readable, how many were written to before they left: a running mean.
    pub(crate) write_share: AtomicU32,
    /// Why the device refused last; 0: the bytes were wrong.
    pub(crate) last_error: AtomicI32,
    /// The mask of signals before a fork.
    pub(crate) fork_mask: AtomicUsize,
    pub(crate) fork_pipe: Lock<Option<(OwnedFd, OwnedFd)>>,
}

/// What a fault was when it was looked at.
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

    /// Where a page lies while it is on the invalid list.
    pub(crate) fn holding(&self, page: usize) -> usize {
        self.space.holding() + page * PAGE
    }

    /// Resolves a fault. When it returns, the access may be repeated.
    pub(crate) fn serve(&self, address: usize, write: bool, kind: Kind) {
        let started = sys::now();
        let page = (address - self.space.start()) / PAGE;
        let mut looks = 0;
        loop {
            match self.pages.get(page) {
                Where::Nowhere => segv(address),
                Where::Clean if write => {
                    if self.pages.change(page, Where::Clean, Where::Busy) {
                        return self.unprotect(page, started);
                    }
                }
                Where::Clean | Where::Dirty | Where::Unsure => return self.look_again(page, kind, looks > 0),
                Where::Busy | Where::Leaving => wait(&mut looks),
                Where::Out | Where::Held => {
                    if self.fault(page, write, started) {
                        return;
                    }
                    wait(&mut looks);
                }
            }
        }
    }

    /// The first write to a page that was mapped read-only.
    fn unprotect(&self, page: usize, started: u64) {
        let address = self.address(page);
        self.must(self.uffd.get().protect(address..address + PAGE, false), "allow writes to a page", page);
        self.pages.set(page, Where::Dirty);
        self.note_written(true);
        Stats::add(&self.stats().write_faults, 1);
        self.stats().write_fault.record(sys::now() - started);
    }

    /// The page is mapped: another thread was faster; or the kernel dropped it behind our back, which makes it zeros.
    fn look_again(&self, page: usize, kind: Kind, waited: bool) {
        Stats::add(&self.stats().stale_faults, 1);
        let address = self.address(page);
        match kind {
            Kind::Protected => {
                // A protection that a fork or a race has left on a writable page.
                if self.pages.get(page) != Where::Clean {
                    let _ = self.uffd.get().protect(address..address + PAGE, false);
                }
            }
            Kind::Missing if waited => {}
            Kind::Missing => {
                // EEXIST: it is there. Otherwise this is MADV_DONTNEED by a raw system call, and zeros are what it asked for.
                let _ = self.uffd.get().copy(address, self.space.zeros(), false);
            }
        }
    }

    /// Tells the engine. False: by now the page is somewhere else, look again.
    fn fault(&self, page: usize, write: bool, started: u64) -> bool {
        let number = self.tasks().take();
        let task = self.tasks().get(number);
        // SAFETY: the task was free and is this thread's now.
        let todo = unsafe { &mut task.inside().todo };
        task.resumed.store(0, Ordering::Relaxed);
        let Some(mut decider) = self.admit(page) else {
            self.tasks().give(number);
            return false;
        };
        let held = self.pages.get(page) == Where::Held;
        todo.fault = Some((page, write));
        let access = if write { Access::Write } else { Access::Read };
        let event = Event::Fault { task: TaskId::from(number), page: PageId::from(page), access };
        self.deliver(&mut decider, todo, event);
        self.read_ahead(&mut decider, todo, page, held);
        drop(decider);
        self.carry_out(todo);
        let asked = std::mem::take(&mut todo.asked_at);
        todo.fault = None;
        self.await_resume(number);
        self.record(started, asked, held);
        self.leave();
        self.tasks().give(number);
        true
    }

    /// The engine's lock, if the page still wants a fault.
    fn admit(&self, page: usize) -> Option<Guard<'_, Decider>> {
        let decider = self.enter();
        if matches!(self.pages.get(page), Where::Out | Where::Held) {
            return Some(decider);
        }
        self.leave();
        None
    }

    /// The engine's lock; waits while a fork is under way. Until `leave` no fork can begin.
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

    fn record(&self, started: u64, asked: u64, held: bool) {
        let stats = self.stats();
        let took = sys::now() - started;
        match (held, asked > 0) {
            (true, _) => {
                Stats::add(&stats.false_faults, 1);
                stats.false_fault.record(took);
            }
            (false, device) => {
                Stats::add(&stats.true_faults, 1);
                if device { &stats.device_fault } else { &stats.memory_fault }.record(took);
            }
        }
    }

    pub(crate) fn deliver(&self, decider: &mut Decider, todo: &mut Todo, event: Event) {
        let Decider { engine, side } = decider;
        if let Some(journal) = &mut side.journal {
            journal.event(&Entry::Event { now: sys::now() * 1000, event });
        }
        for buffer in todo.spare.drain(..) {
            side.spare.push(buffer);
        }
        engine.handle(event, &mut Linux { pager: self, side, todo } as &mut dyn Machine);
    }

    /// Does what the engine has commanded, and what follows from that, until nothing is left.
    pub(crate) fn carry_out(&self, todo: &mut Todo) {
        while !todo.done() {
            self.start_loads(todo);
            let evicting = sys::now();
            let outcome = self.evict(todo);
            let evicted = sys::now();
            self.finish_loads(todo, evicting, evicted);
            self.report(todo, outcome);
            self.copy_in(todo);
        }
    }

    // ---- loads

    /// Finds out where the bytes are, and asks the device if it is to be asked.
    pub(crate) fn ask(&self, ring: &mut Ring, load: &mut Load, number: usize) {
        load.source = self.source(load);
        if load.source == Source::Device {
            if let Some((device, offset)) = self.device_place(load.page).filter(|(device, _)| !device.injects()) {
                ring.read(device.raw(), load.into, offset, number);
                load.source = Source::Asked;
                Stats::add(&self.stats().device_reads, 1);
            }
        }
    }

    fn source(&self, load: &Load) -> Source {
        if self.pages.file(load.page).is_some() {
            return Source::Device;
        }
        match self.pages.slot(load.page) {
            None => Source::Zeros,
            Some(slot) if self.log.get().find(slot, load.into) => Source::Memory,
            Some(_) => Source::Device,
        }
    }

    fn device_place(&self, page: usize) -> Option<(&Device, u64)> {
        match self.pages.file(page) {
            Some(file) => {
                let region = self.file(file);
                Some((&region.device, ((page - region.first) * PAGE) as u64))
            }
            None => self.pages.slot(page).map(|slot| self.log.get().place(slot)),
        }
    }

    pub(crate) fn file(&self, file: usize) -> &FileRegion {
        // SAFETY: a file region's entry is set before its pages can fault and stays until they cannot.
        unsafe { &*self.files[file].load(Ordering::Acquire) }
    }

    fn start_loads(&self, todo: &mut Todo) {
        if self.rings && todo.together && todo.loads.iter().any(|load| load.source == Source::Asked) {
            todo.asked_at = sys::now();
            self.ring(todo.task).submit();
        }
    }

    #[allow(clippy::mut_from_ref)]
    fn ring(&self, task: usize) -> &mut Ring {
        // SAFETY: only the thread that has taken the task calls this, and holds the result for one call.
        unsafe { self.tasks().get(task).inside() }.ring.as_mut().expect("there are rings")
    }

    /// Brings every load to its end.
    fn finish_loads(&self, todo: &mut Todo, evicting: u64, evicted: u64) {
        if todo.loads.is_empty() {
            return;
        }
        let victims = evicted.saturating_sub(evicting);
        let waited_for = todo.loads.iter().any(|load| load.source == Source::Asked);
        let there = waited_for && self.reap(todo);
        for i in 0..todo.loads.len() {
            let mut load = todo.loads[i];
            if load.source == Source::Unknown {
                load.source = self.source(&load);
            }
            if load.source == Source::Device {
                let before = sys::now();
                load.good = Some(self.read_now(&load));
                if todo.asked_at == 0 {
                    todo.asked_at = before;
                }
                self.stats().device_wait.record(sys::now() - before);
            }
            load.good = Some(self.verified(&load));
            todo.loads[i] = load;
        }
        if waited_for {
            Stats::add(&self.stats().evict_ns, victims);
            // When it arrived nobody saw: a median read after it was asked for.
            let read = self.stats().device_read_ns.load(Ordering::Relaxed);
            Stats::add(&self.stats().evict_exposed_ns, if there { victims.saturating_sub(read) } else { 0 });
        }
    }

    /// Takes the completions of what was asked. True if all of them were there already: then what was done meanwhile was not hidden.
    fn reap(&self, todo: &mut Todo) -> bool {
        let ring = self.ring(todo.task);
        let mut left = todo.loads.iter().filter(|load| load.source == Source::Asked && load.good.is_none()).count();
        let mut there = true;
        while left > 0 {
            match ring.next() {
                Some((number, result)) => {
                    todo.loads[number].good = Some(result == PAGE as i32);
                    left -= 1;
                }
                None => {
                    there = false;
                    let polled = sys::now();
                    if self.wait == Wait::Poll || (self.wait == Wait::Brief && polled - todo.asked_at < self.poll_ns) {
                        std::hint::spin_loop();
                    } else {
                        ring.sleep();
                    }
                }
            }
        }
        self.stats().device_wait.record(sys::now() - todo.asked_at);
        there
    }

    fn read_now(&self, load: &Load) -> bool {
        let (device, offset) = self.device_place(load.page).expect("the page lies on a device");
        Stats::add(&self.stats().device_reads, 1);
        // SAFETY: the buffer is the load's.
        match unsafe { device.read(load.into, offset) } {
            Ok(()) => true,
            Err(error) => {
                self.last_error.store(error.0, Ordering::Relaxed);
                false
            }
        }
    }

    /// Whether the buffer holds what it should. What a ring could not read whole is read once more, plainly.
    fn verified(&self, load: &Load) -> bool {
        match load.source {
            Source::Zeros => {
                // SAFETY: the buffer is the load's.
                unsafe { std::ptr::write_bytes(load.into as *mut u8, 0, PAGE) };
                Stats::add(&self.stats().cold_faults, 1);
                return true;
            }
            Source::Memory => {
                Stats::add(&self.stats().log_hits, 1);
                return true;
            }
            _ => {}
        }
        if load.good != Some(true) && !(load.source == Source::Asked && self.read_now(load)) {
            Stats::add(&self.stats().failures, 1);
            return false;
        }
        Stats::add(&self.stats().device_bytes_read, PAGE as u64);
        self.check(load)
    }

    fn check(&self, load: &Load) -> bool {
        let (log, page) = (self.log.get(), load.page);
        // SAFETY: the buffer is the load's.
        let good = unsafe {
            if self.pages.file(page).is_some() {
                let sum = log.sum(load.into);
                let known = self.pages.set_slot(page, Some(0)).is_some();
                let good = !known || sum == self.pages.sum(page);
                if !known {
                    self.pages.set_sum(page, sum);
                }
                good
            } else {
                log.verify(&self.pages, page, load.into)
            }
        };
        if !good {
            Stats::add(&self.stats().failures, 1);
            self.last_error.store(0, Ordering::Relaxed);
        }
        good
    }

    // ---- eviction: hold, zap, read back

    /// Takes the victims out. Returns how many of `todo.victims` had bytes to bring to safety; those stand first.
    fn evict(&self, todo: &mut Todo) -> Outcome {
        let outcome = Outcome::default();
        if todo.victims.is_empty() && todo.retries.is_empty() {
            return outcome;
        }
        // Anonymous pages first, then those of files, then those with nothing to write: the order in which the pipe gives them back.
        let rank = |v: &Victim| if !v.write { 2 } else { u8::from(self.pages.file(v.page).is_some()) };
        todo.victims.sort_unstable_by_key(rank);
        let anonymous = todo.victims.iter().filter(|v| rank(v) == 0).count();
        let dirty = todo.victims.iter().filter(|v| v.write).count();
        self.hold_and_zap(todo, dirty);
        for victim in &todo.victims[dirty..] {
            self.pages.set(victim.page, Where::Out);
        }
        self.read_back(todo, anonymous, dirty)
    }

    fn hold_and_zap(&self, todo: &Todo, dirty: usize) {
        let victims = &todo.victims;
        if victims.is_empty() {
            return;
        }
        let epoch = self.epoch.load(Ordering::Relaxed);
        for victim in victims[..dirty].iter().filter(|v| !v.held && self.pages.epoch(v.page) != epoch) {
            let range = victim.address..victim.address + PAGE;
            self.must(self.uffd.get().protect(range, true), "protect a page", victim.page);
        }
        let vector: [libc::iovec; crate::task::VICTIMS] =
            std::array::from_fn(|i| sys::iovec(victims.get(i).map_or(0, |v| v.address), PAGE));
        // SAFETY: this thread has taken the task.
        let pipe = unsafe { self.tasks().get(todo.task).inside() }.pipe.1.as_raw_fd();
        if let Err(error) = sys::hold(pipe, &vector[..dirty]) {
            fatal::stop(format_args!("the kernel refused to hold {dirty} pages (vmsplice): {}", error.io()));
        }
        // SAFETY: the engine has given these pages up, and their bytes are held.
        let flushes = unsafe { sys::drop_pages(self.pidfd.get().as_raw_fd(), &vector[..victims.len()]) };
        Stats::add(&self.stats().flushes, flushes);
        self.resident.fetch_sub(victims.len(), Ordering::Relaxed);
        Stats::sub(&self.stats().resident, victims.len() as u64);
    }

    fn read_back(&self, todo: &mut Todo, anonymous: usize, dirty: usize) -> Outcome {
        // SAFETY: this thread has taken the task; the staging area and pipe are not the list of what is to be done.
        let (pipe, staging) = {
            let inside = unsafe { self.tasks().get(todo.task).inside() };
            (inside.pipe.0.as_raw_fd(), inside.staging)
        };
        let mut pages = [0u32; crate::task::VICTIMS];
        for (entry, victim) in pages.iter_mut().zip(&todo.victims) {
            *entry = victim.page as u32;
        }
        let saved = self.log.get().append(pipe, &pages[..anonymous], &self.pages, self.stats());
        Stats::add(&self.stats().writes_saved, saved as u64);
        self.learn_write_share(saved, anonymous);
        let mut outcome = Outcome { written: anonymous, files: dirty - anonymous, failed: 0 };
        let len = (dirty - anonymous) * PAGE;
        // SAFETY: the staging area takes as many pages as there can be victims.
        if len > 0 && unsafe { sys::read_pipe(pipe, staging, len) }.is_err() {
            fatal::stop("the kernel did not give held pages back (read of a pipe)");
        }
        for i in 0..outcome.files {
            outcome.failed |= u64::from(!self.write_file_page(pages[anonymous + i] as usize, staging + i * PAGE)) << i;
        }
        outcome
    }

    /// Brings a file's page to its place. False: the device refused.
    pub(crate) fn write_file_page(&self, page: usize, from: usize) -> bool {
        // SAFETY: the bytes are this thread's.
        let sum = unsafe { self.log.get().sum(from) };
        if self.pages.slot(page).is_some() && self.pages.sum(page) == sum {
            Stats::add(&self.stats().writes_saved, 1);
            return true;
        }
        let (device, offset) = self.device_place(page).expect("a file's page has a place");
        Stats::add(&self.stats().device_writes, 1);
        // SAFETY: as above.
        if let Err(error) = unsafe { device.write(from, PAGE, offset) } {
            Stats::add(&self.stats().failures, 1);
            fatal::warn(format_args!("{}: {}, writing at {offset}", device.path().display(), error.io()));
            return false;
        }
        Stats::add(&self.stats().pages_written, 1);
        Stats::add(&self.stats().device_bytes_written, PAGE as u64);
        self.pages.set_sum(page, sum);
        self.pages.set_slot(page, Some(0));
        true
    }

    // ---- what the engine is told

    fn report(&self, todo: &mut Todo, outcome: Outcome) {
        let left = todo.victims.len();
        if outcome.written + outcome.files + todo.loads.len() + todo.retries.len() == 0 {
            todo.victims.clear();
            return;
        }
        // SAFETY: this thread has taken the task.
        let staging = unsafe { self.tasks().get(todo.task).inside() }.staging;
        let mut ends = [(Ticket(0), false); crate::task::LOADS];
        let loads = todo.loads.len();
        for (end, load) in ends.iter_mut().zip(todo.loads.drain(..)) {
            *end = (load.ticket, load.good == Some(true));
        }
        let mut decider = self.decider.lock();
        let decider = &mut *decider;
        for i in 0..outcome.written + outcome.files {
            let page = todo.victims[i].page;
            let file = i.checked_sub(outcome.written);
            if file.is_some_and(|i| outcome.failed >> i & 1 != 0) {
                todo.failing = staging + file.unwrap_or(0) * PAGE;
                let transfer = Transfer::Write(PageId::from(page));
                self.deliver(decider, todo, Event::Failed { transfer });
            } else {
                self.deliver(decider, todo, Event::Written { page: PageId::from(page) });
                self.pages.set(page, Where::Out);
            }
        }
        todo.victims.drain(..left);
        self.retry(decider, todo);
        for (ticket, good) in &ends[..loads] {
            self.deliver(decider, todo, end_of(*ticket, *good));
        }
    }

    /// Writes of file pages that failed are tried again, here and now, until they succeed or the engine gives the page up.
    fn retry(&self, decider: &mut Decider, todo: &mut Todo) {
        while let Some((page, from)) = todo.retries.pop() {
            todo.failing = from;
            let id = PageId::from(page);
            if self.write_file_page(page, from) {
                self.deliver(decider, todo, Event::Written { page: id });
            } else {
                self.deliver(decider, todo, Event::Failed { transfer: Transfer::Write(id) });
            }
            // Given up by the engine, it is out all the same: the next touch of it stops the program.
            if todo.retries.iter().all(|(p, _)| *p != page) {
                self.pages.set(page, Where::Out);
            }
        }
    }

    // ---- map-in

    fn copy_in(&self, todo: &mut Todo) {
        let epoch = self.epoch.load(Ordering::Relaxed);
        while let Some(CopyIn { page, from, write, content }) = todo.copies.pop() {
            let to = if write {
                Where::Dirty
            } else if content && self.write_share.load(Ordering::Relaxed) > 26 {
                Where::Unsure
            } else {
                Where::Clean
            };
            let address = self.address(page);
            match self.uffd.get().copy(address, from, to == Where::Clean) {
                Ok(()) => {}
                // Something is there already: a raw system call of the program has put it there.
                Err(Errno::EXIST) => {}
                Err(error) => {
                    let error = error.io();
                    fatal::stop(format_args!(
                        "the page at {address:#x} cannot be put into place (UFFDIO_COPY): {error}"
                    ));
                }
            }
            self.pages.set_epoch(page, epoch);
            let resident = self.resident.fetch_add(1, Ordering::Relaxed) + 1;
            Stats::add(&self.stats().resident, 1);
            self.stats().resident_max.fetch_max(resident as u64, Ordering::Relaxed);
            self.pages.set(page, to);
            todo.spare.push(from);
        }
        // One may wait for this task's next fault; more would be missed by others.
        if todo.spare.len() > 1 {
            self.decider.lock().side.spare.append(&mut todo.spare);
        }
    }

    /// Of the readable pages mapped lately, the share that was written to; above a tenth, hashing is cheaper than write faults.
    fn note_written(&self, written: bool) {
        let old = self.write_share.load(Ordering::Relaxed);
        let aim = if written { 256 } else { 0 };
        let new = (old * 63 + aim) / 64;
        self.write_share.store(if written { new.max(old + 1).min(256) } else { new }, Ordering::Relaxed);
    }

    fn learn_write_share(&self, saved: usize, all: usize) {
        (0..saved).for_each(|_| self.note_written(false));
        (saved..all).for_each(|_| self.note_written(true));
    }

    // ---- the invalid list

    /// Takes a page out of the page table and keeps it: `Command::Unmap`.
    pub(crate) fn hold_page(&self, page: usize, was: Where) {
        let (address, holding) = (self.address(page), self.holding(page));
        let uffd = self.uffd.get();
        if !uffd.can_move || uffd.move_page(holding, address).is_err() {
            // Shared with a child, or pinned for a moment: write-protect it, copy it, drop it.
            if was != Where::Clean {
                self.must(uffd.protect(address..address + PAGE, true), "protect a page", page);
            }
            self.must(uffd.copy(holding, address, false), "hold a page", page);
            // SAFETY: its bytes are in the holding area.
            let dropped = unsafe { sys::advise(address..address + PAGE, libc::MADV_DONTNEED) };
            self.must(dropped, "drop a page", page);
        }
        Stats::add(&self.stats().flushes, 1);
        self.pages.set(page, Where::Held);
    }

    /// Puts it back: a false fault.
    pub(crate) fn unhold_page(&self, page: usize, write: bool) {
        let (address, holding) = (self.address(page), self.holding(page));
        let uffd = self.uffd.get();
        if !uffd.can_move || uffd.move_page(address, holding).is_err() {
            self.must(uffd.copy(address, holding, false), "put a held page back", page);
            // SAFETY: its bytes are in place.
            let dropped = unsafe { sys::advise(holding..holding + PAGE, libc::MADV_DONTNEED) };
            self.must(dropped, "drop a page", page);
        }
        self.pages.set_epoch(page, self.epoch.load(Ordering::Relaxed));
        self.pages.set(page, if write { Where::Dirty } else { Where::Unsure });
    }

    // ---- ends

    pub(crate) fn resume(&self, task: usize) {
        let word = &self.tasks().get(task).resumed;
        word.store(1, Ordering::Release);
        sys::futex_wake(word, 1);
    }

    fn await_resume(&self, task: usize) {
        let word = &self.tasks().get(task).resumed;
        let mut looks = 0;
        while word.load(Ordering::Acquire) == 0 {
            looks += 1;
            if looks < LOOKS {
                std::hint::spin_loop();
            } else {
                sys::futex_wait(word, 0);
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

    /// What may not fail did: nothing can be promised any more.
    pub(crate) fn must(&self, result: Result<(), Errno>, what: &str, page: usize) {
        if let Err(error) = result {
            fatal::stop(format_args!("cannot {what} at {:#x}: {}", self.address(page), error.io()));
        }
    }

    fn read_ahead(&self, _decider: &mut Decider, _todo: &mut Todo, _page: usize, _held: bool) {}
}

/// How an eviction went: so many anonymous pages are safe in the log, so many file pages were tried, and a bit for each that failed.
#[derive(Clone, Copy, Default)]
struct Outcome {
    written: usize,
    files: usize,
    failed: u64,
}

fn end_of(ticket: Ticket, good: bool) -> Event {
    match good {
        true => Event::Loaded { ticket },
        false => Event::Failed { transfer: Transfer::Load(ticket) },
    }
}

pub(crate) fn wait(looks: &mut u32) {
    *looks += 1;
    if *looks < LOOKS {
        std::hint::spin_loop();
    } else {
        sys::give_way();
    }
}

/// A touch of memory that no region has.
fn segv(address: usize) -> ! {
    fatal::warn(format_args!("{address:#x} was touched, which belongs to no region"));
    // SAFETY: restores the default and sends the signal to this thread.
    unsafe {
        libc::signal(libc::SIGSEGV, libc::SIG_DFL);
        let tid = sys::call(libc::SYS_gettid, [0; 6]).unwrap_or(0);
        let pid = sys::call(libc::SYS_getpid, [0; 6]).unwrap_or(0);
        let _ = sys::call(libc::SYS_tgkill, [pid, tid, libc::SIGSEGV as usize, 0, 0, 0]);
        sys::restore_signals(0);
    }
    sys::exit_group(128 + libc::SIGSEGV)
}
