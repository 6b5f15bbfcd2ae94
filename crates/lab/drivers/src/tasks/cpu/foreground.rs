//! Tasks that take turns as the trace has them, like applications on a phone: [`Cpu::take_turns`].
//!
//! The trace takes the place of a scheduler's choice: only the task of the next turn is ready, and not before its time
//! in the trace, later by all that faults and reads in slots have taken so far. A task that is not a service and
//! differs from the one before comes to the foreground. The trace does not know which tasks were killed for lack of
//! memory. At its next reference a killed task repeats its launch, that is what it touched at its first start.

use std::cmp::Reverse;
use std::sync::Arc;

use coldframe_core::{Event, PageId, Ps, TaskId};

use super::Cpu;
use crate::tasks::program::Turn;
use crate::tasks::{Step, TaskSpec};
use coldframe_lane::bus::Class;

#[derive(Clone, Debug)]
pub struct Turns {
    /// In the order of the trace.
    pub turns: Arc<[Turn]>,
    /// The unit of their beginnings. A turn begins then if no fault delays it.
    pub unit: Ps,
    /// By page: whether it belongs to a file. Such a page is never zeros, and no page of the swap area.
    pub files: Arc<[bool]>,
    /// By task: whether it is a service, which is never in the foreground.
    pub services: Vec<bool>,
    /// References within this time after a switch count as part of the switch; within this time after a task's first
    /// reference, as its launch.
    pub answer: Ps,
}

/// A switch: a task comes to the foreground.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Switch {
    pub task: usize,
    /// Whether the task had to start: it was killed before, or it runs for the first time.
    pub cold: bool,
    /// Time in fault handling and in slots until the task's working set was in RAM.
    pub delay: Ps,
}

#[derive(Clone, Debug, Default)]
pub struct ForegroundResult {
    /// Switches, oldest first.
    pub switches: Vec<Switch>,
    /// Time in fault handling.
    pub paging: Ps,
    /// Extra time of references to slots, over references to DRAM.
    pub slot_reading: Ps,
    /// Time for copies that no task waited for.
    pub background_copies: Ps,
    /// The time of the last reference.
    pub end: Ps,
    /// By slot of an area that is rewritten in place: how often it was written.
    pub slot_writes: Vec<u32>,
}

impl ForegroundResult {
    /// Mean delay of switches back to a task, or to all tasks. A task's first visit only starts it.
    pub fn switch_delay(&self, task: Option<usize>) -> Ps {
        let mut visited = std::collections::BTreeSet::new();
        let back = self.switches.iter().filter(|switch| !visited.insert(switch.task));
        let of_task = back.filter(|switch| task.is_none_or(|task| task == switch.task));
        let (sum, n) = of_task.fold((0, 0), |(sum, n), switch| (sum + switch.delay.0, n + 1));
        Ps(sum / n.max(1))
    }
}

pub(super) struct Foreground {
    turns: Turns,
    next: usize,
    /// By task: the steps of its launch.
    launches: Vec<Vec<usize>>,
    current: Option<usize>,
    switched: Ps,
    /// The time in the trace.
    at: Ps,
    pub(super) halts: u64,
    pub(super) result: ForegroundResult,
}

impl Foreground {
    fn new(turns: Turns, specs: &[&TaskSpec], reference: Ps) -> Foreground {
        Foreground {
            launches: launches(&turns, specs, reference),
            turns,
            next: 0,
            current: None,
            switched: Ps::ZERO,
            at: Ps::ZERO,
            halts: 0,
            result: ForegroundResult::default(),
        }
    }

    /// Time passes in the trace.
    pub(super) fn goes_on(&mut self, time: Ps) {
        self.at += time;
    }

    /// The task was delayed. If the user waits for it, the switch took longer.
    pub(super) fn delays(&mut self, task: usize, time: Ps) {
        if self.current == Some(task) && self.at < self.switched + self.turns.answer {
            self.result.switches.last_mut().expect("a task is in the foreground").delay += time;
        }
    }
}

/// By task: the first steps that touch each page in each way, up to the end of its launch.
fn launches(turns: &Turns, specs: &[&TaskSpec], reference: Ps) -> Vec<Vec<usize>> {
    let mut launches = vec![Vec::new(); specs.len()];
    let (mut done, mut ends) = (vec![0; specs.len()], vec![None; specs.len()]);
    let mut touched = vec![[false; 2]; turns.files.len()];
    for turn in turns.turns.iter() {
        let (task, mut at) = (turn.task as usize, turns.unit * turn.at);
        let end = *ends[task].get_or_insert(at + turns.answer);
        let (from, program) = (done[task], &specs[task].program);
        done[task] += turn.steps as usize;
        for (i, step) in program.steps[from..done[task]].iter().enumerate() {
            if at >= end {
                break;
            }
            let touched = &mut touched[step.reference.page()][usize::from(step.reference.writing())];
            if !std::mem::replace(touched, true) {
                launches[task].push(from + i);
            }
            at += reference * u64::from(step.times);
        }
    }
    launches
}

impl Cpu {
    /// The tasks run in these turns. Call it before the first one runs; their scheduler must not take the processor
    /// from a task. Tasks have the page numbers of the turns.
    pub fn take_turns(&mut self, turns: Turns) {
        self.paging.world.file = turns.files.to_vec();
        self.tasks.iter_mut().for_each(|task| (task.ended, task.turn_end) = (true, Some(0)));
        let specs: Vec<&TaskSpec> = self.tasks.iter().map(|task| &task.spec).collect();
        self.foreground = Some(Foreground::new(turns, &specs, self.reference));
        self.alarms.clear();
        self.begin_turn();
    }

    /// The task of the next turn wakes at its time.
    pub(super) fn begin_turn(&mut self) {
        let delayed = self.delayed();
        let Some(foreground) = &mut self.foreground else { return };
        let Some(turn) = foreground.turns.turns.get(foreground.next) else { return };
        foreground.next += 1;
        foreground.at = foreground.turns.unit * turn.at;
        let (task, at) = (turn.task as usize, foreground.at + delayed);
        *self.tasks[task].turn_end.get_or_insert(0) += turn.steps as usize;
        self.alarms.push(Reverse((self.paging.world.clock.now.max(at), task)));
    }

    /// The delay against the trace's own times.
    fn delayed(&self) -> Ps {
        let slots = self.paging.world.meters.slot_reading();
        self.foreground.as_ref().map_or(Ps::ZERO, |foreground| foreground.result.paging) + slots
    }

    /// The task runs from now on; the engine learns of a task that comes to the foreground.
    pub(super) fn come_to_foreground(&mut self, task: usize) {
        if let Some(foreground) = &mut self.foreground {
            if foreground.current == Some(task) || foreground.turns.services[task] {
                return;
            }
            let switch = Switch { task, cold: self.tasks[task].ended, delay: Ps::ZERO };
            (foreground.current, foreground.switched) = (Some(task), foreground.at);
            foreground.result.switches.push(switch);
        }
        if self.area.slots.is_some() {
            self.paging.handle(Event::Foreground { task: TaskId::from(task) }, Class::Demand);
        }
    }

    /// If the task was killed, it repeats its launch first: the part that it had come to.
    pub(super) fn launch(&mut self, running: usize) {
        let Some(foreground) = &self.foreground else { return };
        let task = &mut self.tasks[running];
        let due = task.ended && task.again.as_slice().is_empty() && task.launched != Some(task.step);
        if due {
            (task.ended, task.launched) = (false, Some(task.step));
            let touched = foreground.launches[running].iter().take_while(|step| **step < task.step);
            let again = |step: &usize| Step { times: 1, ..task.spec.program.steps[*step] };
            task.again = touched.map(again).collect::<Vec<_>>().into_iter();
        }
    }

    /// The task has waited for a page, or its fault took only the processor's time.
    pub(super) fn end_fault(&mut self, task: usize) {
        let took = self.paging.world.clock.now - self.tasks[task].faulted;
        if let Some(foreground) = &mut self.foreground {
            foreground.result.paging += took;
            foreground.delays(task, took);
        }
    }

    /// A page is lost. The task lets its memory go, since it would meet the page again and again, gives up the
    /// reference that it was at, and starts again.
    pub(super) fn lose(&mut self, task: usize) {
        let Some(foreground) = &mut self.foreground else { return };
        foreground.halts += 1;
        self.tasks[task].ended = true;
        self.give_back(task);
        if self.running == Some(task) && std::mem::take(&mut self.stands) {
            let lost = &mut self.tasks[task];
            if lost.again.next().is_none() {
                lost.step += 1;
            }
            let took = self.paging.world.clock.now - self.tasks[task].faulted;
            self.foreground.iter_mut().for_each(|foreground| foreground.result.paging += took);
        }
    }

    /// A page that is read in its slot too often is copied; no task waits for that.
    pub(super) fn read_often(&mut self, page: PageId) {
        let began = self.paging.world.clock.now;
        self.paging.handle(Event::ReadOften { page }, Class::Background);
        if let Some(foreground) = &mut self.foreground {
            foreground.result.background_copies += self.paging.world.clock.now - began;
        }
    }

    pub(super) fn foreground_result(&self) -> Option<ForegroundResult> {
        let foreground = self.foreground.as_ref()?;
        let world = &self.paging.world;
        Some(ForegroundResult {
            slot_reading: world.meters.slot_reading(),
            end: foreground.at + self.delayed(),
            slot_writes: world.meters.slot_writes.clone(),
            ..foreground.result.clone()
        })
    }
}
