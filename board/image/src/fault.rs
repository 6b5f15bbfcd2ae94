//! From an abort to `Event::Fault` and back: the handlers' Rust half, and the engine they drive.

use core::cell::UnsafeCell;

use coldframe_core::{Access, Engine, Event, PageId, TaskId};

use crate::machine::Board;
use crate::mmu::{self, PAGED};
use crate::platform;

/// The engine and what it drives.
pub struct Pager {
    /// The engine.
    pub engine: Engine,
    /// The machine.
    pub board: Board,
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
// SAFETY: one processor; an abort handler does not fault, so nobody enters `with` twice.
unsafe impl Sync for Slot {}
static PAGER: Slot = Slot(UnsafeCell::new(None));

/// Puts the pager where the abort handlers find it.
pub fn install(pager: Pager) {
    // SAFETY: the MMU maps everything that runs before the program, so no handler is at work.
    unsafe { *PAGER.0.get() = Some(pager) }
}

/// Does something with the pager.
pub fn with<R>(act: impl FnOnce(&mut Pager) -> R) -> R {
    // SAFETY: see `Sync` above: no other reference is alive.
    act(unsafe { (*PAGER.0.get()).as_mut() }.expect("the pager is installed before the program runs"))
}

impl Pager {
    /// A pager that has seen nothing.
    pub fn new(engine: Engine, board: Board) -> Pager {
        Pager { engine, board, spent: 0, longest: 0, prefetch_aborts: 0, data_aborts: 0 }
    }

    /// The whole fault: the program may repeat its access when this returns.
    fn fault(&mut self, page: PageId, access: Access) {
        let began = self.board.clock.ticks();
        self.deliver(Event::Fault { task: TaskId(0), page, access });
        while !self.board.take_resumed() {
            let end = self.board.device.wait(&mut self.board.clock);
            self.deliver(end);
        }
        let ticks = self.board.clock.ticks() - began;
        self.spent += ticks;
        self.longest = self.longest.max(ticks);
        self.board.flush();
    }

    fn deliver(&mut self, event: Event) {
        self.board.note(event);
        self.engine.handle(event, &mut self.board);
    }

    fn page_of(&self, address: u32) -> Option<PageId> {
        let page = address.checked_sub(PAGED)? / self.board.page();
        ((page as usize) < self.engine.config().pages).then_some(PageId(page))
    }
}

#[no_mangle]
extern "C" fn on_prefetch_abort(pc: u32) {
    with(|pager| pager.prefetch_aborts += 1);
    handle(pc, mmu::prefetch_fault(), pc);
}

#[no_mangle]
extern "C" fn on_data_abort(pc: u32) {
    let (status, address) = mmu::data_fault();
    with(|pager| pager.data_aborts += 1);
    handle(address, status, pc);
}

/// ARMv5 does not say whether a load or a store was aborted; code and read-only data are only read, and a store to them is the program's fault.
fn handle(address: u32, status: u32, pc: u32) {
    let page = with(|pager| pager.page_of(address));
    match (page, status) {
        (Some(page), mmu::TRANSLATION) => with(|pager| pager.fault(page, Access::Read)),
        _ => panic!("the program touched {address:#x} at {pc:#x}, fault status {status:#x} ({})", platform::NAME),
    }
}

#[no_mangle]
extern "C" fn on_unexpected(pc: u32) -> ! {
    panic!("an exception that nobody expects, before {pc:#x}")
}
