//! Tests of the swap area: no page is lost, no rule of NAND is broken, and the victims are those of a scan of all
//! blocks.

use std::collections::BTreeMap;

use crate::nand::{Fault, Nand};
use coldframe_core::swap::collect::{self, Collector, Ratio};
use coldframe_core::swap::{AreaConfig, Full, Layout, Perfect, Swap, SwapError};
use coldframe_core::{PageId, SlotId};
use proptest::prelude::*;

const PAGES: u32 = 40;
const SLOTS_PER_BLOCK: u32 = 4;

fn area(collector: &'static Collector, layout: Layout, blocks: u32) -> AreaConfig {
    AreaConfig { layout, collector, stop: 3, ..AreaConfig::log(blocks) }
}

const LINUX: Layout = Layout::Linux { cluster: 6 };

#[derive(Clone, Copy, Debug)]
enum Op {
    Out(u32),
    Release(u32),
    Fault(Fault),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        12 => (0..PAGES).prop_map(Op::Out),
        6 => (0..PAGES).prop_map(Op::Release),
        1 => prop_oneof![Just(Fault::Program), Just(Fault::Erase)].prop_map(Op::Fault),
    ];
    prop::collection::vec(op, 1..400)
}

/// Areas of every shape: collectors, layouts, victims, wear levelling, one or two areas.
fn shapes() -> impl Strategy<Value = Vec<AreaConfig>> {
    let one = (0..collect::ALL.len(), any::<bool>(), 1u32..=4, prop::option::of(1u32..4), 8u32..16).prop_map(
        |(collector, log, victims, spread_max, blocks)| AreaConfig {
            victims,
            spread_max,
            ..area(collect::ALL[collector], if log { Layout::Log } else { LINUX }, blocks)
        },
    );
    prop::collection::vec(one, 1..3)
}

/// A swap area on a mock NAND, and a plain map of the last writes.
struct Bench {
    swap: Swap,
    nand: Nand,
    model: BTreeMap<u32, u64>,
    written: u64,
}

impl Bench {
    fn new(areas: &[AreaConfig]) -> Bench {
        let swap = Swap::new(PAGES as usize, SLOTS_PER_BLOCK, areas).unwrap();
        let nand = Nand::new(swap.block_count(), SLOTS_PER_BLOCK);
        Bench { swap, nand, model: BTreeMap::new(), written: 0 }
    }

    fn out(&mut self, page: u32) -> Result<SlotId, Full> {
        self.written += 1;
        self.nand.writing = self.written;
        let done = self.swap.swap_out(PageId(page), &mut self.nand);
        if done.is_ok() {
            self.model.insert(page, self.written);
        }
        done
    }

    fn content(&self, page: u32) -> Option<u64> {
        self.nand.content(self.swap.slot_of(PageId(page))?)
    }

    fn check(&self) {
        self.swap.check();
        for page in 0..PAGES {
            assert_eq!(self.content(page), self.model.get(&page).copied(), "page {page}");
        }
    }

    fn run(&mut self, op: Op) {
        match op {
            Op::Out(page) => {
                // A full area refuses the page, and the page keeps its old contents.
                let _ = self.out(page);
            }
            Op::Release(page) => {
                assert_eq!(self.swap.release(PageId(page)), self.model.remove(&page).is_some());
            }
            Op::Fault(fault) => self.nand.plan(fault),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Failing programs and erases, every collector and layout.
    #[test]
    fn every_page_is_found_as_it_was_written_last(areas in shapes(), ops in ops()) {
        let mut bench = Bench::new(&areas);
        for op in ops {
            bench.run(op);
            bench.check();
        }
    }

    #[test]
    fn a_victim_is_the_one_that_a_scan_of_all_blocks_finds(areas in shapes(), ops in ops()) {
        let mut bench = Bench::new(&areas[..1]);
        for op in ops {
            bench.run(op);
            for collector in collect::ALL {
                let candidates = bench.swap.candidates(0);
                let scan = candidates.all().min_by(|a, b| {
                    let (a, b) = (candidates.facts_slowly(*a), candidates.facts_slowly(*b));
                    let score = |f| -> Ratio { (collector.score)(f) };
                    score(&a).compare(&score(&b)).then(b.idle.cmp(&a.idle))
                });
                prop_assert_eq!(candidates.victim(collector), scan, "{}", collector.name);
            }
        }
    }
}

#[test]
fn the_log_without_valid_victims_copies_nothing_and_erases_once_a_block() {
    for collector in collect::ALL {
        let mut bench = Bench::new(&[area(collector, Layout::Log, 8)]);
        for i in 0..400 {
            bench.out(i % PAGES).unwrap();
            assert!(bench.swap.release(PageId(i % PAGES)));
            bench.model.clear();
        }
        let counts = bench.swap.counts();
        // 100 blocks were written through 8 blocks, of which 2 to 3 are kept erased.
        assert_eq!(counts.copies, 0);
        assert!((100 - 8 + 2..=100 - 8 + 3).contains(&counts.erases), "{}: {}", collector.name, counts.erases);
    }
}

#[test]
fn a_full_area_refuses_keeps_all_it_has_and_takes_more_after_a_release() {
    for collector in collect::ALL {
        for layout in [Layout::Log, LINUX] {
            let mut bench = Bench::new(&[area(collector, layout, 6)]);
            let taken = (0..PAGES).take_while(|page| bench.out(*page).is_ok()).count() as u32;
            assert_eq!(taken, (6 - 1) * SLOTS_PER_BLOCK, "all but the reserve of one block");
            assert_eq!(bench.swap.counts().areas_full, 1);
            bench.check();
            // Slots of a whole block must be free before a block can be emptied without loss of room.
            (0..SLOTS_PER_BLOCK).for_each(|page| bench.run(Op::Release(page)));
            assert!(bench.out(PAGES - 1).is_ok());
            bench.check();
        }
    }
}

#[test]
fn processes_have_blocks_of_their_own_while_any_is_free() {
    let logs = AreaConfig { logs: 3, ..area(collect::ALL[0], Layout::Log, 6) };
    let mut swap = Swap::new(100, SLOTS_PER_BLOCK, &[logs]).unwrap();
    let mut out = |page| {
        swap.log_of(page % 4);
        swap.swap_out(PageId(page), &mut Perfect).map(|slot| slot.0 / SLOTS_PER_BLOCK)
    };
    // Processes 0 and 3 share a log.
    let blocks: Vec<_> = (0..8).map(|page| out(page).unwrap()).collect();
    assert_eq!(blocks, [0, 1, 2, 0, 0, 1, 2, 0]);
    assert_eq!((8..100).filter(|page| out(*page).is_ok()).count(), 12, "6 blocks less one kept back");
    swap.check();
}

#[test]
fn areas_of_higher_priority_fill_first_and_equal_ones_take_turns() {
    let small = |priority| AreaConfig { priority, ..area(collect::ALL[0], Layout::Log, 4) };
    let mut swap = Swap::new(100, SLOTS_PER_BLOCK, &[small(1), small(5), small(5)]).unwrap();
    let slots: Vec<u32> = (0..36).map(|p| swap.swap_out(PageId(p), &mut Perfect).unwrap().0 / 16).collect();
    assert_eq!(slots[..4], [1, 2, 1, 2]);
    assert_eq!(slots[24..], [0; 12], "12 of 16 slots each, the rest is reserve");
    assert_eq!(swap.swap_out(PageId(50), &mut Perfect), Err(Full));
}

#[test]
fn dynamic_wear_levelling_keeps_erase_counts_within_one_where_all_is_hot() {
    let mut bench = Bench::new(&[area(collect::ALL[0], Layout::Log, 8)]);
    for i in 0..2000 {
        bench.out(i % 3).unwrap();
    }
    let erases: Vec<u32> = bench.swap.erases().collect();
    assert!(erases.iter().max().unwrap() - erases.iter().min().unwrap() <= 1, "{erases:?}");
}

#[test]
fn static_wear_levelling_moves_blocks_that_never_change() {
    let spread = |spread_max| {
        let mut bench = Bench::new(&[AreaConfig { spread_max, ..area(collect::ALL[0], Layout::Log, 10) }]);
        (0..16).for_each(|page| bench.run(Op::Out(page)));
        for i in 0..4000 {
            bench.out(20 + i % 3).unwrap();
        }
        bench.check();
        let erases: Vec<u32> = bench.swap.erases().collect();
        erases.iter().max().unwrap() - erases.iter().min().unwrap()
    };
    assert!(spread(None) > 100);
    assert!(spread(Some(4)) <= 6);
}

#[test]
fn bounds_are_named() {
    let good = area(collect::ALL[0], Layout::Log, 8);
    let field = |areas: &[AreaConfig], pages, n| match Swap::new(pages, n, areas) {
        Err(SwapError::Bounds { field, .. }) => field,
        Err(SwapError::Areas(_)) => "areas",
        Ok(_) => "",
    };
    assert_eq!(field(&[good], 1, 1), "");
    assert_eq!(field(&[], 1, 1), "areas");
    assert_eq!(field(&[good; 33], 1, 1), "areas");
    assert_eq!(field(&[good], 0, 1), "pages");
    assert_eq!(field(&[good], 1, 0), "slots_per_block");
    assert_eq!(field(&[AreaConfig { start: 1, ..good }], 1, 1), "start");
    assert_eq!(field(&[AreaConfig { stop: 1, ..good }], 1, 1), "stop");
    assert_eq!(field(&[AreaConfig { victims: 5, ..good }], 1, 1), "victims");
    assert_eq!(field(&[AreaConfig { logs: 0, ..good }], 1, 1), "logs");
    assert_eq!(field(&[AreaConfig { blocks: 3, ..good }], 1, 1), "blocks");
    assert_eq!(field(&[AreaConfig { blocks: 1 << 30, stop: 3, ..good }], 1, 1 << 10), "blocks * slots_per_block");
}
