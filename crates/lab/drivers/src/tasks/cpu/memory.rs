//! The memory of tasks beside touches: who owns a page, the time of reads in place, and release.

use std::collections::BTreeSet;

use coldframe_core::{Backed, Event, PageId, Ps, TaskId};

use super::{Cpu, Step};
use crate::tasks::paging::Paging;
use coldframe_lane::bus::Class;

impl Cpu {
    /// A page belongs to the first task that touches it.
    pub(super) fn own(&mut self, task: usize, page: PageId) {
        if !std::mem::replace(&mut self.owned[page.index()], true) {
            let backed = if self.paging.world.is_file(page) { Backed::File } else { Backed::Anonymous };
            self.paging.handle(Event::Owned { task: TaskId::from(task), page, backed }, Class::Demand);
        }
    }

    /// Where pages can be read in a buffer or a slot, which may take longer, each step counts on its own.
    pub(super) fn account_in_place(&mut self, running: usize, page: PageId, step: Step) {
        let Paging { world, table, .. } = &mut self.paging;
        let times = world.uncached(step.times);
        let before = world.meters.xip.time(table);
        if table.counts_reads() && !step.reference.writing() {
            table.count_more(page, times);
        }
        let longer = world.meters.in_slots.as_mut().map_or(Ps::ZERO, |in_slots| in_slots.touch(page, times));
        world.clock.now += longer + (world.meters.xip.time(table) - before);
        if let Some(foreground) = &mut self.foreground {
            foreground.delays(running, longer);
        }
        if world.meters.in_slots.as_mut().is_some_and(|in_slots| in_slots.is_read_often(page)) {
            self.read_often(page);
        }
    }

    /// Releases the task's pages, except those on their way and those of files.
    pub(super) fn give_back(&mut self, task: usize) {
        let spec = &self.tasks[task].spec;
        let pages: BTreeSet<usize> =
            spec.program.steps.iter().map(|step| spec.first_page as usize + step.reference.page()).collect();
        for page in pages.into_iter().map(PageId::from) {
            let event = Event::Released { page };
            if !self.paging.world.is_file(page) && self.paging.engine.accepts(&event) {
                self.paging.handle(event, Class::Background);
                self.paging.world.stored[page.index()] = false;
            }
        }
    }
}
