//! What a thread has while it serves a fault: a list of what is to be done, a ring, a pipe for held pages. Tasks are taken for the time of a
//! fault and given back, so any number of threads can share them, and no thread-local memory is needed.

use std::cell::UnsafeCell;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use coldframe_core::Ticket;
use io_uring::{opcode, types, IoUring};

use crate::sys;
use crate::{LiveError, PAGE};

/// Faults that can be served at a time.
pub const TASKS: usize = 32;
/// Loads that one fault or one list of wishes can have in flight.
pub const LOADS: usize = 64;
/// Victims of one fault: a batch, and what a release brings.
pub const VICTIMS: usize = 64;

/// Where the bytes of a load come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Not looked at yet.
    Unknown,
    /// The page has no content: zeros.
    Zeros,
    /// They were in the log's buffer and are there now.
    Memory,
    /// The device has been asked.
    Asked,
    /// The device is to be read now.
    Device,
}

/// A load under way.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub ticket: Ticket,
    pub page: usize,
    pub into: usize,
    pub source: Source,
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

/// A page that leaves.
#[derive(Clone, Copy, Debug)]
pub struct Victim {
    pub page: usize,
    /// Its address: in its region, or in the holding area.
    pub address: usize,
    pub held: bool,
    pub write: bool,
}

/// What is to be done for a fault when the engine's lock is free again.
#[derive(Debug)]
pub struct Todo {
    pub task: usize,
    /// The page of the fault, and whether it is written to.
    pub fault: Option<(usize, bool)>,
    pub loads: Vec<Load>,
    pub copies: Vec<CopyIn>,
    pub victims: Vec<Victim>,
    /// File pages whose write failed and is to be tried again, with the place of their bytes.
    pub retries: Vec<(usize, usize)>,
    /// The bytes of the page whose failure is being reported.
    pub failing: usize,
    /// Buffers that can be used again.
    pub spare: Vec<usize>,
    /// Loads are submitted together at the end.
    pub together: bool,
    /// Times for the statistics.
    pub asked_at: u64,
}

impl Todo {
    fn new(task: usize) -> Todo {
        Todo {
            task,
            fault: None,
            loads: Vec::with_capacity(LOADS),
            copies: Vec::with_capacity(LOADS),
            victims: Vec::with_capacity(VICTIMS),
            retries: Vec::with_capacity(VICTIMS),
            failing: 0,
            spare: Vec::with_capacity(LOADS),
            together: false,
            asked_at: 0,
        }
    }

    /// Whether everything has been done.
    pub fn done(&self) -> bool {
        self.loads.is_empty() && self.copies.is_empty() && self.victims.is_empty() && self.retries.is_empty()
    }
}

/// A task.
pub struct Task {
    /// 1 when its fault has been resolved.
    pub resumed: AtomicU32,
    inside: UnsafeCell<Inside>,
}

/// What only the owner of a task touches.
pub struct Inside {
    pub todo: Todo,
    pub ring: Option<Ring>,
    pub pipe: (OwnedFd, OwnedFd),
    /// Room for a batch of file pages on their way to their file.
    pub staging: usize,
}

// SAFETY: `inside` is reached only by the thread that has taken the task.
unsafe impl Sync for Task {}

impl Task {
    /// The part that only the owner touches.
    ///
    /// # Safety
    /// The caller must have taken the task, and must not call this while it holds an earlier result.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn inside(&self) -> &mut Inside {
        // SAFETY: the caller answers for it.
        unsafe { &mut *self.inside.get() }
    }
}

/// All tasks.
pub struct Tasks {
    tasks: Vec<Task>,
    free: AtomicU64,
}

impl Tasks {
    /// So many, at most [`TASKS`]; with rings if the device is to be waited for asynchronously.
    pub fn new(count: usize, rings: bool) -> Result<Tasks, LiveError> {
        let tasks = (0..count)
            .map(|i| Ok(Task { resumed: AtomicU32::new(0), inside: UnsafeCell::new(Inside::new(i, rings)?) }));
        let tasks: Vec<Task> = tasks.collect::<Result<_, LiveError>>()?;
        Ok(Tasks { tasks, free: AtomicU64::new((1 << count) - 1) })
    }

    /// A task by number.
    pub fn get(&self, i: usize) -> &Task {
        &self.tasks[i]
    }

    /// Takes a free task; waits while there is none.
    pub fn take(&self) -> usize {
        loop {
            let free = self.free.load(Ordering::Relaxed);
            if free == 0 {
                sys::give_way();
                continue;
            }
            let i = free.trailing_zeros();
            if self.free.compare_exchange(free, free & !(1 << i), Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return i as usize;
            }
        }
    }

    /// Gives it back.
    pub fn give(&self, task: usize) {
        self.free.fetch_or(1 << task, Ordering::Release);
    }

    /// All descriptors.
    pub fn descriptors(&self) -> Vec<i32> {
        let mut all = Vec::new();
        for task in &self.tasks {
            // SAFETY: the descriptors' numbers do not change while the process lives.
            let inside = unsafe { task.inside() };
            all.extend([inside.pipe.0.as_raw_fd(), inside.pipe.1.as_raw_fd()]);
            all.extend(inside.ring.as_ref().map(|ring| ring.0.as_raw_fd()));
        }
        all
    }

    /// In a forked child: rings and pipes are shared with the parent, so there must be new ones. Every task is free.
    pub fn renew(&mut self, rings: bool) -> Result<(), LiveError> {
        for (i, task) in self.tasks.iter_mut().enumerate() {
            let inside = task.inside.get_mut();
            // The old ring's memory is the parent's too: it is left alone.
            std::mem::forget(inside.ring.take());
            let staging = inside.staging;
            let old = std::mem::replace(inside, Inside::new(i, rings)?);
            // SAFETY: the staging area that `new` made is nobody's yet.
            unsafe { sys::unmap_memory(inside.staging, VICTIMS * PAGE) };
            inside.staging = staging;
            drop(old);
        }
        self.free.store((1 << self.tasks.len()) - 1, Ordering::Release);
        Ok(())
    }
}

impl Inside {
    fn new(i: usize, rings: bool) -> Result<Inside, LiveError> {
        let (read, write) = sys::pipe(VICTIMS * PAGE).map_err(|e| LiveError::os("a pipe", e))?;
        let staging = sys::map_memory(VICTIMS * PAGE, None).map_err(|e| LiveError::os("memory for a task", e))?;
        let ring = if rings { Some(Ring::new()?) } else { None };
        let pipe = (sys::move_high(read), sys::move_high(write));
        Ok(Inside { todo: Todo::new(i), ring, pipe, staging })
    }
}

/// A ring for reads.
pub struct Ring(IoUring);

impl Ring {
    fn new() -> Result<Ring, LiveError> {
        IoUring::new(LOADS as u32).map(Ring).map_err(|error| LiveError::Missing {
            feature: "io_uring",
            reason: error.to_string(),
            remedy: "allow it (sysctl kernel.io_uring_disabled=0) or use `--wait read`",
        })
    }

    /// Notes a read of a page; `submit` sends it off.
    pub fn read(&mut self, fd: i32, into: usize, offset: u64, number: usize) {
        let entry = opcode::Read::new(types::Fd(fd), into as *mut u8, PAGE as u32)
            .offset(offset)
            .build()
            .user_data(number as u64);
        // SAFETY: the buffer belongs to the load until its completion has been taken.
        let pushed = unsafe { self.0.submission().push(&entry) };
        pushed.expect("there are as many entries as loads");
    }

    /// Sends all noted reads off with one system call.
    pub fn submit(&mut self) {
        while let Err(error) = self.0.submit() {
            if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) {
                crate::fatal::stop(format_args!("io_uring_enter: {error}"));
            }
        }
    }

    /// The next completion, if there is one: the load's number and what the kernel returned.
    pub fn next(&mut self) -> Option<(usize, i32)> {
        let entry = self.0.completion().next()?;
        Some((entry.user_data() as usize, entry.result()))
    }

    /// Sleeps until there is a completion.
    pub fn sleep(&mut self) {
        while let Err(error) = self.0.submit_and_wait(1) {
            if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) {
                crate::fatal::stop(format_args!("io_uring_enter: {error}"));
            }
        }
    }
}
