//! Keeps the processors from sleeping while a program faults fast: `Documentation/power/pm_qos_interface.rst`. A
//! program that waits for a page sleeps for some microseconds. A processor that halts in the meantime, above all a
//! virtual one, wakes late and has cold caches: on an idle virtual machine a first touch took 54 us, and 8 us while
//! other programs kept the processors awake (AMD EPYC, KVM, 2026-11-26). Only root may do so, and the group of
//! `coldframe doctor --setup`.

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
    rate: FaultPace,
}

/// How fast faults come.
struct FaultPace {
    /// The last look, and the faults until then.
    last: (Instant, u64),
    fast_at: Option<Instant>,
}

impl FaultPace {
    /// Whether they come fast at this look, or have lately.
    fn is_fast(&mut self, now: Instant, faults: u64) -> bool {
        let came = faults.saturating_sub(self.last.1);
        if came as f64 > FAST * (now - self.last.0).as_secs_f64() {
            self.fast_at = Some(now);
        }
        self.last = (now, faults);
        self.fast_at.is_some_and(|last| now - last <= LINGER)
    }
}

impl Awake<'_> {
    /// `wanted`: otherwise processors sleep as they like.
    pub(crate) fn new(stats: &StatsFile, wanted: bool) -> Awake<'_> {
        let rate = FaultPace { last: (Instant::now(), 0), fast_at: None };
        Awake(stats, Mutex::new(State { wanted, held: None, refused: false, seconds: 0.0, rate }))
    }

    /// To be called some ten times a second or more.
    pub(crate) fn look(&self) {
        let (now, faults) = (Instant::now(), self.0.faults());
        let state = &mut *self.1.lock().unwrap_or_else(PoisonError::into_inner);
        if state.held.is_some() {
            state.seconds += (now - state.rate.last.0).as_secs_f64();
        }
        if !state.rate.is_fast(now, faults) {
            state.held = None;
        } else if state.wanted && state.held.is_none() && !state.refused {
            state.held = hold();
            state.refused = state.held.is_none();
        }
        self.0.set_awake(state.held.is_some());
    }

    /// For how many seconds they were kept awake; `None`: they should have been, without the right.
    pub(crate) fn seconds(&self) -> Option<f64> {
        let state = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        (!state.refused).then_some(state.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_faults_is_fast_and_so_is_a_short_pause_after_it() {
        let start = Instant::now();
        let mut rate = FaultPace { last: (start, 0), fast_at: None };
        let mut is_fast = |ms, faults| rate.is_fast(start + Duration::from_millis(ms), faults);
        assert!(!is_fast(20, 20), "1,000 a second");
        assert!(is_fast(40, 41));
        assert!(is_fast(240, 41));
        assert!(!is_fast(260, 41));
    }
}
