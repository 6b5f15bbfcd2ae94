//! What a task does: page references in order, recorded ones.

use std::sync::Arc;

use coldframe_trace::Block;

use crate::front_end::PageRef;
use crate::numbering::Numbering;

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
    /// The references.
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

    /// From the blocks of a trace, which `next` fills until it says false; pages of `1 << shift` bytes, all tasks of the trace as one. A
    /// reduced trace does not say when the later references of a run were made (a loop's fetches are one run, whatever data it goes
    /// through meanwhile), so that all references are spread evenly over the steps.
    ///
    /// # Errors
    /// What `next` fails with.
    ///
    /// # Panics
    /// On a trace without references.
    pub fn read<E>(shift: u32, mut next: impl FnMut(&mut Block) -> Result<bool, E>) -> Result<Program, E> {
        let (mut numbers, mut steps, mut block) = (Numbering::new(shift), Vec::<Step>::new(), Block::new());
        while next(&mut block)? {
            for (i, address) in block.address().iter().enumerate() {
                let page = numbers.number(0, address >> shift);
                let reference = PageRef::new(page, block.kind()[i] == 2, false);
                let times = block.count().get(i).copied().unwrap_or(1);
                steps.push(Step { reference, times });
            }
        }
        spread(&mut steps);
        Ok(Program::new(steps))
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
    use super::*;

    #[test]
    fn references_are_spread_evenly_and_none_is_lost() {
        let step = |page, times| Step { reference: PageRef::new(page, false, false), times };
        let mut steps = [step(0, 8), step(1, 1), step(2, 1), step(0, 1)];
        spread(&mut steps);
        assert_eq!(steps.map(|step| step.times), [2, 3, 3, 3]);
    }
}
