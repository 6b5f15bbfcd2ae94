//! What a recording shows in addition to run times: where and when memory is touched, what faults most at the
//! recommended size, how long memory is untouched, and what else the machine did in the meantime.

use std::collections::BTreeMap;

use crate::error::AnswerError;
use coldframe_recording::span::PAGE;
use coldframe_store::Noise;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::predict::rows::{Process, Rows};
use crate::predict::simulate::faulting;
use crate::Pager;

/// Columns of heat and of the working set: a line of 80 columns with a title.
pub const COLUMNS: usize = 72;
/// Mappings that are named.
const NAMED: usize = 3;
/// Pages between two touched pages of one mapping, at most: a guard and what an allocator skips (a guess), and about as
/// far as sampled chunks are apart, for a share of the pages.
const GAP: f64 = 16.0;

/// What the largest process did.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MemoryUse {
    /// Entries into the window for each touched page, by address: each number stands for equally many touched pages.
    pub heat: Vec<f64>,
    /// Bytes touched in each of equal parts of the program's own time.
    pub working_set_bytes: Vec<u64>,
    /// The mappings with the most faults at the recommended size, or at half of its need without one.
    pub who: Vec<Mapping>,
    /// How long memory is untouched; `None`: the trace has no times.
    pub idle: Option<Idle>,
    /// What else the machine did.
    #[schemars(with = "Option<std::collections::BTreeMap<String, f64>>")]
    pub noise: Option<Noise>,
}

/// Touched memory without large gaps.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Mapping {
    /// Its first touched address.
    pub start: u64,
    /// Bytes from there to its last touched page.
    pub bytes: u64,
    /// Its part of all faults, in percent.
    pub faults_percent: f64,
    /// The program or library that has mapped or allocated most of it; `None`: not known, or small blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// How long a page was not touched, at any time, in seconds of the program's own time. Touches within the recorder's
/// window are not seen, so these are upper limits.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Idle {
    /// For half of the memory at least this.
    pub p50_seconds: f64,
    /// For a quarter.
    pub p75_seconds: f64,
    /// For a hundredth.
    pub p99_seconds: f64,
}

impl MemoryUse {
    /// Of a recording; `ram`: the recommended size.
    pub(crate) fn of(rows: &Rows, pager: &Pager, ram: u64) -> Result<MemoryUse, AnswerError> {
        let process = &rows.processes[0];
        let times = own_times(process, rows.facts.seconds);
        Ok(MemoryUse {
            heat: heat(process),
            working_set_bytes: working_set(process, times.as_deref(), rows.sample),
            who: named(
                who(process, &faulting(process, pager, ram, rows.sample)?, (GAP / rows.sample) as u64),
                &rows.mappings,
            ),
            idle: times.and_then(|times| idle(process, &times, rows.facts.seconds)),
            noise: rows.facts.noise,
        })
    }
}

/// The numbers of the touched pages, by address.
fn by_address(process: &Process) -> Vec<usize> {
    let mut order: Vec<usize> = (0..process.pages.len()).collect();
    order.sort_unstable_by_key(|number| process.pages[*number]);
    order
}

fn heat(process: &Process) -> Vec<f64> {
    let mut entries = vec![0u64; process.pages.len()];
    process.rows.iter().for_each(|row| entries[(row >> 1) as usize] += 1);
    let order = by_address(process);
    let columns = COLUMNS.min(order.len());
    let part = |i: usize| &order[i * order.len() / columns..(i + 1) * order.len() / columns];
    let mean = |part: &[usize]| part.iter().map(|page| entries[*page]).sum::<u64>() as f64 / part.len() as f64;
    (0..columns).map(|i| mean(part(i))).collect()
}

/// The most processor time that a fault takes from its thread, in nanoseconds. Measured on an idle virtual machine
/// (KVM, 2026-11-25), whose processor halts at each fault: 20 us; 4 to 7 us where the processors are kept awake.
const FAULT_MAX: u32 = 20_000;

/// The program's own time at each row: the threads' time without their faults, stretched to the whole. A row with less
/// time than nine in ten has hardly more than a fault's. `None`: the trace has no times.
fn own_times(process: &Process, seconds: f64) -> Option<Vec<f64>> {
    let mut worked = process.worked.clone();
    let tenth = worked.len() / 10;
    let fault = if worked.is_empty() { 0 } else { FAULT_MAX.min(*worked.select_nth_unstable(tenth).1) };
    let mut now = 0.0;
    let own = |delta: &u32| {
        now += f64::from(delta.saturating_sub(fault));
        now
    };
    let mut times: Vec<f64> = process.worked.iter().map(own).collect();
    let scale = seconds / times.last().filter(|last| **last > 0.0)?;
    times.iter_mut().for_each(|time| *time *= scale);
    Some(times)
}

fn working_set(process: &Process, times: Option<&[f64]>, sample: f64) -> Vec<u64> {
    let rows = process.rows.len();
    let end = times.map_or(rows as f64, |times| times[rows - 1]);
    let mut last = vec![usize::MAX; process.pages.len()];
    let mut pages = [0u64; COLUMNS];
    for (i, row) in process.rows.iter().enumerate() {
        let at = times.map_or(i as f64, |times| times[i]) / end;
        let column = ((at * COLUMNS as f64) as usize).min(COLUMNS - 1);
        if std::mem::replace(&mut last[(row >> 1) as usize], column) != column {
            pages[column] += 1;
        }
    }
    pages.iter().map(|pages| (*pages as f64 / sample) as u64 * PAGE).collect()
}

fn who(process: &Process, faults: &[u32], gap: u64) -> Vec<Mapping> {
    let all = faults.iter().map(|n| f64::from(*n)).sum::<f64>().max(1.0);
    let mut mappings: Vec<Mapping> = Vec::new();
    for number in by_address(process) {
        let (start, percent) = (process.pages[number] * PAGE, 100.0 * f64::from(faults[number]) / all);
        match mappings.last_mut().filter(|one| start <= one.start + one.bytes + gap * PAGE) {
            Some(one) => (one.bytes, one.faults_percent) = (start + PAGE - one.start, one.faults_percent + percent),
            None => mappings.push(Mapping { start, bytes: PAGE, faults_percent: percent, by: None }),
        }
    }
    mappings.sort_by(|a, b| b.faults_percent.total_cmp(&a.faults_percent));
    mappings.truncate(NAMED);
    mappings
}

/// With the names of who made most of each. Memory at one place may have been made several times.
fn named(mut mappings: Vec<Mapping>, made: &[coldframe_store::Mapping]) -> Vec<Mapping> {
    for one in &mut mappings {
        let mut bytes: BTreeMap<&str, u64> = BTreeMap::new();
        for by in made {
            let common = by.end.min(one.start + one.bytes).saturating_sub(by.start.max(one.start));
            *bytes.entry(&by.name).or_default() += common;
        }
        let most = bytes.into_iter().max_by_key(|(_, bytes)| *bytes);
        one.by = most.filter(|(_, bytes)| 2 * bytes >= one.bytes).map(|(name, _)| name.into());
    }
    mappings
}

/// At a random moment, a page that is next touched after a gap has been idle for any part of that gap.
fn idle(process: &Process, times: &[f64], end: f64) -> Option<Idle> {
    let mut since: Vec<Option<f64>> = vec![None; process.pages.len()];
    let mut gaps: Vec<f64> = Vec::new();
    let mut released = process.released.iter().peekable();
    for (i, row) in process.rows.iter().enumerate() {
        while let Some((_, pages)) = released.next_if(|(at, _)| *at <= i) {
            gaps.extend(pages.iter().filter_map(|page| Some(times[i] - since[*page as usize].take()?)));
        }
        gaps.extend(since[(row >> 1) as usize].replace(times[i]).map(|before| times[i] - before));
    }
    gaps.extend(since.into_iter().flatten().map(|last| end - last));
    let all: f64 = gaps.iter().sum();
    let of = |part: f64| {
        let (mut low, mut high) = (0.0, end);
        for _ in 0..40 {
            let age = (low + high) / 2.0;
            let older: f64 = gaps.iter().map(|gap| (gap - age).max(0.0)).sum();
            (low, high) = if older > part * all { (age, high) } else { (low, age) };
        }
        low
    };
    (all > 0.0).then(|| Idle { p50_seconds: of(0.5), p75_seconds: of(0.25), p99_seconds: of(0.01) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages 0 to 9 once in 1 s, then page 100 alone, nine times in 9 s.
    fn process() -> Process {
        let pages: Vec<u64> = (0..10).chain([100]).collect();
        let rows: Vec<u32> = (0..10).chain([10; 9]).map(|page| page << 1).collect();
        let worked = [100_000_000; 10].into_iter().chain([1_000_000_000; 9]);
        Process { rows, pages, worked: worked.collect(), ..Process::default() }
    }

    #[test]
    fn memory_that_is_touched_once_is_idle_until_the_end() {
        let process = process();
        let times = own_times(&process, 10.0).unwrap();
        assert!((times[18] - 10.0).abs() < 1e-6 && (times[9] - 1.0).abs() < 1e-3, "{times:?}");
        // Ten pages with ages from 0 to about 9.5 s, and one with ages of up to 1 s.
        let idle = idle(&process, &times, 10.0).unwrap();
        assert!((3.5..5.0).contains(&idle.p50_seconds) && (6.0..7.5).contains(&idle.p75_seconds), "{idle:?}");
        assert!((8.5..9.9).contains(&idle.p99_seconds), "{idle:?}");
    }

    #[test]
    fn heat_and_working_set_follow_addresses_and_time() {
        let process = process();
        assert_eq!(heat(&process), [[1.0; 10].as_slice(), &[9.0]].concat());
        let set = working_set(&process, own_times(&process, 10.0).as_deref(), 0.5);
        assert_eq!((set.len(), set.iter().sum::<u64>()), (COLUMNS, 19 * 2 * PAGE));
        assert!(set[..8].iter().sum::<u64>() >= 20 * PAGE, "{set:?}");
    }

    #[test]
    fn mappings_are_named_by_their_faults() {
        let faults: Vec<u32> = (0..10).map(|_| 1).chain([30]).collect();
        let mappings = who(&process(), &faults, GAP as u64);
        assert_eq!(mappings[0], Mapping { start: 100 * PAGE, bytes: PAGE, faults_percent: 75.0, by: None });
        assert_eq!((mappings[1].start, mappings[1].bytes, mappings.len()), (0, 10 * PAGE, 2));
        let made = |name: &str, pages: std::ops::Range<u64>| coldframe_store::Mapping {
            name: name.into(),
            start: pages.start * PAGE,
            end: pages.end * PAGE,
            protection: String::new(),
        };
        let by = named(mappings, &[made("libz.so.1", 0..6), made("python3", 4..8), made("libz.so.1", 200..300)]);
        assert_eq!((by[0].by.as_deref(), by[1].by.as_deref()), (None, Some("libz.so.1")));
    }
}
