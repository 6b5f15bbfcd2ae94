//! Keeps the processors from sleeping while a program faults fast: `Documentation/power/pm_qos_interface.rst`. A program
//! that waits for a page sleeps for some microseconds. A processor that halts in the meantime, above all a virtual one,
//! wakes late and has cold caches (`docs/accuracy-log.md`). Only root may do so, and the group of `coldframe doctor
//! --setup`.

use std::fs::File;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use coldframe_live::StatsFile;

/// The device: while it is open with a 0 in it, no processor sleeps.
pub(crate) const DEVICE: &str = "/dev/cpu_dma_latency";
/// More faults a second than this are fast. At 20 us each, waking processors would take a fiftieth of the time.
const FAST: f64 = 1000.0;
/// The processors sleep again if no fast fault came for this long. A guess: programs fault in bursts.
const LINGER: Duration = Duration::from_millis(200);

/// Keeps the processors awake until it is dropped; `None`: without the right.
pub(crate) fn hold() -> Option<File> {
    let mut latency = File::options().write(true).open(DEVICE).ok()?;
    latency.write_all(&0i32.to_ne_bytes()).ok().map(|()| latency)
}

/// Keeps them awake while the faults that are counted come fast.
pub(crate) struct Awake<'a>(&'a StatsFile, Mutex<State>);

struct State {
    wanted: bool,
    held: Option<File>,
    refused: bool,
    seconds: f64,
    /// The last look, and the faults until then.
    last: (Instant, u64),
    fast_at: Instant,
}

impl Awake<'_> {
    /// `wanted`: otherwise processors sleep as they like.
    pub(crate) fn new(stats: &StatsFile, wanted: bool) -> Awake<'_> {
        let now = Instant::now();
        let state = State { wanted, held: None, refused: false, seconds: 0.0, last: (now, 0), fast_at: now };
        Awake(stats, Mutex::new(state))
    }

    /// To be called some ten times a second or more.
    pub(crate) fn look(&self) {
        let (now, faults) = (Instant::now(), self.0.faults());
        let state = &mut *self.1.lock().unwrap_or_else(PoisonError::into_inner);
        let (took, came) = ((now - state.last.0).as_secs_f64(), faults.saturating_sub(state.last.1));
        state.last = (now, faults);
        if came as f64 > FAST * took {
            state.fast_at = now;
            if state.wanted && state.held.is_none() && !state.refused {
                state.held = hold();
                state.refused = state.held.is_none();
            }
        }
        if state.held.is_some() {
            state.seconds += took;
            if now - state.fast_at > LINGER {
                state.held = None;
            }
        }
        self.0.set_awake(state.held.is_some());
    }

    /// For how many seconds they were kept awake; `None`: they should have been, without the right.
    pub(crate) fn seconds(&self) -> Option<f64> {
        let state = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        (!state.refused).then_some(state.seconds)
    }
}
