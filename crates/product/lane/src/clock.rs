//! The clock of a machine: the time so far, and which stage of a fault it went to.

use coldframe_core::{Ps, Stage};

/// The clock.
#[derive(Debug, Default)]
pub struct Clock {
    /// The time so far.
    pub now: Ps,
    /// Time of each stage so far.
    pub stages: [Ps; 6],
    /// Processor time hidden behind loads.
    pub hidden: Ps,
    /// The start of the loads in flight, and the end of the last of them.
    loading: Option<(Ps, Ps)>,
}

impl Clock {
    /// Adds the processor time of a stage. The part beside a load in flight counts as the load's.
    pub fn spend(&mut self, stage: Stage, time: Ps) {
        if time == Ps::ZERO {
            return;
        }
        let during_load = match self.loading {
            Some((_, end)) => end.saturating_sub(self.now).min(time),
            None => Ps::ZERO,
        };
        self.hidden += during_load;
        self.stages[stage as usize] += time - during_load;
        self.now += time;
    }

    /// Lets the processor wait until the device is done.
    pub fn wait_until(&mut self, end: Ps) {
        match self.loading {
            // From its start to its end, whatever the processor did meanwhile.
            Some((start, load_end)) if load_end == end => self.stages[Stage::LoadStopover as usize] += end - start,
            Some(_) => {}
            None => self.stages[Stage::LoadStopover as usize] += end.saturating_sub(self.now),
        }
        self.now = self.now.max(end);
    }

    /// A load begins now and ends then.
    pub fn load_begins(&mut self, end: Ps) {
        let start = self.loading.map_or(self.now, |(start, _)| start);
        self.loading = Some((start, end));
    }

    /// A load has ended; others may still be in flight.
    pub fn load_ended(&mut self) {
        self.loading = self.loading.filter(|(_, end)| *end > self.now);
    }
}
