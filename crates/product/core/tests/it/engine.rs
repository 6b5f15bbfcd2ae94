//! Tests of the engine: contents, order of commands, several tasks, failing devices, emulated bits.

use crate::support::{Rig, HARDWARE};
use coldframe_core::policy::texts;
use coldframe_core::{Access, Caps, Command, Event, PageId, Stage, TaskId};

const BARE: Caps = Caps { reference_bit: false, dirty_bit: false, buffers: 2, direct_read: false, places: false };

fn stages(log: &[Command]) -> Vec<Stage> {
    log.iter()
        .filter_map(|c| match c {
            Command::Stage { stage, .. } => Some(*stage),
            _ => None,
        })
        .collect()
}

#[test]
fn the_handlers_differ_by_the_order_of_two_stages_and_nothing_else() {
    let order = |handler| {
        let mut rig = Rig::new("fifo", handler, 2, 4, HARDWARE);
        rig.reference(1);
        stages(&rig.machine.log)
    };
    use Stage::*;
    assert_eq!(order("sequential"), Stage::ALL);
    assert_eq!(order("parallel"), [PreProcess, LoadStopover, GetFreeframe, TransHostMem, UpdateMMU, PostProcess]);
}

#[test]
fn the_parallel_handler_starts_the_load_before_it_asks_for_a_single_bit() {
    let mut rig = Rig::new("clock", "parallel", 1, 4, HARDWARE);
    rig.reference(0);
    rig.machine.log.clear();
    rig.reference(1);
    let at = |wanted: fn(&Command) -> bool| rig.machine.log.iter().position(wanted).unwrap();
    assert!(at(|c| matches!(c, Command::Load { .. })) < at(|c| matches!(c, Command::Evict { .. })));
}

#[test]
fn a_dirty_victim_is_protected_then_written_then_evicted() {
    let mut rig = Rig::new("fifo", "sequential", 1, 4, HARDWARE);
    rig.reference(0);
    assert!(rig.machine.write(PageId(0), 7));
    rig.machine.log.clear();
    rig.reference(1);
    let page = PageId(0);
    let about_the_victim: Vec<_> = rig
        .machine
        .log
        .iter()
        .filter(|c| matches!(c, Command::Protect { .. } | Command::Write { .. } | Command::Evict { .. }))
        .collect();
    assert!(matches!(
        about_the_victim[..],
        [Command::Protect { page: a }, Command::Write { page: b, .. }, Command::Evict { page: c, .. }]
            if *a == page && *b == page && *c == page
    ));
}

#[test]
fn two_tasks_that_want_the_same_page_share_one_load() {
    let mut rig = Rig::new("fifo", "parallel", 4, 4, Caps { buffers: 2, ..HARDWARE });
    rig.fault(0, 3, Access::Read);
    rig.fault(1, 3, Access::Read);
    assert!(rig.machine.resumed.is_empty());
    rig.settle();
    assert_eq!(rig.machine.resumed, [TaskId(0), TaskId(1)]);
    assert_eq!(rig.engine.counts().page_loads, 1);
}

#[test]
fn loads_of_several_tasks_are_in_flight_together_up_to_the_buffers() {
    let mut rig = Rig::new("clock", "parallel", 8, 8, Caps { buffers: 2, ..HARDWARE });
    (0..3).for_each(|task| rig.fault(task, task, Access::Read));
    let loads = |rig: &Rig| rig.machine.log.iter().filter(|c| matches!(c, Command::Load { .. })).count();
    assert_eq!(loads(&rig), 2);
    rig.settle();
    assert_eq!(loads(&rig), 3);
    assert_eq!(rig.machine.resumed.len(), 3);
}

#[test]
fn more_tasks_than_frames_all_get_their_page_in_the_end() {
    let mut rig = Rig::new("pa-clock:budget=1", "parallel", 1, 8, Caps { buffers: 4, ..HARDWARE });
    (0..4).for_each(|task| rig.fault(task, task, Access::Write));
    rig.settle();
    assert_eq!(rig.machine.resumed, [TaskId(0), TaskId(1), TaskId(2), TaskId(3)]);
}

#[test]
fn a_load_that_fails_is_tried_three_times_and_then_halts_the_task() {
    let mut rig = Rig::new("fifo", "parallel", 2, 4, HARDWARE);
    rig.machine.failures = 2;
    rig.reference(1);
    assert_eq!((rig.machine.halted.len(), rig.machine.resumed.len()), (0, 1));
    rig.machine.failures = 3;
    rig.reference(2);
    assert_eq!(rig.machine.halted, [TaskId(0)]);
    assert_eq!((rig.engine.counts().failures, rig.engine.counts().halts), (5, 1));
}

#[test]
fn a_page_whose_write_fails_for_good_is_lost_and_never_read_as_garbage() {
    let mut rig = Rig::new("fifo", "sequential", 1, 4, HARDWARE);
    rig.reference(0);
    assert!(rig.machine.write(PageId(0), 7));
    rig.fault(0, 1, Access::Read);
    // The write of page 0 was started first; it and two further attempts fail.
    rig.machine.failures = 0;
    let end = rig.machine.next_event().unwrap();
    assert_eq!(end, Event::Written { page: PageId(0) });
    let failed = Event::Failed { transfer: coldframe_core::Transfer::Write(PageId(0)) };
    rig.machine.failures = 2;
    rig.tell(failed);
    rig.settle();
    rig.fault(1, 0, Access::Read);
    rig.settle();
    assert_eq!(rig.machine.halted, [TaskId(1)]);
}

#[test]
fn a_fault_on_a_page_being_written_waits_for_the_write() {
    let mut rig = Rig::new("fifo", "parallel", 1, 4, HARDWARE);
    rig.reference(0);
    assert!(rig.machine.write(PageId(0), 41));
    rig.fault(0, 1, Access::Read);
    rig.fault(1, 0, Access::Read);
    rig.settle();
    assert_eq!(rig.machine.read(PageId(0)), Some(41));
}

#[test]
fn a_released_page_gives_its_frame_back() {
    for policy in texts(1) {
        let mut rig = Rig::new(&policy, "parallel", 3, 6, HARDWARE);
        (0..3).for_each(|page| _ = rig.reference(page));
        rig.tell(Event::Released { page: PageId(1) });
        rig.reference(4);
        assert_eq!(rig.engine.counts().evictions, 0, "{policy}");
    }
}

#[test]
fn without_a_reference_bit_clock_decides_as_with_one() {
    // The victims are the same; each reference that finds its bit cleared costs one more false fault.
    let string: Vec<u32> = (0..400u32).map(|i| (i * i + i / 3) % 11).collect();
    let run = |caps| {
        let mut rig = Rig::new("clock", "parallel", 5, 11, caps);
        string.iter().for_each(|&page| _ = rig.reference(page));
        (rig.engine.counts().true_faults, rig.engine.counts().walk_sum, rig.engine.counts().false_faults)
    };
    let (with, without) = (run(HARDWARE), run(Caps { reference_bit: false, ..HARDWARE }));
    assert_eq!((with.0, with.1), (without.0, without.1));
    assert!(with.2 == 0 && without.2 > 0);
}

/// FIFO that evicts its `batch` oldest pages together when no frame is free: the definition, as a queue.
#[test]
fn victims_leave_in_batches_and_their_frames_are_used_one_by_one() {
    for batch in [1, 2, 3, 5, 9] {
        let (frames, pages) = (5usize, 16);
        let mut rig = Rig::with_batch("fifo", frames, pages, HARDWARE, batch);
        let mut queue = std::collections::VecDeque::new();
        let mut true_faults = 0;
        for i in 0..600u32 {
            let page = (i * i + i / 7) % 16;
            if !queue.contains(&page) {
                true_faults += 1;
                if queue.len() == frames {
                    queue.drain(..batch.min(frames));
                }
                queue.push_back(page);
            }
            rig.reference(page);
            let mut resident: Vec<u32> = (0..16).filter(|p| rig.engine.frame_of(PageId(*p)).is_some()).collect();
            let mut expected: Vec<u32> = queue.iter().copied().collect();
            resident.sort_unstable();
            expected.sort_unstable();
            assert_eq!(resident, expected, "batch {batch}, reference {i}");
        }
        assert_eq!(rig.engine.counts().true_faults, true_faults);
    }
}

#[test]
fn a_batch_of_dirty_victims_loses_nothing() {
    let mut rig = Rig::with_batch("clock", 4, 12, BARE, 3);
    for page in 0..12 {
        rig.fault(0, page, Access::Write);
        rig.settle();
        assert!(rig.machine.write(PageId(page), 100 + u64::from(page)));
    }
    for page in 0..12 {
        rig.reference(page);
        assert_eq!(rig.machine.read(PageId(page)), Some(100 + u64::from(page)));
    }
}

#[test]
fn a_wish_loads_a_page_and_resumes_nobody() {
    let mut rig = Rig::new("fifo", "parallel", 4, 8, Caps { buffers: 3, ..HARDWARE });
    rig.tell(Event::WillNeed { page: PageId(5) });
    rig.settle();
    assert!(rig.machine.mapped(PageId(5)) && rig.machine.resumed.is_empty());
    rig.tell(Event::WillNeed { page: PageId(5) });
    rig.settle();
    let counts = rig.engine.counts();
    assert_eq!((counts.prefetches, counts.true_faults, counts.page_loads), (1, 0, 1));
}

#[test]
fn wishes_leave_a_ticket_for_a_fault_and_a_fault_on_a_wished_page_waits_for_it() {
    let mut rig = Rig::new("fifo", "parallel", 4, 8, Caps { buffers: 3, ..HARDWARE });
    (0..3).for_each(|page| rig.tell(Event::WillNeed { page: PageId(page) }));
    assert_eq!((rig.engine.counts().prefetches, rig.engine.counts().prefetches_dropped), (2, 1));
    rig.fault(0, 7, Access::Read);
    rig.fault(1, 0, Access::Write);
    rig.settle();
    assert_eq!(rig.machine.resumed.len(), 2);
    assert_eq!((rig.engine.counts().prefetch_waits, rig.engine.counts().page_loads), (1, 3));
}

#[test]
fn a_wish_that_the_device_refuses_halts_nobody() {
    let mut rig = Rig::new("fifo", "parallel", 4, 8, Caps { buffers: 2, ..HARDWARE });
    rig.machine.failures = 3;
    rig.tell(Event::WillNeed { page: PageId(1) });
    rig.settle();
    assert!(rig.machine.halted.is_empty());
    rig.reference(1);
    assert_eq!(rig.machine.resumed, [TaskId(0)]);
}

#[test]
fn an_engine_can_be_handed_to_another_thread() {
    fn sendable<T: Send>() {}
    sendable::<coldframe_core::Engine>();
}

#[test]
fn a_pinned_page_stays_until_it_is_unpinned_as_often() {
    for policy in texts(2) {
        let mut rig = Rig::with_batch(&policy, 4, 12, HARDWARE, 2);
        rig.reference(0);
        let pinned = |rig: &mut Rig, on: bool| {
            let page = PageId(0);
            let event = if on { Event::Pinned { page } } else { Event::Unpinned { page } };
            rig.tell(event);
        };
        for on in [true, true, false] {
            pinned(&mut rig, on);
        }
        (1..12).for_each(|page| _ = rig.reference(page));
        assert!(rig.machine.read(PageId(0)).is_some(), "{policy}");
        pinned(&mut rig, false);
        for page in (0..6).flat_map(|_| 1..12) {
            rig.reference(page);
        }
        // The other policies may keep a page that was touched twice and evict one that was touched once.
        let must_leave = ["fifo", "clock", "fifo-sc:valid=2"].contains(&policy.as_str());
        assert!(!must_leave || rig.engine.frame_of(PageId(0)).is_none(), "{policy}");
    }
}
