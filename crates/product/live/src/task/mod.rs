//! The resources of a thread while it serves a fault: a list of work, a ring, a pipe for pages. A thread takes a
//! task for the time of a fault and gives it back. So any number of threads can share the tasks, and no thread-local
//! memory is needed.

pub mod free_tasks;
pub mod message_reader;
pub mod reaching;
mod ring;
mod todo;

use std::cell::UnsafeCell;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};

pub use coldframe_recording::plan::{LOADS, TASKS};

use crate::sys::{self, High};
use crate::{LiveError, PAGE};
use free_tasks::FreeTasks;
use reaching::Reaching;
pub use ring::Ring;
pub use todo::{CopyIn, Laps, Load, LoadSource, Move, Todo, Victim};

/// Pages that one fault moves to the aside mapping before the engine's lock is freed; further pages are moved at once.
pub const MOVES: usize = 256;
/// Victims of one fault: a batch, and the pages of a release.
pub const VICTIMS: usize = 64;
/// Bytes of a task's staging memory: its victims, and one more page.
const STAGING: usize = (VICTIMS + 1) * PAGE;

/// How often a waiting thread checks before it yields the processor.
const LOOKS: u32 = 200;

/// Value of `resumed`: the fault is being resolved.
const WAITING: u32 = 0;
const RESUMED: u32 = 1;
/// It is being resolved, and its thread sleeps until then.
const ASLEEP: u32 = 2;

pub struct Task {
    /// The state of its fault: one of the three above.
    resumed: AtomicU32,
    /// The pages that the kernel reads for its thread.
    pub reaching: Reaching,
    /// Odd while its thread evicts pages.
    pub evicting: AtomicU32,
    /// Pages go in and come out again.
    pipe: (High, High),
    room: usize,
    /// Room for the bytes of such pages on their way to the log.
    pub staging: usize,
    todo: UnsafeCell<Todo>,
    ring: UnsafeCell<Option<Ring>>,
}

// SAFETY: `todo` and `ring` are reached only by the thread that has taken the task.
unsafe impl Sync for Task {}

impl Task {
    fn new(i: usize, rings: bool) -> Result<Task, LiveError> {
        let (read, write) = sys::pipe(VICTIMS * PAGE).map_err(|e| LiveError::os("a pipe", e))?;
        let room = rustix::pipe::fcntl_getpipe_size(&write).map_err(|e| LiveError::os("a pipe", e))? / PAGE;
        let staging = sys::map_memory(STAGING).map_err(|e| LiveError::os("memory for a task", e))?;
        Ok(Task {
            resumed: AtomicU32::new(RESUMED),
            reaching: Reaching::nothing(),
            evicting: AtomicU32::new(0),
            pipe: (sys::move_high(read), sys::move_high(write)),
            room,
            staging,
            todo: UnsafeCell::new(Todo::new(i)),
            ring: UnsafeCell::new(if rings { Some(Ring::new()?) } else { None }),
        })
    }

    pub fn begin(&self) {
        self.resumed.store(WAITING, Ordering::Relaxed);
    }

    pub fn resume(&self) {
        if self.resumed.swap(RESUMED, Ordering::AcqRel) == ASLEEP {
            sys::futex_wake(&self.resumed, 1);
        }
    }

    /// Waits until the task's fault is resolved; calls `hand_over` if that takes long.
    pub fn await_resume(&self, hand_over: impl Fn()) {
        let word = &self.resumed;
        let mut looks = 0;
        while word.load(Ordering::Acquire) != RESUMED {
            looks += 1;
            if looks < LOOKS {
                std::hint::spin_loop();
            } else if looks == LOOKS {
                hand_over();
            } else if word.compare_exchange(WAITING, ASLEEP, Ordering::AcqRel, Ordering::Acquire) != Err(RESUMED) {
                sys::futex_wait(word, ASLEEP);
            }
        }
    }

    pub fn memory(&self) -> std::ops::Range<usize> {
        self.staging..self.staging + STAGING
    }

    pub fn pipe(&self) -> (i32, usize) {
        (self.pipe.1.as_raw_fd(), self.room)
    }

    /// Reads this many pages out of the pipe, in the order in which they went there, to their places in the staging
    /// memory from `at` on.
    pub fn read_back(&self, at: usize, pages: usize) {
        assert!(at + pages <= VICTIMS, "a task has so many victims at most");
        // SAFETY: the staging memory has room for that many.
        if unsafe { sys::read_pipe(self.pipe.0.as_raw_fd(), self.staging + at * PAGE, pages * PAGE) }.is_err() {
            sys::fatal::stop("the kernel did not give pages back (read of a pipe)");
        }
    }

    /// One more page, for content that is used at once.
    pub fn scratch(&self) -> usize {
        self.staging + VICTIMS * PAGE
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

pub struct Tasks {
    tasks: Vec<Task>,
    pub free: FreeTasks,
    rings: bool,
}

impl Tasks {
    /// `count` tasks, at most [`TASKS`]; with rings for asynchronous reads of the device.
    pub fn new(count: usize, rings: bool) -> Result<Tasks, LiveError> {
        let tasks = (0..count).map(|i| Task::new(i, rings)).collect::<Result<Vec<Task>, LiveError>>()?;
        Ok(Tasks { tasks, free: FreeTasks::new(count), rings })
    }

    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether they have rings. A forked child may get none where its parent did.
    pub fn have_rings(&self) -> bool {
        self.rings
    }

    pub fn get(&self, i: usize) -> &Task {
        &self.tasks[i]
    }

    /// In a forked child: rings and pipes are shared with the parent, so the child gets new ones. Every task is free.
    /// If no ring is available any more (a filter of system calls, few descriptors), plain reads do the work.
    pub fn renew(&mut self) -> Result<(), LiveError> {
        let rings = self.rings;
        for (i, task) in self.tasks.iter_mut().enumerate() {
            task.ring.get_mut().take().into_iter().for_each(Ring::leave_to_parent);
            let new = match Task::new(i, rings) {
                Err(_) if rings => {
                    self.rings = false;
                    return self.renew();
                }
                new => new?,
            };
            // SAFETY: the old staging memory is no longer used.
            unsafe { sys::unmap_memory(task.staging, task.memory().len()) };
            *task = new;
        }
        self.free.renew(self.tasks.len());
        Ok(())
    }
}
