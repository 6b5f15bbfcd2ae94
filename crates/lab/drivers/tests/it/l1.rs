//! Compares the L1 front end and the reads in place behind it with one plain model of both, on a recorded program; and
//! the virtual clock with the paper's equations.
//!
//! The model follows the definitions alone: caches are lists, FIFO is a queue, the held page is a variable.

use std::collections::VecDeque;
use std::path::Path;

use coldframe_core::fault::handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::{Caps, PageId, Ps};
use coldframe_drivers::front_end::l1::{L1Shape, L1};
use coldframe_drivers::front_end::plain::Plain;
use coldframe_drivers::front_end::Spaces;
use coldframe_drivers::run::IdlePrices;
use coldframe_drivers::{Run, Stream};
use coldframe_lane::DeviceTimes;
use coldframe_lane::{LaneConfig, LaneResult, PageRef};
use coldframe_sheet::paging::{t_paging, AccessCounts, Price};
use coldframe_sheet::StagePrices;
use coldframe_store::{Block, Reader, Wanted};

const SHAPE: L1Shape = L1Shape { line_shift: 5, sets: 32, ways: 4 };
const DELAYED: &str = "delayed-dual-buffering";
const PRICE: Price<Ps> =
    Price { page_load: Ps(29_330), page_move: Ps(12_860), main_read: Ps(40), xip_read: Ps(220), main_write: Ps(41) };

/// The first rows of the JPEG compressor's trace, and its read-only ranges.
fn block() -> (Block, Vec<(u64, u64)>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/traces/cjpeg.parquet");
    let mut reader = Reader::open(path).unwrap();
    let mappings = &reader.provenance().mappings;
    let read_only = mappings.iter().filter(|m| m.name.starts_with('/') && !m.protection.contains('w'));
    let ranges: Vec<_> = read_only.map(|m| (m.start, m.end)).collect();
    assert!(!ranges.is_empty());
    let mut block = Block::with_capacity(400_000);
    reader.read(&mut block, Wanted::ACCESS).unwrap();
    (block, ranges)
}

/// Lines by set, oldest first, with their dirty bits. Within a set, round robin is FIFO.
#[derive(Default)]
struct PlainCache(std::collections::BTreeMap<u64, VecDeque<(u64, bool)>>);

impl PlainCache {
    /// The lines of memory that the access reads and writes: (line, writing).
    fn access(&mut self, line: u64, writing: bool) -> Vec<(u64, bool)> {
        let set = self.0.entry(line % SHAPE.sets as u64).or_default();
        if let Some((_, dirty)) = set.iter_mut().find(|(there, _)| *there == line) {
            *dirty |= writing;
            return Vec::new();
        }
        let mut accesses = vec![(line, false)];
        if set.len() == SHAPE.ways {
            let (old, dirty) = set.pop_front().unwrap();
            accesses.extend(dirty.then_some((old, true)));
        }
        set.push_back((line, writing));
        accesses
    }
}

/// (line, writing) of each access below the caches.
fn accesses(block: &Block) -> Vec<(u64, bool)> {
    let (mut instructions, mut data) = (PlainCache::default(), PlainCache::default());
    let mut out = Vec::new();
    for i in 0..block.len() {
        let (address, size, kind) = (block.address()[i], u64::from(block.size()[i]), block.kind()[i]);
        let cache = if kind == 0 { &mut instructions } else { &mut data };
        for line in address / 32..=(address + size - 1) / 32 {
            out.extend(cache.access(line, kind == 2));
        }
    }
    out
}

/// Reads of `.text` and `.rodata` as in the paper: FIFO behind two buffers, with one held page.
fn held_model(pages: &[u64], frames: usize) -> AccessCounts {
    let (mut queue, mut held, mut n) = (VecDeque::new(), None, AccessCounts::default());
    for page in pages {
        if held != Some(*page) && !queue.contains(page) {
            n.page_loads += 1;
            if let Some(before) = held.replace(*page) {
                n.page_moves_dual += 1;
                if queue.len() == frames {
                    queue.pop_front();
                }
                queue.push_back(before);
            }
        }
        n.xip_reads += u64::from(held == Some(*page));
    }
    n
}

fn config(policy: &str, handler: &str, frames: usize, buffers: u32, move_: Ps) -> LaneConfig {
    let (policy, handler) = (PolicyChoice::parse(policy).unwrap(), handler::find(handler).unwrap());
    let prices = StagePrices { trans_host_mem: move_, ..StagePrices::uniform(Ps::ZERO) };
    let device = DeviceTimes { load: PRICE.page_load, program: None };
    let config = LaneConfig::new(policy, handler, frames, prices, device);
    LaneConfig { caps: Caps { buffers, ..config.caps }, ..config }
}

fn counts(run: &Run, lane: &LaneResult) -> AccessCounts {
    let front = run.front_end();
    AccessCounts {
        page_loads: lane.counts.page_loads,
        page_moves: lane.counts.page_moves - lane.counts.page_moves_dual,
        page_moves_dual: lane.counts.page_moves_dual,
        main_reads: front.memory_reads - lane.xip_reads,
        xip_reads: lane.xip_reads,
        main_writes: front.memory_writes,
    }
}

#[test]
fn accesses_loads_moves_and_reads_in_place_agree_with_the_plain_model() {
    let (block, ranges) = block();
    let expected = accesses(&block);
    let paged = |line: u64| ranges.iter().any(|(a, b)| (*a..*b).contains(&(line * 32)));
    let pages: Vec<u64> = expected.iter().filter(|(line, _)| paged(*line)).map(|(line, _)| line * 32 / 1024).collect();
    let writes = expected.iter().filter(|(_, writing)| *writing).count() as u64;
    let idle = IdlePrices {
        instruction: Ps(2_500),
        main_read: PRICE.main_read,
        main_write: PRICE.main_write,
        xip_surplus: PRICE.xip_read - PRICE.main_read,
        ..IdlePrices::default()
    };
    let front = L1::new(SHAPE, Stream::Both, 10, Spaces::default(), Some(ranges.clone()), None);
    let mut run = Run::new(Box::new(front), idle, 4096);
    let frames = [1, 8, 20, 60];
    let lane = |(frames, handler)| config("fifo", handler, frames, 2, PRICE.page_move);
    let configs: Vec<_> = frames.iter().flat_map(|f| [(*f, DELAYED), (*f, "sequential")]).map(lane).collect();
    run.add_lanes(&configs).unwrap();
    run.feed(&block, 0).unwrap();
    assert_eq!(run.front_end().memory_writes, writes);
    assert_eq!(run.front_end().memory_reads, expected.len() as u64 - writes);
    for (i, lane) in run.lane_results().iter().enumerate() {
        let counted = counts(&run, lane);
        if i % 2 == 0 {
            let model = held_model(&pages, frames[i / 2]);
            let main_reads = run.front_end().memory_reads - model.xip_reads;
            assert_eq!(counted, AccessCounts { main_reads, main_writes: writes, ..model }, "{} frames", frames[i / 2]);
        } else {
            assert_eq!((counted.xip_reads, counted.page_moves), (0, counted.page_loads));
        }
        // The virtual clock and the equations are independent of each other.
        let clock = run.memory() + lane.xip_surplus + lane.paging;
        assert_eq!(clock, t_paging(&counted, &PRICE).total(), "lane {i}");
    }
}

#[test]
fn a_move_that_is_longer_than_the_load_is_what_the_task_waits_for() {
    let long = Ps(50_000);
    for (handler, per_fault) in [(DELAYED, long), ("sequential", PRICE.page_load + long)] {
        let front = Plain::new(Stream::Both, 10, Spaces::default(), None);
        let mut run = Run::new(Box::new(front), IdlePrices::default(), 16);
        run.add_lanes(&[config("fifo", handler, 2, 2, long)]).unwrap();
        let pages: Vec<_> = (0..9).map(|page| PageRef::new(page, false, false)).collect();
        run.references(&pages[..1], Ps::ZERO);
        let first = run.lane_results()[0].paging;
        run.references(&pages[1..], Ps::ZERO);
        let lane = &run.lane_results()[0];
        assert_eq!(lane.paging - first, per_fault * 8, "{handler}");
        let (loads, dual) = (lane.counts.page_loads, lane.counts.page_moves_dual);
        let page_moves = lane.counts.page_moves - dual;
        let counted = AccessCounts { page_loads: loads, page_moves, page_moves_dual: dual, ..AccessCounts::default() };
        assert_eq!(lane.paging, t_paging(&counted, &Price { page_move: long, ..PRICE }).total());
    }
}

#[test]
fn reads_of_a_page_count_in_place_only_while_it_is_held_and_writes_never() {
    let front = Plain::new(Stream::Both, 10, Spaces::default(), None);
    let mut run = Run::new(Box::new(front), IdlePrices::default(), 16);
    run.add_lanes(&[config("fifo", DELAYED, 2, 2, Ps::ZERO), config("fifo", DELAYED, 2, 3, Ps::ZERO)]).unwrap();
    let read = |page| PageRef::new(page, false, false);
    let string = [read(0), read(0), read(0), read(1), read(0), read(1), PageRef::new(1, true, false), read(1)];
    run.references(&string, Ps::ZERO);
    let counted: Vec<_> = run.lane_results().iter().map(|lane| lane.xip_reads).collect();
    // With two buffers: page 0 three times, page 1 twice, then a write moves page 1. With three: page 0 is still held
    // when it is read again.
    assert_eq!(counted, [5, 6]);
    let lanes: Vec<_> = run.lanes_mut().map(|lane| lane.engine().frame_of(PageId(0)).is_some()).collect();
    assert_eq!(lanes, [true, false]);
}
