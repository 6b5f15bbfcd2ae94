//! The engine with a swap area: slots change with each write and each collection, contents never change.

use crate::support::{Rig, HARDWARE};
use coldframe_core::swap::{collect, AreaConfig, Layout, SwapAreas};
use coldframe_core::{Access, Backed, Caps, Command, Event, PageId, TaskId};
use proptest::prelude::*;

const PAGES: u32 = 12;

fn rig(frames: usize, blocks: u32, collector: usize, layout: Layout) -> Rig {
    let (collector, spread_max) = (collect::ALL[collector], Some(3));
    let area = AreaConfig { layout, collector, victims: 2, stop: 3, spread_max, ..AreaConfig::log(blocks) };
    let swap = SwapAreas { slots_per_block: 2, areas: vec![area] };
    let caps = Caps { buffers: 2, ..HARDWARE };
    Rig::made(("clock", "parallel"), frames, PAGES as usize, caps, 1, |builder| builder.below(swap.into()))
}

fn slots_written(rig: &Rig) -> Vec<u32> {
    let to = |c: &Command| if let Command::Write { to, .. } = c { Some(to.0) } else { None };
    rig.machine.log.iter().filter_map(to).collect()
}

#[test]
fn pages_that_leave_are_written_one_after_the_other_behind_the_home_slots() {
    let mut rig = rig(1, 20, 0, Layout::Log);
    for page in [7, 3, 9, 0] {
        rig.write(0, PageId(page), 1);
    }
    assert_eq!(slots_written(&rig), [PAGES, PAGES + 1, PAGES + 2]);
    rig.machine.log.clear();
    rig.reference(3);
    let load = rig.machine.log.iter().find(|c| matches!(c, Command::Load { .. }));
    assert!(matches!(load, Some(Command::Load { page: PageId(3), from, .. }) if from.0 == PAGES + 1));
}

#[test]
fn a_page_that_was_only_read_again_leaves_clean_and_keeps_its_slot() {
    let mut rig = rig(1, 20, 0, Layout::Log);
    rig.write(0, PageId(1), 5);
    (0..3).for_each(|_| [2, 1].iter().for_each(|page| _ = rig.reference(*page)));
    assert_eq!(slots_written(&rig), [PAGES]);
    assert_eq!(rig.engine.swap().unwrap().valid(), 1);
    rig.tell(Event::Released { page: PageId(1) });
    assert_eq!(rig.engine.swap().unwrap().valid(), 0);
}

#[test]
fn each_tasks_pages_go_to_blocks_of_its_own_where_there_are_logs() {
    let tasks_in_blocks = |logs| {
        let swap = SwapAreas { slots_per_block: 2, areas: vec![AreaConfig { logs, ..AreaConfig::log(20) }] };
        let below = |builder: coldframe_core::engine::Builder| builder.below(swap.into());
        let mut rig = Rig::made(("clock", "parallel"), 1, PAGES as usize, HARDWARE, 1, below);
        for page in (0..PAGES).map(PageId) {
            let owned = Event::Owned { task: TaskId(page.0 % 2), page, backed: Backed::Anonymous };
            assert_eq!(rig.engine.accepts(&owned), logs > 1, "a page has an owner where it matters");
            if logs > 1 {
                rig.tell(owned);
                assert!(!rig.engine.accepts(&owned), "a page has one owner");
            }
            rig.write(page.0 % 2, page, 1);
        }
        let swap = rig.engine.swap().unwrap();
        let tasks =
            |slots: [u32; 2]| slots.map(|slot| swap.page_in(coldframe_core::SlotId(slot)).map(|page| page.0 % 2));
        (0..PAGES / 2 - 1).map(|block| tasks([2 * block, 2 * block + 1])).collect::<Vec<_>>()
    };
    assert!(tasks_in_blocks(2).iter().all(|[one, other]| one.is_some() && (other.is_none() || one == other)));
    assert!(tasks_in_blocks(1).iter().all(|[one, other]| one != other), "one log takes them as they come");
}

#[test]
fn what_a_full_area_refuses_goes_home() {
    // Four blocks of two slots, one block in reserve: six pages.
    let mut rig = rig(1, 4, 0, Layout::Log);
    (0..PAGES).for_each(|page| rig.write(0, PageId(page), 10 + u64::from(page)));
    assert!(slots_written(&rig).iter().any(|slot| *slot < PAGES));
    assert!(rig.engine.swap().unwrap().counts().areas_full > 0);
    for page in 0..PAGES {
        rig.reference(page);
        assert_eq!(rig.machine.read(PageId(page)), Some(10 + u64::from(page)));
    }
}

#[test]
fn a_write_that_fails_is_tried_again_in_another_block() {
    let mut rig = rig(1, 20, 0, Layout::Log);
    rig.write(0, PageId(0), 5);
    // The load of page 1 and the write of page 0 fail once each, then both succeed.
    rig.machine.failures = 2;
    rig.fault(0, 1, Access::Read);
    rig.settle();
    let written = slots_written(&rig);
    assert_eq!(written, [PAGES, PAGES + 2], "blocks of two slots");
    assert_eq!(rig.engine.swap().unwrap().counts().bad_blocks, 1);
    rig.reference(0);
    assert_eq!(rig.machine.read(PageId(0)), Some(5));
}

/// Fills an area until a collection copies. This many copies and erases fail. The pages keep their contents.
fn collect_with_failures(copies: u32, erases: u32) -> Rig {
    let mut rig = rig(1, 8, 0, Layout::Log);
    (rig.machine.copy_failures, rig.machine.erase_failures) = (copies, erases);
    // Every second page is written again and again, so each victim has a page to move.
    (0..PAGES).for_each(|page| rig.write(0, PageId(page), 100 + u64::from(page)));
    for round in 0..6 {
        (0..PAGES).step_by(2).for_each(|page| rig.write(0, PageId(page), 100 * round + u64::from(page)));
    }
    rig.settle();
    for page in 0..PAGES {
        rig.reference(page);
        let expected = if page % 2 == 0 { 500 } else { 100 } + u64::from(page);
        assert_eq!(rig.machine.read(PageId(page)), Some(expected), "page {page}");
    }
    rig.engine.check();
    rig
}

#[test]
fn a_copy_that_fails_goes_to_another_block_and_no_byte_is_lost() {
    let good = collect_with_failures(0, 0);
    assert!(good.engine.swap().unwrap().counts().copies > 0 && good.engine.counts().failures == 0);
    let again = |c: &&Command| matches!(c, Command::CopySlot { from: None, .. });
    assert_eq!(good.machine.log.iter().filter(again).count(), 0);
    let failed = collect_with_failures(2, 0);
    assert_eq!(failed.engine.counts().failures, 2);
    assert!(failed.machine.log.iter().filter(again).count() >= 1);
    assert!(failed.engine.swap().unwrap().counts().bad_blocks >= 1);
}

#[test]
fn a_block_that_is_not_erased_is_not_used_again() {
    let failed = collect_with_failures(0, 1);
    assert_eq!(failed.engine.counts().failures, 1);
    assert_eq!(failed.engine.swap().unwrap().counts().bad_blocks, 1);
    let block = failed.machine.erased[0];
    let slots = PAGES + 2 * block.0..PAGES + 2 * block.0 + 2;
    let erased = failed.machine.log.iter().position(|c| matches!(c, Command::EraseBlock { .. })).unwrap();
    let to =
        |c: &Command| matches!(c, Command::Write { to, .. } | Command::CopySlot { to, .. } if slots.contains(&to.0));
    let after = failed.machine.log[erased..].iter().filter(|c| to(c)).count();
    assert!(after <= 1, "only what was ordered before the failure was told");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_read_sees_the_last_write(
        frames in 1usize..5,
        blocks in 6u32..14,
        collector in 0usize..4,
        linux in any::<bool>(),
        steps in prop::collection::vec((0..PAGES, 0u32..8), 1..250),
    ) {
        let layout = if linux { Layout::Linux { cluster: 5 } } else { Layout::Log };
        let mut rig = rig(frames, blocks, collector, layout);
        let mut contents = [0u64; PAGES as usize];
        for (i, (page, kind)) in steps.into_iter().enumerate() {
            match kind {
                0..6 => {
                    (rig.machine.copy_failures, rig.machine.erase_failures) = match kind {
                        4 => (1 + page % 3, 0),
                        5 => (0, 1),
                        _ => (0, 0),
                    };
                    contents[page as usize] = i as u64 + 1;
                    rig.write(0, PageId(page), i as u64 + 1);
                }
                _ => _ = rig.reference(page),
            }
            if !rig.machine.halted.is_empty() {
                // The area and the home slot both refused the page. Its task is halted, and no task reads the page.
                prop_assert!(!rig.machine.mapped(PageId(page)));
                return Ok(());
            }
            prop_assert_eq!(rig.machine.read(PageId(page)), Some(contents[page as usize]));
            rig.settle();
            rig.engine.check();
        }
    }
}
