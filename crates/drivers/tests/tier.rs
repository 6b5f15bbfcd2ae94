//! The compressed tier in virtual time: times computed by hand, replay of the journal, no allocation.

use coldframe_core::fault::handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::{Caps, Ps, TierConfig};
use coldframe_drivers::front_end::plain::Plain;
use coldframe_drivers::front_end::Spaces;
use coldframe_drivers::run::IdlePrices;
use coldframe_drivers::{Run, Stream};
use coldframe_journal as journal;
use coldframe_lane::{DeviceTimes, Failures, LaneBelow, LaneConfig, LaneResult, PageRef, Sizes, TierDone, TierTimes};
use coldframe_sheet::StagePrices;

const PAGES: u32 = 300;
const LOAD: Ps = Ps::from_us(80);

fn tier() -> TierConfig {
    TierConfig {
        frames_max: 48,
        frames_first: 24,
        page_bytes: 4096,
        size_max: 3072,
        load_price: 80_000,
        pool_price: 8_000,
        table_bytes: 0,
    }
}

fn times(sizes: Sizes) -> TierTimes {
    TierTimes { compress: Ps::from_us(3), decompress: Ps::from_us(2), sizes }
}

fn run(frames: usize, failures: Option<Failures>, sizes: Option<Sizes>) -> Run {
    let config = LaneConfig {
        evict_batch: 2,
        policy: PolicyChoice::parse("clock").unwrap(),
        handler: handler::find("parallel").unwrap(),
        frames,
        caps: Caps { reference_bit: true, dirty_bit: true, buffers: 4, direct_read: false, places: false },
        prices: StagePrices::uniform(Ps::ZERO),
        device: DeviceTimes { load: LOAD, program: Some(LOAD) },
        failures,
        below: sizes.map_or(LaneBelow::Homes, |sizes| LaneBelow::Tier(tier(), times(sizes))),
    };
    let front_end = Box::new(Plain::new(Stream::Both, 12, Spaces::default(), None));
    let mut run = Run::new(front_end, IdlePrices::default(), PAGES as usize);
    run.add_lanes(&[config]).unwrap();
    run
}

/// Most references go to few pages; every fifth goes to a random page. Every fourth writes.
fn string(n: u32, pages: u32) -> Vec<PageRef> {
    let page = |i: u32| {
        if i.is_multiple_of(5) {
            i.wrapping_mul(2_654_435_761) % pages
        } else {
            (i * i + i / 7) % (pages / 3)
        }
    };
    (0..n).map(|i| PageRef::new(page(i), i % 4 == 0, false)).collect()
}

fn done(result: &LaneResult) -> TierDone {
    result.tier.expect("there is a tier")
}

#[test]
fn a_fault_on_a_page_of_the_tier_takes_what_compressing_takes_and_no_device() {
    // 64 frames, and pages that compress to an eighth: the pool has room for all 100 pages.
    let mut run = run(64, None, Some(Sizes::all(512)));
    let string: Vec<PageRef> = (0..50u32).flat_map(|_| (0..100).map(|page| PageRef::new(page, false, false))).collect();
    run.references(&string[..2000], Ps::ZERO);
    let before = run.lane_results().remove(0);
    run.references(&string[2000..], Ps::ZERO);
    let after = run.lane_results().remove(0);
    assert_eq!(done(&after).reads, done(&before).reads, "the device is not read");
    let (faults, compressed) = (
        after.counts.true_faults - before.counts.true_faults,
        done(&after).counts.compressed - done(&before).counts.compressed,
    );
    assert!(faults > 500);
    let paging = after.paging - before.paging;
    assert_eq!(paging, Ps(faults * 2_000_000 + compressed * 3_000_000), "2 us for each fault, 3 for each eviction");
}

#[test]
fn a_journal_of_a_run_with_a_tier_replays_to_the_same_commands() {
    let sizes = Sizes::new(&[(8, 5), (700, 40), (1800, 30), (2900, 15), (4096, 10)], 3);
    for (seed, rate) in [(1, 0.0), (2, 0.02)] {
        let mut run = run(72, (rate > 0.0).then_some(Failures { rate, seed }), sizes.clone());
        run.lanes_mut().next().unwrap().keep_journal();
        run.references(&string(30_000, PAGES), Ps::ZERO);
        let lane = run.lanes_mut().next().unwrap();
        lane.engine().check();
        let bytes = lane.drain_journal();
        let replayed = journal::replay(&bytes).unwrap();
        let done = done(&run.lane_results()[0]);
        assert!(rate > 0.0 || (done.counts.written_back > 100 && done.counts.refused > 50), "{done:?}");
        assert!(replayed.commands > 10_000, "{replayed:?}");
    }
}

#[test]
fn with_pages_that_compress_a_tier_takes_less_time_and_less_flash() {
    let of = |sizes: Option<Sizes>| {
        let mut run = run(72, None, sizes);
        run.references(&string(60_000, PAGES), Ps::ZERO);
        run.lane_results().remove(0)
    };
    let (without, with) = (of(None), of(Some(Sizes::all(1170))));
    assert!(with.paging.0 * 3 < without.paging.0 * 2, "{:?} with, {:?} without", with.paging, without.paging);
    assert!(done(&with).writes * 2 < without.counts.dirty_evictions, "{:?}", done(&with));
}

#[test]
fn faults_with_a_tier_allocate_nothing_once_it_stands() {
    let mut run = run(72, None, Sizes::new(&[(900, 1), (2000, 1), (4096, 1)], 5));
    let string = string(20_000, PAGES);
    run.references(&string[..5000], Ps::ZERO);
    let counted = allocation_counter::measure(|| run.references(&string[5000..], Ps::ZERO));
    assert!(done(&run.lane_results()[0]).counts.stored > 1000);
    assert_eq!(counted.count_total, 0);
}
