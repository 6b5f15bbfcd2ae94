//! The compressed tier on Linux: pages that compress well, badly and not at all, in a quarter of the RAM that they
//! need, compared with a shadow copy.

use std::collections::HashMap;

use coldframe_core::Event;
use coldframe_journal::{self as journal, Entry};
use coldframe_live::{Inject, Options, Pager, Region, Tier, Wait, PAGE};

const RAM: u64 = 2 << 20;
const PAGES: usize = 2048;

/// A pager on a device that is slow everywhere: of a fast one, the tier would give most of its frames away.
fn pager(change: impl FnOnce(&mut Options)) -> Pager {
    let inject = Some(Inject { slow_us: 100, ..Inject::default() });
    let mut options = Options { max_memory: 1 << 28, tier: Tier::Lz4, inject, ..Options::new(RAM) };
    change(&mut options);
    Pager::start(options).unwrap()
}

/// A page's content at a version: one word, text, half noise, or noise.
fn content(page: usize, version: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(page as u64 * 1_000_003 + version);
    let mut bytes = vec![version as u8; PAGE];
    match page % 8 {
        0 => bytes.fill(0),
        1 => bytes.fill(page as u8),
        2 => random.fill(&mut bytes),
        3 => random.fill(&mut bytes[..PAGE / 2]),
        _ => bytes.chunks_mut(16).for_each(|part| part[0] = random.u8(..)),
    }
    bytes
}

fn put(region: &mut Region, page: usize, version: u64) {
    region.as_mut_slice()[page * PAGE..][..PAGE].copy_from_slice(&content(page, version));
}

fn is(region: &Region, page: usize, version: u64) -> bool {
    let bytes = &region.as_slice()[page * PAGE..][..PAGE];
    if version == 0 {
        bytes.iter().all(|byte| *byte == 0)
    } else {
        bytes == content(page, version)
    }
}

/// Random touches. A third of them write; most are within a part of the pages.
fn exercise(region: &mut Region, versions: &mut HashMap<usize, u64>, touches: usize, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for touch in 1..=touches as u64 {
        let page = if random.u8(..4) == 0 { random.usize(..PAGES) } else { random.usize(..PAGES / 2) };
        let version = versions.get(&page).copied().unwrap_or(0);
        assert!(is(region, page, version), "page {page}, version {version}, touch {touch}, seed {seed}");
        if random.u8(..3) == 0 {
            put(region, page, seed << 32 | touch);
            versions.insert(page, seed << 32 | touch);
        }
    }
}

#[test]
fn nothing_is_lost_and_pages_come_back_from_the_pool_and_from_the_log() {
    for (policy, wait, encrypt) in
        [("multi-queue", Wait::Brief, false), ("fifo-sc:valid=60%", Wait::Read, true), ("clock", Wait::Brief, false)]
    {
        let pager = pager(|o| (o.policy, o.wait, o.encrypt) = (Some(policy.to_string()), wait, encrypt));
        let (mut region, mut versions) = (pager.anonymous(PAGES * PAGE).unwrap(), HashMap::new());
        exercise(&mut region, &mut versions, 30_000, 1);
        (0..PAGES).for_each(|page| assert!(is(&region, page, versions.get(&page).copied().unwrap_or(0))));
        pager.check();
        let stats = pager.stats();
        assert!(stats.tier_loads > 1000 && stats.tier_writes > 100, "{policy}: {stats:?}");
        // Discarded pages are zeros, wherever their bytes were.
        pager.discard(region.as_ptr() as usize, PAGES / 2 * PAGE);
        (0..PAGES).for_each(|page| {
            let version = if page < PAGES / 2 { 0 } else { versions.get(&page).copied().unwrap_or(0) };
            assert!(is(&region, page, version), "page {page}");
        });
        pager.check();
    }
}

#[test]
fn pages_that_compress_well_need_no_device() {
    let pager = pager(|o| o.wait = Wait::Brief);
    let mut region = pager.anonymous(PAGES * PAGE / 2).unwrap();
    let text = |page: usize| page / 5 * 8 + 4 + page % 4;
    let put = |region: &mut Region, page: usize| {
        region.as_mut_slice()[page * PAGE..][..PAGE].copy_from_slice(&content(text(page), 9));
    };
    (0..PAGES / 2).for_each(|page| put(&mut region, page));
    for round in 0..4 {
        (0..PAGES / 2).for_each(|page| {
            assert!(region.as_slice()[page * PAGE..][..PAGE] == content(text(page), 9), "page {page} in round {round}");
        });
    }
    let stats = pager.stats();
    // Pages may leave for the device until the pool has grown, by the timing of threads: 0 or some 180 reads of 4096
    // touches were seen. Without the pool, half of the touches and more would need the device.
    assert!(stats.tier_loads > 1000 && stats.device_reads * 8 < 4 * (PAGES / 2) as u64, "{stats:?}");
}

#[test]
fn a_child_sees_the_pool_of_the_fork_and_has_its_own_from_then_on() {
    let pager = pager(|o| o.wait = Wait::Brief);
    let (mut region, mut versions) = (pager.anonymous(PAGES * PAGE).unwrap(), HashMap::new());
    exercise(&mut region, &mut versions, 8_000, 2);
    for round in 0..4 {
        // SAFETY: the child touches its memory and ends.
        let child = unsafe { libc::fork() };
        exercise(&mut region, &mut versions.clone(), if child == 0 { 4_000 } else { 0 }, 10 + round);
        if child == 0 {
            pager.check();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(0) };
        }
        exercise(&mut region, &mut versions, 4_000, 20 + round);
        let mut status = -1;
        // SAFETY: waits for the child.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0, "the child of round {round} has ended well");
    }
    pager.check();
}

/// A journal that has `Reclaim` events, and replays: a thread of the pager takes pages out before faults need frames.
#[test]
fn a_thread_takes_pages_out_before_faults_need_their_frames() {
    if std::thread::available_parallelism().is_ok_and(|n| n.get() < 2) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let pager = pager(|o| (o.wait, o.journal) = (Wait::Brief, Some(path.clone())));
    let (mut region, mut versions) = (pager.anonymous(PAGES * PAGE).unwrap(), HashMap::new());
    exercise(&mut region, &mut versions, 20_000, 5);
    pager.check();
    (0..PAGES).for_each(|page| assert!(is(&region, page, versions.get(&page).copied().unwrap_or(0))));
    drop((region, pager));
    let bytes = std::fs::read(path).unwrap();
    journal::replay(&bytes).unwrap();
    let (_, mut entries) = journal::open(&bytes).unwrap();
    let mut reclaims = 0;
    while let Some(entry) = entries.next_entry().unwrap() {
        reclaims += usize::from(matches!(entry, Entry::Event { event: Event::Reclaim, .. }));
    }
    assert!(reclaims > 1000, "{reclaims} pages were taken out before their frames were needed");
}
