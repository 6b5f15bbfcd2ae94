//! Tests of tasks that take turns in the foreground.

use super::*;
use coldframe_core::fault::handler::sequential;
use coldframe_journal::replay;

const US: Ps = Ps(1_000_000);

fn prices() -> ForegroundPrices {
    ForegroundPrices {
        fault: US,
        swap_in: US * 10,
        swap_out: US * 100,
        swap_on_card: false,
        slot_read: Ps(1_000),
        block_layer: US * 1_000,
        card: DeviceTimes { load: US * 10_000, program: Some(US * 100_000) },
        answer: US * 500,
    }
}

/// A run and its journal. A new engine must issue the commands of the journal again.
fn run(frames: usize, slots: usize, direct_read: bool, rows: &[(u32, u64, Kind)]) -> ForegroundResult {
    run_with(frames, slots, direct_read, None, rows)
}

fn run_with(
    frames: usize,
    slots: usize,
    direct_read: bool,
    reads_max: Option<u32>,
    rows: &[(u32, u64, Kind)],
) -> ForegroundResult {
    let policy = PolicyChoice::parse("fifo").unwrap();
    let slots = SlotsConfig { slots, files_min: 0 };
    let prices = prices();
    let config = ForegroundConfig {
        policy,
        handler: &sequential::HANDLER,
        frames,
        slots,
        flash: None,
        buffers: 1,
        failures: None,
        direct_read,
        reads_max,
        services: Vec::new(),
        prices,
    };
    let mut run = Foreground::new(&config, 16, Spaces::default(), 3).unwrap();
    run.keep_journal();
    let row = |(task, page, kind): &(u32, u64, Kind)| Reference { task: *task, ..Reference::new(page << 12, 4, *kind) };
    let block: Block = rows.iter().map(row).collect();
    run.feed(&block, &|row| if row.address >> 12 < 8 { Backed::Anonymous } else { Backed::File });
    run.engine().check();
    let replayed = replay(&run.drain_journal()).unwrap();
    assert!(replayed.commands > 0 && replayed.events > rows.len() as u64);
    run.result()
}

#[test]
fn a_direct_read_takes_a_fault_and_a_copy_takes_a_swap_in() {
    let rows = [(0, 0, Kind::Write), (0, 1, Kind::Write), (0, 0, Kind::Read), (0, 0, Kind::Read)];
    let (with, without) = (run(1, 4, true, &rows), run(1, 4, false, &rows));
    // Three faults and page 0 out; without direct read also page 1 out and page 0 in.
    assert_eq!((with.paging, without.paging), (US * 103, US * 213));
    assert_eq!((with.reads_in_slots, with.counts.swap_ins), (2, 0));
    assert_eq!((without.reads_in_slots, without.counts.swap_ins), (0, 1));
    assert_eq!((with.slot_log, without.slot_log), (vec![0], vec![0, 1]));
}

#[test]
fn files_come_from_the_card_and_the_task_waits_for_it() {
    let done = run(2, 4, true, &[(0, 8, Kind::Fetch), (0, 9, Kind::Write), (0, 1, Kind::Write)]);
    // Three faults, two reads from the card. Page 8 is dropped, page 9 stays.
    assert_eq!(done.paging, US * (3 + 2 * 11_000));
    assert_eq!((done.card_reads, done.card_writes), (2, 0));
}

#[test]
fn reads_in_slots_take_their_time_and_the_one_too_many_copies() {
    let read = (0, 0, Kind::Read);
    let rows = [(0, 0, Kind::Write), (0, 1, Kind::Write), read, read, read, read];
    let (twice, ever) = (run_with(1, 4, true, Some(2), &rows), run_with(1, 4, true, None, &rows));
    // Three of four reads are in the slot, and the third one is one too many. The copy traps and evicts page 1; no
    // task waits for it.
    assert_eq!((twice.reads_in_slots, ever.reads_in_slots), (3, 4));
    assert_eq!((twice.slot_reading, ever.slot_reading), (Ps(3_000), Ps(4_000)));
    assert_eq!((twice.counts.swap_ins, twice.counts.read_often, twice.beside), (1, 1, US * 111));
    assert_eq!((ever.counts.swap_ins, ever.beside, twice.paging), (0, Ps::ZERO, ever.paging));
}

#[test]
fn a_service_is_never_in_the_foreground_and_begins_anew_when_it_was_ended() {
    let prices = prices();
    let policy = PolicyChoice::parse("fifo").unwrap();
    let slots = SlotsConfig { slots: 0, files_min: 0 };
    let config = ForegroundConfig {
        policy,
        handler: &sequential::HANDLER,
        frames: 2,
        slots,
        flash: None,
        buffers: 1,
        failures: None,
        direct_read: false,
        reads_max: None,
        services: vec![false, true],
        prices,
    };
    let mut run = Foreground::new(&config, 16, Spaces::default(), 2).unwrap();
    // The service makes page 0, and is killed for task 0's second page. At its next row, a read of page 1, the
    // service makes page 0 again.
    let row =
        |(task, page, time): (u32, u64, u64)| Reference { task, time, ..Reference::new(page << 12, 4, Kind::Write) };
    let second = 1_000_000_000;
    let rows: Block = [(1, 0, 0), (0, 0, 0), (0, 1, 1), (1, 1, second)].into_iter().map(row).collect();
    run.feed(&rows, &|_| Backed::Anonymous);
    let done = run.result();
    assert_eq!(done.switches.len(), 1);
    assert_eq!((done.counts.kills, done.counts.cold_faults), (1, 5));
}

#[test]
fn a_task_that_was_ended_comes_back_cold() {
    let write = |task| (task, 0, Kind::Write);
    let done = run(1, 0, true, &[write(0), write(1), write(0)]);
    let seen: Vec<_> = done.switches.iter().map(|s| (s.task, s.cold, s.delay)).collect();
    assert_eq!(seen, [(0, true, US), (1, true, US), (0, true, US)]);
    assert_eq!((done.counts.kills, done.counts.homeless), (2, 0));
    let room = run(2, 0, true, &[write(0), write(1), write(0)]);
    assert_eq!((room.counts.kills, room.switches[2].cold), (0, false));
}
