//! coldframe on a bare ARM9: demand paging of a program's code and read-only data from OneNAND, in real prefetch and data aborts.
//!
//! ```text
//! start   reset, vectors, user mode          fault    abort -> Event::Fault -> core's engine -> Resume
//! mmu     page tables                        machine  the engine's commands on mmu and device
//! chip    OneNAND's registers                device   page loads and their busy time
//! quirks  what QEMU does otherwise           debug    the debug channel: console, files of the host, exit
//! ```
//!
//! The engine, its policies and handlers are `coldframe-core`'s, unchanged. The run is said on the command line (`settings`), and told at its
//! end as one line of JSON.
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
mod quirks;
mod settings;
mod start;
mod write;

use alloc::string::ToString;
use core::panic::PanicInfo;

use coldframe_core::{Caps, Config, Engine};
use coldframe_trace::journal::{Head, Journal};

use debug::File;
use fault::Pager;
use machine::Board;
use mmu::{PageTable, PAGED};
use platform::Clock;
use settings::Settings;

/// Journal entries of one fault, with room to spare: a policy may unmap every frame in one search, at four entries of some ten bytes.
const JOURNAL_ROOM: usize = 128 << 10;

#[no_mangle]
extern "C" fn kernel_main() -> ! {
    let mut space = [0; 1024];
    let settings = Settings::parse(debug::command_line(&mut space));
    let clock = Clock::start();
    let out = File::create(settings.out).unwrap_or_else(|| panic!("{} cannot be written", settings.out));
    fault::install(pager(&settings, PageTable::enable(), clock));
    write::to(out);
    heap::close();
    // SAFETY: the paged space starts with the program's entry, and the abort handlers are in place.
    let status = unsafe { start::run_user(PAGED) };
    fault::with(report);
    debug::exit(status)
}

fn pager(settings: &Settings<'_>, table: PageTable, clock: Clock) -> Pager {
    let (page, frames) = (table.page(), settings.frames);
    let caps = Caps { reference_bit: false, dirty_bit: false, buffers: device::buffers(page) };
    let config = Config {
        frames: frames as usize,
        pages: settings.image.div_ceil(page) as usize,
        tasks: 1,
        evict_batch: 1,
        caps,
    };
    let policy = settings.policy.build(config.frames, config.pages).unwrap_or_else(|e| panic!("{e}"));
    let engine = Engine::new(config, policy, settings.handler).unwrap_or_else(|e| panic!("{e}"));
    let journal = settings.journal.map(|path| journal(path, settings, config));
    Pager::new(engine, Board::new(table, clock, frames, journal))
}

fn journal(path: &str, settings: &Settings<'_>, config: Config) -> (Journal, File) {
    let head = Head { policy: settings.policy.to_string(), handler: settings.handler.name.to_string(), config };
    let mut journal = Journal::new(&head);
    journal.reserve(JOURNAL_ROOM);
    (journal, File::create(path).unwrap_or_else(|| panic!("{path} cannot be written")))
}

fn report(pager: &mut Pager) {
    pager.board.flush();
    pager.engine.check();
    let counts = pager.engine.counts();
    let instructions = platform::instructions;
    println!(
        "{{\"board\":\"{}\",\"processor\":\"{:#010x}\",\"page\":{},\"true_faults\":{},\"false_faults\":{},\"evictions\":{},\
         \"page_moves\":{},\"page_moves_dual\":{},\"walk_max\":{},\"prefetch_aborts\":{},\"data_aborts\":{},\
         \"fault_instructions\":{},\"fault_instructions_max\":{},\"waited_instructions\":{},\"heap_bytes\":{},\"stack_bytes\":{}}}",
        platform::NAME,
        mmu::processor(),
        pager.board.page(),
        counts.true_faults,
        counts.false_faults,
        counts.evictions,
        counts.page_moves,
        counts.page_moves_dual,
        counts.walk_max.0,
        pager.prefetch_aborts,
        pager.data_aborts,
        instructions(pager.spent),
        instructions(pager.longest),
        instructions(pager.board.device.waited),
        heap::used(),
        start::abort_stack_depth(),
    );
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    println!("coldframe-board: {info}");
    debug::exit(101)
}
