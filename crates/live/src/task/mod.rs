//! The resources of a thread while it serves a fault: a list of work, a ring, a pipe for pages. A thread takes a
//! task for the time of a fault and gives it back. So any number of threads can share the tasks, and no thread-local
//! memory is needed.

pub mod free_tasks;
pub mod lead;

use std::cell::UnsafeCell;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::AtomicU32;

use coldframe_core::tier::{BIN_FRAMES, GRAIN};
use coldframe_core::{Stage, Ticket};
pub use coldframe_pager_plan::{LOADS, TASKS};
use io_uring::{opcode, register, types, IoUring};
use lz4_flex::block::CompressTable;

use crate::sys;
use crate::task::free_tasks::FreeTasks;
use crate::tier::codec::COMPRESSED_MAX;
use crate::tier::packed::Filling;
use crate::work::kernel_reads::Reaching;
use crate::work::pool::Compressed;
use crate::{LiveError, PAGE};

/// Pages that one fault moves to the shelf before the engine's lock is freed; further pages are moved at once.
pub const MOVES: usize = 256;
/// Victims of one fault: a batch, and the pages of a release.
pub const VICTIMS: usize = 64;
/// Pages of one task that cannot leave, at most.
const KEPT: usize = 4 * (MOVES + VICTIMS);
/// Bytes of a task's staging memory: its victims, two more pages, and room to compress.
const STAGING: usize = (VICTIMS + 2) * PAGE + COMPRESSED_MAX;
/// The most pages that one event takes out of the pool: a bin of the smallest pages, and some more.
const WRITTEN: usize = BIN_FRAMES * PAGE / GRAIN + 64;

/// The source of a load's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Not known yet.
    Unknown,
    /// The page has no content: zeros.
    Zeros,
    /// The log's buffer; they have been copied.
    Memory,
    /// The device; the request will go together with others.
    Noted,
    /// The device has been asked.
    Asked,
    /// The device, which will be read at once.
    Device,
    /// The pool of compressed pages; they have been decompressed.
    Pool,
}

/// A load under way.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub ticket: Ticket,
    pub page: usize,
    pub into: usize,
    pub source: Source,
    /// The slot with its bytes.
    pub slot: Option<u64>,
    /// Whether the load has succeeded; `None` until this is known.
    pub good: Option<bool>,
    /// The buffer gets a slot with several compressed pages, and not the page itself.
    pub shared: bool,
}

impl Load {
    /// A load of which nothing is known yet.
    pub fn new(ticket: Ticket, page: usize, into: usize) -> Load {
        Load { ticket, page, into, source: Source::Unknown, slot: None, good: None, shared: false }
    }
}

/// A loaded page that goes into the page table.
#[derive(Clone, Copy, Debug)]
pub struct CopyIn {
    pub page: usize,
    pub from: usize,
    /// A write to it comes next.
    pub write: bool,
    /// It came from the device or the log; otherwise it is zeros.
    pub content: bool,
    /// `from` has a slot with several compressed pages.
    pub shared: bool,
}

/// A page that goes to the shelf or comes back from it.
#[derive(Clone, Copy, Debug)]
pub enum Move {
    /// It goes on the invalid list; `clean`: writes to it fault.
    Shelve { page: usize, clean: bool },
    /// A false fault; `write`: a write comes next.
    Back { page: usize, write: bool },
}

impl Move {
    /// The page.
    pub fn page(&self) -> usize {
        let (Move::Shelve { page, .. } | Move::Back { page, .. }) = *self;
        page
    }
}

/// A page that leaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Victim {
    pub page: usize,
    /// Its address: in its region, or on the shelf.
    pub address: usize,
    pub shelved: bool,
    pub write: bool,
    /// It cannot leave: the kernel holds its frame.
    pub refused: bool,
    /// Its place in the staging memory, once it is there.
    pub staged: usize,
    /// The hash of its final bytes, if tests compare it.
    pub sum: Option<u128>,
    /// It is to be compressed.
    pub compress: bool,
    /// Its compressed size, and the hash of its bytes.
    pub size: u32,
    pub digest: u128,
}

/// The work for a fault after the engine's lock is freed.
#[derive(Debug)]
pub struct Todo {
    pub task: usize,
    /// The page of the fault, and whether it is written to.
    pub fault: Option<(usize, bool)>,
    pub loads: Vec<Load>,
    pub copies: Vec<CopyIn>,
    /// At most [`MOVES`].
    pub moves: Vec<Move>,
    pub victims: Vec<Victim>,
    /// Pages that could not leave, and that the engine takes as gone.
    pub kept: Vec<usize>,
    /// Number of victims, from the first on, that have left memory; their bytes are in the pipe.
    pub zapped: usize,
    /// The compressed page whose size is being reported.
    pub compressed: Option<Compressed>,
    /// The slot that pages from the pool are being put into; its bytes are at [`Task::block`].
    pub filling: Option<Filling>,
    /// The load that is being reported came from a slot with several compressed pages.
    pub shared: bool,
    /// Pages that are safe in the log, and that the engine must still be told of.
    pub written: Vec<u32>,
    /// Buffers that can be used again.
    pub spare: Vec<usize>,
    /// Loads are submitted together at the end.
    pub together: bool,
    /// The work is for no fault. The program runs meanwhile, on other processors.
    pub apart: bool,
    /// When the request went to the device; 0: there was none.
    pub asked_at: u64,
    pub laps: Laps,
}

/// The time of each stage of a fault, in nanoseconds. It is measured for one fault of [`MEASURED`] only: to ask the
/// clock after each stage of each fault took 2 us of 30.
#[derive(Clone, Copy, Debug, Default)]
pub struct Laps {
    mark: u64,
    /// This fault stands for so many; 0: it is not measured.
    weight: u64,
    spent: [u64; STAGES],
}

/// Of so many faults, the stages of one are measured.
pub const MEASURED: u64 = 8;

/// Of a ring: the loads of a fault, and as many that it reads ahead.
const ENTRIES: u32 = 2 * LOADS as u32;

/// Stages; `UpdateMMU` stays 0, since one system call moves a page and maps it.
const STAGES: usize = 6;

impl Laps {
    /// For the fault of this number, which starts at `at`.
    pub fn begin(number: u64, at: u64) -> Laps {
        let weight = if number.is_multiple_of(MEASURED) { MEASURED } else { 0 };
        Laps { mark: at, weight, spent: [0; STAGES] }
    }

    /// Assigns the time since the last lap to `stage`, and returns it, for all the faults that this one stands for.
    pub fn lap(&mut self, stage: Stage) -> u64 {
        if self.weight == 0 {
            return 0;
        }
        let now = sys::now();
        let took = now.saturating_sub(self.mark) * self.weight;
        self.spent[stage as usize] += took;
        self.mark = now;
        took
    }

    /// The weight of this fault: 0 if it is not measured.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// The sum of all laps of the stage, for all the faults that this one stands for.
    pub fn of(&self, stage: Stage) -> u64 {
        self.spent[stage as usize]
    }
}

impl Todo {
    fn new(task: usize) -> Todo {
        Todo {
            task,
            fault: None,
            loads: Vec::with_capacity(LOADS),
            copies: Vec::with_capacity(LOADS),
            moves: Vec::with_capacity(MOVES),
            victims: Vec::with_capacity(VICTIMS),
            kept: Vec::with_capacity(KEPT),
            zapped: 0,
            compressed: None,
            filling: None,
            shared: false,
            written: Vec::with_capacity(WRITTEN),
            spare: Vec::with_capacity(LOADS),
            together: false,
            apart: false,
            asked_at: 0,
            laps: Laps::default(),
        }
    }

    /// The page cannot leave, and is `Kept`.
    pub fn keep(&mut self, page: usize) {
        if self.kept.len() == self.kept.capacity() {
            crate::sys::fatal::stop("the kernel holds too many pages of the program; give more RAM");
        }
        self.kept.push(page);
    }

    /// Whether everything has been done.
    pub fn done(&self) -> bool {
        let lists = [self.loads.is_empty(), self.copies.is_empty(), self.moves.is_empty(), self.victims.is_empty()];
        lists.iter().all(|empty| *empty)
    }
}

/// Value of `resumed`: the fault is being resolved.
pub const WAITING: u32 = 0;
/// It has been resolved.
pub const RESUMED: u32 = 1;
/// It is being resolved, and its thread sleeps until then.
pub const ASLEEP: u32 = 2;

/// A task.
pub struct Task {
    /// The state of its fault: one of the three above.
    pub resumed: AtomicU32,
    /// The pages that the kernel reads for its thread.
    pub reaching: Reaching,
    /// Odd while its thread takes pages out.
    pub taking: AtomicU32,
    /// Pages go in and come out again.
    pub pipe: (OwnedFd, OwnedFd),
    /// room for the bytes of such pages on their way to the log.
    pub staging: usize,
    todo: UnsafeCell<Todo>,
    ring: UnsafeCell<Option<Ring>>,
    table: UnsafeCell<CompressTable>,
}

// SAFETY: `todo`, `ring` and `table` are reached only by the thread that has taken the task.
unsafe impl Sync for Task {}

impl Task {
    fn new(i: usize, rings: bool) -> Result<Task, LiveError> {
        let (read, write) = sys::pipe(VICTIMS * PAGE).map_err(|e| LiveError::os("a pipe", e))?;
        let staging = sys::map_memory(STAGING, None).map_err(|e| LiveError::os("memory for a task", e))?;
        Ok(Task {
            resumed: AtomicU32::new(RESUMED),
            reaching: Reaching::nothing(),
            taking: AtomicU32::new(0),
            pipe: (sys::move_high(read), sys::move_high(write)),
            staging,
            todo: UnsafeCell::new(Todo::new(i)),
            ring: UnsafeCell::new(if rings { Some(Ring::new()?) } else { None }),
            table: UnsafeCell::new(CompressTable::small()),
        })
    }

    /// All of its memory for pages.
    pub fn memory(&self) -> std::ops::Range<usize> {
        self.staging..self.staging + STAGING
    }

    /// One more page, for content that is used at once.
    pub fn scratch(&self) -> usize {
        self.staging + VICTIMS * PAGE
    }

    /// The bytes of the slot that is being filled.
    pub fn block(&self) -> usize {
        self.staging + (VICTIMS + 1) * PAGE
    }

    /// Room for the result of compressing a page.
    pub fn compressed(&self) -> usize {
        self.staging + (VICTIMS + 2) * PAGE
    }

    /// The memory that compressing needs.
    ///
    /// # Safety
    /// As for `todo`.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn table(&self) -> &mut CompressTable {
        // SAFETY: the caller answers for it.
        unsafe { &mut *self.table.get() }
    }

    /// The owner's list of work.
    ///
    /// # Safety
    /// The caller must have taken the task, and must not call this while it holds an earlier result.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn todo(&self) -> &mut Todo {
        // SAFETY: the caller answers for it.
        unsafe { &mut *self.todo.get() }
    }

    /// Its ring.
    ///
    /// # Safety
    /// As for `todo`, and there must be rings.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn ring(&self) -> &mut Ring {
        // SAFETY: the caller answers for it.
        unsafe { &mut *self.ring.get() }.as_mut().expect("there are rings")
    }
}

/// All tasks.
pub struct Tasks {
    tasks: Vec<Task>,
    free: FreeTasks,
}

impl Tasks {
    /// `count` tasks, at most [`TASKS`]; with rings for asynchronous reads of the device.
    pub fn new(count: usize, rings: bool) -> Result<Tasks, LiveError> {
        let tasks = (0..count).map(|i| Task::new(i, rings)).collect::<Result<Vec<Task>, LiveError>>()?;
        Ok(Tasks { tasks, free: FreeTasks::new(count) })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// A task by number.
    pub fn get(&self, i: usize) -> &Task {
        &self.tasks[i]
    }

    /// Takes a free task; waits while there is none.
    pub fn take(&self) -> usize {
        self.free.take()
    }

    /// Gives the task back.
    pub fn give(&self, task: usize) {
        self.free.give(task);
    }

    /// All descriptors.
    pub fn descriptors(&self) -> Vec<i32> {
        let mut all = Vec::new();
        for task in &self.tasks {
            all.extend([task.pipe.0.as_raw_fd(), task.pipe.1.as_raw_fd()]);
            // SAFETY: only looks at the ring's number, which does not change while the process lives.
            all.extend(unsafe { &*task.ring.get() }.as_ref().map(|ring| ring.io.as_raw_fd()));
        }
        all
    }

    /// In a forked child: rings and pipes are shared with the parent, so the child gets new ones. Every task is free.
    /// If no ring is available any more (a filter of system calls, few descriptors), plain reads do the work. Returns
    /// whether there are rings.
    pub fn renew(&mut self, rings: bool) -> Result<bool, LiveError> {
        for (i, task) in self.tasks.iter_mut().enumerate() {
            // The old ring's memory is shared with the parent: it is left alone.
            if let Some(ring) = task.ring.get_mut().take() {
                // SAFETY: the ring's own descriptor, which is no longer used.
                drop(unsafe { OwnedFd::from_raw_fd(ring.io.as_raw_fd()) });
                std::mem::forget(ring);
            }
            let new = match Task::new(i, rings) {
                Err(_) if rings => return self.renew(false),
                new => new?,
            };
            // SAFETY: the old staging memory is no longer used.
            unsafe { sys::unmap_memory(task.staging, STAGING) };
            *task = new;
        }
        self.free.renew(self.tasks.len());
        Ok(rings)
    }
}

/// The same ring with a number that the program does not use. The memory that it shares with the kernel is mapped
/// again.
fn high(ring: io::Result<IoUring>) -> io::Result<IoUring> {
    let ring = ring?;
    // SAFETY: the number is open, and the duplicate is new.
    let fd = unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) }.try_clone_to_owned()?;
    let fd = sys::move_high(fd);
    // SAFETY: a ring's descriptor, which is given away, with the parameters that the kernel has filled in for it.
    unsafe { IoUring::from_fd(fd.into_raw_fd(), ring.params().clone()) }
}

/// A ring for reads. The fault or call that submits a read also takes its completion. So nothing is in flight when a
/// thread goes back to its work, where a completion would interrupt its system calls.
pub struct Ring {
    io: IoUring,
    /// A filter of system calls has refused it to a thread. Reads noted then must never be submitted.
    refused: bool,
}

impl Ring {
    fn new() -> Result<Ring, LiveError> {
        // A ring would do more for its owner than his filter of system calls allows. So it only reads, where the
        // kernel can restrict it (Linux 5.10).
        let only_reads = || {
            let io = IoUring::builder().setup_r_disabled().build(ENTRIES)?;
            io.submitter().register_restrictions(&mut [register::Restriction::sqe_op(opcode::Read::CODE)])?;
            io.submitter().register_enable_rings()?;
            Ok(io)
        };
        let io = high(only_reads().or_else(|_: io::Error| IoUring::new(ENTRIES)));
        io.map(|io| Ring { io, refused: false }).map_err(|error| LiveError::Missing {
            feature: "io_uring",
            reason: error.to_string(),
            remedy: "allow it (sysctl kernel.io_uring_disabled=0) or use `--wait read`",
        })
    }

    /// Whether it can be used.
    pub fn works(&self) -> bool {
        !self.refused
    }

    /// Notes a read of a page; `submit` submits it.
    pub fn read(&mut self, fd: i32, into: usize, offset: u64, number: usize) {
        let entry = opcode::Read::new(types::Fd(fd), into as *mut u8, PAGE as u32)
            .offset(offset)
            .build()
            .user_data(number as u64);
        // SAFETY: the buffer belongs to the load until its completion has been taken.
        let pushed = unsafe { self.io.submission().push(&entry) };
        pushed.expect("there are as many entries as loads");
    }

    /// Submits all noted reads with one system call. Returns false if this thread may not; the ring is then not used
    /// any more.
    pub fn submit(&mut self) -> bool {
        loop {
            match self.io.submit() {
                Ok(_) => return true,
                Err(error) if is_refusal(&error) => {
                    self.refused = true;
                    return false;
                }
                Err(error) => look(&error),
            }
        }
    }

    /// The next completion, if there is one: the load's number and what the kernel returned.
    pub fn next(&mut self) -> Option<(usize, i32)> {
        let entry = self.io.completion().next()?;
        Some((entry.user_data() as usize, entry.result()))
    }

    /// Sleeps until there are `completions` completions: one wake-up for all costs less than one for each.
    pub fn sleep(&mut self, completions: usize) {
        loop {
            match self.io.submit_and_wait(completions) {
                Ok(_) => return,
                // Refused after the request, for all threads at once. Completions come all the same.
                Err(error) if is_refusal(&error) => return sys::give_way(),
                Err(error) => look(&error),
            }
        }
    }
}

/// Whether the error is a refusal by a filter of system calls.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSYS))
}

/// Returns if the call is to be repeated.
fn look(error: &io::Error) {
    if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) {
        crate::sys::fatal::stop(format_args!("io_uring_enter: {error}"));
    }
}
