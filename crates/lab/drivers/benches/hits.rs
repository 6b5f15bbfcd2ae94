//! The hot loops, compared with a floor in the same run: a plain loop over the same decoded page column that sets a
//! byte for each reference.
//!
//! Prints one line for each measurement: millions of references per second (median of interleaved rounds), the ratio to
//! the floor, and the required ratio. Absolute numbers mean little on a shared machine; the ratios are from one run.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use coldframe_core::fault::handler::parallel::HANDLER as PARALLEL;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::Ps;
use coldframe_drivers::front_end::instruction::{Instruction, Reading, Shape};
use coldframe_drivers::front_end::plain::Plain;
use coldframe_drivers::front_end::{FrontEnd, Spaces};
use coldframe_drivers::run::IdlePrices;
use coldframe_drivers::{Run, Stream};
use coldframe_lane::DeviceTimes;
use coldframe_lane::{LaneConfig, PageRef};
use coldframe_sheet::StagePrices;
use coldframe_store::{Block, Reader, Wanted};

const ROUNDS: usize = 7;
const FRAMES: usize = 512;

fn lane(frames: usize) -> LaneConfig {
    let policy = PolicyChoice::parse("clock").expect("our own text");
    let device = DeviceTimes { load: Ps::from_us(30), program: None };
    LaneConfig::new(policy, &PARALLEL, frames, StagePrices::uniform(Ps::from_us(1)), device)
}

fn plain(shift: u32) -> Box<Plain> {
    Box::new(Plain::new(Stream::Both, shift, Spaces::default(), None))
}

fn trace(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/traces").join(name)
}

fn lanes(frames: &[usize], pages: usize) -> Run {
    let mut run = Run::new(plain(12), IdlePrices::default(), pages);
    let configs: Vec<_> = frames.iter().map(|f| lane(*f)).collect();
    run.add_lanes(&configs).expect("our own configuration");
    run
}

fn run(frames: &[usize], pages: usize, references: &[PageRef]) -> Run {
    let mut run = lanes(frames, pages);
    run.references(references, Ps::ZERO);
    run
}

/// Reads the whole trace from Parquet, numbers its pages and simulates; returns the references.
fn from_parquet(path: &Path, pages: usize, frames: &[usize]) -> u64 {
    let mut reader = Reader::open(path).expect("a shipped trace");
    let columns = reader.columns();
    let wanted = Wanted { task: columns.task, count: columns.count, ..Wanted::ACCESS };
    let mut run = lanes(frames, pages);
    let mut block = Block::new();
    while reader.read(&mut block, wanted).expect("a shipped trace") > 0 {
        run.feed(&block, 0).expect("the header counts the pages");
    }
    run.front_end().references
}

fn swl(blocks: &[Block]) -> u64 {
    let shape = Shape { line_shift: 5, sets: 64, ways: 4, tlb_sets: 16, tlb_ways: 2 };
    let mut front_end = Instruction::new(shape, Reading::A, 10, Spaces::default(), None, None);
    let mut out = Vec::new();
    for block in blocks {
        out.clear();
        front_end.filter(block, 0, &mut out);
        black_box(&out);
    }
    front_end.counts().instructions
}

fn blocks(name: &str) -> Vec<Block> {
    let mut reader = Reader::open(trace(name)).expect("a shipped trace");
    let columns = reader.columns();
    let mut blocks = Vec::new();
    loop {
        let mut block = Block::new();
        let wanted = Wanted { task: columns.task, count: columns.count, ..Wanted::ACCESS };
        if reader.read(&mut block, wanted).expect("a shipped trace") == 0 {
            return blocks;
        }
        blocks.push(block);
    }
}

/// Name, goal and work of a measurement; the work returns its number of references.
type Row<'a> = (&'static str, &'static str, Box<dyn FnMut() -> u64 + 'a>);

fn main() {
    let name = "sqlite.parquet";
    let mut front_end = plain(12);
    let mut column = Vec::new();
    for block in blocks(name) {
        front_end.filter(&block, 0, &mut column);
    }
    let pages = front_end.numbering().count();
    // Several times over, so that a round takes long enough to measure.
    let string: Vec<PageRef> = column.iter().copied().cycle().take(column.len().max(40_000_000)).collect();
    let result = run(&[FRAMES], pages, &string).lane_results().remove(0);
    let misses = result.counts.true_faults as f64 / string.len() as f64;
    println!(
        "trace {name}: {} page references of 4 KiB, {pages} pages, Clock with {FRAMES} frames, miss ratio {misses:.7}",
        string.len()
    );
    let render = blocks("render.parquet");
    let sixteen: Vec<usize> = (0..16).map(|i| FRAMES - 8 * i).collect();
    let sixty_four: Vec<usize> = (0..64).map(|i| FRAMES - 2 * i).collect();
    let mut bytes = vec![0u8; pages];
    let n = string.len() as u64;
    let parquet = |name: &'static str, laps: usize, frames: Vec<usize>| {
        move || (0..laps).map(|_| from_parquet(&trace(name), 4 * pages, &frames)).sum()
    };
    let in_memory = |frames: &[usize]| {
        black_box(run(frames, pages, &string).lane_results());
        n
    };
    let floor = || {
        for reference in &string {
            bytes[reference.page()] = 1;
        }
        black_box(&bytes);
        n
    };
    let mut rows: Vec<Row<'_>> = vec![
        ("floor: set a byte", "", Box::new(floor)),
        ("Clock, decoded in memory", "at least 0.25 of the floor", Box::new(|| in_memory(&[FRAMES]))),
        (
            "Clock, 16 sizes in one pass",
            "at least 0.25 of one size (less than 4 times its cost)",
            Box::new(|| in_memory(&sixteen)),
        ),
        (
            "Clock, Parquet included",
            "at least 150 M/s where the floor is above 1 G/s (a row may stand for a run)",
            Box::new(parquet(name, 4, vec![FRAMES])),
        ),
        (
            "the same, exact references",
            "the same, on bzip2.parquet, a row a reference",
            Box::new(parquet("bzip2.parquet", 8, vec![FRAMES])),
        ),
        (
            "64 configurations, from file",
            "at least 1/24 of one on two cores (row 4)",
            Box::new(parquet(name, 4, sixty_four)),
        ),
        ("SWL front end, instructions", "at least 100 M/s", Box::new(|| (0..16).map(|_| swl(&render)).sum())),
    ];
    let mut rounds = vec![Vec::new(); rows.len()];
    for _ in 0..ROUNDS {
        for ((.., work), rates) in rows.iter_mut().zip(&mut rounds) {
            let began = Instant::now();
            let references = work();
            rates.push(references as f64 / began.elapsed().as_secs_f64());
        }
    }
    let median = |mut rates: Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    let rates: Vec<f64> = rounds.into_iter().map(median).collect();
    for ((name, goal, _), rate) in rows.iter().zip(&rates) {
        println!("{name:<28} {:>8.1} M/s  {:>6.3} of the floor  {goal}", rate / 1e6, rate / rates[0]);
    }
    println!("16 sizes cost {:.2} times one size", rates[1] / rates[2]);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "64 configurations cost {:.2} times one on {cores} cores (asked: less than 24 on two)",
        rates[3] / rates[5]
    );
}
