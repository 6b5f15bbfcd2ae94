//! Pages at random places (`/proc/PID/mem`), and how well those of a heap compress as zram would compress them.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::areas::Area;
use crate::process::Process;
use crate::PAGE;

/// Pages that are read each time.
const PAGES: usize = 64;
/// Only a heap of at least this part of the largest so far counts.
const LARGE: f64 = 0.9;
/// Neighbours of which the first that is in RAM is read: 4 KiB of the page map.
const NEAR: usize = 512;
/// Times that a place is sought for a page.
const TRIES: usize = 4;
/// zram keeps a page as it is if it does not become smaller than this part (`huge_class_size`, mm/zsmalloc.c).
const KEPT: usize = 3264;
/// The bit of a page map's entry that says that the page is in RAM (Documentation/admin-guide/mm/pagemap.rst).
const PRESENT: u64 = 1 << 63;

/// The pages so far, and their bytes when compressed.
#[derive(Default)]
pub struct Sample {
    pages: usize,
    bytes: usize,
    /// KiB of the largest heap so far.
    largest: f64,
    random: Random,
}

/// Random numbers (xorshift), the same every time.
pub struct Random(u64);

impl Default for Random {
    fn default() -> Random {
        Random(88_172_645_463_325_252)
    }
}

impl Random {
    /// The next one.
    #[allow(clippy::should_implement_trait)] // There is always one.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// A page of the area that is in RAM, at a random place; `None`: none is found, or they may not be read.
pub fn random_page(pid: u32, area: &Area, random: &mut Random) -> Option<Vec<u8>> {
    let process = Process::of(pid);
    let (map, memory) = (File::open(process.file("pagemap")).ok()?, File::open(process.file("mem")).ok()?);
    let pages = (area.end - area.start) / PAGE;
    for _ in 0..TRIES {
        let first = area.start / PAGE + random.next() % pages;
        let mut entries = [0u8; 8 * NEAR];
        let count = map.read_at(&mut entries, 8 * first).ok()? / 8;
        let left = (area.end / PAGE - first).min(count as u64) as usize;
        let is_there = |entry: &[u8]| u64::from_ne_bytes(entry.try_into().expect("eight bytes")) & PRESENT != 0;
        if let Some(near) = entries.chunks_exact(8).take(left).position(is_there) {
            let mut page = vec![0; PAGE as usize];
            memory.read_exact_at(&mut page, (first + near as u64) * PAGE).ok()?;
            return Some(page);
        }
    }
    None
}

impl Sample {
    /// Reads some pages of these areas, by process and start. Those that may not be read are left out.
    pub fn take(&mut self, all: &HashMap<(u32, u64), Area>) {
        let heap = all.iter().filter(|(_, area)| area.heap && area.counts.rss > 0);
        let heap: Vec<(u32, &Area)> = heap.map(|((pid, _), area)| (*pid, area)).collect();
        let whole: u64 = heap.iter().map(|(_, area)| area.counts.rss).sum();
        if whole as f64 * LARGE > self.largest {
            (self.pages, self.bytes) = (0, 0);
        }
        self.largest = self.largest.max(whole as f64);
        if (whole as f64) < LARGE * self.largest || whole == 0 {
            return;
        }
        for _ in 0..PAGES {
            let mut at = self.random.next() % whole;
            let holder = heap.iter().find(|(_, area)| match at.checked_sub(area.counts.rss) {
                Some(left) => {
                    at = left;
                    false
                }
                None => true,
            });
            let Some(page) = holder.and_then(|(pid, area)| random_page(*pid, area, &mut self.random)) else { continue };
            let small = lz4_flex::block::compress(&page).len();
            self.bytes += match page.iter().all(|byte| *byte == page[0]) {
                // A page of one word takes no room.
                true => 0,
                false if small > KEPT => page.len(),
                false => small,
            };
            self.pages += 1;
        }
    }

    /// The part of its size that a page takes; `None`: none could be read.
    pub fn compressed(&self) -> Option<f64> {
        (self.pages > 0).then(|| self.bytes as f64 / (self.pages as u64 * PAGE) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_stay_as_they_are_and_half_of_a_page_is_half() {
        let mut sample = Sample::default();
        let mut noise = || (0..512).map(|_| sample.random.next()).collect::<Vec<u64>>();
        // Pages of noise, of half noise, and of zeros; large, so that they are a mapping of their own.
        let words: Vec<u64> = (0..1024)
            .flat_map(|i| {
                let mut page = noise();
                page[512 - 256 * (i % 3)..].fill(0);
                page
            })
            .collect();
        let (own, at) = (std::process::id(), words.as_ptr() as u64);
        let text = Process::of(own).smaps().unwrap();
        let mappings = crate::mappings(&text);
        let area = Area::of(mappings.iter().find(|one| one.start <= at && at < one.end).unwrap());
        let all = HashMap::from([((own, area.start), area)]);
        (0..20).for_each(|_| sample.take(&all));
        let ratio = sample.compressed().unwrap();
        assert!((0.40..0.65).contains(&ratio), "{ratio} of {} pages", sample.pages);
        assert!(words.len() == 512 * 1024);
    }

    #[test]
    fn memory_of_nobody_says_nothing() {
        let mut sample = Sample::default();
        let counts = crate::maps::Counts { rss: 4, ..Default::default() };
        let area = Area { start: 4096, end: 8192, heap: true, counts };
        sample.take(&HashMap::from([((1 << 23, 4096), area)]));
        assert_eq!(sample.compressed(), None);
    }
}
