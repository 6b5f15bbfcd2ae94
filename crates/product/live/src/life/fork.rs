//! Forks. A child sees the parent's memory as it was at the fork and pages for itself from then on.
//!
//! ```text
//!   prepare   shut the gate, wait until no fault is in flight, bring the log to the device, let the memory be
//!             inherited, get what the child needs and the parent's pager can get: its swap file, and a connection
//!   fork      both have the same frames (shared until written), the same engine, the same slots
//!   parent    a slot that the child can see is not reused until the child is gone (exit or exec closes its end of
//!             the connection)
//!   child     its own userfaultfd, rings, pipes, threads, and place in the budget; pages that left before the fork are
//!             read for it by its parent's pager
//! ```
//! The pager's descriptors are in the pager process. The program has one end of the connection during the fork only;
//! the child's pager then has it.
//!
//! If a child does not get one of these, it cannot page. It then runs without paging (`region/unpaged.rs`); it is not
//! stopped. A child that shares its parent's table of descriptors runs so, too: what it closes, its parent loses.
//!
//! A frame that is or was shared with a child must be write-protected before it goes into the pipe of an eviction: a
//! write would go to a new frame that is not there. Each page knows the epoch in which it was mapped, and a fork begins
//! a new epoch. Outside of `prepare` and the fork, a child does not inherit the memory. So a child made by a raw system
//! call finds no memory there, and never zeros. Until the child's pager has started, zeros hold the place, so that
//! other mappings of the child, including the pager's own memory, get other addresses.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use super::Inner;
use crate::memory::extents::Manner;
use crate::memory::space;
use crate::page::pages::Where;
use crate::region::unpaged::PageStore;
use crate::stats::Stats;
use crate::swap::files::SwapFiles;
use crate::swap::parent::Parent;
use crate::sys::lock::Lock;
use crate::sys::sockets::{self, Appointment};
use crate::sys::{self, fatal, own_descriptors, Errno, High, Sys};
use crate::LiveError;

/// What a child will be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForkedChild {
    /// It has a pager of its own.
    Pages,
    /// It shares its parent's table of descriptors, and does not page.
    SharesDescriptors,
    /// A filter of system calls leaves out what a pager of its own needs, or what a fork needs for that.
    IsFiltered,
    /// A filter leaves out even what brings its memory: the fork fails.
    MustNotBe,
}

impl ForkedChild {
    /// The reason why it does not page.
    fn unpaged(self) -> Option<LiveError> {
        let missing = |reason: &str, remedy| {
            Some(LiveError::Missing { feature: "a pager for it", reason: reason.to_string(), remedy })
        };
        match self {
            ForkedChild::Pages => None,
            ForkedChild::SharesDescriptors => {
                missing("it shares its parent's table of descriptors", "make it without CLONE_FILES")
            }
            _ => missing("its filter of system calls leaves out what a pager needs", "set the filter after the fork"),
        }
    }
}

/// A fork that is being made.
struct Ready {
    kind: ForkedChild,
    /// The kernel refused to let the memory be inherited, or a connection: there must be no child.
    refused: Option<Errno>,
    /// Of the pager: where it waits for the connection.
    listening: Option<High>,
    /// Of the pager: a swap file for the child.
    file: Option<Result<High, LiveError>>,
    /// Of the program: the child's end.
    line: Option<High>,
    /// The pages that are out, for a child that will not page.
    store: Option<PageStore>,
    /// No connection could be made.
    alone: Option<Errno>,
}

/// What a child gets from its parent's pager, by the connection.
struct Kit {
    file: Option<OwnedFd>,
    folder: Option<OwnedFd>,
    source: Option<OwnedFd>,
    statistics: Option<OwnedFd>,
}

impl Kit {
    /// As a message: a bit for each descriptor.
    fn send(parts: [Option<&High>; sockets::DESCRIPTORS], line: impl AsFd) -> Sys<()> {
        let bits = parts.iter().enumerate().map(|(i, part)| u8::from(part.is_some()) << i).sum::<u8>();
        let mut fds = [line.as_fd(); sockets::DESCRIPTORS];
        let mut count = 0;
        for part in parts.into_iter().flatten() {
            fds[count] = part.as_fd();
            count += 1;
        }
        sockets::send(&line, &[bits], &fds[..count])
    }

    fn receive(line: impl AsFd) -> Sys<Kit> {
        let mut bits = [0];
        let (_, fds) = sockets::receive(line, &mut bits, true)?;
        let mut fds = fds.into_iter().flatten();
        let mut next = |i: u8| if bits[0] >> i & 1 != 0 { fds.next() } else { None };
        Ok(Kit { file: next(0), folder: next(1), source: next(2), statistics: next(3) })
    }
}

/// Between looks whether a child has all of its memory.
const WAIT_US: u64 = 500;

/// A descriptor that an executed program inherits. It is closed with this, if there was none.
#[derive(Debug)]
pub struct Inherited(RawFd);

impl Drop for Inherited {
    fn drop(&mut self) {
        // SAFETY: this value's own.
        drop(unsafe { OwnedFd::from_raw_fd(self.0) });
    }
}

pub struct Forks {
    /// Present from `prepare` until the fork is over.
    ready: Lock<Option<Ready>>,
    /// Without pager processes: the connections that show the parents that this process lives, and may read their
    /// files.
    alive: Lock<Vec<High>>,
    files: SwapFiles,
}

impl Forks {
    pub fn new(files: SwapFiles) -> Forks {
        Forks { ready: Lock::new(None), alive: Lock::new(Vec::new()), files }
    }

    /// The descriptor of the folder for swap files, or -1.
    pub fn folder(&self) -> RawFd {
        self.files.folder()
    }
}

impl Inner {
    /// Signals are blocked, here and until the fork is over.
    pub fn fork_prepare(&self, kind: ForkedChild) {
        let Some(appointment) = self.run(|| self.prepare(kind)) else { return };
        let mut ready = self.forks.ready.lock();
        let Some(ready) = ready.as_mut() else { return };
        let connect = |to| sys::with_room(|_| sockets::connect(to).map(sys::move_high));
        let line = appointment.as_ref().map_or_else(|error| Err(*error), connect);
        let error = line.as_ref().err().copied();
        // The program's own descriptor.
        ready.line = line.ok();
        self.run(|| {
            // Where nobody connects, this must not wait.
            let accepted = match (error, appointment) {
                (Some(error), _) | (None, Err(error)) => Err(error),
                (None, Ok(appointment)) => self.accept(ready, &appointment),
            };
            if let Err(error) = accepted {
                self.without_connection(ready, error);
            }
        });
    }

    /// A child that gets nothing by a connection gets the bytes of all pages; or it reads the files that it inherits.
    fn without_connection(&self, ready: &mut Ready, error: Errno) {
        ready.alone = Some(error);
        if !self.threads.have_process() {
            return;
        }
        let cannot = self.managed.space().is_of_file() || ready.kind == ForkedChild::MustNotBe;
        let stored = if cannot { Err(error) } else { self.managed.store_pages() };
        match stored {
            Ok(store) => ready.store = Some(store),
            Err(_) => ready.refused = ready.refused.or(Some(Errno::AGAIN)),
        }
    }

    /// Where the pager's descriptors are. None: the process does not page. Otherwise how to connect, if the child is to
    /// page.
    fn prepare(&self, kind: ForkedChild) -> Option<Sys<Appointment>> {
        self.managed.take_over();
        self.managed.space().begin_change();
        self.managed.gate.close();
        self.managed.space().freeze();
        if self.managed.memory().is_plain() {
            return None;
        }
        self.managed.work.log().fork_prepare();
        let slow = self.managed.space().is_of_file();
        if slow {
            self.fill_dropped();
        }
        let refused = self.inherit(true).err();
        let file = (!slow && kind == ForkedChild::Pages).then(|| self.forks.files.another());
        let listening = if kind == ForkedChild::Pages { sockets::listen() } else { Err(Errno::PERM) };
        let (listening, appointment) = match listening {
            Ok((socket, appointment)) => (Some(sys::move_high(socket)), Ok(appointment)),
            Err(error) => (None, Err(error)),
        };
        let ready = Ready { kind, refused, listening, file, line: None, store: None, alone: None };
        *self.forks.ready.lock() = Some(ready);
        Some(appointment)
    }

    /// Where the pager's descriptors are: the connection that the program has made, by which the child gets what it
    /// needs.
    fn accept(&self, ready: &mut Ready, appointment: &Appointment) -> Sys<()> {
        let listening = ready.listening.take().ok_or(Errno::AGAIN)?;
        let child = sockets::accept(&listening, appointment)?;
        let file = ready.file.as_ref().and_then(|file| file.as_ref().ok());
        let (source, statistics) = (self.source.get().device(), self.statistics.get().as_ref());
        self.forks.files.with_folder(|folder| Kit::send([file, folder, source, statistics], &child))?;
        if let Some(server) = self.threads.server() {
            server.add(&child, self.managed.work.log().epoch_of_fork())?;
        }
        self.managed.work.log().expect_child(sys::move_high(child));
        Ok(())
    }

    /// Pages that a raw system call has dropped are zeros in a child, too, and not what is in their slots.
    fn fill_dropped(&self) {
        let (space, memory) = (self.managed.space(), self.managed.memory());
        for (range, _) in space.frozen() {
            let touched = space.touched(space.pages_of(&range)).flatten();
            let here = |state: Where| state.is_mapped() || state == Where::InPlace;
            touched.filter(|page| here(memory.pages.get(*page))).for_each(|page| _ = memory.refill(page));
        }
    }

    /// Returns the reason if there must be no child. If a child was made all the same, it has ended at once.
    pub fn fork_parent(&self) -> Sys<()> {
        if self.managed.memory().is_plain() {
            self.open_gate();
            return Ok(());
        }
        drop(self.forks.ready.lock().as_mut().and_then(|ready| ready.line.take()));
        self.run(|| self.forked())
    }

    /// Where the pager's descriptors are, after a fork: a child may see all slots in use.
    fn forked(&self) -> Sys<()> {
        let ready = self.forks.ready.lock().take();
        self.keep_to_itself();
        let reads = |ready: &Ready| ready.alone.is_some() && ready.store.is_none() && ready.refused.is_none();
        self.managed.work.log().fork_parent(ready.as_ref().is_some_and(reads));
        if self.managed.space().is_of_file() {
            // The child copies all pages out of slow memory first.
            while self.managed.work.log().has_children() {
                sys::sleep_us(WAIT_US);
            }
        }
        self.managed.memory().begin_epoch();
        Stats::add(&self.stats.forks, 1);
        self.open_gate();
        let Some(ready) = ready else { return Ok(()) };
        ready.store.into_iter().for_each(PageStore::end);
        ready.refused.map_or(Ok(()), Err)
    }

    /// In a forked child: the descriptors that it needs of its parent's pager.
    fn inherits(&self, number: RawFd) -> bool {
        let ready = self.forks.ready.lock();
        let line = ready.as_ref().and_then(|ready| ready.line.as_ref());
        let of_log = || self.managed.work.log().files().any(|file| file.raw() == number);
        let alive = || self.forks.alive.lock().iter().any(|line| line.as_raw_fd() == number);
        let within = || !self.threads.have_process() && (of_log() || alive());
        line.is_some_and(|line| line.as_raw_fd() == number) || self.own_statistics() == Some(number) || within()
    }

    /// `fork_child` for all pagers of a process. A child that shares its parent's table closes nothing there.
    pub fn fork_children<'a>(pagers: impl Iterator<Item = &'a Inner> + Clone) {
        let shares = |pager: &Inner| {
            pager.forks.ready.lock().as_ref().is_some_and(|ready| ready.kind == ForkedChild::SharesDescriptors)
        };
        if !pagers.clone().any(shares) {
            own_descriptors::leave(|number| pagers.clone().any(|pager| pager.inherits(number)));
        }
        pagers.for_each(Inner::fork_child);
    }

    fn fork_child(&self) {
        // SAFETY: a forked child has one thread, and this is it.
        let own_process = unsafe {
            self.threads.forget(&self.managed);
            self.threads.forget_process()
        };
        self.managed.memory().count_anew();
        if self.managed.memory().is_plain() {
            self.open_gate();
            return self.managed.settle(|_, _| Ok(()));
        }
        let Some(ready) = self.forks.ready.lock().take() else {
            fatal::stop("internal error: a fork that was not prepared")
        };
        if let Some(error) = ready.refused {
            fatal::stop(format_args!("a forked process cannot have its parent's memory: {}", sys::words(error)));
        }
        // SAFETY: open, and this process's own from now on.
        let line = ready.line.map(|line| unsafe { High::from_raw(line.into_raw()) });
        let kit = line.as_ref().map(|line| sys::with_room(|_| Kit::receive(&**line))).unwrap_or(Err(Errno::PIPE));
        let (line, alive) = if own_process { (line, None) } else { (None, line) };
        // SAFETY: as above.
        unsafe { self.managed.work.read_by(line.map(Parent::new)) };
        let missing = |error| LiveError::os("what its parent's pager gives a child", error);
        let own = match (ready.kind.unpaged(), ready.file, ready.alone) {
            (Some(reason), ..) => Err(Some(reason)),
            (None, Some(Err(error)), _) => Err(Some(error)),
            (None, _, Some(error)) => Err(Some(missing(error))),
            (None, Some(Ok(_)), None) => {
                kit.map_err(missing).and_then(|kit| self.become_own(kit, own_process)).map_err(Some)
            }
            // Slow memory serves one process.
            (None, None, None) => Err(None),
        };
        self.managed.memory().forget_threads();
        // SAFETY: `fork_prepare` has taken the lock. The journal is the parent's.
        *unsafe { self.managed.gate.held() }.journal() = None;
        self.managed.memory().begin_epoch();
        self.open_gate();
        match own {
            Ok(()) => {
                self.run(|| {
                    self.count_in();
                    // If the parent could not lock it, neither can this process; the parent has reported that.
                    self.keep_plaintext();
                    self.managed.after_fork();
                });
                let mut lines = self.forks.alive.lock();
                lines.iter_mut().for_each(High::inherit);
                lines.extend(alive);
            }
            Err(reason) => {
                self.managed.run_unpaged(reason.as_ref(), ready.store);
                if own_process {
                    // SAFETY: as above.
                    drop(unsafe { self.managed.work.leave_parent() });
                    own_descriptors::leave(|number| {
                        self.own_statistics() == Some(number) || ready.kind == ForkedChild::SharesDescriptors
                    });
                } else {
                    // The parents' swap files are not read any more.
                    drop(alive);
                    self.forks.alive.lock().clear();
                }
            }
        }
    }

    /// Makes all that a pager needs. The gate is shut, and this is the child's only thread.
    fn become_own(&self, kit: Kit, own_process: bool) -> Result<(), LiveError> {
        sys::with_room(|_| {
            let file = kit.file.ok_or_else(|| LiveError::os("a swap file for a child", Errno::NOENT))?;
            let device = self.forks.files.device(sys::move_high(file));
            // SAFETY: a forked child has one thread, and this is it.
            unsafe { self.managed.work.renew(device)? };
            self.forks.files.set_folder(kit.folder.map(sys::move_high));
            // SAFETY: as above.
            unsafe {
                self.source.renew().set_device(kit.source.map(sys::move_high));
                *self.statistics.renew() = kit.statistics.map(sys::move_high);
            }
            // SAFETY: as above.
            unsafe { self.managed.work.renew_recording(self.options.record.as_ref())? };
            let uffd = self.source.get().make(false).map_err(|e| LiveError::os("userfaultfd", e))?;
            // SAFETY: as above.
            let parents = unsafe { self.managed.memory().watch_with(uffd) };
            let folder = self.forks.folder();
            // SAFETY: as above; the pager lives as long as its process, or stops the threads.
            let start = || unsafe { self.threads.start(&self.managed, own_process, folder, self.own_statistics()) };
            self.watch_all().and_then(|()| start()).inspect_err(|_| {
                // It is closed, and the memory is no longer watched.
                // SAFETY: as above.
                drop(unsafe { self.managed.memory().watch_with(parents) });
            })
        })
    }

    /// Before the program executes another one: the descriptor of the statistics, as the other one expects it. None: it
    /// is there, or there is none, or it cannot be had.
    pub fn inherit_statistics(&self) -> Option<Inherited> {
        let number = self.options.stats_fd.filter(|number| !own_descriptors::has(*number) && !sys::is_open(*number))?;
        if !self.threads.have_process() {
            return None;
        }
        let (listening, appointment) = self.run(|| {
            let (listening, appointment) = sockets::listen().ok()?;
            Some((listening.into_raw_fd(), appointment))
        })?;
        let line = sys::with_room(|_| sockets::connect(&appointment));
        let is_connected = line.is_ok();
        self.run(|| {
            // SAFETY: made above, by the pager's process.
            let listening = unsafe { OwnedFd::from_raw_fd(listening) };
            if !is_connected {
                return;
            }
            if let (Ok(line), Some(statistics)) = (sockets::accept(&listening, &appointment), self.statistics.get()) {
                let _ = sockets::send(&line, b"x", &[statistics.as_fd()]);
            }
        });
        let (_, [fd, ..]) = sockets::receive(line.ok()?, &mut [0], true).ok()?;
        let fd = fd?;
        sys::with_room(|_| sys::inherit_as(&fd, number)).ok().map(|()| Inherited(number))
    }

    fn open_gate(&self) {
        self.managed.space().thaw();
        self.managed.gate.open();
    }

    fn watch_all(&self) -> Result<(), LiveError> {
        let uffd = self.managed.memory().uffd();
        let watch = |range| uffd.register(range).map_err(|e| LiveError::os("watch memory (UFFDIO_REGISTER)", e));
        watch(self.managed.space().aside_range())?;
        for (range, manner) in self.managed.space().frozen() {
            if !manner.dont_fork {
                self.dont_inherit(&range)?;
                watch(range.clone())?;
                self.protect_clean(self.managed.space().pages_of(&range))?;
            } else {
                // Zeros hold the place; it is closed as soon as there are handlers.
                // SAFETY: the child has nothing there.
                let mapped =
                    unsafe { space::map_plain(&range, manner.protection).and_then(|()| space::prepare(&range)) };
                mapped.map_err(|e| LiveError::os("map memory", e))?;
                watch(range)?;
            }
        }
        self.dont_inherit(&self.managed.space().aside_range())
    }

    /// A fork loses the write protection, but not the record of which pages are clean. Other pages stay writable:
    /// this thread's own stack may be among them.
    fn protect_clean(&self, pages: std::ops::Range<usize>) -> Result<(), LiveError> {
        let space = self.managed.space();
        let clean = space.touched(pages).flatten().filter(|page| self.managed.pages().get(*page) == Where::Clean);
        let protected = space.runs(clean).try_for_each(|run| self.managed.memory().uffd().protect(run, true));
        protected.map_err(|e| LiveError::os("protect memory", e))
    }

    fn dont_inherit(&self, range: &std::ops::Range<usize>) -> Result<(), LiveError> {
        // SAFETY: says only whether a child inherits the memory.
        unsafe { sys::advise(range.clone(), libc::MADV_DONTFORK) }.map_err(|e| LiveError::os("MADV_DONTFORK", e))
    }

    /// Sets whether a child inherits the memory. Memory that a child must not have is inherited as zeros. So the
    /// child cannot map anything else at these addresses before it takes the memory over.
    fn inherit(&self, on: bool) -> Sys<()> {
        let inherited = if on { &[libc::MADV_DOFORK][..] } else { &[libc::MADV_DONTFORK] };
        let wiped = if on { [libc::MADV_WIPEONFORK, inherited[0]] } else { [inherited[0], libc::MADV_KEEPONFORK] };
        // A child takes nothing over from slow memory; and the kernel wipes no mapping of a file.
        let all = self.managed.space().is_of_file();
        let advice = |manner: &Manner| if all || !manner.dont_fork { inherited } else { &wiped };
        let managed = self.managed.space().frozen().into_iter().map(|(range, manner)| (range, advice(&manner)));
        for (range, advice) in managed.chain([(self.managed.space().aside_range(), inherited)]) {
            for advice in advice {
                // SAFETY: says only what a child inherits.
                unsafe { sys::advise(range.clone(), *advice) }?;
            }
        }
        Ok(())
    }

    /// In the parent again. A child of a raw fork that found this memory would read zeros for pages that are out.
    fn keep_to_itself(&self) {
        if let Err(error) = self.inherit(false) {
            fatal::say(format_args!("managed memory is left to children of raw system calls: {}", sys::words(error)));
        }
    }
}
