//! Tables by page are as long as the address space, which may be terabytes. Only used parts may take RAM.
#![cfg(target_os = "linux")]

use coldframe_core::fault::handler;
use coldframe_core::policy::{texts, PolicyChoice};
use coldframe_core::swap::{AreaConfig, Swap};
use coldframe_core::{Caps, Config, Engine, SlotsConfig};

/// 1 TiB.
const PAGES: usize = 1 << 28;
const FRAMES: usize = 1024;
/// Tables by frame take less than a tenth of this; the rest is for the test itself.
const BOUND: usize = 2 << 20;

fn resident() -> usize {
    let numbers = std::fs::read_to_string("/proc/self/statm").unwrap();
    numbers.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn engine(policy: &str) -> Engine {
    let policy = PolicyChoice::parse(policy).unwrap().build(FRAMES, PAGES).unwrap();
    let caps = Caps { reference_bit: false, dirty_bit: true, buffers: 64, direct_read: false, places: false };
    let config = Config { frames: FRAMES, pages: PAGES, tasks: 32, evict_batch: 8, caps };
    let slots = SlotsConfig { slots: 1000, files_min: 10 }.into();
    Engine::builder(config, policy, handler::ALL[0]).below(slots).build().unwrap()
}

// This is one test, because memory that other tests take at the same time would be counted too.
#[test]
fn an_engine_for_a_terabyte_takes_ram_for_its_frames_only_whatever_the_policy() {
    for policy in texts(16) {
        let before = resident();
        let engine = engine(&policy);
        let took = resident().saturating_sub(before);
        assert!(took < BOUND, "{policy}: {took} bytes for {FRAMES} frames");
        drop(engine);
    }
    let before = resident();
    let area = AreaConfig { start: 6, stop: 6, ..AreaConfig::log(4096) };
    let swap = Swap::new(PAGES, 32, &[area]).unwrap();
    let took = resident().saturating_sub(before);
    assert!(took < BOUND, "a swap area: {took} bytes for 4096 blocks");
    drop(swap);
}
