//! Events of a swap trace per second, for each collector: ten million events on a full-size area that is always being
//! collected.
//!
//! The trace is made from a seed: groups of consecutive pages leave, and are touched, freed or written again later.

use std::time::Instant;

use coldframe_core::swap::{collect, AreaConfig};
use coldframe_drivers::swap::{Keep, ReadAhead, SwapConfig, SwapRun};
use coldframe_formats::swap::{SwapEvent, SwapOp, SwapTrace};
use coldframe_lane::window::Window;

const EVENTS: usize = 10_000_000;
const PAGES: u32 = 50_000;
const BLOCKS: u32 = 2048;

fn trace() -> SwapTrace {
    let mut random = 2008u64;
    let mut next = |n: u32| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((random >> 33) % u64::from(n)) as u32
    };
    let mut events = Vec::with_capacity(EVENTS);
    let mut push = |op, slot| {
        events.push(SwapEvent { time_ns: 0, page_number: 0, slot, pid: 1, op, flag: 0, kind: [0; 3] });
    };
    for _ in 0..EVENTS / 16 {
        // Few regions are hot.
        let end = next(PAGES - 4) + 1;
        let first = next(end);
        for i in 0..4 {
            push(SwapOp::Out, first + i);
        }
        let end = next(PAGES - 4) + 1;
        let back = next(end);
        for i in 0..4 {
            push(SwapOp::Fault, back + i);
            push(SwapOp::Free, back + i);
            push(SwapOp::In, back + i);
        }
    }
    SwapTrace { events, ..SwapTrace::default() }
}

fn main() {
    let trace = trace();
    for collector in collect::ALL {
        let victims = if collector.with_age { 4 } else { 1 };
        let area = AreaConfig { victims, ..AreaConfig::log(BLOCKS, 6, collector) };
        let config = SwapConfig {
            areas: vec![area],
            slots_per_block: 32,
            logs: 1,
            translation: false,
            read_ahead: ReadAhead::Slots(Window::Block(8)),
            cache: 1024,
            keep: Keep::Trace,
            failures: None,
        };
        let mut run = SwapRun::new(&config, &trace).expect("our own configuration");
        let began = Instant::now();
        trace.events.iter().for_each(|event| run.event(event));
        let seconds = began.elapsed().as_secs_f64();
        let r = run.result();
        println!(
            "{:<18}{:>6.1} M events/s   {} swap-outs, {} copies, {} erases",
            collector.name,
            trace.events.len() as f64 / seconds / 1e6,
            r.swap_outs,
            r.flash.copies,
            r.flash.erases
        );
    }
}
