//! How pages compress: some at random places are read and compressed as zram would compress them.

use std::ops::Range;
use std::time::Instant;

use coldframe_proc::{Area, PAGE};
use fastrand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// zram's level of zstd (`ZSTD_defaultCLevel`, drivers/block/zram/backend_zstd.c).
const ZSTD_LEVEL: i32 = 3;
/// The sizes of zram's memory are multiples of this, after a handle for each page; a longer chain of pages wastes less
/// (mm/zsmalloc.c: `ZS_SIZE_CLASS_DELTA`, `ZS_HANDLE_SIZE`, `ZS_MIN_ALLOC_SIZE`, `CONFIG_ZSMALLOC_CHAIN_SIZE`).
const DELTA: usize = 16;
const HANDLE: usize = 8;
const LEAST: usize = 32;
const CHAIN: usize = 8;
/// Pages from a random place on of which the first that is in RAM is read: 4 KiB of the page map.
const NEIGHBOURS: u64 = 512;
/// Times that a place is sought for a page.
const TRIES: usize = 4;

/// What is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Algorithms {
    /// lz4 only, the kernel's usual one for zram.
    Lz4,
    /// lz4 and zstd.
    Both,
}

/// What some pages came to. Sums over all of them.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PageSample {
    /// Pages.
    pub pages: u64,
    /// Of these, pages of one word, which take no room in zram.
    pub same_filled: u64,
    /// By lz4.
    pub lz4: Compression,
    /// By zstd.
    pub zstd: Compression,
    /// Microseconds of a first touch of new memory here: the least that a fault takes.
    pub touch_us: f64,
}

/// By one algorithm.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Compression {
    /// Bytes of zram's memory that all pages take.
    pub stored_bytes: u64,
    /// Pages that stay as they are.
    pub incompressible: u64,
    /// Microseconds for compressing all of them.
    pub pack_us: f64,
    /// Microseconds for unpacking all of them.
    pub unpack_us: f64,
}

impl Compression {
    fn add(&mut self, small: Option<usize>, pack_us: f64, unpack_us: f64) {
        let stored = small.map_or(PAGE as usize, stored);
        self.stored_bytes += stored as u64;
        self.incompressible += u64::from(stored == PAGE as usize);
        self.pack_us += pack_us;
        self.unpack_us += unpack_us;
    }
}

/// Bytes of zram's memory for a page of so many compressed bytes.
///
/// ```text
///   class = bytes and a handle, rounded up; of chains of 1 to 8 pages the one with least waste holds as many as fit
/// ```
fn stored(bytes: usize) -> usize {
    let class = (bytes + HANDLE).max(LEAST).next_multiple_of(DELTA);
    let page = PAGE as usize;
    let waste = |chain: &usize| if class.is_power_of_two() { 0 } else { chain * page % class };
    let chain = (1..=CHAIN).min_by_key(waste).expect("there are some");
    match chain * page / class {
        0 | 1 => page,
        objects => (chain * page).div_ceil(objects).min(page),
    }
}

impl PageSample {
    /// Adds pages of these heaps: of a process, at a place, with so many bytes in RAM. `page`: the first in RAM among
    /// some pages of a process.
    pub(crate) fn take(
        &mut self,
        heaps: &[(u32, Area, f64)],
        count: usize,
        algorithms: Algorithms,
        random: &mut Rng,
        page: impl Fn(u32, Range<u64>) -> Option<Vec<u8>>,
    ) {
        let sum: f64 = heaps.iter().map(|(_, _, bytes)| bytes).sum();
        if sum <= 0.0 {
            return;
        }
        for _ in 0..count {
            let mut place = random.f64() * sum;
            let heap = heaps.iter().find(|(_, _, bytes)| {
                place -= bytes;
                place < 0.0
            });
            let found = heap.and_then(|(pid, area, _)| {
                let (first, end) = (area.start / PAGE, area.end / PAGE);
                (0..TRIES).find_map(|_| {
                    let from = random.u64(first..end);
                    page(*pid, from..end.min(from + NEIGHBOURS))
                })
            });
            found.into_iter().for_each(|page| self.add(&page, algorithms));
        }
    }

    fn add(&mut self, page: &[u8], algorithms: Algorithms) {
        self.pages += 1;
        // zram compares words of the machine.
        if page.chunks_exact(8).all(|word| word == &page[..8]) {
            self.same_filled += 1;
            return;
        }
        let (small, pack) = timed(|| lz4_flex::block::compress(page));
        let (back, unpack) = timed(|| lz4_flex::block::decompress(&small, page.len()));
        self.lz4.add(back.ok().map(|_| small.len()), pack, unpack);
        if algorithms == Algorithms::Lz4 {
            return;
        }
        let (small, pack) = timed(|| zstd::bulk::compress(page, ZSTD_LEVEL));
        let (back, unpack) = timed(|| small.as_ref().ok().map(|small| zstd::bulk::decompress(small, page.len())));
        self.zstd.add(back.and_then(Result::ok).and(small.ok().map(|small| small.len())), pack, unpack);
    }

    /// The part of its size that a page takes in zram; `None`: no page could be read.
    pub fn share(&self, by: &Compression) -> Option<f64> {
        (self.pages > 0).then(|| by.stored_bytes as f64 / (self.pages * PAGE) as f64)
    }

    /// Microseconds for packing and for unpacking a page, on average.
    pub(crate) fn mean_us(&self, by: &Compression) -> (f64, f64) {
        let pages = (self.pages - self.same_filled).max(1) as f64;
        (by.pack_us / pages, by.unpack_us / pages)
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let began = Instant::now();
    let done = work();
    (done, began.elapsed().as_secs_f64() * 1e6)
}

/// A first touch of new memory, on average over 4 MiB.
pub(crate) fn touch_us() -> f64 {
    let pages = 1024;
    let mut memory = vec![0u8; pages * PAGE as usize];
    let ((), us) = timed(|| memory.iter_mut().step_by(PAGE as usize).for_each(|byte| *std::hint::black_box(byte) = 1));
    us / pages as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zrams_classes_leave_room_as_its_source_says() {
        // 2040 and a handle are 2048: two in a page. 3264 and more: no chain of 8 pages holds more than pages.
        assert_eq!((stored(2040), stored(1), stored(4096)), (2048, 32, 4096));
        // 1500: class 1520. Chains of 1 to 8 pages waste 1056, 592, 128, 1184, 720, 256, 1312, 848: three pages hold 8.
        assert_eq!(stored(1500), 3 * 4096 / 8);
        for bytes in 1..4096 {
            assert!((bytes..=4096).contains(&stored(bytes)), "{bytes}");
        }
    }

    #[test]
    fn pages_of_one_word_take_nothing_noise_takes_a_page_and_text_takes_less_by_zstd() {
        let mut pages = PageSample::default();
        pages.add(&[7; 4096], Algorithms::Both);
        assert_eq!((pages.same_filled, pages.lz4), (1, Compression::default()));
        let mut random = Rng::with_seed(1);
        let noise: Vec<u8> = (0..512).flat_map(|_| random.u64(..).to_ne_bytes()).collect();
        pages.add(&noise, Algorithms::Both);
        assert_eq!((pages.lz4.stored_bytes, pages.zstd.stored_bytes, pages.zstd.incompressible), (4096, 4096, 1));
        let text: Vec<u8> = (0..).flat_map(|n: u32| format!("line {} ", n * n).into_bytes()).take(4096).collect();
        pages.add(&text, Algorithms::Both);
        let packed = |by: Compression| by.stored_bytes - 4096;
        assert!(packed(pages.zstd) < packed(pages.lz4) && packed(pages.lz4) < 4096, "{pages:?}");
        assert!(pages.share(&pages.zstd).is_some_and(|share| share > 0.3 && share < 0.7));
    }

    #[test]
    fn of_noise_half_noise_and_zeros_half_is_left() {
        let (mut pages, mut random, mut noise) = (PageSample::default(), Rng::with_seed(1), Rng::with_seed(2));
        let words: Vec<u64> = (0..512).map(|_| noise.u64(..)).collect();
        let heaps = [1, 2, 3].map(|pid| (pid, Area { start: 4096, end: 8192, heap: true, ..Area::default() }, 4096.0));
        let page = |kept: usize| {
            let bytes = words.iter().enumerate().flat_map(|(i, word)| if i < kept { *word } else { 0 }.to_ne_bytes());
            bytes.collect::<Vec<u8>>()
        };
        let contents = [page(512), page(256), page(0)];
        pages.take(&heaps, 600, Algorithms::Lz4, &mut random, |pid, range| {
            assert_eq!(range, 1..2);
            Some(contents[pid as usize - 1].clone())
        });
        let share = pages.share(&pages.lz4).unwrap();
        assert!((0.40..0.65).contains(&share), "{share} of {} pages", pages.pages);
        assert_eq!((pages.pages, pages.zstd), (600, Compression::default()));
    }

    #[test]
    fn heaps_of_no_size_and_pages_that_cannot_be_read_give_none() {
        let mut pages = PageSample::default();
        let area = Area { start: 4096, end: 8192, heap: true, ..Area::default() };
        let mut random = Rng::with_seed(1);
        pages.take(&[(1, area, 1.0)], 5, Algorithms::Both, &mut random, |_, _| None);
        pages.take(&[(1, area, 0.0)], 5, Algorithms::Both, &mut random, |_, _| Some(vec![1; 4096]));
        assert_eq!((pages.pages, pages.share(&pages.lz4)), (0, None));
    }
}
