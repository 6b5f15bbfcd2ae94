//! Hits allocate nothing. Faults allocate nothing once a lane is set up.

use coldframe_core::fault::handler;
use coldframe_core::policy::{texts, PolicyChoice};
use coldframe_core::swap::{collect, AreaConfig, Perfect, Swap};
use coldframe_core::{PageId, Ps};
use coldframe_drivers::front_end::plain::Plain;
use coldframe_drivers::front_end::Spaces;
use coldframe_drivers::run::IdlePrices;
use coldframe_drivers::swap::cache::SwapCache;
use coldframe_drivers::{Run, Stream};
use coldframe_lane::DeviceTimes;
use coldframe_lane::{LaneConfig, PageRef};
use coldframe_sheet::StagePrices;

const PAGES: u32 = 64;

fn run(policy: &str, handler: &str) -> Run {
    let us = Ps::from_us(1);
    let (policy, handler) = (PolicyChoice::parse(policy).unwrap(), handler::find(handler).unwrap());
    let device = DeviceTimes { load: us, program: Some(us) };
    let config = LaneConfig::new(policy, handler, 20, StagePrices::uniform(us), device);
    let front_end = Box::new(Plain::new(Stream::Both, 12, Spaces::default(), None));
    let mut run = Run::new(front_end, IdlePrices::default(), PAGES as usize);
    run.add_lanes(&[config]).unwrap();
    run
}

fn string(pages: u32, n: u32) -> Vec<PageRef> {
    (0..n).map(|i| PageRef::new((i * i + i / 5) % pages, i % 3 == 0, false)).collect()
}

#[test]
fn hits_allocate_nothing() {
    let mut run = run("clock", "parallel");
    let hits = string(16, 10_000);
    run.references(&hits, Ps::ZERO);
    let before = run.lane_results()[0].counts.true_faults;
    let counted = allocation_counter::measure(|| run.references(&hits, Ps::ZERO));
    assert_eq!(run.lane_results()[0].counts.true_faults, before, "the string was meant to hit");
    assert_eq!(counted.count_total, 0);
}

#[test]
fn faults_allocate_nothing_under_any_policy_and_handler() {
    let choices: Vec<String> = texts(3).collect();
    let pairs = handler::ALL.iter().flat_map(|handler| choices.iter().map(|policy| (policy, handler.name)));
    for (policy, handler) in pairs {
        let mut run = run(policy, handler);
        let string = string(PAGES, 20_000);
        let counted = allocation_counter::measure(|| run.references(&string, Ps::ZERO));
        assert!(run.lane_results()[0].counts.evictions > 1000, "{policy}, {handler}");
        assert_eq!(counted.count_total, 0, "{policy}, {handler}");
    }
}

#[test]
fn a_swap_area_allocates_nothing_once_it_stands() {
    for collector in collect::ALL {
        let area = AreaConfig { collector, victims: 4, start: 5, stop: 6, spread_max: Some(3), ..AreaConfig::log(12) };
        let mut swap = Swap::new(PAGES as usize, 8, &[area]).unwrap();
        let mut cache = SwapCache::new(PAGES as usize, 8);
        let counted = allocation_counter::measure(|| {
            for i in 0..20_000u32 {
                let page = PageId((i * i + i / 5) % 40);
                swap.swap_out(page, &mut Perfect).expect("there is room");
                if !cache.holds(page) {
                    cache.insert(page);
                }
            }
        });
        assert!(swap.counts().copies > 1000, "{}", collector.name);
        assert_eq!(counted.count_total, 0, "{}", collector.name);
    }
}
