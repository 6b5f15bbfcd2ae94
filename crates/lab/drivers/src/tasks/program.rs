//! The references of a task, recorded and in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use coldframe_core::Backed;
use coldframe_store::{Block, Kind, Reference};

use crate::front_end::Spaces;
use coldframe_lane::numbering::Numbering;
use coldframe_lane::PageRef;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    pub task: u32,
    /// Steps of its program, from where its turn before ended.
    pub steps: u32,
    /// When it begins in the trace, in nanoseconds; where rows have no times, after this many references.
    pub at: u64,
}

/// A run of references to one page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The page, by its number in the program, and whether it is written to.
    pub reference: PageRef,
    /// How many references, at least 1.
    pub times: u32,
}

/// A program; its copies share the steps.
#[derive(Clone, Debug)]
pub struct Program {
    pub steps: Arc<[Step]>,
    /// Pages it touches, numbered from 0.
    pub pages: u32,
}

impl Program {
    /// From steps of one's own.
    ///
    /// # Panics
    /// Without steps: a task that does nothing never ends a round.
    pub fn new(steps: Vec<Step>) -> Program {
        assert!(!steps.is_empty(), "a program without references");
        let pages = steps.iter().map(|step| step.reference.page() as u32 + 1).max().unwrap_or(0);
        Program { steps: steps.into(), pages }
    }
}

/// The tasks of a trace, in the order of their numbers, each with its own references. The times and the interleaving of
/// the trace are dropped, because the scheduler decides them again. Tasks of one address space share pages.
#[derive(Clone, Debug)]
pub struct TraceTasks {
    pub programs: Vec<(u32, Program)>,
    /// Pages that they touch together.
    pub pages: usize,
    /// Turns in the trace's order; empty unless read.
    pub turns: Arc<[Turn]>,
    /// By page: whether it belongs to a file; empty unless read.
    pub files: Arc<[bool]>,
}

impl TraceTasks {
    /// Programs from the blocks of a trace, which `next` fills until it returns false. Pages have `1 << shift` bytes. A
    /// reduced trace does not say when the later references of a run were made (a loop's fetches are one run, whatever
    /// data it goes through meanwhile). So all its references are spread evenly over the steps.
    pub fn read<E>(
        shift: u32,
        spaces: &Spaces,
        reduced: bool,
        mut next: impl FnMut(&mut Block) -> Result<bool, E>,
    ) -> Result<TraceTasks, E> {
        let (mut numbers, mut tasks, mut block) =
            (Numbering::new(shift), BTreeMap::<u32, Vec<Step>>::new(), Block::new());
        while next(&mut block)? {
            for (i, address) in block.address().iter().enumerate() {
                let task = block.task().get(i).copied().unwrap_or(0);
                let times = block.count().get(i).copied().unwrap_or(1);
                let steps = tasks.entry(task).or_default();
                for page in address >> shift..=(address + u64::from(block.size()[i] - 1)) >> shift {
                    let page = numbers.number(spaces.of(task), page);
                    add(steps, Step { reference: PageRef::new(page, block.kind()[i] == 2, false), times });
                }
            }
        }
        if reduced {
            tasks.values_mut().for_each(|steps| spread(steps));
        }
        let programs = tasks.into_iter().map(|(task, steps)| (task, Program::new(steps))).collect();
        Ok(TraceTasks { programs, pages: numbers.count(), turns: Arc::default(), files: Arc::default() })
    }

    /// The same by address space, with the trace's interleaving and times, if it has some, as
    /// [`turns`](Self::turns). `backed` says what the page of a row belongs to.
    pub fn in_turns<E>(
        shift: u32,
        spaces: &Spaces,
        timed: bool,
        backed: &dyn Fn(&Reference) -> Backed,
        mut next: impl FnMut(&mut Block) -> Result<bool, E>,
    ) -> Result<TraceTasks, E> {
        let (mut numbers, mut tasks, mut block) =
            (Numbering::new(shift), BTreeMap::<u32, Vec<Step>>::new(), Block::new());
        let (mut turns, mut files, mut references) = (Vec::<Turn>::new(), Vec::new(), 0);
        while next(&mut block)? {
            for row in block.iter() {
                let space = spaces.of(row.task);
                let at = if timed { row.time } else { references };
                let goes_on = |turn: &Turn| turn.task == space && (!timed || turn.at == at);
                let steps = tasks.entry(space).or_default();
                let before = steps.len();
                let page = numbers.number(space, row.address >> shift);
                if files.len() < numbers.count() {
                    files.push(backed(&row) == Backed::File);
                }
                let step = Step { reference: PageRef::new(page, row.kind == Kind::Write, false), times: row.count };
                match turns.last().is_some_and(goes_on) {
                    true => add(steps, step),
                    false => {
                        steps.push(step);
                        turns.push(Turn { task: space, steps: 0, at });
                    }
                }
                turns.last_mut().expect("just looked at").steps += (steps.len() - before) as u32;
                references += u64::from(row.count);
            }
        }
        let places: BTreeMap<u32, u32> = tasks.keys().copied().zip(0..).collect();
        turns.iter_mut().for_each(|turn| turn.task = places[&turn.task]);
        let programs = tasks.into_iter().map(|(space, steps)| (space, Program::new(steps))).collect();
        Ok(TraceTasks { programs, pages: numbers.count(), turns: turns.into(), files: files.into() })
    }
}

/// Goes on with the last step where that is the same.
fn add(steps: &mut Vec<Step>, step: Step) {
    match steps.last_mut() {
        Some(last) if last.reference == step.reference && last.times.checked_add(step.times).is_some() => {
            last.times += step.times;
        }
        _ => steps.push(step),
    }
}

/// Gives each step the same number of references, within one, of the same sum.
fn spread(steps: &mut [Step]) {
    let (total, count) = (steps.iter().map(|step| u64::from(step.times)).sum::<u64>(), steps.len() as u64);
    for (i, step) in (0u64..).zip(steps) {
        let upto = |i: u64| (u128::from(total) * u128::from(i) / u128::from(count)) as u64;
        step.times = (upto(i + 1) - upto(i)) as u32;
    }
}

#[cfg(test)]
mod tests {
    use coldframe_store::Kind::{Read, Write};
    use coldframe_store::Reference;

    use super::*;

    #[test]
    fn tasks_of_a_trace_have_their_own_references_and_share_pages_within_a_space() {
        let mut blocks = 0;
        let read = TraceTasks::read(12, &Spaces(vec![0, 0, 2]), false, |block: &mut Block| {
            block.clear();
            // Tasks 0 and 1 are threads of one process; task 2 has its own address space.
            let rows =
                [(0, 0x1000, Read), (1, 0x1008, Write), (0, 0x1010, Read), (2, 0x1000, Read), (0, 0x2ffc, Write)];
            for (task, address, kind) in rows {
                block.push(Reference { task, ..Reference::new(address, 8, kind) });
            }
            blocks += 1;
            Ok::<_, ()>(blocks == 1)
        });
        let read = read.unwrap();
        let step = |page, writing, times| Step { reference: PageRef::new(page, writing, false), times };
        let steps: Vec<_> = read.programs.iter().map(|(task, program)| (*task, program.steps.to_vec())).collect();
        // Pages in the order of their first touch: 0 is 0x1000 of the process, 1 is that of task 2, 2 is 0x2000. The
        // last write crosses a page boundary.
        let expected = [
            (0, vec![step(0, false, 2), step(2, true, 1), step(3, true, 1)]),
            (1, vec![step(0, true, 1)]),
            (2, vec![step(1, false, 1)]),
        ];
        assert_eq!((read.pages, steps), (4, expected.to_vec()));
    }

    #[test]
    fn references_are_spread_evenly_and_none_is_lost() {
        let step = |page, times| Step { reference: PageRef::new(page, false, false), times };
        let mut steps = [step(0, 8), step(1, 1), step(2, 1), step(0, 1)];
        spread(&mut steps);
        assert_eq!(steps.map(|step| step.times), [2, 3, 3, 3]);
    }
}
