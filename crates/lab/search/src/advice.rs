//! The answer to a question about a trace.

use coldframe_core::Bytes;
use coldframe_experiment::result::RunResult;

use crate::candidate::Candidate;
use crate::limits::Limits;
use crate::regions::Region;
use crate::search::Searched;

/// What was found, and what was tried.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The trace, its hash and its fidelity.
    pub trace: coldframe_experiment::sim_result::Trace,
    /// Bytes of all pages that the trace touches: with this RAM no page is ever evicted.
    pub footprint: Bytes,
    /// The smallest RAM that meets the limits; `None` if no RAM does.
    pub best: Option<Candidate>,
    /// The next smaller RAM that was tried with the same configuration. It shows which limit binds.
    pub below: Option<Candidate>,
    /// The limits that bind, if no RAM meets them.
    pub binds: Vec<String>,
    /// The least slowdown for each RAM, as long as more RAM means less slowdown; RAM ascending.
    pub front: Vec<Candidate>,
    /// Everything that was tried on the whole trace: one list for each family, RAM ascending.
    pub curves: Vec<Vec<Candidate>>,
    /// The regions that cost most under the best configuration.
    pub regions: Vec<Region>,
    /// The best configuration's run, with its latencies, stages and energy; `None` for several tasks.
    pub run: Option<RunResult>,
    pub search: Searched,
    pub assumptions: Vec<String>,
    pub limits: Limits,
}
