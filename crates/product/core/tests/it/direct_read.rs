//! Direct read and the low memory killer: pages are read in their slots and written in frames, and contents are never
//! wrong.

use crate::support::{Rig, HARDWARE};
use coldframe_core::policy::{texts, PolicyChoice};
use coldframe_core::swap::{AreaConfig, SwapAreas};
use coldframe_core::{Access, Backed, Below, Caps, Command, Event, PageId, Place, SlotsConfig, TaskId};
use proptest::prelude::*;

const TASKS: u32 = 3;
const PAGES_OF_A_TASK: u32 = 6;
const PAGES: u32 = TASKS * PAGES_OF_A_TASK;
/// From here on, a task's pages belong to a file.
const FIRST_FILE: u32 = 4;

const IN_PLACE: Caps = Caps { direct_read: true, ..HARDWARE };

fn page(task: u32, number: u32) -> PageId {
    PageId(task * PAGES_OF_A_TASK + number)
}

/// An engine whose tasks 0 to 2 own six pages each, four anonymous and two of a file; task 0 is in the foreground.
fn rig(policy: &str, frames: usize, caps: Caps, slots: usize) -> Rig {
    rig_below(policy, frames, caps, SlotsConfig { slots, files_min: 0 }.into())
}

fn rig_below(policy: &str, frames: usize, caps: Caps, below: Below) -> Rig {
    let mut rig = Rig::made((policy, "parallel"), frames, PAGES as usize, caps, 1, |builder| builder.below(below));
    for (task, number) in (0..TASKS).flat_map(|t| (0..PAGES_OF_A_TASK).map(move |n| (t, n))) {
        let backed = if number < FIRST_FILE { Backed::Anonymous } else { Backed::File };
        rig.tell(Event::Owned { task: TaskId(task), page: page(task, number), backed });
    }
    rig.tell(Event::Foreground { task: TaskId(0) });
    rig
}

fn maps(rig: &Rig) -> Vec<(Place, bool)> {
    let map = |c: &Command| if let Command::Map { place, writable, .. } = c { Some((*place, *writable)) } else { None };
    rig.machine.log.iter().filter_map(map).collect()
}

#[test]
fn a_read_maps_the_page_in_its_slot_and_copies_nothing() {
    let mut rig = rig("fifo", 1, IN_PLACE, 4);
    rig.write(0, page(0, 0), 7);
    rig.write(0, page(0, 1), 8);
    rig.machine.log.clear();
    assert_eq!(rig.read(0, page(0, 0)), 7);
    let copies = |c: &Command| matches!(c, Command::Load { .. } | Command::Move { .. } | Command::Write { .. });
    assert!(!rig.machine.log.iter().any(copies), "{:?}", rig.machine.log);
    assert!(matches!(maps(&rig)[..], [(Place::Slot(slot), false)] if slot.0 >= PAGES));
    let counts = rig.engine.counts();
    assert_eq!((counts.direct_reads, counts.swap_ins, counts.swap_outs), (1, 0, 1));
}

#[test]
fn a_write_after_a_direct_read_copies_to_a_frame_and_gives_the_slot_back() {
    let mut rig = rig("fifo", 2, IN_PLACE, 4);
    (0..3).for_each(|n| rig.write(0, page(0, n), 10 + u64::from(n)));
    assert_eq!((rig.read(0, page(0, 0)), rig.engine.free_slots()), (10, Some(3)));
    rig.machine.log.clear();
    rig.fault(0, page(0, 0).0, Access::Write);
    rig.settle();
    assert_eq!(rig.machine.read(page(0, 0)), Some(10), "the old contents come first");
    assert!(rig.machine.write(page(0, 0), 20));
    assert!(matches!(maps(&rig)[..], [(Place::Frame(_), true)]));
    // Its slot is free; the page evicted for it has another slot.
    assert_eq!((rig.engine.free_slots(), rig.engine.counts().swap_ins), (Some(3), 1));
}

#[test]
fn a_page_read_often_is_copied_for_nobody_and_gives_its_slot_back() {
    let mut rig = rig("fifo", 2, IN_PLACE, 4);
    (0..3).for_each(|n| rig.write(0, page(0, n), 10 + u64::from(n)));
    let often = Event::ReadOften { page: page(0, 0) };
    assert!(!rig.engine.accepts(&often), "it is not mapped in its slot yet");
    assert_eq!((rig.read(0, page(0, 0)), rig.engine.counts().swap_ins), (10, 0));
    rig.machine.log.clear();
    rig.tell(often);
    rig.settle();
    assert!(!rig.machine.log.iter().any(|c| matches!(c, Command::Resume { .. })), "nobody stood still");
    assert!(matches!(maps(&rig)[..], [(Place::Frame(_), _)]));
    assert_eq!(rig.machine.read(page(0, 0)), Some(10), "mapped, with its old contents");
    let counts = rig.engine.counts();
    // Its slot is free; the page evicted for it has another slot.
    assert_eq!((counts.read_often, counts.swap_ins, rig.engine.free_slots()), (1, 1, Some(3)));
}

#[test]
fn without_direct_read_each_touch_copies() {
    let mut rig = rig("fifo", 1, HARDWARE, 4);
    rig.write(0, page(0, 0), 7);
    rig.write(0, page(0, 1), 8);
    assert_eq!((rig.read(0, page(0, 0)), rig.read(0, page(0, 1))), (7, 8));
    let counts = rig.engine.counts();
    // Page 0 out, in; page 1 out, in; page 0, which freed its slot, out again.
    assert_eq!((counts.direct_reads, counts.swap_ins, counts.swap_outs), (0, 2, 3));
}

#[test]
fn pages_of_files_go_to_their_file_or_nowhere() {
    let mut rig = rig("fifo", 1, IN_PLACE, 4);
    rig.write(0, page(0, 4), 7);
    rig.reference(page(0, 5).0);
    rig.read(0, page(0, 4));
    let written = |c: &Command| if let Command::Write { to, .. } = c { Some(to.0) } else { None };
    let written: Vec<_> = rig.machine.log.iter().filter_map(written).collect();
    assert_eq!((written, rig.engine.free_slots()), (vec![page(0, 4).home().0], Some(4)));
    assert_eq!(rig.machine.read(page(0, 4)), Some(7));
}

#[test]
fn a_full_area_costs_the_task_that_is_longest_in_the_background() {
    let mut rig = rig("fifo", 2, IN_PLACE, 2);
    for task in [0, 2, 1] {
        rig.tell(Event::Foreground { task: TaskId(task) });
        rig.write(task, page(task, 0), 10 + u64::from(task));
    }
    rig.write(1, page(1, 1), 21);
    assert_eq!((rig.engine.free_slots(), rig.machine.killed.len()), (Some(0), 0));
    rig.write(1, page(1, 2), 22);
    assert_eq!(rig.machine.killed, [TaskId(0)]);
    rig.write(1, page(1, 3), 23);
    assert_eq!(rig.machine.killed, [TaskId(0), TaskId(2)]);
    assert_eq!((0..4).map(|n| rig.read(1, page(1, n))).collect::<Vec<_>>(), [11, 21, 22, 23]);
    assert_eq!(rig.engine.counts().homeless, 0);
}

#[test]
fn a_task_that_was_never_in_the_foreground_goes_first() {
    let mut rig = rig("fifo", 1, IN_PLACE, 0);
    rig.write(1, page(1, 0), 1);
    rig.write(0, page(0, 0), 2);
    assert_eq!(rig.machine.killed, [TaskId(1)]);
    assert_eq!((rig.read(0, page(0, 0)), rig.engine.counts().homeless), (2, 0));
}

#[test]
fn pages_of_files_are_dropped_before_a_task_is_ended() {
    let mut rig = rig("fifo", 2, IN_PLACE, 0);
    rig.read(0, page(0, 4));
    rig.tell(Event::Foreground { task: TaskId(1) });
    rig.write(1, page(1, 0), 1);
    rig.write(1, page(1, 1), 2);
    assert_eq!((rig.machine.killed.len(), rig.engine.counts().evictions), (0, 1));
    assert_eq!(rig.read(1, page(1, 0)), 1);
}

#[test]
fn a_killed_tasks_bytes_are_nobodys() {
    let mut rig = rig("fifo", 1, IN_PLACE, 1);
    rig.write(0, page(0, 0), 66);
    rig.tell(Event::Foreground { task: TaskId(1) });
    rig.write(1, page(1, 0), 1);
    rig.write(1, page(1, 1), 2);
    assert_eq!(rig.machine.killed, [TaskId(0)]);
    // The slot has task 1's page now, and task 0 starts again.
    assert_eq!((rig.read(1, page(1, 0)), rig.machine.mapped(page(0, 0))), (1, false));
    assert_eq!(rig.read(0, page(0, 0)), 0);
}

/// One slot, then a log: the killer has nothing to do, pages in the log are copied, and the slot is used again.
#[test]
fn what_the_slots_have_no_room_for_goes_to_the_log_below() {
    let area = AreaConfig { start: 3, stop: 3, ..AreaConfig::log(8) };
    let log = SwapAreas { slots_per_block: 4, areas: vec![area] };
    let below = Below { slots: Some(SlotsConfig { slots: 1, files_min: 0 }), swap: Some(log) };
    let mut rig = rig_below("fifo", 1, IN_PLACE, below);
    for round in 0..20 {
        (0..4).for_each(|n| rig.write(0, page(0, n), u64::from(10 * round + n)));
        (0..4).for_each(|n| assert_eq!(rig.read(0, page(0, n)), u64::from(10 * round + n)));
        rig.tell(Event::WillNeed { page: page(0, round % 4) });
        rig.settle();
    }
    let counts = rig.engine.counts();
    assert!(rig.machine.killed.is_empty() && counts.homeless == 0);
    assert!(counts.direct_reads > 0 && counts.swap_outs > 1, "{counts:?}");
    assert!(rig.engine.swap().unwrap().counts().erases > 0, "the log is collected");
}

/// Home slots that can be read, as a machine has them whose slow memory has a place for each page.
#[test]
fn without_an_area_pages_are_read_in_their_home_slots() {
    let mut rig = Rig::made(("fifo", "parallel"), 1, 4, IN_PLACE, 1, |builder| builder);
    assert_eq!((rig.read(0, PageId(2)), rig.engine.counts().direct_reads), (0, 0), "a first touch needs a frame");
    rig.write(0, PageId(0), 7);
    rig.write(0, PageId(1), 8);
    // Page 0 was mapped there as soon as its bytes were: no fault.
    assert_eq!(maps(&rig).iter().filter(|map| **map == (Place::Slot(PageId(0).home()), false)).count(), 1);
    assert_eq!((rig.machine.read(PageId(0)), rig.machine.write(PageId(0), 9)), (Some(7), false));
    assert_eq!(rig.engine.counts().direct_reads, 0);
    rig.write(0, PageId(0), 9);
    assert_eq!((rig.read(0, PageId(1)), rig.read(0, PageId(0))), (8, 9));
    rig.engine.check();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The same with home slots, and pages that are dropped.
    #[test]
    fn every_read_sees_the_last_write_with_home_slots(
        frames in 1usize..6,
        bare in any::<bool>(),
        policy in prop::sample::select(texts(1).collect::<Vec<_>>()),
        steps in prop::collection::vec((0..PAGES, 0u32..10, 0u32..20), 1..250),
    ) {
        let caps = Caps { reference_bit: !bare, dirty_bit: !bare, buffers: 2, ..IN_PLACE };
        prop_assume!(PolicyChoice::parse(&policy).unwrap().build(frames, PAGES as usize).is_ok());
        let mut rig = Rig::made((&policy, "parallel"), frames, PAGES as usize, caps, 1, |builder| builder);
        let mut contents = [0u64; PAGES as usize];
        for (i, (number, kind, fails)) in steps.into_iter().enumerate() {
            let id = PageId(number);
            rig.machine.failures = u32::from(fails == 0);
            match kind {
                0..4 => {
                    rig.write(0, id, i as u64 + 1);
                    contents[id.index()] = i as u64 + 1;
                }
                4 => {
                    rig.tell(Event::Released { page: id });
                    rig.machine.forget(id);
                    contents[id.index()] = 0;
                }
                _ => prop_assert_eq!(rig.read(0, id), contents[id.index()], "page {}", id.0),
            }
        }
    }

    /// Every read sees the last write of its task, whatever is swapped, read in place or killed. A task that
    /// was killed finds its anonymous pages empty.
    #[test]
    fn every_read_sees_the_last_write(
        frames in 1usize..6,
        slots in 0usize..9,
        direct_read in any::<bool>(),
        bare in any::<bool>(),
        policy in prop::sample::select(texts(1).collect::<Vec<_>>()),
        steps in prop::collection::vec((0..TASKS, 0..PAGES_OF_A_TASK, 0u32..14, 0u32..20), 1..250),
    ) {
        let caps = Caps { direct_read, reference_bit: !bare, dirty_bit: !bare, buffers: 2, places: false };
        prop_assume!(PolicyChoice::parse(&policy).unwrap().build(frames, PAGES as usize).is_ok());
        let mut rig = rig(&policy, frames, caps, slots);
        let (mut contents, mut killed) = ([0u64; PAGES as usize], 0);
        for (i, (task, number, kind, fails)) in steps.into_iter().enumerate() {
            let id = page(task, number);
            rig.machine.failures = u32::from(fails == 0);
            match kind {
                0..5 => {
                    rig.write(task, id, i as u64 + 1);
                    forget_the_killed(&mut rig, &mut killed, &mut contents);
                    contents[id.index()] = i as u64 + 1;
                }
                5 => rig.tell(Event::Foreground { task: TaskId(task) }),
                6 => {
                    rig.tell(Event::Released { page: id });
                    rig.machine.forget(id);
                    contents[id.index()] = 0;
                }
                12.. => {
                    let often = Event::ReadOften { page: id };
                    if rig.engine.accepts(&often) {
                        rig.tell(often);
                        rig.settle();
                        forget_the_killed(&mut rig, &mut killed, &mut contents);
                    }
                }
                _ => {
                    let value = rig.read(task, id);
                    forget_the_killed(&mut rig, &mut killed, &mut contents);
                    prop_assert_eq!(value, contents[id.index()], "page {}", id.0);
                }
            }
        }
        prop_assert!(direct_read || rig.engine.counts().direct_reads == 0);
    }
}

/// A killed task finds its anonymous pages empty when it starts again; its writes to files stay.
fn forget_the_killed(rig: &mut Rig, forgotten: &mut usize, contents: &mut [u64]) {
    while let Some(task) = rig.machine.killed.get(*forgotten).copied() {
        *forgotten += 1;
        for number in 0..FIRST_FILE {
            rig.machine.forget(page(task.0, number));
            contents[page(task.0, number).index()] = 0;
        }
    }
}
