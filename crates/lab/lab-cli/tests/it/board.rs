//! The bare board under QEMU. Real programs are paged from OneNAND, and their output must equal the host's. Parity: the
//! journal replays, and the simulator makes the same decisions for the references that the program made.
//!
//! `scripts/board.sh` builds the image and the programs. If a Debian package is missing, the test prints its name and
//! is skipped; with `COLDFRAME_REQUIRE_TOOLS=1` it fails.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use coldframe_core::prefetch::{PrefetchLists, LIST_MAX};
use coldframe_core::{Command as Order, Event, PageId, Place, SlotId, Transfer};
use coldframe_journal::{self as journal, Entry};
use coldframe_toolbox::skip;
use serde_json::Value;

/// Bytes of the data region, as in `board/programs/src/lib.rs`.
const DATA: u32 = 48 << 10;

/// Erase blocks of the swap area, with 64 slots each: enough for 48 pages and for collections.
const BLOCKS: u64 = 4;

/// A machine of QEMU.
struct Machine {
    name: &'static str,
    processor: &'static str,
    page: u32,
}

const ARM926: Machine = Machine { name: "n810", processor: "arm926", page: 1024 };
const ARM1136: Machine = Machine { name: "n810", processor: "arm1136-r2", page: 4096 };
const VERSATILE: Machine = Machine { name: "versatilepb", processor: "arm926", page: 1024 };

/// A run of a program on the board.
struct Run<'a> {
    machine: &'a Machine,
    program: &'a str,
    policy: &'a str,
    handler: &'a str,
    frames: u32,
}

fn script() -> Command {
    let mut command = Command::new("sh");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scripts/board.sh"));
    command
}

fn text(command: &mut Command) -> String {
    let out = command.stdin(Stdio::null()).output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let stdout = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success(), "{command:?}: {stdout}{}", String::from_utf8_lossy(&out.stderr));
    stdout
}

/// The folder with images and programs, built once; `None` if something is missing, after a message.
fn built() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    BUILT.get_or_init(build).as_deref()
}

fn build() -> Option<PathBuf> {
    let missing = text(script().arg("--missing"));
    if !missing.is_empty() {
        let packages = missing.split_whitespace().collect::<Vec<_>>().join(" ");
        skip(&format!("the board cannot be built and run; on Debian 12: apt-get install {packages}"));
        return None;
    }
    // .../target/debug/deps/this-test
    let out = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("board");
    text(script().arg(&out));
    Some(out)
}

/// The build, if QEMU has the n810 (removed in 9.2).
fn built_for_n810() -> Option<&'static Path> {
    let built = built()?;
    let has = text(Command::new("qemu-system-arm").args(["-M", "help"])).lines().any(|l| l.starts_with("n810 "));
    if !has {
        skip("THIS QEMU HAS NO n810, so nothing was paged from OneNAND; QEMU up to 9.1 has it, such as Debian 12's");
    }
    has.then_some(built)
}

impl Run<'_> {
    /// Runs the program in `folder`, with `further` at the end of its command line. The folder gets the output and the
    /// references. Returns the counts.
    fn go(&self, built: &Path, folder: &Path, further: &str) -> Value {
        let Run { machine, program, policy, handler, frames } = self;
        let at = folder.display();
        let plugin = built.join("libreftrace.so").display().to_string();
        let range = format!("page={},from=0x20000000,to=0x20200000", machine.page);
        let settings = format!("policy={policy} handler={handler} frames={frames}");
        let mut qemu = script();
        qemu.arg("run").arg(built).args([machine.name, machine.processor, program]);
        qemu.arg(format!("{settings} out={at}/out {further}"));
        qemu.args(["-plugin", &format!("{plugin},out={at}/references.din,{range}")]);
        let out = qemu.stdin(Stdio::null()).output().unwrap();
        let stdout = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "{settings}: {stdout}{}", String::from_utf8_lossy(&out.stderr));
        for (task, program) in program.split('+').enumerate() {
            let truth = Command::new(built.join(format!("{program}.host"))).output().unwrap().stdout;
            let name = if task == 0 { "out".to_owned() } else { format!("out{}", task + 1) };
            let same = !truth.is_empty() && truth == fs::read(folder.join(name)).unwrap();
            assert!(same, "{settings}: the output of {program}, task {task}, is not the host's");
        }
        eprintln!("{program} {settings}: {}", stdout.trim());
        serde_json::from_str(&stdout).unwrap()
    }

    /// As [`Run::go`], and the entries of the journal, which a fresh engine has replayed to the same commands.
    fn replayed(&self, built: &Path, further: &str) -> (Value, Vec<Entry>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let counts = self.go(built, folder.path(), &format!("{further} journal={}", path.display()));
        let journal = fs::read(&path).unwrap();
        journal::replay(&journal).unwrap_or_else(|e| panic!("{} {further}: {e}", self.program));
        let (_, mut rest) = journal::open(&journal).unwrap();
        (counts, std::iter::from_fn(|| rest.next_entry().unwrap()).collect())
    }

    /// The journal of the simulator's engine for the references of the run.
    fn simulated(&self, folder: &Path) -> Vec<u8> {
        let path = |name: &str| folder.join(name).display().to_string();
        let (trace, journal) = (path("references.parquet"), path("simulated.journal"));
        text(Command::new(env!("CARGO_BIN_EXE_coldframe-lab")).args([
            "trace",
            "import",
            &format!("din:{}", path("references.din")),
            "-o",
            &trace,
        ]));
        let buffers = if self.machine.page > 2048 { 1 } else { 2 };
        let mut simulation = Command::new(env!("CARGO_BIN_EXE_coldframe-lab"));
        simulation.args(["sim", &trace, "--policy", self.policy, "--handler", self.handler, "--journal", &journal]);
        simulation.args(["--frames", &self.frames.to_string(), "--page", &format!("{}B", self.machine.page)]);
        simulation.args(["--set", "machine.reference_bit=false", "--set", "machine.dirty_bit=false"]);
        text(simulation.args(["--set", &format!("machine.buffers={buffers}")]));
        fs::read(journal).unwrap()
    }

    /// Pages the program, and compares the machine with a fresh engine and with the simulator.
    fn agrees(&self, built: &Path) -> Value {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        let counts = self.go(built, folder.path(), &format!("journal={}", journal.display()));
        assert_eq!(counts["page"], self.machine.page);
        assert_eq!(
            counts["true_faults"].as_u64().unwrap() + counts["false_faults"].as_u64().unwrap(),
            counts["prefetch_aborts"].as_u64().unwrap() + counts["data_aborts"].as_u64().unwrap(),
            "each abort is a fault of the engine, and nothing else is"
        );
        let on_board = fs::read(journal).unwrap();
        journal::replay(&on_board).unwrap_or_else(|e| panic!("{} {}: {e}", self.policy, self.handler));
        let (board, simulated) = (steps(&on_board), steps(&self.simulated(folder.path())));
        for (number, (board, simulated)) in board.iter().zip(&simulated).enumerate() {
            assert_eq!(board, simulated, "{} {}: step {number}", self.policy, self.handler);
        }
        assert_eq!(board.len(), simulated.len());
        let evictions = board.iter().filter(|e| matches!(e, Entry::Command(Order::Evict { .. }))).count();
        assert_eq!(counts["evictions"], evictions);
        assert!(evictions > 2 * self.frames as usize, "too little RAM pressure to show anything");
        counts
    }
}

/// A journal's entries without time. Pages and their home slots are numbered in the order of their first faults,
/// because the board numbers pages by address and the simulator by first reference.
fn steps(journal: &[u8]) -> Vec<Entry> {
    let (_, mut entries) = journal::open(journal).unwrap();
    let mut numbers = HashMap::new();
    let mut steps = Vec::new();
    while let Some(entry) = entries.next_entry().unwrap() {
        steps.push(renumbered(entry, |page| {
            let next = numbers.len() as u32;
            PageId(*numbers.entry(page).or_insert(next))
        }));
    }
    steps
}

fn renumbered(entry: Entry, mut number: impl FnMut(PageId) -> PageId) -> Entry {
    let mut event = |event| match event {
        Event::Fault { task, page, access } => Event::Fault { task, page: number(page), access },
        Event::Loaded { .. } | Event::Failed { transfer: Transfer::Load(_) } => event,
        other => panic!("{other:?}: read-only pages of one task do not do this"),
    };
    let entry = match entry {
        Entry::Event { event: e, .. } => return Entry::Event { now: 0, event: event(e) },
        Entry::Command(order) => order,
        other => panic!("{other:?}: there are no bits to ask for"),
    };
    Entry::Command(match entry {
        Order::Load { ticket, page, from, into } => {
            assert_eq!(from, page.home());
            let page = number(page);
            Order::Load { ticket, page, from: SlotId(page.0), into }
        }
        Order::Move { page, from, to } => Order::Move { page: number(page), from, to },
        Order::Protect { page } => Order::Protect { page: number(page) },
        Order::Unmap { page } => Order::Unmap { page: number(page) },
        Order::Evict { page, from } => Order::Evict { page: number(page), from },
        Order::Map { page, place, writable, referenced } => {
            Order::Map { page: number(page), place, writable, referenced }
        }
        same @ (Order::Stage { .. } | Order::Resume { .. }) => same,
        other => panic!("{other:?}: read-only pages are not written"),
    })
}

#[test]
fn the_mmu_and_aborts_page_programs_where_there_is_no_onenand() {
    let Some(built) = built() else { return };
    for program in ["fft", "deflate"] {
        Run { machine: &VERSATILE, program, policy: "clock", handler: "parallel", frames: 6 }.agrees(built);
    }
}

#[test]
fn every_handler_pages_programs_from_onenand_on_tiny_pages_and_agrees_with_the_simulator() {
    let Some(built) = built_for_n810() else { return };
    for (program, frames) in [("fft", 6), ("deflate", 12)] {
        for handler in coldframe_core::fault::handler::ALL.iter().map(|handler| handler.name) {
            for policy in ["clock", "pa-fifo-sc:valid=50%"] {
                let run = Run { machine: &ARM926, program, policy, handler, frames };
                run.agrees(built);
            }
        }
    }
}

#[test]
fn every_policy_decides_on_the_board_as_in_the_simulator() {
    let Some(built) = built_for_n810() else { return };
    for policy in coldframe_core::policy::texts(4) {
        Run { machine: &ARM926, program: "deflate", policy: &policy, handler: "parallel", frames: 12 }.agrees(built);
    }
}

#[test]
fn delayed_dual_buffering_executes_from_the_data_ram_and_moves_pages_during_loads() {
    let Some(built) = built_for_n810() else { return };
    let run = |handler| Run { machine: &ARM926, program: "fft", policy: "fifo", handler, frames: 6 }.agrees(built);
    let (parallel, delayed) = (run("parallel"), run("delayed-dual-buffering"));
    assert_eq!(parallel["page_moves_dual"], 0);
    // Each page's move except the last waits for the next fault, and runs in parallel with its load.
    assert_eq!(delayed["page_moves_dual"], delayed["page_moves"]);
    assert_eq!(delayed["page_moves"].as_u64().unwrap() + 1, delayed["true_faults"].as_u64().unwrap());
}

#[test]
fn small_pages_of_four_kibibytes_take_two_chip_pages_each() {
    let Some(built) = built_for_n810() else { return };
    for handler in ["sequential", "parallel"] {
        for policy in ["fifo-sc:valid=50%", "pa-clock:budget=2"] {
            Run { machine: &ARM1136, program: "deflate", policy, handler, frames: 4 }.agrees(built);
        }
    }
}

#[test]
fn the_search_hides_behind_the_load_in_the_parallel_handler() {
    let Some(built) = built_for_n810() else { return };
    let waited = |handler| {
        let run = Run { machine: &ARM926, program: "deflate", policy: "clock", handler, frames: 12 };
        run.agrees(built)["waited_instructions"].as_u64().unwrap()
    };
    assert!(waited("parallel") < waited("sequential"));
}

#[test]
fn dirty_pages_of_a_data_region_go_out_through_the_log_and_come_back_as_they_were() {
    let Some(built) = built_for_n810() else { return };
    for handler in ["sequential", "parallel", "delayed-dual-buffering"] {
        for policy in ["clock", "pa-fifo-sc:valid=50%"] {
            let folder = tempfile::tempdir().unwrap();
            let run = Run { machine: &ARM926, program: "sort", policy, handler, frames: 16 };
            let counts = run.go(built, folder.path(), &format!("data={DATA} blocks={BLOCKS}"));
            let count = |name: &str| counts[name].as_u64().unwrap();
            // More evictions than the area has slots: without collections it would be full.
            assert!(count("dirty_evictions") > BLOCKS * 64, "{handler} {policy}");
            assert!(count("blocks_erased") > BLOCKS && count("slots_copied") > 0, "{handler} {policy}");
        }
    }
}

/// DR.Swap: a page that left its frame is read where it lies, in memory that stands for PCM, and a write copies it
/// (TCAD 2016, section III.B). So fewer pages come back to a frame than with a log on the chip, where each read
/// brings its page.
#[test]
fn pages_are_read_in_non_volatile_memory_and_copied_by_a_write() {
    let Some(built) = built_for_n810() else { return };
    for (machine, program, further) in [
        (&ARM926, "sort", format!("data={DATA} ")),
        (&ARM926, "deflate", String::new()),
        (&VERSATILE, "deflate", String::new()),
    ] {
        for (policy, handler) in [("clock", "sequential"), ("pa-fifo-sc:valid=50%", "delayed-dual-buffering")] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("journal");
            let run = Run { machine, program, policy, handler, frames: 12 };
            let counts = run.go(built, folder.path(), &format!("{further}area=nvm journal={}", path.display()));
            let journal = fs::read(&path).unwrap();
            journal::replay(&journal).unwrap_or_else(|e| panic!("{program} {policy} {handler}: {e}"));
            let (_, mut entries) = journal::open(&journal).unwrap();
            let (mut in_slot, mut read) = (HashSet::new(), 0);
            while let Some(entry) = entries.next_entry().unwrap() {
                let Entry::Command(Order::Map { page, place, writable, .. }) = entry else { continue };
                match place {
                    Place::Slot(_) => {
                        assert!(!writable, "page {} could be written where it lies", page.0);
                        read += usize::from(in_slot.insert(page));
                    }
                    _ => _ = in_slot.remove(&page),
                }
            }
            assert!(read > 12, "{program} {policy} {handler}: {read} pages were read in their slots");
            if program == "sort" {
                let log = run.go(built, folder.path(), &format!("{further}blocks={BLOCKS}"));
                assert!(count(&counts, "dirty_evictions") > 100);
                assert!(count(&counts, "page_moves") < count(&log, "page_moves"), "{counts} {log}");
            } else {
                assert!(count(&counts, "dirty_evictions") == 0 && count(&counts, "direct_reads") > 0, "{counts}");
            }
        }
    }
}

fn count(counts: &Value, name: &str) -> u64 {
    counts[name].as_u64().unwrap_or_else(|| panic!("{name} in {counts}"))
}

/// The paper's stress test (SAP section 5.2 and figure 4): four workers, and RAM for three of them. Without SAP each
/// slice begins with the faults of a whole sweep.
const WORKERS: Run<'_> = Run {
    machine: &ARM926,
    program: "worker+worker+worker+worker",
    policy: "second-chance",
    handler: "parallel",
    frames: 36,
};

#[test]
fn the_next_tasks_pages_are_loaded_before_its_slice() {
    let Some(built) = built_for_n810() else { return };
    let (without, plain) = WORKERS.replayed(built, "slice=1000");
    let (with, entries) = WORKERS.replayed(built, "slice=1000 sap=75");
    assert!(!plain.iter().any(|e| matches!(e, Entry::Event { event: Event::Slice | Event::WillNeed { .. }, .. })));
    assert!(count(&with, "prefetches") > 2 * count(&with, "switches"), "{with}");
    assert!(count(&without, "true_faults") > 500, "the workers have too much RAM: {without}");
    assert!(10 * count(&with, "true_faults") < 6 * count(&without, "true_faults"), "{with} {without}");
    assert!(10 * count(&with, "start_faults") < 7 * count(&without, "start_faults"), "{with} {without}");
    assert!(count(&with, "instructions") < count(&without, "instructions"), "{with} {without}");
    let loads = entries.iter().filter(|e| matches!(e, Entry::Command(Order::Load { .. }))).count() as u64;
    assert_eq!(loads, count(&with, "prefetches") + count(&with, "true_faults"), "each load is counted once");
}

/// Algorithm 1 over again, from the journal's faults: what a slice hints is on the list of the task that runs next, in
/// the list's order; only hints without a load, which make pages recent, may be for the task that runs.
#[test]
fn the_hints_are_those_of_the_next_tasks_list() {
    let Some(built) = built_for_n810() else { return };
    let (_, entries) = WORKERS.replayed(built, "slice=1000 sap=50");
    let slices: Vec<&[Entry]> = entries.split(|e| matches!(e, Entry::Event { event: Event::Slice, .. })).collect();
    let running = |slice: &[Entry]| {
        slice.iter().find_map(|e| match e {
            Entry::Event { event: Event::Fault { task, .. }, .. } => Some(*task),
            _ => None,
        })
    };
    let (mut lists, mut loads) = (PrefetchLists::new(4, LIST_MAX), 0);
    for (slice, following) in slices.iter().zip(&slices[1..]) {
        let (Some(runs), Some(next)) = (running(slice), running(following)) else { continue };
        let mut hinted = Vec::new();
        for event in slice.chunk_by(|_, e| !matches!(e, Entry::Event { .. })) {
            let loads = |page: PageId| {
                event.iter().any(|e| matches!(e, Entry::Command(Order::Load { page: loaded, .. }) if *loaded == page))
            };
            match event[0] {
                Entry::Event { event: Event::Fault { task, page, .. }, .. } if loads(page) => {
                    assert_eq!(task, runs);
                    lists.major_fault(task, page);
                }
                Entry::Event { event: Event::WillNeed { page }, .. } => hinted.push((page, loads(page))),
                _ => {}
            }
        }
        let [mine, list] = [runs, next].map(|task| lists.of(task).collect::<Vec<_>>());
        assert!(hinted.iter().all(|(page, load)| list.contains(page) || !load && mine.contains(page)), "{hinted:?}");
        let mut rest = list.iter();
        let loaded: Vec<_> = hinted.iter().filter(|(_, load)| *load).map(|(page, _)| page).collect();
        assert!(loaded.iter().all(|page| rest.any(|listed| listed == *page)), "{loaded:?} are not ordered as {list:?}");
        loads += loaded.len();
    }
    assert!(loads > 200, "{loads} loads were compared");
}

#[test]
fn a_task_cannot_read_another_ones_memory() {
    let Some(built) = built() else { return };
    for machine in [&VERSATILE, &ARM926, &ARM1136] {
        if machine.name == "n810" && built_for_n810().is_none() {
            continue;
        }
        let mut run = script();
        run.arg("run").arg(built).args([machine.name, machine.processor, "trespass+worker"]);
        let folder = tempfile::tempdir().unwrap();
        let settings = "policy=clock handler=parallel frames=24 slice=1000";
        let out = run.arg(format!("{settings} out={}/out", folder.path().display())).output().unwrap();
        let stdout = String::from_utf8_lossy(&out.stdout);
        assert_eq!(out.status.code(), Some(101), "{stdout}");
        // Fault status 9: the domain of a section is closed (ARM926EJ-S manual, fault status).
        assert!(stdout.contains("the program touched 0x30200000") && stdout.contains("status 0x9"), "{stdout}");
    }
}

/// Real programs in turn, by each handler, on both page sizes and without OneNAND: the journals replay.
#[test]
fn tasks_in_turn_write_what_they_write_alone() {
    let Some(built) = built() else { return };
    for (machine, frames, handlers) in [
        (&VERSATILE, 24, &["parallel"][..]),
        (&ARM926, 24, &["sequential", "parallel", "delayed-dual-buffering"]),
        (&ARM1136, 8, &["sequential", "parallel"]),
    ] {
        if machine.name == "n810" && built_for_n810().is_none() {
            continue;
        }
        for handler in handlers {
            let run = Run { machine, program: "fft+deflate", policy: "second-chance", handler, frames };
            for further in ["slice=2000", "slice=2000 sap=75"] {
                let (counts, _) = run.replayed(built, further);
                assert!(count(&counts, "switches") > 10, "{counts}");
                assert_eq!(count(&counts, "lists_loaded") > 0, further.contains("sap"), "{counts}");
            }
        }
    }
}

/// LOBI's swap-in: a fault brings the neighbours in its erase block, so fewer faults come. Each neighbour is a load of
/// its own on this chip, so time is not shorter.
#[test]
fn neighbours_in_the_erase_block_come_with_a_page() {
    let Some(built) = built_for_n810() else { return };
    let run = Run { machine: &ARM926, program: "sort", policy: "clock", handler: "parallel", frames: 32 };
    let area = format!("data={DATA} blocks={BLOCKS}");
    let (alone, _) = run.replayed(built, &area);
    let (together, entries) = run.replayed(built, &format!("{area} read-ahead=8"));
    assert!(2 * count(&together, "true_faults") < count(&alone, "true_faults"), "{together} {alone}");
    // The newest slot of each page. What a fault may bring is known when it has ended, with the event behind it.
    let pages = count(&together, "pages") as u32;
    let (mut slots, mut faulted, mut beside) = (HashMap::<PageId, u32>::new(), None, HashSet::new());
    let mut hints = 0;
    for entry in &entries {
        let event = if let Entry::Event { event, .. } = entry { Some(*event) } else { None };
        if let Some(Event::Fault { .. } | Event::WillNeed { .. }) = event {
            let group = faulted.take().and_then(|page| slots.get(&page)).map(|slot| (slot - pages) / 8);
            beside.extend(slots.iter().filter(|(_, slot)| Some((**slot - pages) / 8) == group).map(|(page, _)| *page));
        }
        match *entry {
            Entry::Command(Order::Write { page, to, .. } | Order::CopySlot { page, to, .. }) => {
                slots.insert(page, to.0);
            }
            Entry::Event { event: Event::Fault { page, .. }, .. } => faulted = Some(page),
            Entry::Event { event: Event::WillNeed { page }, .. } => {
                assert!(beside.remove(&page), "page {} is beside no page that has faulted", page.0);
                hints += 1;
            }
            _ => {}
        }
    }
    assert!(hints > 300, "{hints} hints");
}

/// LOBI's logs: with one for each task, no block takes pages of two tasks from RAM. With one, most do.
#[test]
fn each_tasks_pages_go_to_erase_blocks_of_their_own() {
    let Some(built) = built_for_n810() else { return };
    let run = Run { machine: &ARM926, program: "sort+sort", policy: "second-chance", handler: "parallel", frames: 24 };
    let mixed = |further: &str| {
        let (counts, entries) = run.replayed(built, &format!("slice=2000 data={DATA} blocks=8 {further}"));
        let (pages, data) = (count(&counts, "pages") as u32, DATA / 1024);
        let (mut tasks, mut mixed) = (HashMap::new(), 0);
        for entry in &entries {
            match *entry {
                Entry::Command(Order::Write { page, to, .. }) => {
                    let task = (page.0 - (pages - 2 * data)) / data;
                    mixed += u64::from(*tasks.entry((to.0 - pages) / 64).or_insert(task) != task);
                }
                Entry::Command(Order::EraseBlock { block }) => _ = tasks.remove(&block.0),
                _ => {}
            }
        }
        (mixed, count(&counts, "dirty_evictions"))
    };
    let ((one, writes), (logs, _)) = (mixed(""), mixed("logs=2"));
    assert!(4 * one > writes, "{one} of {writes} writes into another task's block with one log");
    assert_eq!(logs, 0, "writes into another task's block with two logs");
}

/// The purpose of SWL's PA-Clock: Clock's longest search grows with the RAM until the load no longer hides it. A budget
/// of 13 steps limits the search (SWL, LCTES 2007, section 4.1.2), so four times the RAM does not make the worst fault
/// longer.
#[test]
fn the_longest_fault_grows_with_the_ram_under_clock_and_not_under_pa_clock() {
    let Some(built) = built_for_n810() else { return };
    let longest = |policy, frames| {
        let folder = tempfile::tempdir().unwrap();
        let run = Run { machine: &ARM926, program: "deflate", policy, handler: "parallel", frames };
        run.go(built, folder.path(), "")["fault_instructions_max"].as_u64().unwrap()
    };
    // The timer has a resolution of 30 instructions; a step of the walk takes about 300.
    let ticks = 4 * 30;
    assert!(longest("pa-clock:budget=13", 48) <= longest("pa-clock:budget=13", 12) + ticks);
    assert!(longest("clock", 48) > 2 * longest("clock", 12));
}

#[test]
fn what_cannot_be_run_is_reported_and_ends_with_a_status() {
    let Some(built) = built_for_n810() else { return };
    let folder = tempfile::tempdir().unwrap();
    for (program, settings, message) in [
        ("fft", "policy=best handler=parallel frames=5", "there is no policy `best`"),
        ("fft", "policy=clock handler=sideways frames=5", "there is no handler `sideways`"),
        ("fft", "policy=clock handler=parallel", "gives no frames="),
        ("fft", "policy=clock handler=parallel frames=100000", "frames=100000; give 1 to 512"),
        ("sort", "policy=clock handler=parallel frames=16", "the program touched 0x20100000"),
        ("sort", "policy=clock handler=parallel frames=4 data=49152 blocks=2", "`blocks` is 2"),
        ("sort", "policy=clock handler=parallel frames=4 data=49152 area=pcm", "there is no area=pcm; give area=nvm"),
        ("fft+sort", "policy=clock handler=parallel frames=24", "programs take turns; give slice="),
        ("fft", "policy=clock handler=parallel frames=24 slice=1000 sap=75", "give more programs"),
        ("sort", "policy=clock handler=parallel frames=24 data=49152 blocks=4 read-ahead=7", "give 8, 16 or 32"),
        ("sort", "policy=clock handler=parallel frames=24 data=49152 blocks=4 logs=0", "`logs` is 0"),
    ] {
        let mut run = script();
        run.arg("run").arg(built).args(["n810", "arm926", program]);
        let out = run.arg(format!("{settings} out={}/out", folder.path().display())).output().unwrap();
        let stdout = String::from_utf8_lossy(&out.stdout);
        assert_eq!(out.status.code(), Some(101), "{settings}: {stdout}");
        assert!(stdout.contains(message), "{settings}: {stdout}");
    }
}

#[test]
fn the_driver_loads_programs_erases_and_executes_on_both_processors() {
    let Some(built) = built_for_n810() else { return };
    for processor in ["arm926", "arm1136-r2"] {
        let stdout = text(script().arg("run").arg(built).args(["n810", processor, "fft", "self-test"]));
        assert_eq!(stdout.trim(), "self-test: ok", "{processor}");
    }
}
