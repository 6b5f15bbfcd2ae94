//! A swap area whose tables the engine keeps. It is small, so it is always being collected. It is compared with shadow
//! copies, under every collector, across forks, with encryption; and the journal replays.

use crate::common::{forked, in_child, rewrite, round_of, succeeds, wait_for};
use coldframe_core::swap::collect;
use coldframe_core::Below;
use coldframe_live::{Inject, Options, Pager, Region, SwapArea, Wait, PAGE};

const PAGES: usize = 768;

/// An area with an eighth more slots than pages.
fn area(collector: &str, victims: u32) -> SwapArea {
    SwapArea {
        bytes: Some((PAGES as u64 / 32 + 3 + u64::from(SwapArea::START)) * SwapArea::BLOCK),
        collector: collector.into(),
        victims,
    }
}

fn pager(change: impl FnOnce(&mut Options)) -> Pager {
    let swap = Some(area("greedy", 1));
    let mut options = Options { max_memory: (2 * PAGES * PAGE) as u64, swap, ..Options::new(96 * PAGE as u64) };
    change(&mut options);
    Pager::start(options).unwrap()
}

/// A region in which pages were written, read and discarded, with hot pages and pages of zeros. It is compared with a
/// shadow, at each step and at the end.
fn exercised(pager: &Pager, steps: u64) -> Region {
    let mut region = pager.anonymous(PAGES * PAGE).unwrap();
    let (mut random, mut shadow) = (fastrand::Rng::with_seed(4), vec![0; PAGES]);
    let place = |page: usize| page * PAGE + page % 500 * 8..page * PAGE + page % 500 * 8 + 8;
    for step in 1..=steps {
        let page = if random.bool() { random.usize(..PAGES) } else { random.usize(..PAGES / 8) };
        let word = &mut region.as_mut_slice()[place(page)];
        assert_eq!(u64::from_le_bytes(word.try_into().unwrap()), shadow[page], "page {page} in step {step}");
        match random.u8(..40) {
            0..=19 => shadow[page] = step << 16 | page as u64,
            20 => shadow[page] = 0,
            21 => {
                region.discard(page * PAGE..(page + 1) * PAGE).unwrap();
                shadow[page] = 0;
                continue;
            }
            _ => continue,
        }
        word.copy_from_slice(&shadow[page].to_le_bytes());
    }
    for (page, word) in shadow.iter().enumerate() {
        assert_eq!(region.as_slice()[place(page)], word.to_le_bytes(), "page {page}");
    }
    region
}

#[test]
fn every_collector_keeps_every_byte_and_the_journal_replays() {
    let folder = tempfile::tempdir().unwrap();
    for (collector, victims) in collect::ALL.iter().map(|c| c.name).zip([1, 2, 4, 3]) {
        for encrypt in [false, true] {
            let path = folder.path().join("journal");
            let pager = pager(|o| {
                (o.swap, o.encrypt) = (Some(area(collector, victims)), encrypt);
                o.journal = Some(path.clone());
            });
            let region = exercised(&pager, 12_000);
            let stats = pager.stats();
            assert!(stats.swap_erases > 50 && stats.swap_copies > 20, "{collector}: {stats:?}");
            assert!(stats.block_erases_max > stats.block_erases_min, "{stats:?}");
            assert_eq!(
                stats.swap_programs - stats.swap_full,
                stats.dirty_evictions,
                "each page that left was programmed once"
            );
            drop(region);
            pager.check();
            drop(pager);
            let bytes = std::fs::read(&path).unwrap();
            let (head, _) = coldframe_journal::open(&bytes).unwrap();
            assert!(!head.config.caps.places && head.below.swap.is_some_and(|swap| swap.areas[0].victims == victims));
            let replayed = coldframe_journal::replay(&bytes).unwrap();
            assert!(replayed.commands > 10_000, "{replayed:?}");
        }
    }
}

#[test]
fn a_pager_without_an_area_says_that_it_places_pages_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    drop(pager(|o| (o.swap, o.journal) = (None, Some(path.clone()))));
    let bytes = std::fs::read(&path).unwrap();
    let (head, _) = coldframe_journal::open(&bytes).unwrap();
    assert!(head.config.caps.places && head.below == Below::default());
}

#[test]
fn threads_find_what_they_wrote_whoever_collects() {
    const THREADS: usize = 4;
    for (handlers, wait) in [(8, Wait::Brief), (3, Wait::Brief), (8, Wait::Read)] {
        let pager = pager(|o| (o.handlers, o.wait) = (handlers, wait));
        let region = pager.anonymous(PAGES * PAGE).unwrap();
        crate::common::count_up(&region, THREADS, 8_000);
        assert!(pager.stats().swap_erases > 100, "{:?}", pager.stats());
        drop(region);
        pager.check();
    }
}

/// A page of zeros takes a slot but no bytes. The slot is freed when the page is discarded or unmapped.
#[test]
fn pages_that_are_given_back_leave_room_in_the_area() {
    for unmap in [false, true] {
        let blocks = PAGES as u64 / 32 + 1 + u64::from(SwapArea::START);
        let pager = pager(|o| o.swap = Some(SwapArea { bytes: Some(blocks * SwapArea::BLOCK), ..area("greedy", 1) }));
        for round in 1..=4 {
            let region = pager.anonymous(PAGES * PAGE).unwrap();
            rewrite(&region, PAGES, 1..=1);
            // SAFETY: inside the region; zeros again.
            (0..PAGES / 2).for_each(|page| unsafe { region.as_ptr().add(page * PAGE).cast::<u64>().write_volatile(0) });
            (0..PAGES).for_each(|page| assert_eq!(round_of(&region, page), u64::from(page >= PAGES / 2)));
            if !unmap {
                region.discard(0..PAGES * PAGE).unwrap();
                (0..PAGES).for_each(|page| assert_eq!(round_of(&region, page), 0));
            }
            drop(region);
            assert_eq!(pager.stats().swap_full, 0, "round {round}");
        }
        pager.check();
    }
}

/// Pages that do not fit in the area are stored outside of it, and move into it when there is room.
#[test]
fn an_area_that_is_too_small_loses_nothing() {
    let pager = pager(|o| o.swap = Some(SwapArea { bytes: Some(10 * SwapArea::BLOCK), ..area("cost-benefit", 1) }));
    let region = exercised(&pager, 12_000);
    let stats = pager.stats();
    assert!(stats.swap_full > 100 && stats.swap_programs > 0, "{stats:?}");
    drop(region);
    pager.check();
}

/// A child that checks repeatedly until the parent has continued, and its own child that does the same.
#[test]
fn children_and_grandchildren_see_their_fork_while_the_area_is_erased_and_written_anew() {
    for encrypt in [false, true] {
        succeeds(|| {
            let pager = pager(|o| o.encrypt = encrypt);
            let region = pager.anonymous(PAGES * PAGE).unwrap();
            rewrite(&region, PAGES, 1..=3);
            let mut children = Vec::new();
            for round in 4..=9u64 {
                children.push(forked(|| generation(&region, round - 1, 2)));
                rewrite(&region, PAGES, round..=round);
            }
            rewrite(&region, PAGES, 10..=14);
            children.into_iter().for_each(|pid| assert_eq!(wait_for(pid), 0));
            assert!(pager.stats().swap_erases > 200, "{:?}", pager.stats());
            pager.check();
        });
    }
}

/// Checks the round of its fork, writes and checks its own rounds, with a child in between.
fn generation(region: &Region, round: u64, more: u32) {
    (0..PAGES).for_each(|page| assert_eq!(round_of(region, page), round));
    (0..PAGES).rev().for_each(|page| assert_eq!(round_of(region, page), round));
    rewrite(region, PAGES, round + 1..=round + 2);
    if more == 0 {
        return;
    }
    let child = forked(|| generation(region, round + 2, more - 1));
    rewrite(region, PAGES, round + 3..=round + 5);
    assert_eq!(wait_for(child), 0);
    (0..PAGES).for_each(|page| assert_eq!(round_of(region, page), round + 5));
}

/// Reads and writes sometimes fail or are short, also within a collection.
#[test]
fn a_device_that_stumbles_loses_nothing() {
    let inject = Inject {
        seed: 5,
        read_short: 40,
        again: 20,
        read_error: 200,
        write_short: 30,
        write_error: 100,
        ..Inject::default()
    };
    let pager = pager(|o| (o.inject, o.wait) = (Some(inject), Wait::Read));
    drop(exercised(&pager, 12_000));
    assert!(pager.stats().failures > 0 && pager.stats().swap_copies > 0);
}

#[test]
fn bytes_that_are_not_what_was_written_stop_the_program_also_after_they_were_copied() {
    let (status, stderr) = in_child(|| {
        let inject = Inject { seed: 1, read_flip: 1, ..Inject::default() };
        let pager = pager(|o| o.inject = Some(inject));
        drop(exercised(&pager, 12_000));
    });
    assert!(status == 125 && stderr.contains("checksum differs"), "{status}: {stderr}");
}

#[test]
fn a_full_device_makes_the_program_wait_and_then_go_on() {
    succeeds(|| {
        let pager = pager(|o| o.inject = Some(Inject { seed: 9, write_full: 3, ..Inject::default() }));
        drop(exercised(&pager, 600));
    });
}

/// A late read finds that a collection has moved its page, and that another page is in the old slot.
#[test]
fn a_page_is_found_wherever_a_collection_has_put_it_meanwhile() {
    for encrypt in [false, true] {
        let pager = pager(|o| {
            (o.handlers, o.encrypt) = (8, encrypt);
            o.inject = Some(Inject { read_late: 50, ..Inject::default() });
        });
        let region = pager.anonymous(PAGES * PAGE).unwrap();
        crate::common::count_up(&region, 6, 1_200);
        let stats = pager.stats();
        assert!(stats.failures == 0 && stats.swap_copies > 100, "{stats:?}");
    }
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let refused = |swap: SwapArea, backing_max: Option<u64>| {
        let options = Options { max_memory: 1 << 24, swap: Some(swap), backing_max, ..Options::new(1 << 20) };
        Pager::start(options).unwrap_err().to_string()
    };
    assert!(refused(area("greed", 1), None).contains("there is no collector `greed`; there are greedy,"));
    assert!(refused(area("greedy", 5), None).contains("`victims` is 5; give 1 to 4"));
    let small = SwapArea { bytes: Some(6 * SwapArea::BLOCK), ..area("greedy", 1) };
    assert!(refused(small, None).contains("`blocks` is 6; give 7 to"));
    assert!(refused(area("greedy", 1), Some(1 << 22)).contains("the swap file has room for 2 MiB"));
}
