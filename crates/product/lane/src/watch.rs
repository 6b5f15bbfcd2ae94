//! Outcomes of pages that are prefetched for tasks: used or useless, and what they cost the other tasks.
//!
//! A prefetched page takes the frame of another. Each one that is used spares a major fault; each page that left for
//! one and that a task then waits for costs one. The difference is a credit, at most the number of frames. When it is
//! spent, prefetching goes on a page at a time until it pays again (SAP's "do no harm").

use coldframe_core::{Config, PageId, TaskId, Ticket};

/// Prefetched pages of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Prefetched {
    /// Loads that were started.
    pub loads: u64,
    /// Pages that were touched.
    pub used: u64,
    /// Pages that left untouched. Pages that are in neither count were in RAM or on their way at the end.
    pub useless: u64,
}

/// Follows prefetched pages.
pub struct Watch {
    /// The page that each task waits for.
    waits_for: Vec<Option<PageId>>,
    /// The load of each page in flight.
    tickets: Vec<Option<Ticket>>,
    /// The page of each load in flight.
    loads: Vec<Option<PageId>>,
    /// Major faults that were started, as task and page.
    pub majors: Vec<(usize, PageId)>,
    /// By page: the task for which the page was prefetched, while no task has touched it.
    prefetched: Vec<Option<u32>>,
    /// The task for which pages are prefetched.
    pub wished_for: u32,
    /// Outcomes by task.
    pub prefetches: Vec<Prefetched>,
    /// Loads in the background now.
    for_nobody: Vec<bool>,
    /// Loads under way that no task waits for.
    pub background: u32,
    /// By page: whether it left RAM for a prefetched page.
    displaced: Vec<bool>,
    credit: i64,
    credit_max: i64,
}

impl Watch {
    /// For the pages and tasks of an engine.
    pub fn new(&Config { pages, tasks, frames, .. }: &Config) -> Watch {
        Watch {
            waits_for: vec![None; tasks],
            tickets: vec![None; pages],
            loads: Vec::new(),
            majors: Vec::with_capacity(tasks),
            prefetched: vec![None; pages],
            wished_for: 0,
            prefetches: vec![Prefetched::default(); tasks],
            for_nobody: vec![false; pages],
            background: 0,
            displaced: vec![false; pages],
            credit: frames as i64,
            credit_max: frames as i64,
        }
    }

    /// How many pages may be prefetched now.
    pub fn allowance(&self) -> usize {
        self.credit.max(1) as usize
    }

    fn spared(&mut self) {
        self.credit = (self.credit + 1).min(self.credit_max);
    }

    /// The task faults on the page.
    pub fn faults(&mut self, task: usize, page: PageId) {
        self.waits_for[task] = Some(page);
        self.touched(page);
    }

    /// The task continues.
    pub fn resumed(&mut self, task: TaskId) {
        self.waits_for[task.index()] = None;
    }

    /// The load of the page, if it is under way.
    pub fn ticket(&self, page: PageId) -> Option<Ticket> {
        self.tickets[page.index()]
    }

    /// Whether the page was prefetched, and no touch of it has been seen.
    pub fn is_untouched(&self, page: PageId) -> bool {
        self.prefetched[page.index()].is_some()
    }

    /// The page has been touched.
    pub fn touched(&mut self, page: PageId) {
        if let Some(task) = self.prefetched[page.index()].take() {
            self.prefetches[task as usize].used += 1;
            self.spared();
        }
    }

    /// The page leaves RAM, touched or not by its reference bit: no one may have read that bit. `displaced`: for a page
    /// that is prefetched.
    pub fn leaves(&mut self, page: PageId, touched: bool, displaced: bool) {
        self.displaced[page.index()] = displaced;
        if let Some(task) = self.prefetched[page.index()].take() {
            let outcomes = &mut self.prefetches[task as usize];
            outcomes.used += u64::from(touched);
            outcomes.useless += u64::from(!touched);
            if touched {
                self.spared();
            }
        }
    }

    /// A device loads the page.
    pub fn load(&mut self, page: PageId, ticket: Ticket) {
        let i = page.index();
        if self.tickets[i].replace(ticket) == Some(ticket) {
            // The load before has failed; this one repeats it.
            return;
        }
        if self.loads.len() <= ticket.index() {
            self.loads.resize(ticket.index() + 1, None);
        }
        self.loads[ticket.index()] = Some(page);
        let displaced = std::mem::take(&mut self.displaced[i]);
        match self.waits_for.iter().position(|waited| *waited == Some(page)) {
            Some(task) => {
                self.credit = (self.credit - i64::from(displaced)).max(-self.credit_max);
                self.majors.push((task, page));
            }
            None => {
                self.prefetched[i] = Some(self.wished_for);
                self.prefetches[self.wished_for as usize].loads += 1;
                self.background += 1;
            }
        }
        self.for_nobody[i] = !self.waits_for.contains(&Some(page));
    }

    /// The load has ended.
    pub fn came(&mut self, ticket: Ticket) {
        let Some(page) = self.loads.get_mut(ticket.index()).and_then(Option::take) else { return };
        self.tickets[page.index()] = None;
        self.background -= u32::from(std::mem::take(&mut self.for_nobody[page.index()]));
    }
}
