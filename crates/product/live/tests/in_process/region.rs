//! Regions as a program sees them: reads return what was written, in the given RAM.

use crate::common::{round_of, stamp};
use coldframe_live::{Options, Pager, Wait, PAGE};

const RAM: u64 = 2 << 20;

fn pager(change: impl FnOnce(&mut Options)) -> Pager {
    crate::common::pager(RAM, change)
}

/// Writes and reads a region of eight times RAM at random.
fn exercise(pager: &Pager, rounds: u64) {
    let pages = 8 * RAM as usize / PAGE;
    let region = pager.anonymous(pages * PAGE).unwrap();
    let mut shadow = vec![0u64; pages];
    let mut random = fastrand::Rng::with_seed(7);
    for round in 1..=rounds {
        for _ in 0..pages {
            let page = random.usize(..pages);
            assert_eq!(round_of(&region, page), shadow[page], "page {page} in round {round}");
            if random.bool() {
                stamp(&region, page, round);
                shadow[page] = round;
            }
        }
    }
    (0..pages).for_each(|page| assert_eq!(round_of(&region, page), shadow[page]));
    pager.check();
}

#[test]
fn what_is_written_is_read_whatever_the_policy() {
    for policy in ["fifo", "fifo-sc", "pa-fifo-sc", "clock", "pa-clock", "multi-queue", "sieve"] {
        let pager = pager(|o| o.policy = Some(policy.to_string()));
        exercise(&pager, 2);
        let stats = pager.stats();
        assert!(stats.evictions > 0 && stats.pages_written > 0, "{policy}: {stats:?}");
        let frames = RAM / PAGE as u64;
        assert!(stats.resident_max <= frames, "{policy}: {} pages in RAM of {frames}", stats.resident_max);
    }
}

#[test]
fn what_is_written_is_read_however_the_device_is_waited_for_and_from_sealed_pages() {
    for (wait, encrypt) in [(Wait::Read, false), (Wait::Brief, false), (Wait::Auto, true)] {
        exercise(&pager(|o| (o.wait, o.encrypt) = (wait, encrypt)), 1);
    }
}

#[test]
fn threads_of_its_own_serve_system_calls_too() {
    let pager = pager(|_| ());
    exercise(&pager, 1);
    let mut region = pager.anonymous(4 * RAM as usize).unwrap();
    for page in 0..region.len() / PAGE {
        stamp(&region, page, 9);
    }
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, region.as_slice()).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    std::io::Read::read_exact(&mut file, region.as_mut_slice()).unwrap();
    (0..region.len() / PAGE).for_each(|page| assert_eq!(round_of(&region, page), 9));
}

#[test]
fn a_region_is_zero_at_first_and_after_advice() {
    let pager = pager(|_| {});
    let mut region = pager.anonymous(4 * RAM as usize).unwrap();
    assert!(region.as_slice().iter().step_by(509).all(|b| *b == 0));
    region.as_mut_slice().fill(1);
    region.discard(PAGE..region.len()).unwrap();
    assert!(region.as_slice()[..PAGE].iter().all(|b| *b == 1));
    assert!(region.as_slice()[PAGE..].iter().step_by(67).all(|b| *b == 0));
    drop(region);
    let again = pager.anonymous(4 * RAM as usize).unwrap();
    assert!(again.as_slice().iter().step_by(67).all(|b| *b == 0), "a region saw another's memory");
}

#[test]
fn pinned_pages_stay_and_system_calls_may_use_them() {
    let pager = pager(|_| {});
    let mut region = pager.anonymous(4 * RAM as usize).unwrap();
    region.as_mut_slice().fill(3);
    let pin = region.pin(0..10 * PAGE).unwrap();
    assert_eq!(pager.stats().pinned, 10);
    assert!(region.as_slice()[10 * PAGE..].iter().step_by(PAGE).all(|b| *b == 3));
    let faults = pager.stats().true_faults;
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, &region.as_slice()[..10 * PAGE]).unwrap();
    assert_eq!(pager.stats().true_faults, faults);
    let all = region.pin(0..region.len()).unwrap_err().to_string();
    assert!(all.contains("cannot be pinned"), "{all}");
    drop(pin);
    assert_eq!(pager.stats().pinned, 0);
    assert!(region.pin(5..region.len() + 1).is_err());
    pager.check();
}

#[test]
fn wished_for_pages_come_in_few_submissions() {
    let pager = pager(|o| o.wait = Wait::Brief);
    let region = pager.anonymous(4 * RAM as usize).unwrap();
    (0..region.len() / PAGE).for_each(|page| stamp(&region, page, 1));
    let wanted: Vec<_> = (0..32).map(|i| i * 29 * PAGE..i * 29 * PAGE + 1).collect();
    let before = pager.stats();
    region.will_need(&wanted).unwrap();
    let loaded = pager.stats();
    assert_eq!(loaded.true_faults, before.true_faults);
    assert!(loaded.prefetches - before.prefetches >= 30, "{loaded:?}");
    (0..32).for_each(|i| assert_eq!(round_of(&region, i * 29), 1));
    assert!(pager.stats().true_faults - before.true_faults <= 2);
}

#[test]
fn settings_that_cannot_be_are_refused_with_a_remedy() {
    let stderr = |options: Options| Pager::start(options).unwrap_err().to_string();
    assert!(stderr(Options::new(1000)).contains("at least 256KiB"));
    let with = |change: fn(&mut Options)| {
        let mut options = Options { max_memory: 1 << 30, ..Options::new(RAM) };
        change(&mut options);
        stderr(options)
    };
    assert!(with(|o| o.policy = Some("lru2".into())).contains("lru2"));
    assert!(with(|o| o.handler = "none".into()).contains("sequential, parallel"));
    assert!(with(|o| o.backing = "/nowhere".into()).contains("make the folder"));
    assert!(with(|o| o.evict_batch = Some(1000)).contains("from 1 to"));
    assert!(with(|o| o.max_memory = 1 << 50).contains("less than 2 TiB"));
}

#[test]
fn pages_that_left_together_come_back_together_if_that_pays() {
    let pages = 8 * RAM as usize / PAGE;
    // A stride that visits each page once, and no two neighbours in a row.
    let order = |i: usize| i * 77 % pages;
    let faults = |block: u32, random: bool| {
        let pager = pager(|o| o.block = block);
        let region = pager.anonymous(pages * PAGE).unwrap();
        (0..pages).for_each(|i| stamp(&region, order(i), 1));
        let mut next = fastrand::Rng::with_seed(3);
        for i in 0..6 * pages {
            let page = if random { next.usize(..pages) } else { order(i % pages) };
            assert_eq!(round_of(&region, page), 1);
        }
        pager.check();
        (pager.stats().true_faults, pager.stats().prefetches)
    };
    let (alone, together) = (faults(0, false).0, faults(8, false).0);
    assert!(together * 2 < alone, "{together} faults, {alone} alone");
    let (faults, ahead) = faults(8, true);
    assert!(ahead * 10 < faults, "{ahead} pages read ahead with {faults} faults at random");
}

#[test]
fn a_sequential_stream_is_read_ahead_and_a_random_one_is_not() {
    for wait in [Wait::Read, Wait::Brief] {
        let pager = pager(|o| (o.read_ahead, o.wait) = (16, wait));
        let pages = 4 * RAM as usize / PAGE;
        let region = pager.anonymous(pages * PAGE).unwrap();
        (0..pages).for_each(|page| stamp(&region, page, 1));
        let before = pager.stats();
        (0..pages).for_each(|page| assert_eq!(round_of(&region, page), 1));
        let (after, absent) = (pager.stats(), pages as u64 * 3 / 4);
        let (faults, ahead) = (after.true_faults - before.true_faults, after.prefetches - before.prefetches);
        assert!(faults + ahead >= absent && faults * 8 < ahead, "{faults} faults, {ahead} pages read ahead");
        let mut random = fastrand::Rng::with_seed(3);
        (0..pages).for_each(|_| _ = round_of(&region, random.usize(..pages)));
        let random_ahead = pager.stats().prefetches - after.prefetches;
        assert!(random_ahead < absent / 20, "{random_ahead} pages read ahead of random reads");
        pager.check();
    }
}
