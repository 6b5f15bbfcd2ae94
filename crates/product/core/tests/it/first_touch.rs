//! First touches in blocks: no byte is lost, and what nobody writes to leaves first, without a write.

use crate::support::{Rig, HARDWARE};
use coldframe_core::policy::texts;
use coldframe_core::{Access, Command, Event, PageId};
use proptest::prelude::*;

const PAGES: usize = 256;

/// A touch as of a machine that brings blocks in.
fn touch(rig: &mut Rig, page: u32, value: Option<u64>) -> u64 {
    let (page, block) = (PageId(page), rig.engine.block_around(PageId(page)));
    if !block.is_empty() {
        rig.fault(0, page.0, if value.is_some() { Access::Write } else { Access::Read });
        for other in
            (block.start..block.end.min(PAGES as u32)).map(|page| Event::FirstTouchNeighbour { page: PageId(page) })
        {
            if rig.engine.accepts(&other) {
                rig.tell(other);
            }
        }
        rig.settle();
    }
    if let Some(value) = value {
        rig.write(0, page, value);
    }
    rig.read(0, page)
}

#[test]
fn a_first_touch_brings_its_block_and_what_nobody_writes_to_leaves_first_without_a_write() {
    let mut rig = Rig::with_batch("fifo", 64, PAGES, HARDWARE, 4);
    touch(&mut rig, 0, Some(1));
    assert_eq!(
        (rig.engine.counts().true_faults, rig.engine.counts().first_touch_neighbours),
        (1, 3),
        "a sixteenth of 64 frames"
    );
    rig.write(0, PageId(1), 2);
    assert_eq!(rig.engine.counts().true_faults, 1);
    (1..16).for_each(|i| _ = touch(&mut rig, 4 * i, Some(5)));
    let filled = [0, 1].map(|page| rig.machine.mapped(PageId(page)));
    assert_eq!((filled, rig.engine.counts().evictions), ([true; 2], 0));
    rig.machine.log.clear();
    touch(&mut rig, 200, Some(1));
    let left = |page| rig.machine.log.iter().any(|c| matches!(c, Command::Evict { page: p, .. } if p.0 == page));
    assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(left), [false, false, true, true, false, true, true, false]);
    assert!(!rig.machine.log.iter().any(|c| matches!(c, Command::Write { .. })));
    assert_eq!(rig.engine.counts().unfilled, 4);
    assert_eq!((rig.read(0, PageId(1)), rig.read(0, PageId(2))), (2, 0));
}

proptest! {
    #[test]
    fn whatever_is_touched_written_pinned_released_and_lent_no_byte_is_lost(
        steps in prop::collection::vec((0u32..PAGES as u32, 0u8..10), 1..400),
        policy in 0..texts(8).count(),
        frames in 20usize..100,
        batch in 1usize..9,
        dirty_bit: bool,
    ) {
        let text = texts(8).nth(policy).unwrap();
        let caps = coldframe_core::Caps { dirty_bit, ..HARDWARE };
        let mut rig = Rig::with_batch(&text, frames, PAGES, caps, batch);
        let mut model = vec![0u64; PAGES];
        for (i, (page, what)) in steps.into_iter().enumerate() {
            let (id, value) = (PageId(page), i as u64 + 1);
            match what {
                0..=3 => {
                    model[page as usize] = value;
                    touch(&mut rig, page, Some(value));
                }
                4 | 5 => prop_assert_eq!(touch(&mut rig, page, None), model[page as usize]),
                6 if rig.engine.accepts(&Event::Released { page: id }) => {
                    rig.tell(Event::Released { page: id });
                    rig.machine.forget(id);
                    model[page as usize] = 0;
                }
                8 | 9 => {
                    let frames = 1 + page % 16;
                    let event = if what == 8 { Event::Lend { frames } } else { Event::Borrow { frames } };
                    if rig.engine.accepts(&event) {
                        rig.tell(event);
                        rig.settle();
                    }
                }
                _ if rig.engine.accepts(&Event::Pinned { page: id }) => {
                    rig.tell(Event::Pinned { page: id });
                    rig.tell(Event::Unpinned { page: id });
                }
                _ => {}
            }
        }
        for page in 0..PAGES as u32 {
            prop_assert_eq!(touch(&mut rig, page, None), model[page as usize], "page {}", page);
        }
    }
}
