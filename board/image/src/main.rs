//! coldframe on a bare ARM9: demand paging of a program's code and read-only data from OneNAND, by real prefetch and
//! data aborts.
//!
//! ```text
//! start   reset, vectors, user mode          fault    abort -> Event::Fault -> core's engine -> Resume
//! mmu     page tables                        machine  the engine's commands on mmu and device
//! chip    OneNAND's registers                device   page loads and their busy time
//! task    registers of the programs          scheduler  who runs; fault/slices: the alarm, SAP's algorithm 1
//! quirks  differences of QEMU                debug    the debug channel: console, files of the host, exit
//! ```
//!
//! The engine, its policies and handlers are `coldframe-core`'s, unchanged. The command line has the settings of the
//! run (`settings`). At its end, the run is reported as one line of JSON.
#![no_std]
#![no_main]

extern crate alloc;

mod chip;
mod debug;
mod device;
mod fault;
mod heap;
mod io;
mod machine;
mod mmu;
mod platform;
mod prefetch;
mod quirks;
mod report;
mod scheduler;
#[cfg(not(feature = "versatilepb"))]
mod self_test;
mod settings;
mod space;
mod start;
mod task;
mod write;

use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use core::panic::PanicInfo;

use coldframe_core::swap::{AreaConfig, Swap, SwapAreas};
use coldframe_core::{Below, BlockId, Caps, Config, Engine};
use coldframe_journal::{Head, Journal};

use chip::CHIP_PAGE;
use debug::File;
use fault::Pager;
use machine::Board;
use mmu::PageTable;
use platform::Clock;
use prefetch::Prefetcher;
use scheduler::Scheduler;
use settings::Settings;
use space::Space;

/// Room for the journal entries of one fault, with a reserve: a policy may unmap every frame in one search, with four
/// entries of about ten bytes each.
const JOURNAL_ROOM: usize = 128 << 10;

#[no_mangle]
extern "C" fn kernel_main() -> ! {
    let mut space = [0; 1024];
    let line = debug::command_line(&mut space);
    #[cfg(not(feature = "versatilepb"))]
    if line.split_ascii_whitespace().any(|word| word == "self-test") {
        self_test::run(&PageTable::enable());
        debug::exit(0);
    }
    let settings = Settings::parse(line);
    let clock = Clock::start();
    let out = core::array::from_fn(|task| match task {
        0 => Some(create(settings.out)),
        _ => (task < settings.tasks).then(|| create(&format!("{}{}", settings.out, task + 1))),
    });
    fault::install(pager(&settings, PageTable::enable(), clock));
    write::to(out);
    heap::close();
    fault::with(Pager::begin);
    // SAFETY: the paged space starts with the first program's entry, and the abort handlers are in place.
    unsafe { start::run_user(task::entry(0)) };
    fault::with(report::print);
    debug::exit(fault::with(|pager| pager.status))
}

fn create(path: &str) -> File {
    File::create(path).unwrap_or_else(|| panic!("{path} cannot be written"))
}

fn pager(settings: &Settings<'_>, table: PageTable, clock: Clock) -> Pager {
    let (page, frames) = (table.page(), settings.frames);
    machine::check_frames(frames, page);
    let space = Space::new(page, &settings.images[..settings.tasks], settings.data);
    let caps = Caps {
        reference_bit: false,
        dirty_bit: false,
        direct_read: settings.nvm,
        places: false,
        buffers: device::buffers(page),
    };
    let (pages, tasks, prefetch) = (space.pages() as usize, settings.tasks, settings.prefetch);
    let config = Config { frames: frames as usize, pages, tasks, evict_batch: 1, caps };
    let policy = settings.policy.build(config.frames, config.pages).unwrap_or_else(|e| panic!("{e}"));
    let area = |blocks| SwapAreas {
        slots_per_block: device::SLOTS_PER_BLOCK,
        areas: vec![AreaConfig { logs: settings.logs, ..AreaConfig::log(blocks) }],
    };
    let below = Below { slots: None, swap: settings.blocks.map(area) };
    let builder = Engine::builder(config, policy, settings.handler).below(below.clone());
    let engine = builder.arrival(prefetch.arrival()).build().unwrap_or_else(|e| panic!("{e}"));
    let head =
        Head { below, arrival: prefetch.arrival(), ..Head::new(settings.policy.to_string(), settings.handler, config) };
    let journal = settings.journal.map(|path| journal(path, &head));
    let mut board = Board::new(table, space, clock, journal);
    if settings.nvm {
        board.device.move_to_nvm(board.space.image_pages(), board.space.pages(), &mut board.clock);
    }
    if let Some(swap) = engine.swap() {
        erase(swap, &mut board);
    }
    let mut pager =
        Pager::new(engine, board, Scheduler::new(tasks, settings.slice), Prefetcher::new(prefetch, tasks, pages));
    if settings.blocks.is_some() && settings.logs > 1 {
        pager.name_owners();
    }
    pager
}

/// Erases the blocks of the swap area.
///
/// # Panics
/// If pages are larger than half a DataRAM: there is no place for a page that is being evicted.
fn erase(swap: &Swap, board: &mut Board) {
    assert!(board.page() < CHIP_PAGE, "a swap area needs pages of 1 KiB; run it on the ARM926");
    for block in 0..swap.block_count() as u32 {
        board.device.erase_at_start(BlockId(block), &mut board.clock);
    }
}

fn journal(path: &str, head: &Head) -> (Journal, File) {
    let mut journal = Journal::new(head);
    journal.reserve(JOURNAL_ROOM);
    (journal, create(path))
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    println!("coldframe-board: {info}");
    debug::exit(101)
}
