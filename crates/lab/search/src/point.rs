//! The result of one configuration: the counts and times that a price needs.

use coldframe_core::{Bytes, Ps};
use coldframe_lane::Latency;

use coldframe_experiment::result::RunResult;
use coldframe_experiment::settings::Settings;
use coldframe_experiment::sim_result::InForce;
use coldframe_experiment::tasks::TasksOutcome;

/// One configuration and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Every setting in force, as `-c` takes it.
    pub config: InForce,
    /// Frames.
    pub frames: usize,
    /// Bytes of a page.
    pub page: u64,
    /// Different pages touched.
    pub pages: usize,
    /// Page references.
    pub references: u64,
    /// Of the whole run.
    pub true_faults: u64,
    /// Of the whole run.
    pub false_faults: u64,
    /// Pages written to the device.
    pub writes: u64,
    /// Pages loaded.
    pub loads: u64,
    /// Of these, pages that had never been written: if there is no file behind them, there is nothing to load.
    pub zero_loads: u64,
    /// The program's own time; `None`: it has no price.
    pub own: Option<Ps>,
    /// Time in faults, and the extra time of reads in place over reads from main memory.
    pub paging: Ps,
    /// 99th percentile of the latency of true faults; zero without faults.
    pub p99: Ps,
    /// Longest true fault.
    pub longest: Ps,
    /// Pages were written, and the device's sheet has no time for writes: `paging` is a lower bound.
    pub writes_unpriced: bool,
    /// Equation 3 of DDB, if the sheets of main memory and device have energies.
    pub energy: Option<u64>,
    /// The swap area, if it is simulated.
    pub swap: Option<Swapped>,
    /// Quiet references that were left out where they hit.
    pub quiet: u64,
}

/// What a simulated swap area did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swapped {
    /// Slots programmed from RAM.
    pub programs: u64,
    /// Slots copied by collections.
    pub copies: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Erases of the most worn block.
    pub erases_max: u32,
    /// Blocks of the area.
    pub blocks: u32,
    /// How often the area was full and a page went elsewhere.
    pub areas_full: u64,
}

impl Point {
    /// The point of a run; `None` for an oracle.
    pub fn new(result: &RunResult) -> Option<Point> {
        let lane = result.lane()?;
        let latency = &lane.true_latency;
        let swap = lane.swap.as_ref().map(|s| Swapped {
            programs: s.counts.programs,
            copies: s.counts.copies,
            erases: s.counts.erases,
            erases_max: s.erases.iter().copied().max().unwrap_or(0),
            blocks: s.erases.len() as u32,
            areas_full: s.counts.areas_full,
        });
        Some(Point {
            config: result.config.clone(),
            frames: result.frames,
            page: result.page.0,
            pages: result.pages,
            references: result.references(),
            true_faults: lane.counts.true_faults,
            false_faults: lane.counts.false_faults,
            writes: lane.counts.dirty_evictions,
            loads: lane.counts.page_loads,
            zero_loads: lane.zero_loads,
            own: result.idle.map(|idle| idle + result.memory_time),
            paging: lane.paging + lane.xip_surplus,
            p99: latency.quantile(0.99).unwrap_or_default(),
            longest: latency.max(),
            writes_unpriced: lane.writes_unpriced,
            energy: result.e_paging().map(|ledger| ledger.total().0),
            swap,
            quiet: result.front_end.quiet,
        })
    }

    /// The point of a run of several tasks. Its own time is the processor's time on references; all other time until
    /// the last task's end is paging. So loads during a running task cost nothing. First touches are the loads that a
    /// page of zeros would save.
    pub fn of_tasks(outcome: &TasksOutcome) -> Point {
        let (result, counts) = (&outcome.result, &outcome.result.counts);
        let own = Ps(result.tasks.iter().map(|task| task.useful.0).sum());
        let mut stall = Latency::new();
        result.tasks.iter().for_each(|task| stall.add(&task.stall));
        Point {
            config: outcome.config.clone(),
            frames: outcome.frames,
            page: outcome.page,
            pages: outcome.pages,
            references: result.references,
            true_faults: result.major(),
            false_faults: result.faults() - result.major(),
            writes: counts.dirty_evictions,
            loads: counts.page_loads,
            zero_loads: counts.cold_faults,
            own: Some(own),
            paging: Ps(result.time.0.saturating_sub(own.0)),
            p99: stall.quantile(0.99).unwrap_or_default(),
            longest: stall.max(),
            writes_unpriced: outcome.writes_unpriced,
            energy: None,
            swap: None,
            quiet: 0,
        }
    }

    pub fn ram(&self) -> Bytes {
        Bytes(self.frames as u64 * self.page)
    }

    /// Policy, handler, device, read-ahead and collector, for people.
    pub fn family(&self) -> String {
        let Settings { policy, handler, device, tasks, .. } = &self.config.settings;
        let swap = &self.config.swap.log;
        let or_nothing = |text: &Option<String>| text.clone().unwrap_or_default();
        let collector = swap.collector.as_ref().map(|c| format!(", collector {c}")).unwrap_or_default();
        let tasks = tasks.scheduler.as_ref().zip(tasks.prefetch.as_ref());
        let tasks = tasks.map(|(scheduler, when)| format!(", {scheduler}, prefetch {when}")).unwrap_or_default();
        let layout = swap.layout.as_ref().filter(|layout| *layout != "log");
        let collector = layout.map(|l| format!(", slots of {l}")).unwrap_or_default() + &collector;
        let ahead = self.config.read_ahead().map(|pages| format!(", read-ahead {pages}")).unwrap_or_default();
        format!("{}, {}, {}{ahead}{collector}{tasks}", or_nothing(policy), or_nothing(handler), or_nothing(device))
    }
}
