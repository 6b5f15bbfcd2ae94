//! Do no harm (SAP section 3.4): how much a prefetch may cost the running task.
//!
//! The exact bound for LRU (FIFO-SC with a valid list of one page is exact LRU): if `k` prefetches take frames during a
//! slice, by loads or by pages in RAM that become recent, the running task has at most the true faults that LRU with
//! `k` fewer frames would have, from the same recency order. The reason: prefetched pages are behind the slice's pages,
//! so the other pages in RAM always include the most recent `frames - k`.

use std::collections::BTreeSet;

use crate::support::{Rig, HARDWARE};
use coldframe_core::prefetch::Arrival;
use coldframe_core::{Access, Caps, Counts, Event, PageId, TaskId};
use proptest::prelude::*;

const LRU: &str = "fifo-sc:valid=1";

const PAGES: u32 = 24;

fn rig(policy: &str, handler: &str, frames: usize, buffers: u32, arrival: Arrival) -> Rig {
    let caps = Caps { buffers, ..HARDWARE };
    Rig::made((policy, handler), frames, PAGES as usize, caps, 1, |builder| builder.arrival(arrival))
}

/// What happens in a slice.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The running task touches a page; loads in flight end first if necessary.
    Touch(u32),
    /// A hint to prefetch a page of the next task.
    Wish(u32),
    /// All loads end.
    Settle,
}

/// References before the slice.
fn warm_up(rig: &mut Rig, pages: &[u32]) {
    for page in pages {
        rig.reference(*page);
    }
    rig.machine.resumed.clear();
}

fn touch(rig: &mut Rig, page: u32) {
    if rig.machine.read(PageId(page)).is_some() {
        return;
    }
    rig.fault(0, page, Access::Read);
    while rig.machine.resumed.pop().is_none() {
        let event = rig.machine.next_event().expect("the task waits for something");
        rig.tell(event);
    }
}

/// True faults of a slice, and the frames that prefetches took in it.
fn slice(rig: &mut Rig, steps: &[Step]) -> (u64, u64) {
    let before = *rig.engine.counts();
    rig.tell(Event::Slice);
    for step in steps {
        match *step {
            Step::Touch(page) => touch(rig, page),
            Step::Wish(page) => rig.tell(Event::WillNeed { page: PageId(page) }),
            Step::Settle => rig.settle(),
        }
        rig.engine.check();
    }
    rig.settle();
    let after = rig.engine.counts();
    (after.true_faults - before.true_faults, taken(after) - taken(&before))
}

/// Frames that prefetches took.
fn taken(counts: &Counts) -> u64 {
    counts.prefetches + counts.prefetches_present
}

/// Plain LRU: the most recent page last.
struct Lru(Vec<u32>);

impl Lru {
    fn touch(&mut self, page: u32) -> bool {
        let position = self.0.iter().position(|p| *p == page);
        position.map(|at| self.0.remove(at));
        self.0.push(page);
        position.is_some()
    }

    /// Touches the pages with `frames` frames; returns the number of misses.
    fn faults(&mut self, frames: usize, pages: impl Iterator<Item = u32>) -> u64 {
        let mut faults = 0;
        for page in pages {
            self.0.drain(..self.0.len().saturating_sub(frames));
            faults += u64::from(!self.touch(page));
        }
        faults
    }
}

fn touches(steps: &[Step]) -> impl Iterator<Item = u32> + '_ {
    steps.iter().filter_map(|step| match step {
        Step::Touch(page) => Some(*page),
        _ => None,
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..PAGES).prop_map(Step::Touch),
        4 => (0..PAGES).prop_map(Step::Wish),
        1 => Just(Step::Settle),
    ];
    prop::collection::vec(step, 0..80)
}

proptest! {
    #[test]
    fn with_k_prefetches_in_a_slice_the_running_task_faults_no_more_than_with_k_frames_less(
        before in prop::collection::vec(0..PAGES, 0..60),
        steps in steps(),
        frames in 3..16usize,
        buffers in 2..6u32,
        parallel in any::<bool>(),
    ) {
        let handler = if parallel { "parallel" } else { "sequential" };
        let mut rig = rig(LRU, handler, frames, buffers, Arrival::BehindSlice);
        warm_up(&mut rig, &before);
        let (faults, prefetches) = slice(&mut rig, &steps);
        let mut order = Lru(Vec::new());
        order.faults(frames, before.iter().copied());
        let less = frames.saturating_sub(prefetches as usize).max(1);
        let bound = order.faults(less, touches(&steps));
        prop_assert!(faults <= bound, "{faults} faults with {prefetches} prefetches, bound {bound}");
    }

    #[test]
    fn a_prefetch_pushes_out_no_page_that_the_slice_has_touched(
        before in prop::collection::vec(0..PAGES, 0..60),
        steps in steps(),
        frames in 3..16usize,
        policy in prop_oneof![Just(LRU), Just("second-chance"), Just("fifo-sc:valid=60%")],
    ) {
        let mut rig = rig(policy, "sequential", frames, 4, Arrival::BehindSlice);
        warm_up(&mut rig, &before);
        rig.tell(Event::Slice);
        let mut touched = BTreeSet::new();
        for step in steps {
            match step {
                Step::Touch(page) => {
                    touch(&mut rig, page);
                    touched.insert(page);
                    touched.retain(|page| rig.engine.frame_of(PageId(*page)).is_some());
                }
                Step::Settle => rig.settle(),
                Step::Wish(page) => {
                    rig.tell(Event::WillNeed { page: PageId(page) });
                    let lost = touched.iter().find(|page| rig.engine.frame_of(PageId(**page)).is_none());
                    prop_assert_eq!(lost, None);
                }
            }
        }
    }
}

/// If prefetched pages were as recent as others, this slice would break the bound.
#[test]
fn pages_that_arrive_as_recent_as_others_break_the_bound() {
    let steps: Vec<Step> = [Step::Touch(0), Step::Touch(1), Step::Touch(2)]
        .into_iter()
        .chain([Step::Wish(10), Step::Settle, Step::Wish(11), Step::Settle])
        .chain([Step::Touch(0), Step::Touch(1), Step::Touch(2)])
        .collect();
    let run = |arrival| slice(&mut rig(LRU, "sequential", 4, 2, arrival), &steps);
    // Four frames: the three pages and one prefetched page, which is evicted for the next one.
    assert_eq!(run(Arrival::BehindSlice), (3, 2));
    // If as recent: the second prefetch evicts page 0, its fault evicts page 1, and so on. With two frames fewer there
    // would be 6 faults.
    assert_eq!(run(Arrival::Mapped), (6, 2));
}

#[test]
fn a_prefetched_page_waits_unmapped_and_its_first_touch_is_a_false_fault() {
    let mut rig = rig("second-chance", "sequential", 4, 2, Arrival::BehindSlice);
    assert_eq!(slice(&mut rig, &[Step::Wish(3), Step::Settle]), (0, 1));
    assert!(rig.engine.frame_of(PageId(3)).is_some() && !rig.machine.mapped(PageId(3)));
    touch(&mut rig, 3);
    let counts = rig.engine.counts();
    assert_eq!((counts.true_faults, counts.false_faults, counts.prefetch_waits), (0, 1, 0));
}

#[test]
fn a_fault_on_a_page_in_flight_waits_for_it_and_is_counted_apart() {
    let mut rig = rig("second-chance", "sequential", 4, 2, Arrival::BehindSlice);
    assert_eq!(slice(&mut rig, &[Step::Wish(3), Step::Touch(3)]), (0, 1));
    assert_eq!(rig.engine.counts().prefetch_waits, 1);
}

#[test]
fn where_only_pages_of_the_slice_are_left_a_wish_is_dropped() {
    let mut rig = rig("second-chance", "sequential", 2, 2, Arrival::BehindSlice);
    let (faults, prefetches) = slice(&mut rig, &[Step::Touch(0), Step::Touch(1), Step::Wish(2)]);
    assert_eq!((faults, prefetches, rig.engine.counts().prefetches_dropped), (2, 0, 1));
    assert!([0, 1].iter().all(|page| rig.engine.frame_of(PageId(*page)).is_some()));
}

#[test]
fn a_handler_that_maps_pages_in_buffers_moves_those_that_come_behind_the_slice() {
    let mut rig = rig("second-chance", "delayed-dual-buffering", 4, 3, Arrival::BehindSlice);
    rig.tell(Event::WillNeed { page: PageId(3) });
    rig.settle();
    assert!(rig.engine.frame_of(PageId(3)).is_some() && !rig.machine.mapped(PageId(3)));
    // A page with a fault is held in its buffer.
    rig.fault(0, 4, Access::Read);
    rig.settle();
    assert!(rig.engine.frame_of(PageId(4)).is_none() && rig.machine.mapped(PageId(4)));
}

/// With several tasks, a task other than the running one can also fault on a page in flight.
#[test]
fn two_tasks_that_wait_for_one_prefetched_page_both_go_on() {
    let mut rig = rig("second-chance", "sequential", 4, 3, Arrival::BehindSlice);
    rig.tell(Event::WillNeed { page: PageId(5) });
    for task in [1, 2] {
        let fault = Event::Fault { task: TaskId(task), page: PageId(5), access: Access::Read };
        rig.tell(fault);
    }
    rig.settle();
    rig.machine.resumed.sort();
    assert_eq!(rig.machine.resumed, [TaskId(1), TaskId(2)]);
    assert_eq!((rig.engine.counts().true_faults, rig.engine.counts().prefetch_waits), (0, 2));
}
