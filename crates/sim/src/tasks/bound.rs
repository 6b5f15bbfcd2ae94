//! Real time (SAP section 6, future work): a bound on the faults that remain in a job with prefetching, for a fixed
//! schedule of jobs with known footprints.
//!
//! ```text
//!   job i-1   |───── xi ─────┬── rest of the job ──|
//!                            └ loads of job i's pages, each `transfer`
//!   job i                                          |── faults on what was not loaded ──|
//! ```
//!
//! Jobs run in a fixed order, each to its end, and touch at most `pages` pages, the same in each round. Replacement is
//! exact LRU (`fifo-sc:valid=1`), a task keeps the processor during a fault, listed pages in RAM become recent too, and
//! a list has room for a whole job. Then:
//! - When the list is started, at least `rest = work - xi * (work + overhead) - tick` is left of the job before. In
//!   this time the device loads at least `rest / transfer` pages: the running job's own loads go first, but the job
//!   waits for them. Up to `queue` of these pages may be loads of the running job's own list that are still in flight.
//! - No page of a job is evicted before it is touched, if the job and either neighbour fit in RAM together: only their
//!   pages are more recent.
//! - So at most `pages - (rest / transfer - queue)` of the pages on the list fault. A page not on the list has never
//!   been loaded before: this is each page's first fault, once in all rounds.
//!
//! The bound also limits a job's time: `work + overhead + faults * (transfer + one transfer of the background)`.
//!
//! When not to use it: if tasks wake up in between, or with policies that only resemble LRU.

use coldframe_core::Ps;

/// A job of the schedule.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Pages that it touches at most.
    pub pages: u64,
    /// Processor time of its references, at least.
    pub work: Ps,
    /// Processor time of its faults' stages, at most.
    pub overhead: Ps,
}

/// Jobs that run in turn, again and again, and the machine.
#[derive(Clone, Copy, Debug)]
pub struct Schedule<'a> {
    /// In the order in which they run.
    pub jobs: &'a [Job],
    /// Frames, but those that loads in the background can hold at a time.
    pub frames: u64,
    /// The device's time for a page, with the write that makes room for it.
    pub transfer: Ps,
    /// Loads in the background at the same time.
    pub queue: u64,
    /// The part of a job after which the next one's list is started.
    pub xi: f64,
    /// How much later it can be started.
    pub tick: Ps,
}

impl Schedule<'_> {
    /// The faults of a round of this job that wait for the device, without each page's first fault. `None`: no bound,
    /// because the job and its neighbours do not fit in RAM.
    pub fn faults_left(&self, job: usize) -> Option<u64> {
        let count = self.jobs.len();
        let at = |i: usize| self.jobs[i % count];
        let (before, this, after) = (at(job + count - 1), at(job), at(job + 1));
        if this.pages + before.pages.max(after.pages) > self.frames {
            return None;
        }
        let started = Ps(((before.work + before.overhead).0 as f64 * self.xi).ceil() as u64) + self.tick;
        let loads = before.work.saturating_sub(started).0 / self.transfer.0.max(1);
        Some(this.pages.saturating_sub(loads.saturating_sub(self.queue)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Ps = Ps::from_us(1_000);

    fn schedule(jobs: &[Job]) -> Schedule<'_> {
        Schedule { jobs, frames: 100, transfer: MS, queue: 2, xi: 0.5, tick: MS }
    }

    /// By hand: of 41 ms and 3 ms of overhead 22 ms are half, a tick later 18 ms are left, for 18 pages, two of
    /// which may be the running job's own, of 50.
    #[test]
    fn what_the_rest_of_the_job_before_does_not_load_faults() {
        let job = Job { pages: 50, work: MS * 41, overhead: MS * 3 };
        assert_eq!(schedule(&[job, job]).faults_left(0), Some(34));
        let long = Job { work: MS * 400, ..job };
        assert_eq!(schedule(&[job, long]).faults_left(0), Some(0), "the job before is long enough for all");
        assert_eq!(schedule(&[job, long]).faults_left(1), Some(34));
    }

    #[test]
    fn jobs_that_do_not_fit_beside_their_neighbours_have_no_bound() {
        let [small, large] = [50, 51].map(|pages| Job { pages, work: MS, overhead: Ps::ZERO });
        assert_eq!(schedule(&[small, large, small]).faults_left(1), None);
        assert_eq!(schedule(&[small, small, large]).faults_left(0), None);
    }
}
