//! Tests of the delayed handler: where a page is, when it moves, and that its bytes are the last written ones, edge
//! case by edge case.

use crate::support::{Rig, HARDWARE};
use coldframe_core::fault::handler;
use coldframe_core::policy::{texts, PolicyChoice};
use coldframe_core::{Access, BufferId, Caps, Command, Counts, Event, PageId, Place, Stage, TaskId};
use proptest::prelude::*;

const DELAYED: &str = "delayed-dual-buffering";
const BOTH: [&str; 2] = [DELAYED, "delayed-dual-buffering-search-first"];

fn caps(buffers: u32) -> Caps {
    Caps { buffers, ..HARDWARE }
}

fn rig(policy: &str, frames: usize, buffers: u32) -> Rig {
    Rig::new(policy, DELAYED, frames, 16, caps(buffers))
}

/// The pages whose last mapping is in a buffer.
fn held(rig: &Rig) -> Vec<u32> {
    let mut places = [None; 16];
    for command in &rig.machine.log {
        match *command {
            Command::Map { page, place, .. } => places[page.index()] = Some(place),
            Command::Unmap { page } | Command::Evict { page, .. } => places[page.index()] = None,
            _ => {}
        }
    }
    (0..16).filter(|page| matches!(places[*page as usize], Some(Place::Buffer(_)))).collect()
}

/// The position of the first matching command since the last `clear`.
fn at(rig: &Rig, wanted: impl Fn(&Command) -> bool) -> usize {
    rig.machine.log.iter().position(wanted).expect("it has been issued")
}

fn moves(counts: &Counts) -> (u64, u64) {
    (counts.page_moves, counts.page_moves_dual)
}

#[test]
fn the_task_runs_from_the_buffer_and_nothing_moves_until_the_next_fault() {
    for handler in BOTH {
        let mut rig = Rig::new("fifo", handler, 4, 16, caps(2));
        rig.reference(1);
        assert_eq!(held(&rig), [1]);
        assert_eq!((rig.engine.counts().page_moves, rig.engine.frames().free()), (0, 4), "{handler}");
        rig.machine.log.clear();
        rig.reference(2);
        let load = at(&rig, |c| matches!(c, Command::Load { page: PageId(2), into: BufferId(1), .. }));
        let moved = at(&rig, |c| matches!(c, Command::Move { page: PageId(1), from: BufferId(0), .. }));
        let resumed = at(&rig, |c| matches!(c, Command::Resume { .. }));
        assert!(load < moved && moved < resumed, "{handler}: the move runs beside the load");
        assert_eq!((held(&rig), moves(rig.engine.counts())), (vec![2], (1, 1)));
    }
}

#[test]
fn the_two_orders_differ_by_when_the_frame_is_found() {
    for (handler, search_comes_later) in BOTH.into_iter().zip([true, false]) {
        let mut rig = Rig::new("clock", handler, 1, 16, caps(2));
        (0..2).for_each(|page| _ = rig.reference(page));
        rig.machine.log.clear();
        rig.reference(2);
        let search = at(&rig, |c| matches!(c, Command::Stage { stage: Stage::GetFreeframe, .. }));
        let load = at(&rig, |c| matches!(c, Command::Load { .. }));
        assert_eq!(search > load, search_comes_later, "{handler}");
    }
}

#[test]
fn the_buffers_add_to_the_ram() {
    // Three pages in turn in two frames: with the held page all three are available; without it, FIFO always misses.
    let faults = |handler| {
        let mut rig = Rig::new("fifo", handler, 2, 16, caps(2));
        (0..300).for_each(|i| _ = rig.reference(i % 3));
        rig.engine.counts().true_faults
    };
    assert_eq!((faults("parallel"), faults(DELAYED)), (300, 3));
}

#[test]
fn a_held_page_that_is_asked_for_again_is_a_hit() {
    let mut rig = rig("clock", 2, 2);
    rig.reference(5);
    let before = *rig.engine.counts();
    (0..10).for_each(|_| _ = rig.reference(5));
    assert_eq!(*rig.engine.counts(), before);
}

#[test]
fn another_tasks_fault_on_a_page_that_is_held_meanwhile_only_resumes_it() {
    let mut rig = rig("clock", 2, 2);
    rig.fault(0, 5, Access::Read);
    rig.fault(1, 5, Access::Read);
    rig.settle();
    assert_eq!(rig.machine.resumed, [TaskId(0), TaskId(1)]);
    assert_eq!((rig.engine.counts().page_loads, rig.engine.counts().page_moves), (1, 0));
}

#[test]
fn a_page_is_never_the_victim_of_its_own_move() {
    // One frame: each move evicts the page that moved before, never the page that moves now.
    for policy in texts(1).filter(|text| PolicyChoice::parse(text).unwrap().build(1, 16).is_ok()) {
        let mut rig = rig(&policy, 1, 2);
        for page in 0..10 {
            rig.reference(page);
            let resident: Vec<u32> = (0..16).filter(|p| rig.engine.frame_of(PageId(*p)).is_some()).collect();
            let expected: Vec<u32> = page.checked_sub(1).into_iter().collect();
            assert_eq!((resident, held(&rig)), (expected, vec![page]), "{policy}");
        }
    }
}

#[test]
fn a_page_that_comes_with_a_write_gives_its_buffer_back_and_the_held_page_stays() {
    let mut rig = rig("fifo", 1, 2);
    rig.reference(0);
    rig.fault(1, 1, Access::Write);
    rig.settle();
    assert!(rig.machine.write(PageId(1), 9));
    assert_eq!(held(&rig), [0]);
    rig.reference(2);
    assert_eq!(rig.engine.frame_of(PageId(1)), None, "the held page took the only frame");
    rig.reference(1);
    assert_eq!(rig.machine.read(PageId(1)), Some(9));
}

#[test]
fn under_fifo_sc_a_held_page_has_no_false_fault_until_it_has_moved() {
    let mut rig = rig("fifo-sc:valid=1", 3, 2);
    rig.reference(0);
    rig.fault(0, 0, Access::Read);
    assert_eq!(rig.engine.counts().false_faults, 0, "it is on no list, so nothing has unmapped it");
    (1..3).for_each(|page| _ = rig.reference(page));
    // Pages 0 and 1 have moved. One of them fits the valid list; the other is unmapped in its frame.
    let before = rig.engine.counts().true_faults;
    assert_eq!(rig.reference(0), coldframe_core::naive::Touch::FalseFault);
    assert_eq!((rig.engine.counts().false_faults, rig.engine.counts().true_faults), (1, before));
    assert_eq!(held(&rig), [2], "a false fault needs no device and moves nothing");
}

#[test]
fn two_tasks_fill_both_buffers_and_the_next_fault_frees_one_before_its_load() {
    let mut rig = rig("clock", 4, 2);
    rig.fault(0, 0, Access::Read);
    rig.fault(1, 1, Access::Read);
    rig.settle();
    assert_eq!(held(&rig), [0, 1]);
    rig.machine.log.clear();
    rig.reference(2);
    let first = at(&rig, |c| matches!(c, Command::Move { page: PageId(0), .. }));
    let load = at(&rig, |c| matches!(c, Command::Load { .. }));
    let second = at(&rig, |c| matches!(c, Command::Move { page: PageId(1), .. }));
    assert!(first < load && load < second);
    assert_eq!((held(&rig), moves(rig.engine.counts())), (vec![2], (2, 1)), "only the second move is hidden");
}

#[test]
fn one_buffer_is_the_plain_case_command_by_command() {
    let log = |handler| {
        let mut rig = Rig::new("clock", handler, 3, 16, caps(1));
        for i in 0..200u32 {
            let page = (i * i + i / 3) % 9;
            rig.reference(page);
            _ = i % 5 == 0 && rig.machine.write(PageId(page), 1);
        }
        rig.machine.log
    };
    assert_eq!(log(DELAYED), log("parallel"));
    assert_eq!(log(BOTH[1]), log("sequential"));
}

#[test]
fn more_buffers_hold_all_but_one_and_the_oldest_moves() {
    for buffers in [3, 4, 7] {
        let mut rig = rig("fifo", 8, buffers);
        let n = buffers - 1;
        (0..n).for_each(|page| _ = rig.reference(page));
        assert_eq!((held(&rig).len() as u32, rig.engine.counts().page_moves), (n, 0));
        rig.reference(n);
        assert_eq!(held(&rig), (1..=n).collect::<Vec<_>>());
        assert!(rig.engine.frame_of(PageId(0)).is_some());
        assert_eq!(moves(rig.engine.counts()), (1, 1));
    }
}

#[test]
fn a_write_to_a_held_page_moves_it_first() {
    let mut rig = rig("clock", 2, 2);
    rig.reference(3);
    assert!(!rig.machine.write(PageId(3), 7), "a buffer takes no write");
    rig.fault(0, 3, Access::Write);
    assert!(rig.engine.frame_of(PageId(3)).is_some() && held(&rig).is_empty());
    assert!(rig.machine.write(PageId(3), 7));
    assert_eq!((rig.engine.counts().write_faults, moves(rig.engine.counts())), (1, (1, 0)), "nothing hides this move");
    (4..12).for_each(|page| _ = rig.reference(page));
    rig.reference(3);
    assert_eq!(rig.machine.read(PageId(3)), Some(7));
}

#[test]
fn a_page_that_faults_with_a_write_is_not_held() {
    let mut rig = rig("clock", 2, 2);
    rig.fault(0, 3, Access::Write);
    rig.settle();
    assert!(rig.machine.write(PageId(3), 1) && held(&rig).is_empty());
}

#[test]
fn a_write_to_a_held_page_waits_while_every_frame_is_promised_to_a_load() {
    let mut rig = rig("fifo", 1, 3);
    rig.reference(0);
    rig.fault(0, 1, Access::Write);
    rig.fault(1, 0, Access::Write);
    assert_eq!(rig.machine.resumed.len(), 1, "only the first reference's");
    rig.settle();
    assert_eq!(rig.machine.resumed.len(), 3);
}

#[test]
fn a_released_held_page_gives_its_buffer_back() {
    let mut rig = rig("fifo", 2, 2);
    rig.reference(0);
    rig.tell(Event::Released { page: PageId(0) });
    assert!(!rig.machine.mapped(PageId(0)));
    rig.reference(1);
    assert_eq!((rig.engine.counts().page_moves, rig.engine.counts().true_faults), (0, 2));
}

#[test]
fn a_pinned_held_page_moves_to_a_frame_and_stays() {
    let mut rig = rig("fifo", 3, 2);
    rig.reference(0);
    rig.tell(Event::Pinned { page: PageId(0) });
    (1..12).for_each(|page| _ = rig.reference(page));
    assert!(rig.engine.frame_of(PageId(0)).is_some());
    rig.tell(Event::Unpinned { page: PageId(0) });
}

#[test]
fn a_load_that_fails_for_good_loses_no_buffer_and_no_held_page() {
    let mut rig = rig("clock", 2, 2);
    rig.reference(0);
    rig.machine.failures = 3;
    rig.reference(1);
    assert_eq!(rig.machine.halted, [TaskId(0)]);
    assert!(rig.engine.frame_of(PageId(0)).is_some(), "it moved beside the load that then failed");
    rig.reference(2);
    assert_eq!(held(&rig), [2]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Random tasks, pages, writes and failures under every policy and handler, with a model of the contents next to
    /// the machine. Each access sees the last write, whatever pages are held, moved or evicted. The engine's invariants
    /// are checked after every event.
    #[test]
    fn every_read_sees_the_last_write(
        frames in 1usize..7,
        batch in 1usize..4,
        buffers in 1u32..5,
        policy in prop::sample::select(texts(1).collect::<Vec<_>>()),
        handler in prop::sample::select(handler::ALL.iter().map(|handler| handler.name).collect::<Vec<_>>()),
        bare in any::<bool>(),
        steps in prop::collection::vec((0u32..3, 0u32..10, any::<bool>(), 0u32..12, any::<bool>()), 1..250),
    ) {
        let caps = Caps { reference_bit: !bare, dirty_bit: !bare, buffers, direct_read: false, places: false };
        prop_assume!(PolicyChoice::parse(&policy).unwrap().build(frames, 10).is_ok());
        let mut rig = Rig::made((&policy, handler), frames, 10, caps, batch, |builder| builder);
        let mut contents = [0u64; 10];
        let mut standing = [None; 3];
        for (i, (task, page, writing, fails, wait)) in steps.into_iter().enumerate() {
            rig.machine.failures = u32::from(fails == 0) * 2;
            // Sometimes another task's fault is in progress during this access.
            let other = ((task + 1) % 3) as usize;
            if wait && standing[other].is_none() && rig.machine.read(PageId(9 - page)).is_none() {
                rig.fault(other as u32, 9 - page, Access::Read);
                standing[other] = Some(());
            }
            let id = PageId(page);
            if writing {
                contents[page as usize] = i as u64 + 1;
                rig.write(task, id, i as u64 + 1);
            }
            prop_assert_eq!(rig.read(task, id), contents[page as usize]);
            prop_assert!(rig.machine.halted.is_empty());
            if standing.iter().any(Option::is_some) {
                rig.settle();
                standing = [None; 3];
            }
        }
        let counts = rig.engine.counts();
        prop_assert!(counts.page_moves_dual <= counts.page_moves && counts.page_moves <= counts.page_loads);
    }
}
