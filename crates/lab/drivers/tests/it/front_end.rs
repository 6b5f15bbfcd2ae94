//! Compares the instruction front end and the policies behind it with one plain model of both, on a recorded program.
//! The model follows the definitions alone: caches are lists of lists, Clock is a queue, and every look-up is a search.
//! FIFO-SC behind the front end is compared with its naive twin.

use std::path::Path;

use coldframe_core::fault::handler::parallel;
use coldframe_core::naive::Touch;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::Ps;
use coldframe_drivers::front_end::instruction::{Instruction, Reading, Shape};
use coldframe_drivers::front_end::Spaces;
use coldframe_drivers::run::IdlePrices;
use coldframe_drivers::Run;
use coldframe_lane::DeviceTimes;
use coldframe_lane::LaneConfig;
use coldframe_sheet::StagePrices;
use coldframe_store::{Block, Reader, Wanted};

const SHAPE: Shape = Shape { line_shift: 5, sets: 64, ways: 4, tlb_sets: 16, tlb_ways: 2 };
const LINE: u64 = 32;
const PAGE: u64 = 1024;

/// The first rows of the ray tracer's trace.
fn block() -> Block {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/traces/render.parquet");
    let mut reader = Reader::open(path).unwrap();
    let mut block = Block::with_capacity(300_000);
    reader.read(&mut block, Wanted::ACCESS).unwrap();
    block
}

/// One look-up of a line: its page, whether the cache hit, and whether the TLB had the page (looked up only on misses).
#[derive(Clone, Copy)]
struct LookUp {
    page: u64,
    hit: bool,
    translated: bool,
}

struct RoundRobin {
    sets: Vec<Vec<u64>>,
    next: Vec<usize>,
    ways: usize,
}

impl RoundRobin {
    fn new(sets: usize, ways: usize) -> RoundRobin {
        RoundRobin { sets: vec![Vec::new(); sets], next: vec![0; sets], ways }
    }

    fn look_up(&mut self, item: u64) -> bool {
        let i = item as usize % self.sets.len();
        let set = &mut self.sets[i];
        if set.contains(&item) {
            return true;
        }
        if set.len() < self.ways {
            set.push(item);
        } else {
            set[self.next[i]] = item;
            self.next[i] = (self.next[i] + 1) % self.ways;
        }
        false
    }
}

fn look_ups(block: &Block) -> Vec<LookUp> {
    let (mut cache, mut tlb) = (RoundRobin::new(64, 4), RoundRobin::new(16, 2));
    let mut out = Vec::new();
    for row in block.iter() {
        for line in row.address / LINE..=(row.address + u64::from(row.size) - 1) / LINE {
            let (hit, page) = (cache.look_up(line), line * LINE / PAGE);
            out.push(LookUp { page, hit, translated: !hit && tlb.look_up(page) });
        }
    }
    out
}

/// (true faults, false faults, walk sum) of Clock as a queue of (page, bit); `budget` limits the walk.
fn clock(look_ups: &[LookUp], reading: Reading, frames: usize, budget: u64) -> (u64, u64, u64) {
    let mut queue: Vec<(u64, bool)> = Vec::new();
    let (mut faults, mut walk_sum) = (0, 0);
    for l in look_ups.iter().filter(|l| !l.hit || reading == Reading::D) {
        if let Some(entry) = queue.iter_mut().find(|(page, _)| *page == l.page) {
            entry.1 |= !(reading == Reading::C && l.translated);
            continue;
        }
        faults += 1;
        let mut walk = 0;
        while queue.len() == frames {
            let (page, bit) = queue.remove(0);
            if walk < budget {
                walk += 1;
                if bit {
                    queue.push((page, false));
                }
            }
        }
        walk_sum += walk;
        queue.push((l.page, true));
    }
    (faults, 0, walk_sum)
}

fn lane(policy: &str, frames: usize) -> LaneConfig {
    let us = Ps::from_us(1);
    let device = DeviceTimes { load: us, program: None };
    LaneConfig::new(PolicyChoice::parse(policy).unwrap(), &parallel::HANDLER, frames, StagePrices::uniform(us), device)
}

#[test]
fn the_simulator_agrees_with_the_plain_model_to_the_last_miss() {
    let block = block();
    let look_ups = look_ups(&block);
    let frames = [48, 64, 100];
    for reading in [Reading::A, Reading::C, Reading::D] {
        let front_end = Box::new(Instruction::new(SHAPE, reading, 10, Spaces::default(), None, None));
        let mut run = Run::new(front_end, IdlePrices::default(), 4096);
        let policies = [("clock", u64::MAX), ("pa-clock:budget=13", 13), ("pa-clock:budget=1", 1)];
        let configs: Vec<_> = policies.iter().flat_map(|(name, _)| frames.map(|f| lane(name, f))).collect();
        run.add_lanes(&configs).unwrap();
        run.feed(&block, 0).unwrap();
        let counts = *run.front_end();
        assert_eq!(counts.icache_lookups, look_ups.len() as u64);
        assert_eq!(counts.icache_misses, look_ups.iter().filter(|l| !l.hit).count() as u64);
        assert_eq!(counts.tlb_misses, look_ups.iter().filter(|l| !l.hit && !l.translated).count() as u64);
        let expected = policies.iter().flat_map(|(_, budget)| frames.map(|f| clock(&look_ups, reading, f, *budget)));
        for ((config, result), expected) in configs.iter().zip(run.lane_results()).zip(expected) {
            let c = result.counts;
            let counted = (c.true_faults, c.false_faults, c.walk_sum.0);
            assert_eq!(counted, expected, "{} {} frames, reading {}", config.policy, config.frames, reading.name());
        }
    }
}

#[test]
fn fifo_sc_and_its_delayed_form_agree_with_their_naive_twins() {
    let block = block();
    let misses: Vec<u64> = look_ups(&block).iter().filter(|l| !l.hit).map(|l| l.page).collect();
    let policies = ["fifo-sc:valid=24", "pa-fifo-sc:valid=24", "pa-fifo-sc:valid=24,max-downgrades=4"];
    let configs = policies.map(|policy| lane(policy, 64));
    let front_end = Box::new(Instruction::new(SHAPE, Reading::A, 10, Spaces::default(), None, None));
    let mut run = Run::new(front_end, IdlePrices::default(), 4096);
    run.add_lanes(&configs).unwrap();
    run.feed(&block, 0).unwrap();
    for (config, result) in configs.iter().zip(run.lane_results()) {
        let mut twin = (config.policy.spec.naive)(&config.policy.arguments, config.frames);
        let touches: Vec<Touch> = misses.iter().map(|page| twin.reference(*page)).collect();
        let count = |of: fn(&Touch) -> bool| touches.iter().filter(|touch| of(touch)).count() as u64;
        let expected = [
            count(|touch| matches!(touch, Touch::TrueFault { .. })),
            count(|touch| matches!(touch, Touch::FalseFault)),
            count(|touch| matches!(touch, Touch::TrueFault { victim: Some(_), .. })),
        ];
        assert!(expected[1] > 100, "the trace was meant to cause false faults");
        let c = result.counts;
        assert_eq!([c.true_faults, c.false_faults, c.evictions], expected, "{}", config.policy);
    }
}
