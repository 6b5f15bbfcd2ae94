//! The answer from referenced bits: faults by RAM (`bits`) become run time by the price of a fault from the
//! kernel's swap.

use coldframe_proc::PAGE;
use coldframe_recording::plan::FRAMES_MIN;
use coldframe_sheet::quantity::{how_often, human_size, things};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machine::prices::Price;
use crate::predict::bits::faults::{covered, faults, Faults};
use crate::predict::bits::program::Bits;
use crate::predict::common::{program, Common};
use crate::predict::curve::{round, round_limit, round_up, Point, THRASHES};
use crate::predict::not_paged::NotPaged;
use crate::predict::question::Limits;
use crate::predict::since_start::SinceStart;
use crate::predict::swap::{best, Split};

/// Sizes of a halving of RAM, and halvings.
const STEPS: i32 = 8;
const HALVINGS: i32 = 4;

/// A question about a program whose referenced bits were read.
#[derive(Clone, Debug)]
pub(crate) struct BitsQuestion {
    /// The program's command line.
    pub command: String,
    /// The process, if it ran before it was watched.
    pub process: Option<u32>,
    /// Its exit code, if it has ended, without a signal.
    pub exit: Option<i32>,
    /// What a page that comes back costs, for each kind of swap; at least one.
    pub prices: Vec<Price>,
    /// Why a better method was not possible; empty if none was wanted.
    pub why: String,
    /// What the user wants to know.
    pub limits: Limits,
    /// The stand-alone time, if it was measured.
    pub seconds: Option<f64>,
}

/// The part of the time that a squeezed program may wait, in percent: the default of `coldframe squeeze`.
pub const SQUEEZE_PERCENT: f64 = 5.0;
/// A range is wide if its ends differ by more than this: then it is no size to paste.
const WIDE: f64 = 2.0;

/// The least limit with which a process waits for memory for no more than that part of the time.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SqueezeRange {
    /// That part, in percent.
    pub percent: f64,
    /// At best; nothing is known of less, if that is all that is known.
    pub low_bytes: u64,
    /// Perhaps.
    pub about_bytes: u64,
    /// At worst.
    pub high_bytes: u64,
}

impl SqueezeRange {
    /// Whether its ends are so far apart that only a squeeze tells.
    pub fn is_wide(&self) -> bool {
        self.high_bytes as f64 > WIDE * self.low_bytes as f64
    }
}

/// The run time of a program by RAM on this machine, from referenced bits.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Watched {
    /// What every answer has.
    #[serde(flatten)]
    pub common: Common,
    /// Its process, if it ran before it was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// What it has had since its start, if it ran before it was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_start: Option<SinceStart>,
    /// Where `coldframe squeeze` is expected to end, if it ran before it was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub squeezed: Option<SqueezeRange>,
    /// Seconds of processor time that it had, from its stretches.
    #[serde(default)]
    pub worked_seconds: f64,
    /// The most pages that it touched in a stretch.
    #[serde(default)]
    pub touched_pages: u64,
    /// What swap `run --by kernel` has to make; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<String>,
}

impl Watched {
    /// The answer. Of several kinds of swap it is for the one with which a run in half of the RAM is shortest.
    pub(crate) fn of(watched: &Bits, question: &BitsQuestion) -> Watched {
        let own = question.seconds.unwrap_or(watched.seconds);
        let of = |price| {
            let split = Split::of(price, watched.peak_pages, watched.compressed);
            (price, split, curve(watched, own, price, split))
        };
        let half = |curve: &[Point]| curve.get(STEPS as usize).map_or(f64::INFINITY, |point| point.seconds);
        let best = best(question.prices.iter().map(of), |(_, _, curve)| half(curve));
        let (price, split, mut curve) = best.expect("a price is known");
        let full = curve[0];
        let last = || watched.stretches.iter().filter_map(|stretch| stretch.looks.last());
        let worked = watched.scale() * last().map(|look| look.seconds).sum::<f64>();
        // A process that runs has no run time: what paging adds is compared with its work.
        let base = question.process.map_or(full.seconds, |_| worked);
        let limit = full.seconds - base + question.limits.longest(base);
        // Below this nothing is known.
        let bound = bytes(split.ram(covered(&watched.stretches))).min(full.ram_bytes);
        let known = || curve.iter().take_while(|point| point.ram_bytes >= bound);
        let best = known().take_while(|point| point.worst() <= limit).last().copied();
        let livable = full.seconds + (THRASHES - 1.0) * base;
        let least = known().take_while(|point| point.seconds <= livable).last().copied();
        let thrashes = known().any(|point| point.seconds > livable);
        let squeezed = question.process.map(|_| {
            let longest = full.seconds + SQUEEZE_PERCENT / 100.0 * watched.seconds;
            let least = |time: fn(&Point) -> f64| {
                let heap = known().take_while(|point| time(point) <= longest).last().map(|point| point.ram_bytes);
                round_limit(heap.unwrap_or(full.ram_bytes) + watched.rest_bytes)
            };
            SqueezeRange {
                percent: SQUEEZE_PERCENT,
                low_bytes: least(|point| point.seconds_low),
                about_bytes: least(|point| point.seconds),
                high_bytes: least(Point::worst),
            }
        });
        let given = question.limits.for_heap(watched.rest_bytes).ram;
        if let Some(ram) = given {
            curve.push(point(watched, own, price, split, ram / PAGE));
            curve.sort_by_key(|point| std::cmp::Reverse(point.ram_bytes));
            curve.dedup_by_key(|point| point.ram_bytes);
        }
        let words = (!question.command.is_empty()).then(|| question.command.clone());
        let works = question.process.is_none() || works(worked, own);
        Watched {
            process: question.process,
            since_start: None,
            squeezed,
            worked_seconds: worked,
            touched_pages: last().map(|look| (look.referenced_bytes + PAGE / 2) / PAGE).max().unwrap_or(0),
            swap: price.make.clone(),
            common: Common {
                program: program(words.as_deref()),
                command: words,
                program_seconds: own,
                recorded_seconds: watched.seconds,
                not_paged_bytes: watched.rest_bytes,
                not_paged: NotPaged::of(&watched.rest, watched.rest_bytes),
                managed_bytes: bytes(watched.peak_pages),
                together_bytes: bytes(watched.peak_pages),
                needed_bytes: full.ram_bytes,
                ram_bytes: best.filter(|_| works).map(|point| point.ram_bytes),
                given_ram_bytes: given.map(|ram| ram / PAGE * PAGE),
                slowdown_percent: 100.0 * question.limits.slowdown,
                thrash_bytes: least.filter(|_| thrashes).map(|point| point.ram_bytes),
                covered_bytes: bound,
                entries: watched.stretches.iter().map(|stretch| stretch.looks.len() as u64).sum(),
                processes: watched.processes as u64,
                threads: watched.threads as u64,
                exit: question.exit,
                measured: price.source.clone(),
                how_sure: rests_on(watched, question, price, split),
                curve,
                ..Common::new()
            }
            .into_limits(),
        }
    }
}

impl Watched {
    /// Whether it worked enough to say what it needs.
    pub fn works(&self) -> bool {
        works(self.worked_seconds, self.common.program_seconds)
    }
}

/// A process that uses the processor for less than a hundredth of the time shows nothing of its work.
fn works(worked_seconds: f64, seconds: f64) -> bool {
    worked_seconds > seconds / 100.0
}

fn bytes(pages: f64) -> u64 {
    pages.ceil() as u64 * PAGE
}

fn curve(watched: &Bits, own: f64, price: &Price, split: Split) -> Vec<Point> {
    let least = FRAMES_MIN as u64;
    let needed = round_up(bytes(watched.peak_pages)).max(least * PAGE);
    let smaller = (1..=STEPS * HALVINGS).map(|i| round(needed as f64 * 0.5f64.powf(f64::from(i) / f64::from(STEPS))));
    let sizes = std::iter::once(needed).chain(smaller);
    let mut sizes: Vec<u64> = sizes.map(|bytes| (bytes / PAGE).max(least)).collect();
    sizes.dedup();
    sizes.into_iter().map(|pages| point(watched, own, price, split, pages)).collect()
}

fn point(watched: &Bits, own: f64, price: &Price, split: Split, pages: u64) -> Point {
    let frames = split.frames(pages as f64);
    let scale = watched.scale();
    let Faults { low, about, high } = faults(&watched.stretches, frames);
    let seconds = |faults: f64, time: coldframe_core::Ps| own + scale * faults * time.0 as f64 / 1e12;
    // Each page came up once, and after it was given back once more, which was not counted.
    let fills = watched.peak_pages.round() as u64;
    let loads = (scale * about).round() as u64;
    Point {
        ram_bytes: pages * PAGE,
        together_bytes: pages * PAGE,
        seconds: seconds(about, price.fault.mean),
        seconds_low: seconds(low, price.ahead.low.min(price.fault.low)),
        seconds_high: (frames >= covered(&watched.stretches)).then(|| seconds(high, price.fault.high)),
        true_faults: loads + fills,
        zero_fills: fills,
        device_reads: loads,
        evictions: loads + (watched.peak_pages - frames).max(0.0) as u64,
        ..Point::default()
    }
}

/// What the answer rests on, the most important first.
fn rests_on(watched: &Bits, question: &BitsQuestion, price: &Price, split: Split) -> Vec<String> {
    let own = 100.0 * watched.own_seconds / watched.seconds.max(1e-9);
    let stretches = watched.stretches.len();
    let mut all = vec![
        format!("An estimate from its pages' referenced bits, read {}", how_often(stretches as u64)),
        format!("Below {} it may take longer", human_size(bytes(split.ram(covered(&watched.stretches))))),
    ];
    if !question.why.is_empty() {
        all.push(format!("Not recorded: {}", question.why));
    }
    all.push(format!("A page that comes back costs what it takes from {}", price.source));
    if price.compressed {
        let guess = if watched.compressed.is_none() { ", a guess" } else { "" };
        all.push(format!("a page in zram takes {:.0} % of its size{guess}", 100.0 * split.share));
    }
    if watched.swapped > 0.0 {
        all.push(format!("at least: {:.0} % of it was in swap", 100.0 * watched.swapped));
    }
    if watched.huge > 0.05 {
        all.push(format!("{:.0} % in huge pages, one bit for 2 MiB", 100.0 * watched.huge));
    }
    if watched.processes > 1 {
        all.push(format!("{}, which share this RAM", things(watched.processes as u64, "process")));
    }
    all.push(format!("Watching took {own:.1} % of its time"));
    all
}

#[cfg(test)]
mod tests {
    use coldframe_core::Ps;
    use coldframe_sheet::sheet::machine::Spread;

    use super::*;
    use crate::predict::bits::look::{Look, Stretch};

    fn question() -> BitsQuestion {
        let fault = Spread { low: Ps(50_000_000), mean: Ps(100_000_000), high: Ps(200_000_000) };
        let price = Price {
            fault,
            ahead: fault,
            kind: "disk".into(),
            compressed: false,
            make: None,
            source: "a file on the disk".into(),
        };
        BitsQuestion {
            command: "/bin/a b".into(),
            process: None,
            exit: Some(0),
            prices: vec![price],
            why: String::new(),
            limits: Limits::default(),
            seconds: None,
        }
    }

    /// 10000 pages; 4000 of them are referenced all the time, in 20 ms, and nothing else is.
    fn watched() -> Bits {
        let looks = (0..10).map(|i| {
            let seconds = 0.002 * f64::from(1 << i);
            let referenced = (200_000.0 * seconds).min(4000.0) as u64 * PAGE;
            Look { seconds, referenced_bytes: referenced, again_bytes: referenced, ..Look::default() }
        });
        let stretch = Stretch { looks: looks.collect(), private_bytes: 10_000 * PAGE };
        Bits {
            stretches: vec![stretch; 2],
            peak_pages: 10_000.0,
            seconds: 4.0,
            covered: 2.048,
            processes: 1,
            threads: 1,
            ..Bits::default()
        }
    }

    #[test]
    fn what_is_not_used_is_not_needed_and_less_than_the_loop_thrashes() {
        let answer = Watched::of(&watched(), &question());
        let ram = answer.common.ram_bytes.unwrap();
        assert!((4000..7000).contains(&(ram / PAGE)), "{}", ram / PAGE);
        let thrash = answer.common.thrash_bytes.unwrap();
        assert!((2500..5200).contains(&(thrash / PAGE)), "{}", thrash / PAGE);
        // 200000 faults a second in 4 s at 100 us each.
        let least = answer.common.curve.last().unwrap();
        assert!((60.0..110.0).contains(&least.seconds), "{least:?}");
        assert!(least.seconds_low <= least.seconds && least.seconds <= least.worst());
        assert_eq!((answer.common.curve[0].seconds, answer.common.curve[0].device_reads), (4.0, 0));
    }

    #[test]
    fn the_swap_is_the_one_with_which_it_is_fastest_and_memory_that_does_not_compress_is_not_for_zram() {
        let disk = question().prices.remove(0);
        let faster = Spread { low: Ps(40_000_000), mean: Ps(50_000_000), high: Ps(60_000_000) };
        let zram = Price { compressed: true, fault: faster, make: Some("zram".into()), ..disk.clone() };
        let both = BitsQuestion { prices: vec![zram, disk], ..question() };
        let of = |compressed| Watched::of(&Bits { compressed: Some(compressed), ..watched() }, &both);
        assert_eq!((of(0.01).swap.as_deref(), of(1.0).swap), (Some("zram"), None));
        // Compressed pages take RAM.
        assert!(of(0.1).common.thrash_bytes > of(0.01).common.thrash_bytes, "{:?}", of(0.1).common.thrash_bytes);
    }

    #[test]
    fn what_paging_adds_to_a_process_is_compared_with_its_work_and_hardly_any_work_recommends_nothing() {
        let of = |process, seconds: f64| {
            let idle = Bits { seconds, covered: seconds * 0.512, ..watched() };
            let limits = Limits { slowdown: 2.5, ..Limits::default() };
            Watched::of(&idle, &BitsQuestion { process, limits, ..question() })
        };
        // It works for 4 s, and may wait for 2.5 times that, not for 2.5 times 390 s.
        let (program, process) = (of(None, 390.0).common.ram_bytes, of(Some(7), 390.0).common.ram_bytes);
        assert!(process > program, "{process:?} {program:?}");
        let (works, hardly) = (of(Some(7), 390.0), of(Some(7), 410.0));
        assert!(works.works() && !hardly.works(), "{}", hardly.worked_seconds);
        assert_eq!(hardly.common.ram_bytes, None);
    }

    #[test]
    fn a_process_has_a_range_in_which_a_squeeze_is_expected_to_end_and_a_program_has_none() {
        let of = |process, seconds: f64| {
            let watched = Bits { seconds, covered: seconds * 0.512, rest_bytes: 100 * PAGE, ..watched() };
            Watched::of(&watched, &BitsQuestion { process, ..question() })
        };
        assert_eq!(of(None, 4.0).squeezed, None);
        let (busy, idle) = (of(Some(7), 4.0).squeezed.unwrap(), of(Some(7), 400.0).squeezed.unwrap());
        for range in [busy, idle] {
            assert!(range.low_bytes <= range.about_bytes && range.about_bytes <= range.high_bytes, "{range:?}");
        }
        // A loop over 4,000 pages has to be in RAM while it runs all the time.
        assert!((3000..8000).contains(&(busy.about_bytes / PAGE)), "{busy:?}");
        assert!(idle.high_bytes <= busy.high_bytes && !busy.is_wide(), "{idle:?} {busy:?}");
        assert!(SqueezeRange { low_bytes: 15, high_bytes: 87, ..busy }.is_wide());
    }

    #[test]
    fn a_size_that_is_given_for_a_process_is_a_limit_of_all_its_memory() {
        let rest_bytes = 1000 * PAGE;
        let limits = Limits { ram: Some(9000 * PAGE), ..Limits::default() };
        let of = |process| {
            let question = BitsQuestion { process, limits, ..question() };
            Watched::of(&Bits { rest_bytes, ..watched() }, &question).common.given_ram_bytes.unwrap() / PAGE
        };
        // Rounded up to a whole MiB.
        assert_eq!((of(None), of(Some(7))), (9216, 9216));
    }

    #[test]
    fn the_answer_says_its_method_and_what_a_fault_rests_on() {
        let why = "it is linked statically".to_string();
        let answer = Watched::of(&Bits { swapped: 0.02, ..watched() }, &BitsQuestion { why, ..question() });
        let sure = answer.common.how_sure.join("; ");
        for words in ["referenced bits", "linked statically", "a file on the disk", "at least: 2 %"] {
            assert!(sure.contains(words), "{sure}");
        }
    }
}
