//! The bus to the device, with one task or several: one transfer at a time, and two queues before it.
//!
//! ```text
//!   demand      [ loads that a task waits for, and the writes that make room for them ]         ─┐ first
//!   background  [ prefetches, which no task waits for, and the writes that make room for them ] ─┴─► one at a time
//! ```
//!
//! A transfer is never interrupted, so background work delays a demand load by at most the rest of one transfer. When
//! a task starts to wait for a background transfer, [`Bus::hurry`] makes it a demand transfer.

use std::collections::VecDeque;

use coldframe_core::{Event, Ps};

/// The queue of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// A task waits for the transfer.
    Demand,
    /// No task waits for it.
    Background,
}

#[derive(Clone, Copy, Debug)]
struct Transfer {
    takes: Ps,
    /// The end of the transfer; `None` for work within the device, which is not reported.
    end: Option<Event>,
}

/// The device and its queues.
#[derive(Debug)]
pub struct Bus {
    /// The transfer at work, and its end.
    current: Option<(Ps, Option<Event>)>,
    demand: VecDeque<Transfer>,
    background: VecDeque<Transfer>,
    done: VecDeque<(Ps, Event)>,
    /// When all demand transfers that are there will be done.
    demand_until: Ps,
    busy: Ps,
}

impl Default for Bus {
    /// An idle device, with room for the transfers that are under way together in most runs.
    fn default() -> Bus {
        const ROOM: usize = 64;
        Bus {
            current: None,
            demand: VecDeque::with_capacity(ROOM),
            background: VecDeque::new(),
            done: VecDeque::with_capacity(ROOM),
            demand_until: Ps::ZERO,
            busy: Ps::ZERO,
        }
    }
}

impl Bus {
    /// Takes a transfer. Its `end`, if it has one, is reported when the transfer is over. Returns when that will be.
    /// For a background transfer, this is the time without further demand.
    pub fn submit(&mut self, now: Ps, takes: Ps, end: Option<Event>, class: Class) -> Ps {
        self.advance(now);
        let transfer = Transfer { takes, end };
        let began = self.current.map_or(now, |(end, _)| end);
        let until = self.demand_until.max(began) + takes;
        match class {
            Class::Demand => {
                self.demand_until = until;
                self.demand.push_back(transfer);
            }
            Class::Background => self.background.push_back(transfer),
        }
        if self.current.is_none() {
            self.begin(now);
        }
        until
    }

    /// A task now waits for this end.
    pub fn hurry(&mut self, end: Event) {
        if let Some(at) = self.background.iter().position(|transfer| transfer.end == Some(end)) {
            self.demand.extend(self.background.remove(at));
        }
    }

    /// The next end that has come by `now`. It starts nothing and forgets nothing.
    pub fn ended(&mut self, now: Ps) -> Option<Event> {
        self.advance(now);
        self.done.pop_front().map(|(_, event)| event)
    }

    /// The next end, and its time, for a caller that waits until then. `None`: there is none.
    pub fn next_event(&mut self) -> Option<(Ps, Event)> {
        while self.done.is_empty() {
            self.advance(self.next_end()?);
        }
        self.done.pop_front()
    }

    /// The first end that nobody has taken: that of a transfer which is over, or else of the one at work; `None`: there
    /// is none.
    pub fn next_end(&self) -> Option<Ps> {
        let over = self.done.front().map(|(at, _)| *at);
        over.or(self.current.map(|(end, _)| end))
    }

    /// Time of all transfers so far.
    pub fn busy(&self) -> Ps {
        self.busy
    }

    fn begin(&mut self, now: Ps) {
        let next = self.demand.pop_front().or_else(|| self.background.pop_front());
        self.current = next.map(|transfer| (now + transfer.takes, transfer.end));
        self.busy += next.map_or(Ps::ZERO, |transfer| transfer.takes);
    }

    fn advance(&mut self, now: Ps) {
        while let Some((at, end)) = self.current.filter(|(at, _)| *at <= now) {
            self.done.extend(end.map(|end| (at, end)));
            self.begin(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use coldframe_core::Ticket;
    use proptest::prelude::*;

    use super::*;

    fn load(ticket: u32) -> Event {
        Event::Loaded { ticket: Ticket(ticket) }
    }

    #[test]
    fn demand_goes_before_background_and_a_transfer_is_not_broken_off() {
        let mut bus = Bus::default();
        bus.submit(Ps(0), Ps(10), Some(load(0)), Class::Background);
        bus.submit(Ps(1), Ps(10), Some(load(1)), Class::Background);
        bus.submit(Ps(2), Ps(10), Some(load(2)), Class::Demand);
        assert_eq!((bus.next_end(), bus.ended(Ps(9))), (Some(Ps(10)), None));
        let order: Vec<_> = std::iter::from_fn(|| bus.ended(Ps(30))).collect();
        assert_eq!(order, [load(0), load(2), load(1)]);
        assert_eq!((bus.next_end(), bus.busy()), (None, Ps(30)));
    }

    /// Who waits until the next end must not sleep past an end that came while other work took time.
    #[test]
    fn an_end_that_nobody_has_taken_is_the_next_end() {
        let mut bus = Bus::default();
        bus.submit(Ps(0), Ps(10), Some(load(0)), Class::Demand);
        bus.submit(Ps(12), Ps(10), Some(load(1)), Class::Background);
        assert_eq!(bus.next_end(), Some(Ps(10)));
        assert_eq!((bus.ended(Ps(12)), bus.next_end()), (Some(load(0)), Some(Ps(22))));
    }

    #[test]
    fn a_transfer_that_a_task_comes_to_wait_for_is_demand_from_then_on() {
        let mut bus = Bus::default();
        for i in 0..4 {
            bus.submit(Ps(0), Ps(10), Some(load(i)), Class::Background);
        }
        bus.hurry(load(3));
        let order: Vec<_> = std::iter::from_fn(|| bus.ended(Ps(100))).collect();
        assert_eq!(order, [load(0), load(3), load(1), load(2)]);
    }

    proptest! {
        /// The same demand with and without background: no end comes later by more than one background transfer.
        #[test]
        fn background_delays_a_demand_load_by_one_transfer_at_most(
            work in prop::collection::vec((0..50u64, 1..20u64, any::<bool>()), 1..60),
        ) {
            let ends = |with_background: bool| {
                let (mut bus, mut now, mut ends) = (Bus::default(), Ps(0), Vec::new());
                for (i, (later, takes, demand)) in work.iter().enumerate() {
                    // Demand waits for its end, as a task does, so that delays of several transfers do not add up.
                    now += Ps(*later);
                    let class = if *demand { Class::Demand } else { Class::Background };
                    if *demand || with_background {
                        bus.submit(now, Ps(*takes), Some(load(i as u32)), class);
                    }
                    if *demand {
                        let start = now;
                        while !std::iter::from_fn(|| bus.ended(now)).any(|end| end == load(i as u32)) {
                            now = bus.next_end().unwrap();
                        }
                        ends.push(now - start);
                        now = start + Ps(2_000);
                    }
                }
                ends
            };
            let longest = work.iter().filter(|(_, _, demand)| !demand).map(|(_, takes, _)| *takes).max().unwrap_or(0);
            for (with, without) in ends(true).into_iter().zip(ends(false)) {
                prop_assert!(with.0 <= without.0 + longest, "{with:?} {without:?} {longest}");
            }
        }

        /// For any number of transfers of either class: from the time when a task waits for a transfer, no background
        /// transfer begins before that transfer's end.
        #[test]
        fn no_background_transfer_begins_while_somebody_waits(
            work in prop::collection::vec((0..50u64, 1..20u64, 0..3u8), 1..60),
        ) {
            let (mut bus, mut now, mut waited, mut begun) = (Bus::default(), Ps(0), Vec::new(), Vec::new());
            let mut see = |bus: &Bus| {
                let current = bus.current.map(|(at, end)| (at, end.unwrap()));
                if let Some(current) = current.filter(|current| begun.last() != Some(current)) {
                    begun.push(current);
                }
            };
            for (i, (later, takes, how)) in (0u32..).zip(&work) {
                let until = now + Ps(*later);
                while let Some(at) = bus.next_end().filter(|at| *at <= until) {
                    bus.ended(at);
                    see(&bus);
                }
                now = until;
                // Demand; background; background that a task waits for at once.
                bus.submit(now, Ps(*takes), Some(load(i)), if *how == 0 { Class::Demand } else { Class::Background });
                if *how == 2 {
                    bus.hurry(load(i));
                }
                if *how != 1 {
                    waited.push((now, load(i)));
                }
                see(&bus);
            }
            while let Some(at) = bus.next_end() {
                bus.ended(at);
                see(&bus);
            }
            let takes = |end: Event| work[(0..).position(|i| load(i) == end).unwrap()].1;
            for (from, end) in &waited {
                let until = begun.iter().find(|(_, begun)| begun == end).unwrap().0;
                let between = begun.iter().filter(|(at, other)| {
                    let began = *at - Ps(takes(*other));
                    *from < began && began < until && !waited.iter().any(|(_, waited)| waited == other)
                });
                prop_assert_eq!(between.count(), 0, "{:?} waited for since {:?}", end, from);
            }
        }
    }
}
