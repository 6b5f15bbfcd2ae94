//! The result of several tasks, under a scheduler or in the foreground in turn.

use coldframe_core::Ps;
use coldframe_drivers::tasks::{ForegroundResult, TaskResult, TasksResult};
use coldframe_lane::Latency;
use coldframe_sheet::flash;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sections::is_zero;
use super::{Prefetched, Sections, SimResult, SwapArea, Terms, Trace};
use crate::tasks::{share, OnPhone, TasksOutcome};

section! {
    /// The findings for several tasks.
    Tasks(outcome: &TasksOutcome, r: &TasksResult) {
        /// Counts.
        counts: TasksCounts = TasksCounts::new(r);
        /// Pages that were loaded ahead.
        prefetched: AllPrefetched = AllPrefetched::new(r);
        /// Predictions of the next task.
        predictions: Predictions = Predictions::new(r);
        /// How often the processor switched to another task.
        switches: u64 = r.switches;
        /// Page references of all tasks.
        references: u64 = r.references;
        /// Times, in picoseconds.
        time_ps: TasksTimes = TasksTimes::new(r);
        /// Task by task.
        tasks: Vec<Task> =
            outcome.names.iter().zip(&r.tasks).map(|((id, name), task)| Task::new(*id, name, task, r.time)).collect();
        /// The swap area, if it is a log.
        #[serde(skip_serializing_if = "Option::is_none")]
        swap: Option<SwapArea> = r.swap.as_ref().map(SwapArea::new);
        /// What only tasks in the foreground have.
        #[serde(skip_serializing_if = "Option::is_none")]
        foreground: Option<Foreground> = outcome
            .on_phone
            .as_ref()
            .zip(r.foreground.as_ref())
            .map(|(phone, turns)| Foreground::new(outcome, phone, turns));
    }
}

section! {
    /// The findings that only tasks in the foreground have.
    Foreground(outcome: &TasksOutcome, phone: &OnPhone, turns: &ForegroundResult) {
        /// Counts.
        counts: ForegroundCounts = ForegroundCounts::new(&outcome.result);
        /// Times, in picoseconds.
        time_ps: ForegroundTimes = ForegroundTimes::new(turns);
        /// Each change of the foreground.
        switches: Vec<Switch> = turns.switches.iter().map(|one| Switch::new(outcome.names[one.task].0, one)).collect();
        /// Energy of the swap area.
        energy_pj: AreaEnergy = AreaEnergy::new(phone);
        /// Writes to its slots.
        slot_writes: SlotWrites = SlotWrites::new(&phone.slot_writes);
        /// Years until its most written slot is worn out; `None`: nothing is written, or nothing wears out.
        life_years: Option<f64> = phone.life_years;
    }
}

section! {
    /// Counts of events, besides those of all tasks.
    #[derive(Copy)]
    ForegroundCounts(r: &TasksResult) {
        /// Faults on pages that had to be loaded.
        true_faults: u64 = r.counts.true_faults;
        /// First writes to pages mapped read-only.
        write_faults: u64 = r.counts.write_faults;
        /// Pages copied from slots because they were read there often.
        read_often: u64 = r.counts.read_often;
        /// Pages read from the card.
        card_reads: u64 = r.device_reads;
        /// Pages written to the card.
        card_writes: u64 = r.device_writes;
    }
}

section! {
    /// Times, in picoseconds.
    #[derive(Copy)]
    ForegroundTimes(turns: &ForegroundResult) {
        /// In faults.
        paging: u64 = turns.paging.0;
        /// Mean wait of a task that comes back to the foreground.
        switch_back_mean: u64 = turns.switch_delay(None).0;
        /// Extra time of references to slots, compared with references to DRAM.
        slot_reading: u64 = turns.slot_reading.0;
        /// For copies that no task waited for.
        background_copies: u64 = turns.background_copies.0;
        /// When the last reference was answered.
        end: u64 = turns.end.0;
    }
}

section! {
    /// A task comes to the foreground.
    #[derive(Copy)]
    Switch(number: u32, s: &coldframe_drivers::tasks::Switch) {
        /// The task.
        task: u32 = number;
        /// Whether it had to be started.
        cold: bool = s.cold;
        /// Its wait, in picoseconds.
        delay_ps: u64 = s.delay.0;
    }
}

section! {
    /// Energy of a swap area, in picojoules.
    AreaEnergy(phone: &OnPhone) {
        /// By DR.Swap's equations.
        terms: Terms = phone.energy.terms().into_iter().map(|(name, pj)| (name.into(), pj.0)).collect();
        /// Their sum.
        total: u64 = phone.energy.total().0;
        /// Energy of reading pages in their slots, which the equations leave out.
        reads_in_slots: u64 = phone.in_slots.0;
    }
}

section! {
    /// Writes to the slots of an area.
    #[derive(Copy)]
    SlotWrites(wear: &flash::Wear) {
        /// Mean.
        mean: f64 = wear.mean;
        /// To the most written.
        max: u32 = wear.max;
    }
}

section! {
    /// Counts of events of all tasks together. From `direct_reads` on, zeros are left out.
    #[derive(Copy)]
    TasksCounts(r: &TasksResult) {
        /// Major faults.
        major_faults: u64 = r.major();
        /// Minor faults.
        minor_faults: u64 = r.faults() - r.major();
        /// Of those, on pages that were on their way.
        in_flight_faults: u64 = r.tasks.iter().map(|task| task.in_flight).sum();
        /// Faults on pages never touched before.
        cold_faults: u64 = r.counts.cold_faults;
        /// Pages that left a frame.
        evictions: u64 = r.counts.evictions;
        /// Of those, pages that had to be written.
        dirty_evictions: u64 = r.counts.dirty_evictions;
        /// Swapped pages mapped in their slots.
        #[serde(default, skip_serializing_if = "is_zero")]
        direct_reads: u64 = r.counts.direct_reads;
        /// References answered there.
        #[serde(default, skip_serializing_if = "is_zero")]
        reads_in_slots: u64 = r.reads_in_slots;
        /// References answered in the device's buffers.
        #[serde(default, skip_serializing_if = "is_zero")]
        xip_reads: u64 = r.xip_reads;
        /// Pages copied from slots.
        #[serde(default, skip_serializing_if = "is_zero")]
        swap_ins: u64 = r.counts.swap_ins;
        /// Pages copied to slots.
        #[serde(default, skip_serializing_if = "is_zero")]
        swap_outs: u64 = r.counts.swap_outs;
        /// Tasks ended because memory was short.
        #[serde(default, skip_serializing_if = "is_zero")]
        kills: u64 = r.counts.kills;
        /// Pages without a slot, when no task could be ended.
        #[serde(default, skip_serializing_if = "is_zero")]
        homeless: u64 = r.counts.homeless;
        /// Transfers that the device refused.
        #[serde(default, skip_serializing_if = "is_zero")]
        failures: u64 = r.counts.failures;
        /// Tasks stopped because their page was lost.
        #[serde(default, skip_serializing_if = "is_zero")]
        halts: u64 = r.counts.halts;
    }
}

section! {
    /// Pages of all tasks that were loaded ahead.
    #[derive(Copy)]
    AllPrefetched(r: &TasksResult) {
        /// Outcome of the prefetches.
        #[serde(flatten)]
        pages: Prefetched = Prefetched::new(r.prefetched());
        /// Prefetch hints for pages in RAM, which became recent.
        made_recent: u64 = r.counts.prefetches_present;
    }
}

section! {
    /// How often the scheduler's prediction of the next task was right.
    #[derive(Copy)]
    Predictions(r: &TasksResult) {
        /// Right predictions.
        right: u64 = r.prefetch.predicted;
        /// Wrong predictions: another task ran.
        wrong: u64 = r.prefetch.mispredicted;
    }
}

section! {
    /// Times of a run of tasks, in picoseconds.
    #[derive(Copy)]
    TasksTimes(r: &TasksResult) {
        /// Until the last task's end.
        total: u64 = r.time.0;
        /// While no task can run.
        idle: u64 = r.idle.0;
        /// While the device works.
        device_busy: u64 = r.device_busy.0;
    }
}

section! {
    /// One of the tasks.
    Task(id: u32, name: &str, task: &TaskResult, time: Ps) {
        /// Its number in the trace.
        task: u32 = id;
        /// Its name there.
        name: String = name.into();
        /// Major faults.
        major_faults: u64 = task.major;
        /// Minor faults.
        minor_faults: u64 = task.minor;
        /// Of those, on pages that were on their way.
        in_flight_faults: u64 = task.in_flight;
        /// Its pages that were loaded ahead.
        prefetched: Prefetched = Prefetched::new(task.prefetched);
        /// Picoseconds on its references.
        useful_ps: u64 = task.useful.0;
        /// The time of its end, in picoseconds; `None`: it runs for ever.
        ended_ps: Option<u64> = task.ended.map(|at| at.0);
        /// Percent of the time until its end that it spent on its references.
        share_percent: f64 = share(task, time);
        /// Waits for pages.
        fault_wait_ps: Waits = Waits::new(&task.stall);
        /// Waits between waking up and running.
        ready_wait_ps: Waits = Waits::new(&task.wait);
    }
}

section! {
    /// Waits in picoseconds; `None` if there was none.
    #[derive(Copy)]
    Waits(l: &Latency) {
        /// How many.
        count: u64 = l.count();
        /// Mean.
        mean: Option<u64> = l.mean().map(|time| time.0);
        /// 99th percentile.
        p99: Option<u64> = l.quantile(0.99).map(|time| time.0);
        /// Longest.
        max: u64 = l.max().0;
    }
}

impl From<&TasksOutcome> for SimResult {
    fn from(outcome: &TasksOutcome) -> SimResult {
        let trace = Trace { pages: Some(outcome.pages), ..outcome.trace.clone() };
        let sections = Tasks::new(outcome, &outcome.result);
        SimResult::new(trace, outcome.config.clone(), Sections::Tasks(Box::new(sections)))
    }
}
