//! What a thread has while it serves a fault: a list of what is to be done, a ring, a pipe for held pages. Tasks are taken for the time of a
//! fault and given back, so any number of threads can share them, and no thread-local memory is needed.

use std::cell::UnsafeCell;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::AtomicU32;

use coldframe_core::tier::{BIN_FRAMES, GRAIN};
use coldframe_core::{Stage, Ticket};
use io_uring::{opcode, types, IoUring};
use lz4_flex::block::CompressTable;

use crate::pool::Pool;
use crate::reach::Reaching;
use crate::sys;
use crate::tier::{Packed, PACKED};
use crate::{LiveError, PAGE};

/// Faults that can be served at a time.
pub const TASKS: usize = 32;
/// Loads that one fault or one list of wishes can have in flight.
pub const LOADS: usize = 64;
/// Pages that one fault takes to the holding area before the engine's lock is freed; those above are taken at once.
pub const MOVES: usize = 256;
/// Victims of one fault: a batch, and what a release brings.
pub const VICTIMS: usize = 64;
/// Bytes of a task's staging area: its victims, a page besides, and room to compress.
const STAGING: usize = (VICTIMS + 1) * PAGE + PACKED;
/// Pages that one event takes out of the pool: a bin of the smallest, and some besides.
const WRITTEN: usize = BIN_FRAMES * PAGE / GRAIN + 64;

/// Where the bytes of a load come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Not looked at yet.
    Unknown,
    /// The page has no content: zeros.
    Zeros,
    /// They were in the log's buffer and are there now.
    Memory,
    /// The device is to be asked together with others.
    Noted,
    /// The device has been asked.
    Asked,
    /// The device is to be read now.
    Device,
    /// They were in the pool of compressed pages, and are there now.
    Pool,
}

/// A load under way.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub ticket: Ticket,
    pub page: usize,
    pub into: usize,
    pub source: Source,
    /// The slot in which they were found.
    pub slot: Option<u64>,
    /// The end: `None` until it is known.
    pub good: Option<bool>,
}

/// A loaded page that goes into the page table.
#[derive(Clone, Copy, Debug)]
pub struct CopyIn {
    pub page: usize,
    pub from: usize,
    /// It is about to be written to.
    pub write: bool,
    /// It came from the device or the log; otherwise it is zeros.
    pub content: bool,
}

/// A page that goes to the holding area or comes back from it.
#[derive(Clone, Copy, Debug)]
pub enum Move {
    /// On the invalid list from now on.
    Hold { page: usize },
    /// A false fault; whether it is about to be written to.
    Back { page: usize, write: bool },
}

/// A page that leaves.
#[derive(Clone, Copy, Debug)]
pub struct Victim {
    pub page: usize,
    /// Its address: in its region, or in the holding area.
    pub address: usize,
    pub held: bool,
    pub write: bool,
    /// Its place in the staging area, when it is there.
    pub staged: usize,
    /// The sum of what it was when nobody could write to it any more, where that is compared.
    pub sum: Option<u128>,
    /// It is to be compressed.
    pub pack: bool,
    /// The bytes that it takes then, and the sum of what it was.
    pub size: u32,
    pub digest: u128,
}

/// What is to be done for a fault when the engine's lock is free again.
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
    /// So many of them, from the first on, have left memory; their bytes are held.
    pub zapped: usize,
    /// File pages whose write failed and is to be tried again, with the place of their bytes.
    pub retries: Vec<(usize, usize)>,
    /// The bytes of the page whose failure is being reported.
    pub failing: usize,
    /// The compressed page that is being told of.
    pub packed: Option<Packed>,
    /// A page that was taken out of the pool, and where its bytes are.
    pub taken: Option<(usize, usize)>,
    /// Pages that are safe in the log, of which the engine is still to hear.
    pub written: Vec<u32>,
    /// Pages that the tier is not to have, as above.
    pub refused: Vec<u32>,
    /// The one of them that is being told of.
    pub refusing: Option<usize>,
    /// Buffers that can be used again.
    pub spare: Vec<usize>,
    /// Loads are submitted together at the end.
    pub together: bool,
    /// When the device was asked; 0: it was not.
    pub asked_at: u64,
    pub laps: Laps,
}

/// What the stages of a fault have taken, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Laps {
    mark: u64,
    spent: [u64; STAGES],
}

/// Stages; `UpdateMMU` stays 0, since one system call moves a page and maps it.
const STAGES: usize = 6;

impl Laps {
    /// From `at` on.
    pub fn begin(at: u64) -> Laps {
        Laps { mark: at, spent: [0; STAGES] }
    }

    /// What has passed since the last lap belongs to `stage`; returns it.
    pub fn lap(&mut self, stage: Stage) -> u64 {
        let now = sys::now();
        let took = now.saturating_sub(self.mark);
        self.spent[stage as usize] += took;
        self.mark = now;
        took
    }

    /// The end of the last lap.
    pub fn now(&self) -> u64 {
        self.mark
    }

    /// So much, in all laps of it.
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
            zapped: 0,
            retries: Vec::with_capacity(VICTIMS),
            failing: 0,
            packed: None,
            taken: None,
            written: Vec::with_capacity(WRITTEN),
            refused: Vec::with_capacity(VICTIMS),
            refusing: None,
            spare: Vec::with_capacity(LOADS),
            together: false,
            asked_at: 0,
            laps: Laps::default(),
        }
    }

    /// Whether everything has been done.
    pub fn done(&self) -> bool {
        let lists = [self.loads.is_empty(), self.copies.is_empty(), self.moves.is_empty(), self.victims.is_empty()];
        lists.iter().all(|empty| *empty) && self.retries.is_empty()
    }
}

/// Of `resumed`: the fault is being resolved.
pub const WAITING: u32 = 0;
/// It has been resolved.
pub const RESUMED: u32 = 1;
/// It is being resolved, and its thread sleeps until then.
pub const ASLEEP: u32 = 2;

/// A task.
pub struct Task {
    /// How far its fault is.
    pub resumed: AtomicU32,
    /// The pages that its thread has the kernel read.
    pub reaching: Reaching,
    /// Held pages go in and come out again.
    pub pipe: (OwnedFd, OwnedFd),
    /// Room for the bytes of held pages on their way to the log or to their file.
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

    /// A page besides those, for what is used at once.
    pub fn scratch(&self) -> usize {
        self.staging + VICTIMS * PAGE
    }

    /// Room for what comes of a page when it is compressed.
    pub fn packed(&self) -> usize {
        self.staging + (VICTIMS + 1) * PAGE
    }

    /// What compressing needs.
    ///
    /// # Safety
    /// As for `todo`.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn table(&self) -> &mut CompressTable {
        // SAFETY: the caller answers for it.
        unsafe { &mut *self.table.get() }
    }

    /// What its owner has to do.
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
    pool: Pool,
}

impl Tasks {
    /// So many, at most [`TASKS`]; with rings if the device is to be waited for asynchronously.
    pub fn new(count: usize, rings: bool) -> Result<Tasks, LiveError> {
        let tasks = (0..count).map(|i| Task::new(i, rings)).collect::<Result<Vec<Task>, LiveError>>()?;
        Ok(Tasks { tasks, pool: Pool::new(count) })
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
        self.pool.take()
    }

    /// Gives it back.
    pub fn give(&self, task: usize) {
        self.pool.give(task);
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

    /// In a forked child: rings and pipes are shared with the parent, so there must be new ones. Every task is free. Where no ring is to be
    /// had any more (a filter of system calls, few descriptors) plain reads do: whether there are rings.
    pub fn renew(&mut self, rings: bool) -> Result<bool, LiveError> {
        for (i, task) in self.tasks.iter_mut().enumerate() {
            // The old ring's memory is the parent's too: it is left alone.
            if let Some(ring) = task.ring.get_mut().take() {
                // SAFETY: the ring's own descriptor, and nobody uses it any more.
                drop(unsafe { OwnedFd::from_raw_fd(ring.io.as_raw_fd()) });
                std::mem::forget(ring);
            }
            let new = match Task::new(i, rings) {
                Err(_) if rings => return self.renew(false),
                new => new?,
            };
            // SAFETY: nobody uses the old staging area any more.
            unsafe { sys::unmap_memory(task.staging, STAGING) };
            *task = new;
        }
        self.pool.renew(self.tasks.len());
        Ok(rings)
    }
}

/// The same ring under a number that is out of the program's way. The memory that it shares with the kernel is mapped again.
fn high(ring: io::Result<IoUring>) -> io::Result<IoUring> {
    let ring = ring?;
    // SAFETY: the number is open, and the duplicate is new.
    let fd = unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) }.try_clone_to_owned()?;
    let fd = sys::move_high(fd);
    // SAFETY: a ring's descriptor, which is given away, with the parameters that the kernel has filled in for it.
    unsafe { IoUring::from_fd(fd.into_raw_fd(), ring.params().clone()) }
}

/// A ring for reads, all of which are reaped by the fault or the call that has asked for them: nothing is in flight when a thread goes
/// back to its work, where a completion would interrupt its system calls.
pub struct Ring {
    io: IoUring,
    /// A filter of system calls has refused it to a thread. What was noted then is never to be sent off.
    refused: bool,
}

impl Ring {
    fn new() -> Result<Ring, LiveError> {
        high(IoUring::new(2 * LOADS as u32)).map(|io| Ring { io, refused: false }).map_err(|error| LiveError::Missing {
            feature: "io_uring",
            reason: error.to_string(),
            remedy: "allow it (sysctl kernel.io_uring_disabled=0) or use `--wait read`",
        })
    }

    /// Whether it can be used.
    pub fn works(&self) -> bool {
        !self.refused
    }

    /// Notes a read of a page; `submit` sends it off.
    pub fn read(&mut self, fd: i32, into: usize, offset: u64, number: usize) {
        let entry = opcode::Read::new(types::Fd(fd), into as *mut u8, PAGE as u32)
            .offset(offset)
            .build()
            .user_data(number as u64);
        // SAFETY: the buffer belongs to the load until its completion has been taken.
        let pushed = unsafe { self.io.submission().push(&entry) };
        pushed.expect("there are as many entries as loads");
    }

    /// Sends all noted reads off with one system call. False: this thread may not, and the ring is done with.
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

    /// Sleeps until there are so many completions: one wake-up for all costs less than one for each.
    pub fn sleep(&mut self, completions: usize) {
        loop {
            match self.io.submit_and_wait(completions) {
                Ok(_) => return,
                // Refused after it was asked, to all threads at once. Completions come all the same.
                Err(error) if is_refusal(&error) => return sys::give_way(),
                Err(error) => look(&error),
            }
        }
    }
}

/// As filters of system calls answer.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSYS))
}

/// Returns if it is to be tried again.
fn look(error: &io::Error) {
    if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) {
        crate::fatal::stop(format_args!("io_uring_enter: {error}"));
    }
}
