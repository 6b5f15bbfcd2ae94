//! How pages of a device's memory compress: some at random places are read and compressed as zram would compress them.

use std::time::Instant;

use coldframe_proc::{random_page, Area, Random, PAGE};
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

/// What some pages came to. Sums over all of them.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Pages {
    /// Pages.
    pub pages: u64,
    /// Of these, pages of one word, which take no room in zram.
    pub same_filled: u64,
    /// By lz4.
    pub lz4: Packed,
    /// By zstd.
    pub zstd: Packed,
    /// Microseconds of a first touch of new memory here: the least that a fault takes.
    pub touch_us: f64,
}

/// By one algorithm.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Packed {
    /// Bytes of zram's memory that all pages take.
    pub stored_bytes: u64,
    /// Pages that stay as they are.
    pub incompressible: u64,
    /// Microseconds for compressing all of them.
    pub pack_us: f64,
    /// Microseconds for unpacking all of them.
    pub unpack_us: f64,
}

impl Packed {
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

impl Pages {
    /// Adds pages of these areas, each with its weight: its pages in RAM.
    pub(crate) fn take(&mut self, areas: &[(u32, Area, f64)], count: usize, random: &mut Random) {
        let all: f64 = areas.iter().map(|(_, _, weight)| weight).sum();
        if all <= 0.0 {
            return;
        }
        if self.touch_us == 0.0 {
            self.touch_us = touch_us();
        }
        for _ in 0..count {
            let mut at = (random.next() >> 11) as f64 / (1u64 << 53) as f64 * all;
            let holder = areas.iter().find(|(_, _, weight)| {
                at -= weight;
                at < 0.0
            });
            let page = holder.and_then(|(pid, area, _)| random_page(*pid, area, random));
            page.into_iter().for_each(|page| self.add(&page));
        }
    }

    fn add(&mut self, page: &[u8]) {
        self.pages += 1;
        // zram compares words of the machine.
        if page.chunks_exact(8).all(|word| word == &page[..8]) {
            self.same_filled += 1;
            return;
        }
        let (small, pack) = timed(|| lz4_flex::block::compress(page));
        let (back, unpack) = timed(|| lz4_flex::block::decompress(&small, page.len()));
        self.lz4.add(back.ok().map(|_| small.len()), pack, unpack);
        let (small, pack) = timed(|| zstd::bulk::compress(page, ZSTD_LEVEL));
        let (back, unpack) = timed(|| small.as_ref().ok().map(|small| zstd::bulk::decompress(small, page.len())));
        self.zstd.add(back.and_then(Result::ok).and(small.ok().map(|small| small.len())), pack, unpack);
    }

    /// The part of its size that a page takes in zram; `None`: no page could be read.
    pub fn share(&self, packed: &Packed) -> Option<f64> {
        (self.pages > 0).then(|| packed.stored_bytes as f64 / (self.pages * PAGE) as f64)
    }

    /// Microseconds for packing and for unpacking a page, on average.
    pub(crate) fn mean_us(&self, packed: &Packed) -> (f64, f64) {
        let pages = (self.pages - self.same_filled).max(1) as f64;
        (packed.pack_us / pages, packed.unpack_us / pages)
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let began = Instant::now();
    let done = work();
    (done, began.elapsed().as_secs_f64() * 1e6)
}

/// A first touch of new memory, on average over 4 MiB.
fn touch_us() -> f64 {
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
        let mut pages = Pages::default();
        pages.add(&[7; 4096]);
        assert_eq!((pages.same_filled, pages.lz4), (1, Packed::default()));
        let mut random = Random::default();
        let noise: Vec<u8> = (0..512).flat_map(|_| random.next().to_ne_bytes()).collect();
        pages.add(&noise);
        assert_eq!((pages.lz4.stored_bytes, pages.zstd.stored_bytes, pages.zstd.incompressible), (4096, 4096, 1));
        let text: Vec<u8> = (0..).flat_map(|n: u32| format!("line {} ", n * n).into_bytes()).take(4096).collect();
        pages.add(&text);
        let packed = |of: Packed| of.stored_bytes - 4096;
        assert!(packed(pages.zstd) < packed(pages.lz4) && packed(pages.lz4) < 4096, "{pages:?}");
        assert!(pages.share(&pages.zstd).is_some_and(|share| share > 0.3 && share < 0.7));
    }

    #[test]
    fn areas_of_nobody_and_of_no_weight_give_no_page() {
        let mut pages = Pages::default();
        let area = Area { start: 4096, end: 8192, heap: true, ..Area::default() };
        pages.take(&[(1 << 23, area, 1.0)], 5, &mut Random::default());
        pages.take(&[(1, area, 0.0)], 5, &mut Random::default());
        assert_eq!((pages.pages, pages.share(&pages.lz4)), (0, None));
    }
}
