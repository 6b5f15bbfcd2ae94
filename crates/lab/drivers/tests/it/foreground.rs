//! Tasks that take turns as a trace has them: what a switch waits for, and who is killed and starts again.

use coldframe_core::fault::handler::sequential;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::{Backed, Caps, Ps, SlotsConfig};
use coldframe_drivers::front_end::Spaces;
use coldframe_drivers::scheduler;
use coldframe_drivers::tasks::{Cpu, OnFault, Program, TaskSpec, TasksConfig, TasksResult, TraceTasks, Turns, CAPS};
use coldframe_journal::replay;
use coldframe_lane::machine::{DeviceTimes, MachineConfig, Route, Stages, Way, Zeros};
use coldframe_sheet::StagePrices;
use coldframe_store::{Block, Kind, Reference};

const US: Ps = Ps::from_us(1);
const FOREVER: Ps = Ps(i64::MAX as u64);
const SECOND: u64 = 1_000_000_000;

/// A copy from the area takes 10 us, one to it 100; the card with the files reads a page in 10 ms, and a file's page
/// spends 1 ms in the block layer.
fn machine(reads_max: Option<u32>) -> MachineConfig {
    let way = |processor, device| Way { processor, device };
    let card = DeviceTimes { load: US * 10_000, program: Some(US * 100_000) };
    MachineConfig {
        stages: Stages::AtOnce(US),
        home: Route { load: way(US * 1_000, Some(card.load)), write: way(US * 1_000, card.program) },
        area: Route { load: way(US * 10, None), write: way(US * 100, None) },
        slot_read: Ps(1_000),
        reads_max,
        ..MachineConfig::device(StagePrices::uniform(Ps::ZERO), card, Zeros::Free)
    }
}

fn config(frames: usize, slots: usize, direct_read: bool, reads_max: Option<u32>) -> TasksConfig {
    let (policy, scheduler) = (PolicyChoice::parse("fifo").unwrap(), scheduler::find("round-robin").unwrap());
    TasksConfig {
        caps: Caps { direct_read, ..CAPS },
        area: SlotsConfig { slots, files_min: 0 }.into(),
        reference: Ps::ZERO,
        tick: FOREVER,
        slice: Some(FOREVER),
        on_fault: OnFault::Keeps,
        ..TasksConfig::new(policy, &sequential::HANDLER, frames, machine(reads_max), scheduler)
    }
}

/// Rows of task, page, kind and time; pages from 8 on are a file's. A new engine must issue the commands of the journal
/// again.
fn run(config: &TasksConfig, services: &[bool], rows: &[(u32, u64, Kind, u64)]) -> TasksResult {
    let row = |(task, page, kind, time): &(u32, u64, Kind, u64)| Reference {
        task: *task,
        time: *time,
        ..Reference::new(page << 12, 4, *kind)
    };
    let mut block = Some(rows.iter().map(row).collect::<Block>());
    let backed = |row: &Reference| if row.address >> 12 < 8 { Backed::Anonymous } else { Backed::File };
    let read = TraceTasks::in_turns(12, &Spaces::default(), true, &backed, |into: &mut Block| {
        Ok::<_, ()>(block.take().map(|block| *into = block).is_some())
    });
    let read = read.unwrap();
    let spec =
        |(_, program): &(u32, Program)| TaskSpec::new(Program { pages: read.pages as u32, ..program.clone() }, 0, 1);
    let mut cpu = Cpu::new(config, &read.programs.iter().map(spec).collect::<Vec<_>>()).unwrap();
    let (turns, files) = (read.turns.clone(), read.files.clone());
    cpu.take_turns(Turns { turns, unit: Ps::from_ns(1), files, services: services.to_vec(), answer: US * 500 });
    cpu.keep_journal();
    let mut journal = Vec::new();
    let result = cpu.run_with_journal(&mut |bytes| {
        journal.extend_from_slice(bytes);
        Ok::<_, ()>(())
    });
    cpu.check();
    assert!(replay(&journal).unwrap().commands > 0);
    result.unwrap()
}

fn paging(result: &TasksResult) -> Ps {
    result.foreground.as_ref().unwrap().paging
}

#[test]
fn a_direct_read_takes_a_fault_and_a_copy_takes_a_swap_in() {
    let rows = [(0, 0, Kind::Write, 0), (0, 1, Kind::Write, 0), (0, 0, Kind::Read, 0), (0, 0, Kind::Read, 0)];
    let [with, without] = [true, false].map(|direct| run(&config(1, 4, direct, None), &[false], &rows));
    // Three faults and page 0 out; without direct read also page 1 out and page 0 in.
    assert_eq!((paging(&with), paging(&without)), (US * 103, US * 213));
    assert_eq!((with.reads_in_slots, with.counts.swap_ins), (2, 0));
    assert_eq!((without.reads_in_slots, without.counts.swap_ins), (0, 1));
    let writes = |result: TasksResult| result.foreground.unwrap().slot_writes;
    assert_eq!((writes(with), writes(without)), (vec![1, 0, 0, 0], vec![1, 1, 0, 0]));
}

#[test]
fn files_come_from_the_card_and_the_task_waits_for_it() {
    let rows = [(0, 8, Kind::Fetch, 0), (0, 9, Kind::Write, 0), (0, 1, Kind::Write, 0)];
    let done = run(&config(2, 4, true, None), &[false], &rows);
    // Three faults, two reads from the card. Page 8 is dropped, page 9 stays.
    assert_eq!(paging(&done), US * (3 + 2 * 11_000));
    assert_eq!((done.device_reads, done.device_writes), (2, 0));
}

#[test]
fn reads_in_slots_take_their_time_and_the_one_too_many_copies() {
    let read = (0, 0, Kind::Read, 0);
    let rows = [(0, 0, Kind::Write, 0), (0, 1, Kind::Write, 0), read, read, read, read];
    let [twice, ever] = [Some(2), None].map(|most| run(&config(1, 4, true, most), &[false], &rows));
    // Three of four reads are in the slot, and the third one is one too many. The copy traps and evicts page 1; no task
    // waits for it.
    assert_eq!((twice.reads_in_slots, ever.reads_in_slots), (3, 4));
    assert_eq!((twice.counts.swap_ins, twice.counts.read_often, ever.counts.swap_ins), (1, 1, 0));
    assert_eq!(paging(&twice), paging(&ever));
    let [twice, ever] = [twice, ever].map(|result| result.foreground.unwrap());
    assert_eq!((twice.slot_reading, ever.slot_reading), (Ps(3_000), Ps(4_000)));
    assert_eq!((twice.background_copies, ever.background_copies), (US * 111, Ps::ZERO));
}

#[test]
fn a_service_is_never_in_the_foreground_and_starts_again_after_it_was_killed() {
    // The service makes page 0, and is killed for task 0's second page. At its next row, a write of page 1, it makes
    // page 0 again.
    let rows = [(1, 0, Kind::Write, 0), (0, 0, Kind::Write, 0), (0, 1, Kind::Write, 1), (1, 1, Kind::Write, SECOND)];
    let done = run(&config(2, 0, false, None), &[false, true], &rows);
    assert_eq!(done.foreground.unwrap().switches.len(), 1);
    assert_eq!((done.counts.kills, done.counts.cold_faults), (1, 5));
}

#[test]
fn a_task_that_was_killed_comes_back_cold() {
    let rows = [0, 1, 0].map(|task| (task, 0, Kind::Write, 0));
    let [tight, ample] = [1, 2].map(|frames| run(&config(frames, 0, true, None), &[false; 2], &rows));
    let switches = |result: &TasksResult| result.foreground.clone().unwrap().switches;
    let seen: Vec<_> = switches(&tight).iter().map(|s| (s.task, s.cold, s.delay)).collect();
    assert_eq!(seen, [(0, true, US), (1, true, US), (0, true, US)]);
    assert_eq!((tight.counts.kills, tight.counts.homeless), (2, 0));
    assert_eq!((ample.counts.kills, switches(&ample)[2].cold), (0, false));
}
