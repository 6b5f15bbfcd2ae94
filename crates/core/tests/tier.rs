//! The compressed tier: its tables compared with a naive twin's, its bytes with the last writes, and how the pool's
//! size moves.

mod support;

use std::collections::{BTreeMap, BTreeSet};

use coldframe_core::fault::handler::parallel;
use coldframe_core::naive::PAGE_BYTES;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::tier::{BIN_FRAMES, GRAIN};
use coldframe_core::{Access, Below, Caps, Command, Config, Engine, Event, PageId, PoolOp, TaskId, TierConfig};
use proptest::prelude::*;
use support::{Rig, HARDWARE};

const PAGES: usize = 96;

fn config(frames_max: usize) -> TierConfig {
    TierConfig {
        frames_max,
        frames_first: frames_max,
        page_bytes: PAGE_BYTES as u32,
        size_max: PAGE_BYTES as u32 * 3 / 4,
        load_price: 20,
        pool_price: 1,
        table_bytes: 0,
    }
}

fn rig_of(policy: &str, frames: usize, batch: usize, tier: TierConfig, caps: Caps) -> Rig {
    Rig::made((policy, "parallel"), frames, PAGES, caps, batch, |builder| builder.below(Below::Tier(tier)))
}

/// The pool as a list of pages in order of arrival, from the commands alone.
#[derive(Default)]
struct Twin {
    pool: Vec<(PageId, u32)>,
    parts: BTreeSet<u32>,
    stale: BTreeMap<PageId, bool>,
    seen: usize,
}

impl Twin {
    fn take(&mut self, page: PageId) -> (usize, u32) {
        let at = self.pool.iter().position(|(p, _)| *p == page).expect("it is in the twin's pool");
        (at, self.pool.remove(at).1)
    }

    /// Follows the commands since the last call, and compares the pool with the engine's.
    fn follow(&mut self, rig: &Rig) {
        let new = &rig.machine.log[self.seen..];
        let clears = new.iter().any(|c| matches!(c, Command::Pool(PoolOp::Lend { lent: false, .. })));
        for command in new {
            match *command {
                Command::Pool(PoolOp::Compress { page, dirty, .. }) => drop(self.stale.insert(page, dirty)),
                Command::Pool(PoolOp::Store { page, size, .. }) => self.pool.push((page, size)),
                Command::Pool(PoolOp::Keep { page, size, .. }) => {
                    // The same event may have dropped it, which takes no command.
                    self.pool.retain(|(kept, _)| *kept != page || self.stale[&page]);
                    self.stale.insert(page, false);
                    self.pool.push((page, size));
                }
                Command::Pool(PoolOp::Decompress { page, size, .. }) => assert_eq!(self.take(page).1, size),
                Command::Pool(PoolOp::TakeOut { page, size, .. }) => {
                    let (at, was) = self.take(page);
                    let older = self.pool[..at].iter().filter(|(p, _)| rig.engine.is_in_tier(*p)).count();
                    // A page that fills a packed slot is one of the eight oldest.
                    assert!(clears || older < 8, "page {} left before {older} older ones", page.0);
                    assert_eq!(was, size);
                }
                Command::Pool(PoolOp::Lend { part, lent, .. }) => {
                    assert!(if lent { self.parts.insert(part) } else { self.parts.remove(&part) });
                }
                _ => {}
            }
        }
        self.seen = rig.machine.log.len();
        // A page that leaves without a command has its bytes in its slot, or was released.
        let stale = &self.stale;
        self.pool.retain(|(page, _)| {
            let here = rig.engine.is_in_tier(*page);
            assert!(here || !stale[page] || rig.machine.released.contains(page), "page {} is lost", page.0);
            here
        });
        let (frames, _, pages) = rig.engine.tier_size().unwrap();
        assert_eq!((frames, pages), (self.parts.len(), self.pool.len()));
        let bytes: usize = self.pool.iter().map(|(_, size)| (*size as usize).next_multiple_of(GRAIN)).sum();
        assert!(bytes <= frames * PAGE_BYTES, "{bytes} bytes in {frames} frames");
    }
}

/// Sizes of 1/32 to all of a page.
fn size_of(page: PageId, value: u64) -> u32 {
    8 + ((u64::from(page.0) * 7919 + value * 104_729) % (PAGE_BYTES as u64 - 8)) as u32
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Read(u32),
    Write(u32),
    Release(u32),
    Wish(u32),
    Pin(u32),
}

fn act() -> impl Strategy<Value = Act> {
    // Half of the references go to few pages, so pages come back from the pool.
    let page = prop_oneof![0..24u32, 0..PAGES as u32];
    (page, 0..20u8).prop_map(|(page, kind)| match kind {
        0..=8 => Act::Read(page),
        9..=16 => Act::Write(page),
        17 => Act::Release(page),
        18 => Act::Wish(page),
        _ => Act::Pin(page),
    })
}

/// One reference of a processor, repeated until it succeeds.
fn touch(rig: &mut Rig, page: u32, write: Option<u64>) -> Option<u64> {
    let access = if write.is_some() { Access::Write } else { Access::Read };
    for _ in 0..4 {
        let page = PageId(page);
        match write {
            Some(value) if rig.machine.write(page, value) => return Some(value),
            None => {
                if let Some(value) = rig.machine.read(page) {
                    return Some(value);
                }
            }
            Some(_) => {}
        }
        rig.fault(0, page.0, access);
        rig.settle();
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 160 }))]

    /// For any touches, writes and releases: each page reads as last written, no two compressed pages overlap, the pool
    /// never has more frames than allowed, and the engine's counts agree with its commands.
    #[test]
    fn nothing_is_lost_and_the_books_are_those_of_the_naive_twin(
        acts in prop::collection::vec(act(), 1..700),
        batch in 1..6usize,
        frames in 24..40usize,
        most in 0..20usize,
        bits in any::<bool>(),
        policy in prop_oneof![Just("clock"), Just("fifo"), Just("fifo-sc:valid=6"), Just("s3-fifo")],
    ) {
        let caps = Caps { reference_bit: bits, dirty_bit: bits, buffers: 4, ..HARDWARE };
        let mut rig = rig_of(policy, frames, batch, config(most.min(frames - 8)), caps);
        rig.machine.size_of = size_of;
        let (mut twin, mut written, mut pinned) = (Twin::default(), BTreeMap::new(), None);
        for (i, act) in acts.into_iter().enumerate() {
            match act {
                Act::Read(page) => {
                    let wanted = written.get(&page).copied().unwrap_or(0);
                    prop_assert_eq!(touch(&mut rig, page, None), Some(wanted), "page {}", page);
                }
                Act::Write(page) => {
                    prop_assert!(touch(&mut rig, page, Some(i as u64 + 1)).is_some());
                    written.insert(page, i as u64 + 1);
                }
                Act::Release(page) if pinned != Some(page) => {
                    rig.engine.handle(Event::Released { page: PageId(page) }, &mut rig.machine);
                    rig.machine.forget(PageId(page));
                    rig.machine.released.insert(PageId(page));
                    written.remove(&page);
                }
                Act::Wish(page) => {
                    rig.engine.handle(Event::WillNeed { page: PageId(page) }, &mut rig.machine);
                    rig.settle();
                }
                Act::Pin(page) if pinned.is_none() && rig.machine.mapped(PageId(page)) => {
                    rig.engine.handle(Event::Pinned { page: PageId(page) }, &mut rig.machine);
                    pinned = Some(page);
                }
                _ => {
                    if let Some(page) = pinned.take() {
                        rig.engine.handle(Event::Unpinned { page: PageId(page) }, &mut rig.machine);
                    }
                }
            }
            rig.engine.check();
            twin.follow(&rig);
            rig.machine.released.clear();
        }
    }
}

/// Four tasks whose transfers end in any order.
struct Several {
    rig: Rig,
    /// For each waiting task: the page, and the value to write.
    stands: [Option<(u32, Option<u64>)>; 4],
    written: BTreeMap<u32, u64>,
}

impl Several {
    fn touch(&mut self, task: usize, page: u32, write: Option<u64>) {
        let machine = &mut self.rig.machine;
        match write {
            Some(value) if machine.write(PageId(page), value) => {
                self.written.insert(page, value);
                return;
            }
            None => {
                if let Some(value) = machine.read(PageId(page)) {
                    return assert_eq!(value, self.written.get(&page).copied().unwrap_or(0), "page {page}");
                }
            }
            Some(_) => {}
        }
        self.stands[task] = Some((page, write));
        self.rig.fault(task as u32, page, if write.is_some() { Access::Write } else { Access::Read });
        self.go_on();
    }

    fn end_one(&mut self, pick: usize) -> bool {
        let Some(event) = self.rig.machine.any_event(pick) else { return false };
        self.rig.engine.handle(event, &mut self.rig.machine);
        self.rig.engine.check();
        self.go_on();
        true
    }

    /// Resumed tasks repeat their accesses.
    fn go_on(&mut self) {
        for task in std::mem::take(&mut self.rig.machine.resumed) {
            let (page, write) = self.stands[task.index()].take().expect("it stands still");
            self.touch(task.index(), page, write);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 200 }))]

    /// The same with four tasks under both handlers. Their transfers are in flight together and end in any order.
    #[test]
    fn nothing_is_lost_when_transfers_end_in_any_order(
        acts in prop::collection::vec((act(), 0..4usize, any::<u8>()), 1..700),
        batch in 1..6usize,
        frames in 24..40usize,
        most in 4..24usize,
        handler in prop_oneof![Just("parallel"), Just("sequential")],
        policy in prop_oneof![Just("clock"), Just("fifo-sc:valid=6"), Just("s3-fifo")],
    ) {
        let caps = Caps { buffers: 4, places: true, ..HARDWARE };
        let tier = Below::Tier(config(most.min(frames - 8)));
        let mut rig = Rig::made((policy, handler), frames, PAGES, caps, batch, |builder| builder.below(tier));
        rig.machine.size_of = size_of;
        let mut several = Several { rig, stands: [None; 4], written: BTreeMap::new() };
        for (i, (act, task, pick)) in acts.into_iter().enumerate() {
            let page = PageId(match act {
                Act::Read(page) | Act::Write(page) | Act::Release(page) | Act::Wish(page) | Act::Pin(page) => page,
            });
            let Several { rig, stands, written } = &mut several;
            let wanted = stands.iter().flatten().any(|(stood, _)| *stood == page.0);
            let event = match act {
                Act::Release(_) => Event::Released { page },
                _ => Event::WillNeed { page },
            };
            match act {
                Act::Read(page) if stands[task].is_none() => several.touch(task, page, None),
                Act::Write(page) if stands[task].is_none() => several.touch(task, page, Some(i as u64 + 1)),
                Act::Release(_) | Act::Wish(_) if !wanted && rig.engine.accepts(&event) => {
                    rig.engine.handle(event, &mut rig.machine);
                    if let Act::Release(page) = act {
                        rig.machine.forget(PageId(page));
                        written.remove(&page);
                    }
                }
                _ => {}
            }
            if pick % 3 > 0 {
                several.end_one(pick.into());
            }
        }
        while several.end_one(0) {}
        prop_assert!(several.stands.iter().all(Option::is_none), "a task stands still for ever");
    }
}

/// Reads pages 0 to `pages` in turn; counts loads from the device in the second half.
fn loads_in_a_loop(pages: u32, tier: Option<TierConfig>, size: fn(PageId, u64) -> u32) -> (u64, Rig) {
    let below = tier.map_or(Below::Homes, Below::Tier);
    let mut rig = Rig::made(("clock", "parallel"), 32, PAGES, HARDWARE, 1, |builder| builder.below(below));
    rig.machine.size_of = size;
    (0..pages).for_each(|page| _ = touch(&mut rig, page, Some(7)));
    let rounds = 40;
    let mut before = 0;
    for round in 0..rounds {
        if round == rounds / 2 {
            before = rig.engine.counts().page_loads;
        }
        (0..pages).for_each(|page| assert_eq!(touch(&mut rig, page, None), Some(7)));
    }
    (rig.engine.counts().page_loads - before, rig)
}

#[test]
fn what_fits_into_ram_compressed_needs_no_device() {
    // 60 pages that compress to a quarter, and 32 frames: 8 frames + 24 * 4 pages are room for 104.
    let quarter = |_, _| PAGE_BYTES as u32 / 4;
    assert_eq!(loads_in_a_loop(60, None, quarter).0, 60 * 20, "a loop is the worst case of any clock");
    let (loads, rig) = loads_in_a_loop(60, Some(config(24)), quarter);
    assert_eq!(loads, 0);
    let counts = rig.engine.tier_counts().unwrap();
    assert_eq!((counts.refused, counts.written_back), (0, 0));
}

#[test]
fn the_border_goes_to_the_pool_where_it_spares_loads_and_away_where_it_spares_none() {
    let quarter = |_, _| PAGE_BYTES as u32 / 4;
    let first = TierConfig { frames_first: BIN_FRAMES, ..config(24) };
    let (loads, rig) = loads_in_a_loop(60, Some(first), quarter);
    // 32 - n frames and 4 * n pages hold 60 from n = 10, which is 12 in whole bins.
    assert!(rig.engine.tier_size().unwrap().1 >= 12 && loads < 60, "{:?}, {loads} loads", rig.engine.tier_size());
    // The same with pages that do not compress: the pool can keep none of them, so it returns all frames.
    let (_, rig) = loads_in_a_loop(60, Some(config(24)), |_, _| PAGE_BYTES as u32);
    assert_eq!(rig.engine.tier_size().unwrap().2, 0);
    assert!(rig.engine.tier_size().unwrap().0 <= BIN_FRAMES, "{:?}", rig.engine.tier_size());
}

/// Ten pages of 100 bytes and more of 256 fill a bin of four frames to 95 %: what is left over is no room for a page.
#[test]
fn the_pool_grows_to_its_target_although_each_bin_has_some_room_left() {
    let pages = 900;
    let tier = Below::Tier(TierConfig { load_price: 1000, ..config(280) });
    let mut rig = Rig::made(("clock", "parallel"), 300, pages, HARDWARE, 4, |builder| builder.below(tier));
    rig.machine.size_of = |_, _| 97;
    let mut seed = 1u64;
    for i in 0..40_000u32 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let page = if i < pages as u32 { i } else { (seed >> 33) as u32 % pages as u32 };
        assert!(touch(&mut rig, page, (i < pages as u32).then_some(7)).is_some());
    }
    let (frames, target, _) = rig.engine.tier_size().unwrap();
    assert!(target > 200 && frames + 2 * BIN_FRAMES > target, "{frames} of {target} frames");
}

#[test]
fn a_page_whose_slot_has_its_bytes_leaves_the_pool_without_a_write() {
    let half = |_, _| PAGE_BYTES as u32 / 2;
    let mut rig = rig_of("fifo", 16, 1, config(4), HARDWARE);
    rig.machine.size_of = half;
    (0..PAGES as u32).for_each(|page| assert_eq!(touch(&mut rig, page, None), Some(0)));
    let counts = rig.engine.tier_counts().unwrap();
    assert!(counts.dropped > 20 && counts.written_back == 0, "{counts:?}");
    let written = rig.machine.log.iter().filter(|c| matches!(c, Command::Write { .. })).count();
    assert_eq!(written, 0);
}

#[test]
fn a_task_that_faults_while_the_page_is_compressed_waits_and_gets_it() {
    let mut rig = rig_of("fifo", 16, 1, config(4), HARDWARE);
    (0..16).for_each(|page| _ = touch(&mut rig, page, Some(u64::from(page) + 1)));
    // Page 0 is in flight when another task needs it.
    rig.fault(0, 20, Access::Read);
    rig.fault(1, 0, Access::Read);
    assert!(!rig.machine.resumed.contains(&TaskId(1)));
    rig.settle();
    assert!(rig.machine.resumed.contains(&TaskId(1)));
    assert_eq!(touch(&mut rig, 0, None), Some(1));
}

#[test]
fn a_machine_that_places_pages_may_have_found_a_place_for_what_is_to_be_compressed() {
    for places in [false, true] {
        let mut rig = rig_of("fifo", 16, 1, config(4), Caps { places, ..HARDWARE });
        (0..16).for_each(|page| _ = touch(&mut rig, page, Some(5)));
        rig.fault(0, 20, Access::Read);
        let compress =
            |c: &Command| if let Command::Pool(PoolOp::Compress { page, .. }) = *c { Some(page) } else { None };
        let page = rig.machine.log.iter().find_map(compress).expect("one is compressed");
        let written = Event::Written { page };
        assert_eq!(rig.engine.accepts(&written), places);
        if places {
            rig.engine.handle(written, &mut rig.machine);
            rig.engine.check();
            assert!(
                !rig.engine.accepts(&Event::Compressed { page, size: 8, same: false }) && !rig.engine.is_in_tier(page)
            );
        }
    }
}

/// Tables that want all frames, pinned pages, and as many loads in flight as there are buffers: each load gets a frame.
#[test]
fn tables_and_pins_leave_a_frame_for_each_load_in_flight() {
    let caps = Caps { buffers: 16, ..HARDWARE };
    for pins in [0, 4, 8, 12] {
        let mut rig = rig_of("multi-queue", 40, 2, TierConfig { table_bytes: 1000, ..config(32) }, caps);
        (0..pins).for_each(|page| {
            assert!(touch(&mut rig, page, Some(1)).is_some());
            rig.engine.handle(Event::Pinned { page: PageId(page) }, &mut rig.machine);
        });
        for round in 0..6 {
            (pins..PAGES as u32).for_each(|page| assert!(touch(&mut rig, page, Some(round)).is_some()));
            for page in (pins..PAGES as u32).step_by(3) {
                rig.engine.handle(Event::WillNeed { page: PageId(page) }, &mut rig.machine);
                rig.engine.check();
            }
            rig.settle();
        }
        let tables = 40 - rig.engine.frames_for_pages();
        assert!(tables >= 1 && 40 - tables - pins as usize >= 18, "{pins} pins, {tables} frames of tables");
    }
}

#[test]
fn bounds_that_cannot_be_are_refused() {
    let refused = |tier: TierConfig, caps: Caps| {
        let policy = PolicyChoice::parse("clock").unwrap().build(32, PAGES).unwrap();
        let config = Config { frames: 32, pages: PAGES, tasks: 4, evict_batch: 1, caps };
        let builder = Engine::builder(config, policy, &parallel::HANDLER).below(Below::Tier(tier));
        builder.build().map(drop).unwrap_err().to_string()
    };
    assert!(refused(config(25), HARDWARE).contains("8 frames"));
    assert!(refused(TierConfig { page_bytes: 100, ..config(8) }, HARDWARE).contains("256"));
    assert!(refused(TierConfig { size_max: 500, ..config(8) }, HARDWARE).contains("largest page"));
    assert!(refused(config(8), Caps { direct_read: true, ..HARDWARE }).contains("cannot be compressed"));
}

/// Pages of a fifth of a slot, in a loop that neither RAM nor pool can hold: four to a slot (8 + 4 * 59 bytes of 256,
/// with 8 bytes for each page), so a write serves four pages, and three of four loads are spared.
#[test]
fn pages_that_leave_together_share_a_slot_and_come_back_together() {
    let fifth = |_, _| PAGE_BYTES as u32 / 5;
    let (loads, rig) = loads_in_a_loop(90, Some(config(8)), fifth);
    let counts = rig.engine.tier_counts().unwrap();
    assert!(counts.packed * 3 <= counts.written_back && counts.written_back >= 40, "{counts:?}");
    assert!(counts.beside_used * 10 >= counts.beside * 8 && counts.beside > 1000, "{counts:?}");
    let alone = 90 * 20 - 8 - 24;
    assert!(loads * 2 < alone, "{loads} loads of {alone}");
    // Pages that are needed in no order: those that come along push out nothing that has to be written.
    let mut rig = rig_of("clock", 32, 1, config(8), HARDWARE);
    rig.machine.size_of = fifth;
    let mut seed = 1u64;
    for i in 0..20_000 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let page = (seed >> 33) as u32 % PAGES as u32;
        assert!(touch(&mut rig, page, (i < 200).then_some(7)).is_some());
    }
    let counts = rig.engine.tier_counts().unwrap();
    assert!(counts.written_back < 400, "{counts:?}");
}
