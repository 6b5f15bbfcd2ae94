//! OPT's misses for one string at many sizes. It counts no evictions and no writes.
//!
//! Each size has a heap of next references. A later reference makes an entry stale. A stale entry is nearer than all
//! others, so it sinks to the bottom of the heap; stale entries are removed only when they are the most. So a hit costs
//! a push that ends at once. The sizes ascend, and the string is shortened for each ([`shortened`]); a memory of that
//! size has the same misses with the shortened string.

use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::shorten::shortened;
use coldframe_lane::PageRef;

const NEVER: u32 = u32::MAX;
/// Entries of a heap per frame before stale ones are removed.
const STALE: usize = 8;

/// OPT's misses with these numbers of frames, which must ascend. The string must have fewer than 2^32 - 1 references.
pub fn misses(string: &[PageRef], frames: &[usize]) -> Vec<u64> {
    assert!(string.len() < NEVER as usize && frames.is_sorted());
    let mut all = vec![0; frames.len()];
    rayon::scope(|scope| {
        let mut left: Arc<[PageRef]> = string.into();
        for (misses, &frames) in all.iter_mut().zip(frames) {
            if frames > 0 {
                left = shortened(&left, frames).into();
                let own = left.clone();
                scope.spawn(move |_| *misses = of_size(&own, frames));
            }
        }
    });
    all
}

/// For each reference, the position of the next reference to the same page; positions start at 1.
fn next_references(string: &[PageRef], pages: usize) -> Vec<u32> {
    let mut later = vec![NEVER; pages];
    let mut next = vec![NEVER; string.len()];
    for (at, reference) in string.iter().enumerate().rev() {
        next[at] = std::mem::replace(&mut later[reference.page()], at as u32 + 1);
    }
    next
}

fn of_size(string: &[PageRef], frames: usize) -> u64 {
    let pages = string.iter().map(|reference| reference.page() + 1).max().unwrap_or(0);
    let next = next_references(string, pages);
    // The next reference of each page in memory; 0 for other pages.
    let mut until = vec![0u32; pages];
    let mut heap: BinaryHeap<(u32, u32)> = BinaryHeap::new();
    let (mut misses, mut resident) = (0, 0);
    for (reference, &next) in string.iter().zip(&next) {
        let page = reference.page();
        if until[page] == 0 {
            misses += 1;
            match resident == frames {
                true => evict(&mut heap, &mut until),
                false => resident += 1,
            }
        }
        until[page] = next;
        heap.push((next, page as u32));
        if heap.len() > STALE * frames + (1 << 10) {
            heap.retain(|(next, page)| until[*page as usize] == *next);
        }
    }
    misses
}

/// Evicts the page whose next reference is farthest away.
fn evict(heap: &mut BinaryHeap<(u32, u32)>, until: &mut [u32]) {
    while let Some((next, page)) = heap.pop() {
        if until[page as usize] == next {
            until[page as usize] = 0;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle;
    use crate::shorten::{Shortener, WINDOW};

    /// Random references with phases, loops and single touches (xorshift64, Marsaglia 2003).
    fn string(seed: u64, length: usize) -> Vec<PageRef> {
        let mut x = seed;
        let mut random = move |below: u64| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x % below
        };
        let mut all = Vec::new();
        while all.len() < length {
            let (base, span) = (random(60), 1 + random(25));
            for i in 0..random(120) {
                let page = if random(3) == 0 { base + random(span) } else { base + i % span };
                all.push(PageRef::new(page as u32, random(4) == 0, false));
            }
        }
        all
    }

    #[test]
    fn misses_are_those_of_opt_at_every_size_whether_or_not_the_string_was_shortened_below_it() {
        for seed in 1..12 {
            let string = string(seed, 3000);
            let frames: Vec<usize> = (1..90).collect();
            let mut slow = (oracle::opt::SPEC.build)(&frames);
            slow.feed(&string);
            let pages: Vec<u64> = (0..200).collect();
            let slow: Vec<u64> = slow.finish(&pages).iter().map(|counts| counts.true_faults).collect();
            assert_eq!(misses(&string, &frames), slow, "seed {seed}");
            for least in [2, 7, 30] {
                let short = shortened(&string, least);
                assert!(short.len() < string.len());
                assert_eq!(misses(&short, &frames[least - 1..]), slow[least - 1..], "seed {seed}, from {least} on");
            }
        }
    }

    #[test]
    fn a_block_at_a_time_loses_no_miss_either() {
        use crate::front_end::plain::Plain;
        use crate::front_end::{FrontEnd, Spaces, Stream};
        use coldframe_store::{Block, Kind, Reference};
        let string = string(7, 5 * WINDOW);
        let mut front = Plain::new(Stream::Both, 12, Spaces::default(), None);
        let (mut shortener, mut all) = (Shortener::new(9, usize::MAX), Vec::new());
        for part in string.chunks(2 * WINDOW + 11) {
            let block: Block = part.iter().map(|r| Reference::new((r.page() as u64) << 12, 1, Kind::Read)).collect();
            let mut out = Vec::new();
            front.filter(&block, 0, &mut out);
            shortener.push(&out, front.counts(), 0);
            all.extend(out);
        }
        let short = shortener.finish(&front).unwrap();
        assert_eq!((short.pages_touched(), short.counts()), (front.numbering().count(), *front.counts()));
        assert_eq!(misses(short.references(), &[9, 20, 40]), misses(&all, &[9, 20, 40]));
        assert!(short.references().len() < all.len());
    }
}
