//! Faults by RAM from referenced bits.
//!
//! The pages referenced since a clearing are the top of the LRU stack. A page that is referenced for the first time
//! since then, while r pages are at the top, is below them: it is a fault for every RAM of at most r pages. So the rate
//! at which such pages come, when r of them have been counted, is the rate of faults with r pages of RAM: Denning's
//! relation, the miss rate is the slope of the working set (P. J. Denning, S. C. Schwartz: Properties of the
//! working-set model, Communications of the ACM 15 (3), 1972). Each stretch is taken as stationary: its rate holds for
//! all of its time. Pages that come up for the first time fill RAM, but are no faults.
//!
//! ```text
//!   referenced │            ,---       rate of faults with R pages = slope where the curve passes R
//!            R │--------,--´
//!              │    ,--´  │            below R nothing is known of R: the slopes seen continue as they fell
//!              │ ,-´      │
//!              └──────────┴──── time since the clearing: of a program processor time, of a machine the clock's
//! ```
//! Do not use it for programs whose memory is reached by sharing with others (a database's shared buffers): only
//! private memory is counted.

use coldframe_proc::PAGE;

use crate::predict::bits::look::{Look, Stretch};

/// The most translations that a TLB keeps: 1536 to 2048 in the second level of Intel's processors since Skylake (Intel
/// 64 and IA-32 Architectures Optimization Reference Manual, sections on caches and TLBs), 2048 to 3072 in AMD's Zen 2
/// to Zen 4 (Software Optimization Guides for the families 17h and 19h, section 2.7).
pub const TLB_PAGES: u64 = 2048;

/// Faults with an amount of RAM.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Faults {
    /// At least these: pages that were seen to come back.
    pub low: f64,
    /// About these.
    pub about: f64,
    /// At most about these: nothing is better than where it was last seen.
    pub high: f64,
}

/// The faults of all stretches with `ram` pages.
pub fn faults(stretches: &[Stretch], ram: f64) -> Faults {
    stretches.iter().map(|stretch| in_stretch(stretch, ram)).sum()
}

impl std::iter::Sum for Faults {
    fn sum<I: Iterator<Item = Faults>>(parts: I) -> Faults {
        parts.fold(Faults::default(), |sum, more| Faults {
            low: sum.low + more.low,
            about: sum.about + more.about,
            high: sum.high + more.high,
        })
    }
}

/// The part by which RAM is less certain than counted: a real pager is not LRU. A guess, checked against exact
/// recordings (`cli/tests/quiet_times/attach.rs`).
const UNCERTAIN: f64 = 1.0 / 8.0;

/// The faults of a stretch, up to its last look, with `ram` pages.
pub fn in_stretch(stretch: &Stretch, ram: f64) -> Faults {
    let rates = rates(&stretch.looks);
    let Some(end) = stretch.looks.last().map(|look| look.seconds) else { return Faults::default() };
    if ram >= pages(stretch.private_bytes) {
        return Faults::default();
    }
    let low = returned(&stretch.looks, ram);
    let about = (end * rate(&rates, ram)).max(low);
    // A TLB hides hot pages, so RAM holds fewer other pages than counted.
    let hidden = (TLB_PAGES as f64).min(ram * UNCERTAIN) + ram * UNCERTAIN;
    let worst = end * highest(&rates, ram - hidden);
    Faults { low, about, high: worst.max(about) }
}

fn pages(bytes: u64) -> f64 {
    bytes as f64 / PAGE as f64
}

/// Pages that came back while more than `ram` pages had been referenced.
fn returned(looks: &[Look], ram: f64) -> f64 {
    let (mut before, mut sum) = ([0.0; 2], 0.0);
    for look in looks {
        let [referenced, again] = [look.referenced_bytes, look.again_bytes].map(pages);
        let part = (referenced - ram) / (referenced - before[0]).max(1.0);
        sum += (again - before[1]) * part.clamp(0.0, 1.0);
        before = [referenced, again];
    }
    sum
}

/// A rate of faults, and the RAM that has it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FaultRate {
    pages: f64,
    each_second: f64,
    /// Of the span in which it was seen.
    time: f64,
}

/// A span is at least this part of the time since the clearing: the time of a look is not known better. A shorter one
/// counts with the next. Looks come at 1.5 times the time of the one before, so a span is a third.
const SPAN: f64 = 0.2;
/// And both of its ends together are not further off than this part of it: a rate is known to a quarter.
const KNOWN: f64 = 0.25;

/// The rates between looks, by RAM.
fn rates(looks: &[Look]) -> Vec<FaultRate> {
    let mut before = Look::default();
    let mut rates: Vec<FaultRate> = Vec::new();
    for look in looks {
        let time = look.seconds - before.seconds;
        if time <= SPAN * look.seconds || before.spread + look.spread > KNOWN * time {
            continue;
        }
        // Freed memory makes room: what was at the top before is above that.
        if look.referenced_bytes >= before.referenced_bytes {
            let each_second = (pages(look.again_bytes) - pages(before.again_bytes)) / time;
            let middle = pages(before.referenced_bytes + look.referenced_bytes) / 2.0;
            rates.push(FaultRate { pages: middle, each_second, time });
        }
        before = *look;
    }
    concave(&mut rates);
    // A rate is that in the middle of its time. If it falls, more than half of the pages had come by then: those of a
    // parabola with the slope that the next span shows.
    for i in 1..rates.len() {
        let (rate, next) = (rates[i - 1], rates[i]);
        let fall = (rate.each_second - next.each_second).max(0.0) / (rate.time + next.time);
        let ahead = (fall * rate.time * rate.time / 4.0).min(rate.each_second * rate.time / 4.0);
        rates[i - 1].pages += ahead;
    }
    rates
}

/// The working set of a stationary program is concave in time: rates that rise with RAM become their mean, as in
/// isotonic regression (pool adjacent violators). So less RAM never has fewer faults.
fn concave(rates: &mut [FaultRate]) {
    let mut pools: Vec<(FaultRate, usize)> = Vec::new();
    for rate in rates.iter() {
        let (mut pool, mut many) = (*rate, 1);
        while let Some((before, count)) = pools.pop_if(|(before, _)| before.each_second < pool.each_second) {
            let time = before.time + pool.time;
            pool.each_second = (before.each_second * before.time + pool.each_second * pool.time) / time;
            (pool.time, many) = (time, many + count);
        }
        pools.push((pool, many));
    }
    let pooled = pools.iter().flat_map(|(pool, many)| std::iter::repeat_n(pool.each_second, *many));
    rates.iter_mut().zip(pooled).for_each(|(rate, each)| rate.each_second = each);
}

/// Pages that the first look after a clearing found whose time is known, in all but a quarter of the time. With less
/// RAM, more pages may have come back than were seen: the rate is that at least.
pub fn covered<'a>(stretches: impl IntoIterator<Item = &'a Stretch>) -> f64 {
    let is_known = |look: &&Look| look.seconds > 0.0 && look.spread <= KNOWN * look.seconds;
    let first = |stretch: &Stretch| {
        stretch.looks.iter().find(is_known).map_or(stretch.private_bytes, |look| look.referenced_bytes)
    };
    let mut firsts: Vec<(f64, f64)> =
        stretches.into_iter().map(|stretch| (pages(first(stretch)), stretch.seconds())).collect();
    firsts.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let mut left = firsts.iter().map(|(_, time)| time).sum::<f64>() / 4.0;
    let last = firsts.iter().find(|(_, time)| {
        left -= time;
        left <= 0.0
    });
    last.map_or(0.0, |(pages, _)| *pages)
}

/// The rate with this RAM: between two known ones in proportion, beyond the last one as it fell before.
fn rate(rates: &[FaultRate], ram: f64) -> f64 {
    let after = rates.iter().position(|rate| rate.pages > ram);
    match (after, rates) {
        (_, []) => 0.0,
        (Some(0), _) | (_, [_]) => rates[0].each_second,
        (Some(i), _) => between(rates[i - 1], rates[i], ram),
        (None, [.., before, last]) => between(*before, *last, ram).clamp(0.0, last.each_second),
    }
}

fn between(low: FaultRate, high: FaultRate, ram: f64) -> f64 {
    let part = (ram - low.pages) / (high.pages - low.pages).max(1.0);
    low.each_second + part * (high.each_second - low.each_second)
}

/// The highest rate from this RAM on; beyond the last one, the last.
fn highest(rates: &[FaultRate], ram: f64) -> f64 {
    let from = rates.iter().rposition(|rate| rate.pages <= ram).unwrap_or(0).min(rates.len());
    rates[from..].iter().map(|rate| rate.each_second).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(pages: f64) -> u64 {
        (pages * PAGE as f64).round() as u64
    }

    fn look(seconds: f64, spread: f64, pages: f64) -> Look {
        let bytes = bytes(pages);
        Look { seconds, spread, referenced_bytes: bytes, again_bytes: bytes, file_bytes: 0 }
    }

    /// Looks at doubling times at a program of which this many pages are referenced after a time.
    fn stretch(pages: f64, seconds: f64, referenced: impl Fn(f64) -> f64) -> Stretch {
        let time = |i: i32| seconds / 2f64.powi(12 - i);
        let looks = (0..=12).map(|i| look(time(i), 0.0, referenced(time(i)))).collect();
        Stretch { looks, private_bytes: bytes(pages) }
    }

    fn near(value: f64, expected: f64, part: f64) {
        assert!((value - expected).abs() <= part * expected, "{value} is not {expected}");
    }

    #[test]
    fn random_references_miss_as_often_as_a_page_is_outside() {
        // 10000 pages, 100000 references a second: a reference misses with the probability 1 - RAM / 10000.
        let all = [stretch(10_000.0, 1.0, |t| 10_000.0 * (1.0 - (-10.0 * t).exp()))];
        for ram in [1000.0, 2500.0, 5000.0, 7500.0] {
            let exact = 100_000.0 * (1.0 - ram / 10_000.0);
            let Faults { low, about, high } = faults(&all, ram);
            near(about, exact, 0.1);
            assert!(low <= exact && exact <= high, "{low} {exact} {high}");
        }
        assert_eq!(faults(&all, 10_000.0), Faults::default());
    }

    #[test]
    fn a_loop_misses_always_until_all_of_it_fits() {
        // 5000 pages in turn, ten times a second, in a heap of 8000.
        let all = [stretch(8000.0, 1.0, |t| (50_000.0 * t).min(5000.0))];
        // The last span before the corner is longer than the loop.
        near(faults(&all, 2500.0).about, 50_000.0, 0.05);
        // The span of the corner has time in which nothing new came.
        near(faults(&all, 4000.0).about, 50_000.0, 0.4);
        assert_eq!(faults(&all, 6000.0).about, 0.0);
    }

    #[test]
    fn less_ram_never_has_fewer_faults_though_a_program_changes_what_it_does() {
        // 100 pages a millisecond for a while, then hardly any, then a scan.
        let all = [stretch(9000.0, 1.0, |t| (100_000.0 * t).min(2000.0) + (20_000.0 * (t - 0.7)).max(0.0))];
        let about: Vec<f64> = (1..90).map(|ram| faults(&all, 100.0 * f64::from(ram)).about).collect();
        assert!(about.is_sorted_by(|more, less| more >= less), "{about:?}");
        assert!(about[0] > about[40] && about[40] > 0.0);
    }

    #[test]
    fn pages_that_come_up_are_no_faults_but_fill_ram() {
        let mut one = stretch(1000.0, 1.0, |t| 1000.0 * t);
        one.looks.iter_mut().for_each(|look| look.again_bytes = 0);
        assert_eq!(faults(&[one], 100.0), Faults::default());
    }

    #[test]
    fn what_was_not_reached_is_open_upward_only() {
        // Half of a scan was seen.
        let all = [stretch(1000.0, 1.0, |t| 500.0 * t)];
        let Faults { low, about, high } = faults(&all, 800.0);
        assert_eq!(low, 0.0);
        near(about, 500.0, 0.01);
        near(high, 500.0, 0.01);
    }

    #[test]
    fn a_look_whose_time_is_hardly_known_tells_no_rate() {
        // 1000 pages a second. The second look took long: its bits are of 0.9 s, its time may be 0.2 to 0.9 s.
        let looks = vec![look(0.5, 0.0, 500.0), look(0.55, 0.35, 900.0), look(2.0, 0.0, 2000.0)];
        let one = Stretch { looks, private_bytes: bytes(4000.0) };
        near(faults(std::slice::from_ref(&one), 800.0).about, 2000.0, 0.01);
        let late = Stretch { looks: one.looks[1..].to_vec(), ..one.clone() };
        assert_eq!((covered(&[one]), covered(&[late])), (500.0, 2000.0));
    }

    #[test]
    fn a_stretch_without_time_says_nothing() {
        let looks = vec![look(0.0, 0.0, 5.0)];
        assert_eq!(faults(&[Stretch { looks, private_bytes: bytes(10.0) }], 2.0).about, 3.0, "only what was seen");
        assert_eq!(faults(&[Stretch::default()], 2.0), Faults::default());
    }
}
