//! From an abort to `Event::Fault` and back: the handlers' Rust half, and the engine they drive.

use core::cell::UnsafeCell;

use coldframe_core::{Access, Backed, Engine, Event, PageId, TaskId};

use crate::machine::Board;
use crate::mmu::TASKS;
use crate::prefetch::Prefetcher;
use crate::scheduler::Scheduler;
use crate::task::Registers;
use crate::{io, mmu, platform};

mod slices;

/// The engine and what it drives.
pub struct Pager {
    /// The engine.
    pub engine: Engine,
    /// The machine.
    pub board: Board,
    /// Who runs.
    pub scheduler: Scheduler,
    /// What is loaded before a task waits for it.
    pub prefetcher: Prefetcher,
    /// Registers of the tasks that do not run.
    saved: [Registers; TASKS as usize],
    /// The worst status of a task that has ended.
    pub status: u32,
    /// True faults at the start of a slice.
    pub start_faults: u64,
    /// Ticks spent in all faults.
    pub spent: u64,
    /// Ticks of the longest.
    pub longest: u64,
    /// Aborts on instruction fetches.
    pub prefetch_aborts: u64,
    /// Aborts on loads and stores.
    pub data_aborts: u64,
}

struct Slot(UnsafeCell<Option<Pager>>);
// SAFETY: there is one processor, an abort handler does not fault, and only programs are interrupted, so `with` is
// never entered twice.
unsafe impl Sync for Slot {}
static PAGER: Slot = Slot(UnsafeCell::new(None));

/// Puts the pager where the abort handlers find it.
pub fn install(pager: Pager) {
    // SAFETY: the MMU maps everything that runs before the program, so no handler is at work.
    unsafe { *PAGER.0.get() = Some(pager) }
}

/// The pager, if one is installed. The reference must be dropped before the handler returns.
fn installed() -> Option<&'static mut Pager> {
    // SAFETY: see `Sync` above: no other reference is alive.
    unsafe { (*PAGER.0.get()).as_mut() }
}

/// Does something with the pager.
pub fn with<R>(act: impl FnOnce(&mut Pager) -> R) -> R {
    act(installed().expect("the pager is installed before the program runs"))
}

impl Pager {
    /// A pager that has seen nothing.
    pub fn new(engine: Engine, board: Board, scheduler: Scheduler, prefetcher: Prefetcher) -> Pager {
        let saved = core::array::from_fn(|task| Registers::at_start(task as u32));
        Pager {
            engine,
            board,
            scheduler,
            prefetcher,
            saved,
            status: 0,
            start_faults: 0,
            spent: 0,
            longest: 0,
            prefetch_aborts: 0,
            data_aborts: 0,
        }
    }

    /// Names the task of each data page, so that a page that leaves RAM goes to the log of its task.
    pub fn name_owners(&mut self) {
        let data = self.board.space.data();
        for (task, page) in data {
            self.deliver(Event::Owned { task: TaskId(task), page, backed: Backed::Anonymous });
        }
    }

    /// The whole fault: the program may repeat its access when this returns.
    fn fault(&mut self, page: PageId, access: Access) {
        let began = self.board.clock.ticks();
        let (true_faults, at_start) = (self.engine.counts().true_faults, self.is_at_start());
        let task = TaskId::from(self.scheduler.running());
        self.deliver(Event::Fault { task, page, access });
        while !self.board.take_resumed() {
            let end = self.board.device.wait(&mut self.board.clock);
            self.deliver(end);
        }
        while let Some(end) = self.board.device.ended() {
            self.deliver(end);
        }
        let ticks = self.board.clock.ticks() - began;
        self.spent += ticks;
        self.longest = self.longest.max(ticks);
        if self.engine.counts().true_faults > true_faults {
            self.start_faults += u64::from(at_start);
            self.prefetcher.major_fault(task, page);
            self.read_ahead(page);
        }
        self.after_fault();
        self.board.flush();
    }

    fn deliver(&mut self, event: Event) {
        self.board.note(event);
        self.engine.handle(event, &mut self.board);
    }
}

#[no_mangle]
extern "C" fn on_prefetch_abort(pc: u32) {
    with(|pager| pager.prefetch_aborts += 1);
    handle(pc, Access::Read, mmu::prefetch_fault(), pc);
}

/// The instruction's page is mapped, since the instruction was fetched.
#[no_mangle]
extern "C" fn on_data_abort(pc: u32) {
    let (status, address) = mmu::data_fault();
    let access = if is_store(io::read32(pc)) { Access::Write } else { Access::Read };
    with(|pager| pager.data_aborts += 1);
    handle(address, access, status, pc);
}

/// ARMv5's fault status does not show whether a load or a store was aborted, so the instruction is decoded (ARM
/// Architecture Reference Manual, section A3: load and store encodings). Bit 20 is set for loads; but LDRD has it
/// clear, as stores do.
fn is_store(instruction: u32) -> bool {
    let load = instruction & 1 << 20 != 0;
    match instruction >> 25 & 0b111 {
        0b000 => {
            let kind = instruction >> 4 & 0xf;
            !load && kind != 0b1101
        }
        _ => !load,
    }
}

/// Code and read-only data are only read; a store to them is the program's fault.
fn handle(address: u32, access: Access, status: u32, pc: u32) {
    let page = with(|pager| {
        let (space, task) = (&pager.board.space, pager.scheduler.running() as u32);
        space.page_at(address, task).filter(|page| allowed(space.is_data(*page), access, status))
    });
    match page {
        Some(page) => with(|pager| pager.fault(page, access)),
        None => panic!("the program touched {address:#x} at {pc:#x}, fault status {status:#x} ({})", platform::NAME),
    }
}

fn allowed(data: bool, access: Access, status: u32) -> bool {
    match access {
        Access::Read => status == mmu::TRANSLATION,
        Access::Write => data && (status == mmu::TRANSLATION || status == mmu::PERMISSION),
    }
}

#[no_mangle]
extern "C" fn on_unexpected(pc: u32) -> ! {
    panic!("an exception that nobody expects, before {pc:#x}")
}
