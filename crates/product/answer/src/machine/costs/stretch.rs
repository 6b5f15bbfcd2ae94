//! Stretches of accesses: makes them, times them, and summarises their times.

use std::io;
use std::time::{Duration, Instant};

use coldframe_core::Ps;
use coldframe_live::PAGE;
use coldframe_proc::Process;
use coldframe_sheet::sheet::machine::Spread;

use super::{ns, SHORTEST};

/// Fewer stretches say nothing about how a cost varies, however long they take.
const STRETCHES_MIN: usize = 3;

/// If threads wait for a processor longer than this part of a stretch, the stretch measures other programs.
const DISTURBED: f64 = 0.1;

/// With fewer good stretches than this, some of the others count, too.
const UNDISTURBED_MIN: usize = 8;

/// From nanoseconds for each event, one value for each stretch; `None` without any.
pub fn spread(stretches: &[f64]) -> Option<Spread> {
    let stretches = sorted(stretches)?;
    let (low, high) = tenths(&stretches);
    Some(Spread { low: ps(low), mean: ps(mean(&stretches)).clamp(ps(low), ps(high)), high: ps(high) })
}

/// The extra time of these stretches over `than`. The mean uses the middle half of both: disturbances from outside
/// affect few stretches, and would be a large part of a small difference.
pub fn more(stretches: &[f64], than: &[f64]) -> Option<Spread> {
    let (stretches, less) = (sorted(stretches)?, sorted(than)?);
    let ((low, high), (less_low, _)) = (tenths(&stretches), tenths(&less));
    let typical = ps(middle(&stretches) - middle(&less));
    let (low, high) = (ps(low - less_low), ps(high - middle(&less)));
    Some(Spread { low: low.min(typical), mean: typical, high: high.max(typical) })
}

/// Each value less `much`, but at least a nanosecond.
pub fn less(spread: Spread, much: Ps) -> Spread {
    let less = |time: Ps| Ps(time.0.saturating_sub(much.0)).max(SHORTEST);
    Spread { low: less(spread.low), mean: less(spread.mean), high: less(spread.high) }
}

fn sorted(stretches: &[f64]) -> Option<Vec<f64>> {
    let mut sorted = stretches.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then_some(sorted)
}

fn ps(ns: f64) -> Ps {
    Ps((ns * 1e3).round() as u64).max(SHORTEST)
}

fn mean(part: &[f64]) -> f64 {
    part.iter().sum::<f64>() / part.len() as f64
}

/// The means of the best and of the worst tenth.
fn tenths(sorted: &[f64]) -> (f64, f64) {
    let tenth = (sorted.len() / 10).max(1);
    (mean(&sorted[..tenth]), mean(&sorted[sorted.len() - tenth..]))
}

/// The mean of the middle half.
fn middle(sorted: &[f64]) -> f64 {
    let quarter = sorted.len() / 4;
    mean(&sorted[quarter..sorted.len() - quarter])
}

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    /// Reads a word.
    Read,
    /// Writes a word that was not there before.
    Write,
    /// Writes the whole page with bytes that do not compress, one word of them new.
    Fill,
    /// The same with bytes that lz4 makes about three times smaller.
    Text,
}

/// Memory, paged or not, that the accesses go to.
pub struct Ground {
    start: usize,
    pages: usize,
    template: Vec<u64>,
    text: Vec<u64>,
    word: u64,
    /// Nanoseconds of each kind of access without a fault, in the order of `Touch`.
    plain: [f64; 4],
}

impl Ground {
    /// # Safety
    /// The range must be readable and writable, and in no other use, as long as this lives.
    pub unsafe fn new(start: usize, pages: usize, random: &mut fastrand::Rng) -> Ground {
        let template = std::iter::repeat_with(|| random.u64(..)).take(PAGE / 8).collect();
        // Every fourth word is new.
        let text =
            (0..PAGE / 8).map(|i| if i % 4 == 0 { random.u64(..) } else { 0x0000_7f5e_0000_0000 + i as u64 % 4 });
        Ground { start, pages, template, text: text.collect(), word: 0, plain: [0.0; 4] }
    }

    /// All pages in random order, again and again in another order.
    pub fn shuffled(&self, mut random: fastrand::Rng) -> impl Iterator<Item = usize> {
        let mut order: Vec<usize> = (0..self.pages).collect();
        std::iter::repeat_with(move || {
            random.shuffle(&mut order);
            order.clone()
        })
        .flatten()
    }

    /// Makes the accesses in order.
    pub fn touch(&mut self, pages: impl IntoIterator<Item = usize>, touch: Touch) {
        pages.into_iter().for_each(|page| self.touch_page(page, touch));
    }

    fn touch_page(&mut self, page: usize, touch: Touch) {
        debug_assert!(page < self.pages);
        self.word += 1;
        let place = (self.start + page * PAGE) as *mut u64;
        // SAFETY: a page of the ground, which is this value's alone.
        unsafe {
            match touch {
                Touch::Read => drop(place.read_volatile()),
                Touch::Write => place.write_volatile(self.word),
                Touch::Fill | Touch::Text => {
                    let from = if touch == Touch::Fill { &self.template } else { &self.text };
                    std::ptr::copy_nonoverlapping(from.as_ptr(), place, PAGE / 8);
                    place.write_volatile(self.word);
                }
            }
        }
    }

    /// Nanoseconds for each event, of stretches of `len` accesses, until the accesses end or the time is over. Left
    /// out are stretches with fewer events than half of their accesses, and stretches in which other programs had the
    /// processor.
    pub fn stretches(
        &mut self,
        pages: impl IntoIterator<Item = usize>,
        touch: Touch,
        (len, most): (usize, Duration),
        events: &dyn Fn() -> u64,
    ) -> Vec<f64> {
        let (mut stretches, mut pages, began) = (Vec::new(), pages.into_iter(), Instant::now());
        let mut stretch = Vec::with_capacity(len);
        while stretches.len() < STRETCHES_MIN || began.elapsed() < most {
            stretch.clear();
            stretch.extend(pages.by_ref().take(len));
            if stretch.len() < len {
                break;
            }
            let (waited, before, started) = (Process::of(std::process::id()).ready_ns(), events(), Instant::now());
            stretch.iter().for_each(|page| self.touch_page(*page, touch));
            let (took, met) = (ns(started), events() - before);
            if 2 * met >= len as u64 {
                let each = (took as f64 - len as f64 * self.plain[touch as usize]) / met as f64;
                // A thread that has ended meanwhile is no longer in the count.
                stretches.push((
                    each,
                    Process::of(std::process::id()).ready_ns().saturating_sub(waited) as f64 / took as f64,
                ));
            }
            if began.elapsed() > 4 * most {
                break;
            }
        }
        undisturbed(stretches)
    }

    /// The same ground, with the time of its accesses without a fault.
    pub fn knowing(self, plain: [f64; 4]) -> Ground {
        Ground { plain, ..self }
    }
}

/// The least disturbed stretches, and enough of them in any case. Each stretch comes with the share of its time in
/// which threads were ready and had no processor. A small share is normal: threads of the pager wait for each other,
/// too.
fn undisturbed(mut stretches: Vec<(f64, f64)>) -> Vec<f64> {
    stretches.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let limit = stretches.first().map_or(0.0, |(_, share)| share + DISTURBED);
    let quiet = stretches.partition_point(|(_, share)| *share <= limit);
    stretches.truncate(quiet.max(UNDISTURBED_MIN).max(stretches.len() / 10));
    stretches.into_iter().map(|(each, _)| each).collect()
}

/// Memory of the kernel, without a pager; unmapped when dropped.
pub struct Plain(*mut u8, usize);

impl Plain {
    /// `len` bytes, with huge pages as the kernel has them set, or without.
    pub fn new(len: usize, huge: bool) -> io::Result<Plain> {
        let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at a place of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, rights, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        if !huge {
            // SAFETY: no content is there yet. A kernel without huge pages refuses, and needs no advice.
            let _ = unsafe { libc::madvise(start, len, libc::MADV_NOHUGEPAGE) };
        }
        Ok(Plain(start.cast(), len))
    }

    /// All of it.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: mapped readable and writable as long as this value, which is borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.0, self.1) }
    }

    /// To be touched.
    pub fn ground(&self, random: &mut fastrand::Rng) -> Ground {
        // SAFETY: mapped readable and writable, and not known to other code; the ground does not outlive the
        // measurement.
        unsafe { Ground::new(self.0 as usize, self.1 / PAGE, random) }
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        // SAFETY: its accesses are over.
        unsafe { libc::munmap(self.0.cast(), self.1) };
    }
}

/// Nanoseconds of each kind of access, in random order, to memory of this size that is all in RAM.
pub fn plain(pages: usize) -> io::Result<[f64; 4]> {
    let mut random = fastrand::Rng::with_seed(1);
    let memory = Plain::new(pages * PAGE, false)?;
    let mut ground = memory.ground(&mut random);
    ground.touch(0..pages, Touch::Write);
    let order: Vec<usize> = ground.shuffled(random).take(2 * pages).collect();
    Ok([Touch::Read, Touch::Write, Touch::Fill, Touch::Text].map(|touch| {
        let started = Instant::now();
        ground.touch(order.iter().copied(), touch);
        ns(started) as f64 / order.len() as f64
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_the_means_of_the_best_tenth_of_all_and_of_the_worst_tenth() {
        let stretches: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        assert_eq!(spread(&stretches), Some(Spread { low: Ps(1_500), mean: Ps(10_500), high: Ps(19_500) }));
        assert_eq!(spread(&[2.0]), Some(Spread { low: Ps(2_000), mean: Ps(2_000), high: Ps(2_000) }));
        assert_eq!(spread(&[-5.0, 0.2]), Some(Spread { low: Ps(1_000), mean: Ps(1_000), high: Ps(1_000) }));
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn a_difference_is_not_upset_by_a_few_long_stretches_and_never_less_than_a_nanosecond() {
        let of = |low, mean, high| Spread { low: Ps(low), mean: Ps(mean), high: Ps(high) };
        let (with, without) = ([12.0, 11.0, 10.0, 12.0, 900.0], [8.0, 7.0, 8.0, 7.0, 500.0]);
        // The middle: 11, 12, 12 and 7, 8, 8.
        assert_eq!(more(&with, &without), Some(of(3_000, 4_000, 892_333)));
        assert_eq!(more(&without, &with), Some(of(1_000, 1_000, 488_333)));
        assert_eq!(more(&with, &[]), None);
        assert_eq!(less(of(5_000, 9_000, 20_000), Ps(6_000)), of(1_000, 3_000, 14_000));
    }

    #[test]
    fn stretches_in_which_others_ran_do_not_count_unless_there_are_too_few() {
        let quiet: Vec<_> = (0..9).map(|i| (f64::from(i), 0.02)).collect();
        let times = undisturbed([vec![(100.0, 0.3), (200.0, 0.9)], quiet].concat());
        assert_eq!(times, (0..9).map(f64::from).collect::<Vec<_>>());
        let busy: Vec<_> = (0..20).map(|i| (f64::from(i), f64::from(i) / 4.0)).collect();
        assert_eq!(undisturbed(busy), (0..8).map(f64::from).collect::<Vec<_>>());
        assert_eq!(undisturbed(vec![(5.0, 0.5), (6.0, 0.9)]), [5.0, 6.0]);
        assert!(undisturbed(Vec::new()).is_empty());
    }

    #[test]
    fn a_stretch_counts_its_events_and_not_its_accesses() {
        let memory = Plain::new(8 * PAGE, false).unwrap();
        let mut ground = memory.ground(&mut fastrand::Rng::with_seed(1));
        let count = std::cell::Cell::new(0);
        let every = |n: u64| {
            count.set(count.get() + n);
            count.get()
        };
        let half = ground.stretches((0..80).map(|i| i % 8), Touch::Read, (8, Duration::MAX / 8), &|| every(4));
        assert!((UNDISTURBED_MIN..=10).contains(&half.len()), "{half:?}");
        assert_eq!(
            ground.stretches((0..80).map(|i| i % 8), Touch::Read, (8, Duration::MAX / 8), &|| every(3)).len(),
            0
        );
        assert_eq!(ground.stretches((0..7).map(|i| i % 8), Touch::Fill, (8, Duration::MAX / 8), &|| every(8)).len(), 0);
    }
}
