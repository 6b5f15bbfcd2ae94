//! Virtual time of one lane: the processor's clock, and one device that works beside it.
//!
//! The device does one thing after the other. Overlap is never computed from a formula: a load that was started before the search
//! runs on while the search's price moves the processor's clock, and the handler then waits for whatever is left.

use std::collections::VecDeque;

use coldframe_core::{Event, Ps};

/// Times of the device for one page of the configured size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceTimes {
    /// LoadStopover.
    pub load: Ps,
    /// Programming a page after it has crossed the bus; `None` if no source gives it. Writes then take the device no time, and the
    /// result says so.
    pub program: Option<Ps>,
}

/// The device's queue of work in progress.
#[derive(Debug)]
pub struct Device {
    times: DeviceTimes,
    busy_until: Ps,
    ends: VecDeque<(Ps, Event)>,
}

impl Device {
    /// Idle.
    pub fn new(times: DeviceTimes) -> Device {
        Device { times, busy_until: Ps::ZERO, ends: VecDeque::with_capacity(64) }
    }

    fn start(&mut self, now: Ps, takes: Ps, end: Event) -> Ps {
        self.busy_until = self.busy_until.max(now) + takes;
        self.ends.push_back((self.busy_until, end));
        self.busy_until
    }

    /// Starts a load; returns when it will be done.
    pub fn load(&mut self, now: Ps, end: Event) -> Ps {
        self.start(now, self.times.load, end)
    }

    /// Starts to program a page; returns when it will be done.
    pub fn program(&mut self, now: Ps, end: Event) -> Ps {
        self.start(now, self.times.program.unwrap_or(Ps::ZERO), end)
    }

    /// Works for so long, after what it is at, and reports no end.
    pub fn occupy(&mut self, now: Ps, takes: Ps) {
        self.busy_until = self.busy_until.max(now) + takes;
    }

    /// The next end of something, which the processor would have to wait for.
    pub fn next_end(&mut self) -> Option<(Ps, Event)> {
        self.ends.pop_front()
    }

    /// The next end that has already come at `now`.
    pub fn ended(&mut self, now: Ps) -> Option<Event> {
        (self.ends.front()?.0 <= now).then(|| self.ends.pop_front().expect("there is one").1)
    }
}
