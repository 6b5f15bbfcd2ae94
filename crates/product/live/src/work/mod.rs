//! The work of a fault without the engine: loads, evictions, and moves to the aside mapping and back.
//!
//! [`Work`] has what this takes. The engine's machine notes commands in a `Todo` and calls the functions of short ones;
//! the thread of the fault then calls, without the engine's lock: `start_loads`, `move_pages`, `evict`, `finish_loads`
//! and, when it has reported what these brought, `move_pages` and `copy_in`. This room does not know the engine.

mod evict;
mod kernel_reads;
mod load;
mod page_table;
mod pinned_frames;
mod samples;

use std::ops::Range;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use crate::memory::Memory;
use crate::page::pages::Pages;
use crate::record::recorder::Recording;
use crate::stats::Stats;
use crate::swap::device::Device;
use crate::swap::log::Log;
use crate::swap::parent::Parent;
use crate::sys::lock::Lock;
use crate::sys::{self, fatal, Errno, Own};
use crate::task::message_reader::MessageReader;
use crate::task::{Task, Tasks};
use crate::{LiveError, Options, Recorder, PAGE};

pub use kernel_reads::Sleepers;
use pinned_frames::PinnedFrames;
pub use samples::Sampler;
use samples::Samples;

pub struct Work {
    pub memory: Memory,
    tasks: Own<Tasks>,
    log: Own<Log>,
    pub reader: MessageReader,
    recording: Own<Option<Recording>>,
    /// Buffers whose pages are in place, on their way back to the engine's machine. Giving one back takes no other
    /// lock: the holder of the engine's lock may be waiting for it.
    returned: Lock<Vec<usize>>,
    buffers: Range<usize>,
    /// How long a thread polls for the device before it sleeps, in nanoseconds, where a processor would sleep, too.
    poll_ns: u64,
    /// The device's last error; 0: the bytes were wrong.
    last_error: AtomicI32,
    /// Of 256 pages mapped readable, the number that was written before the page left: a running mean.
    write_share: AtomicU32,
    /// The engine must learn only of real writes, since each dirty page that leaves is programmed.
    exact: bool,
    /// Whether first touches come in blocks. A recording has each of them, and so has a swap area.
    pub takes_blocks: bool,
    pinned: PinnedFrames,
    /// Reads in slow memory.
    pub samples: Samples,
    pub stats: &'static Stats,
}

impl Work {
    /// `buffers`: the memory of the engine's buffers and of those that replace them.
    pub fn new(
        memory: Memory,
        tasks: Tasks,
        log: Log,
        recording: Option<Recording>,
        buffers: Range<usize>,
        poll_ns: u64,
        options: &Options,
    ) -> Work {
        let each = options.swap.is_some() || options.record.is_some() || memory.space.is_of_file();
        Work {
            stats: memory.stats,
            takes_blocks: options.first_touches_in_blocks && !each,
            memory,
            tasks: Own::new(tasks),
            log: Own::new(log),
            reader: MessageReader::default(),
            recording: Own::new(recording),
            returned: Lock::new(Vec::with_capacity(buffers.len() / PAGE)),
            buffers,
            poll_ns,
            last_error: AtomicI32::new(0),
            write_share: AtomicU32::new(0),
            exact: options.swap.is_some(),
            pinned: PinnedFrames::new(options.ram as usize / PAGE),
            samples: Samples::new(options.ram as usize / PAGE),
        }
    }

    pub fn pages(&self) -> &Pages {
        &self.memory.pages
    }

    pub fn tasks(&self) -> &Tasks {
        self.tasks.get()
    }

    fn task(&self, number: usize) -> &Task {
        self.tasks().get(number)
    }

    pub fn log(&self) -> &Log {
        self.log.get()
    }

    pub fn recording(&self) -> Option<&Recording> {
        self.recording.get().as_ref()
    }

    /// Buffers that can be used again, into `spare`, which is empty.
    pub fn take_returned(&self, spare: &mut Vec<usize>) {
        std::mem::swap(spare, &mut *self.returned.lock());
    }

    /// Memory in which pages are before they are encrypted, the most used first.
    pub fn plaintext(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let staging = (0..self.tasks().len()).map(|i| self.task(i).memory());
        self.log().buffers().into_iter().chain([self.buffers.clone()]).chain(staging)
    }

    /// Drops the content of a page that is out. The engine has forgotten it.
    pub fn forget(&self, page: usize) {
        if let Some(recording) = self.recording() {
            self.pages().set_sum(page, 0);
            recording.released(page);
        }
        let slot = self.pages().set_slot(page, None);
        self.log().forget(page, slot);
    }

    pub fn lost(&self, page: usize) -> ! {
        let address = self.memory.address(page);
        Stats::add(&self.stats.halts, 1);
        let path = self.log().device().path().display();
        let place = self.pages().slot(page).map(|slot| self.log().place(slot).0);
        match (place, self.last_error.load(Ordering::Relaxed)) {
            (Some(offset), 0) => fatal::stop(format_args!(
                "{path}, byte {offset}: the page for {address:#x} is not what was written there (its checksum \
                     differs)"
            )),
            (Some(offset), error) => {
                let error = sys::words(Errno::from_raw_os_error(error));
                fatal::stop(format_args!("{path}, byte {offset}: the page for {address:#x} cannot be read: {error}"))
            }
            (None, _) => fatal::stop(format_args!("the page at {address:#x} is lost")),
        }
    }

    /// In a forked child: its parent's pager reads the pages that left before; `None`: it has the
    /// files.
    ///
    /// # Safety
    /// This is its only thread, and the fork was prepared.
    pub unsafe fn read_by(&self, parent: Option<Parent>) {
        // SAFETY: the caller answers for it.
        let log = unsafe { self.log.renew() };
        if parent.is_none() {
            log.inherit();
        }
        log.read_by(parent);
    }

    /// In a forked child that has all of its parent's pages.
    ///
    /// # Safety
    /// This is its only thread.
    pub unsafe fn leave_parent(&self) -> Option<Parent> {
        // SAFETY: the caller answers for it.
        unsafe { self.log.renew() }.leave_parent()
    }

    /// In a forked child: new tasks, and a swap file of its own on `device`.
    ///
    /// # Safety
    /// This is its only thread, and the fork was prepared.
    pub unsafe fn renew(&self, device: Device) -> Result<(), LiveError> {
        // SAFETY: the caller answers for it.
        unsafe {
            self.memory.renew()?;
            self.tasks.renew().renew()?;
            self.log.renew().fork_child(device)
        }
    }

    /// In a forked child: a recording of its own.
    ///
    /// # Safety
    /// As for `renew`.
    pub unsafe fn renew_recording(&self, recorder: Option<&Recorder>) -> Result<(), LiveError> {
        // SAFETY: the caller answers for it.
        match (recorder, unsafe { self.recording.renew() }) {
            (Some(recorder), Some(recording)) => recording.renew(recorder),
            _ => Ok(()),
        }
    }
}
