//! A process and its descendants, to be watched. Those of a program that was started for it are stopped while their
//! bits are cleared and counted: so their times are exact, and a working set of a tenth of a millisecond can be seen. A
//! process that ran before is never stopped.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use coldframe_proc::{processor_ns, Process, References};

use crate::predict::bits::reader::{own_seconds, Reader};
use crate::run::halt::Halt;

/// A thread that sleeps for less than this may wake too late.
const SPIN: Duration = Duration::from_millis(1);

/// A process and its descendants.
pub(crate) struct Family {
    /// Those that live.
    processes: Vec<u32>,
    known: HashSet<u32>,
    threads: usize,
    /// Whether they may be stopped.
    stops: bool,
    halt: Halt,
    own_began: f64,
}

impl Family {
    /// Of this process. `stops`: it was started for this, and may be stopped now and then.
    pub fn new(root: u32, stops: bool) -> Family {
        Family {
            processes: vec![root],
            known: HashSet::from([root]),
            threads: 0,
            stops,
            halt: Halt::new(),
            own_began: own_seconds(),
        }
    }

    /// Whether some of them live.
    pub fn lives(&mut self) -> bool {
        self.processes.retain(|pid| Process::of(*pid).pages().is_some());
        !self.processes.is_empty()
    }

    /// Processes that were seen.
    pub fn processes_seen(&self) -> usize {
        self.known.len()
    }

    /// Threads of the process with the most.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Pages in RAM, and of these pages of files and shared memory, of a process that is alone.
    pub fn pages(&self) -> Option<(f64, f64)> {
        let [pid] = self.processes[..] else { return None };
        Process::of(pid).pages().map(|[_, resident, shared]| (resident as f64, shared as f64))
    }
}

impl Reader for Family {
    fn clock(&self) -> Duration {
        self.halt.clock()
    }

    /// Seconds that they stood still, or the processor time of this process.
    fn spent_seconds(&self) -> f64 {
        if self.stops {
            self.halt.stood().as_secs_f64()
        } else {
            own_seconds() - self.own_began
        }
    }

    fn sleep(&mut self, time: Duration) {
        let began = Instant::now();
        if !self.stops || time >= SPIN {
            std::thread::sleep(time);
        }
        while began.elapsed() < time {
            std::hint::spin_loop();
        }
    }

    fn processes(&mut self) -> Vec<u32> {
        let mut next = 0;
        while let Some(pid) = self.processes.get(next).copied() {
            next += 1;
            let process = Process::of(pid);
            let new = process.children().into_iter().filter(|child| self.known.insert(*child)).collect::<Vec<_>>();
            self.processes.extend(new);
            self.threads = self.threads.max(process.threads().len());
        }
        self.processes.clone()
    }

    fn smaps(&self, process: u32) -> Option<String> {
        Process::of(process).smaps().ok()
    }

    fn clear(&mut self, process: u32) -> bool {
        let done = Process::of(process).clear_references(References::All).is_ok();
        self.processes.retain(|pid| done || *pid != process);
        done
    }

    fn processor_ns(&self, process: u32) -> u64 {
        processor_ns(process)
    }

    fn stop(&mut self) {
        if self.stops {
            self.halt.stop(&self.processes);
        }
    }

    fn resume(&mut self) {
        self.halt.resume(&self.processes);
    }
}
