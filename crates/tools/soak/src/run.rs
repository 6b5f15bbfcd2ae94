//! Runs one setting. The process exists for this setting alone.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use coldframe_live::{Pager, PAGE};
use fastrand::Rng;

use crate::area::Area;
use crate::forks::Forks;
use crate::own::Own;
use crate::setting::{Pattern, Setting};
use crate::wrong;

/// The stack of a worker: small, as programs may have them. A fault must not need more of it.
const STACK: usize = 128 << 10;

/// Runs a setting for this long. Ends the process if anything is wrong.
pub fn run(setting: &Setting, millis: u64, memory: &Path, disk: &Path, stats_fd: Option<i32>) {
    std::panic::set_hook(Box::new(|info| wrong(format_args!("{info}"))));
    if setting.one_cpu {
        stay_on_one_processor();
    }
    let options = setting.options(memory, disk, stats_fd);
    let start = if setting.program { Pager::start_for_program } else { Pager::start };
    let pager = start(options).unwrap_or_else(|e| wrong(format_args!("the pager does not start: {e}")));
    let region = pager.anonymous(setting.shared * PAGE).unwrap_or_else(|e| wrong(format_args!("no region: {e}")));
    let area = Area::new(&region);
    workers(setting, &pager, area, Instant::now() + Duration::from_millis(millis));
    pager.check();
}

fn workers(setting: &Setting, pager: &Pager, area: Area, end: Instant) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let worker = |thread: usize| {
            let stop = &stop;
            let work = move || Worker::new(setting, pager, area, thread).work(end, stop);
            std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).expect("a thread")
        };
        let all: Vec<_> = (0..setting.threads).map(worker).collect();
        for thread in all {
            thread.join().unwrap_or_else(|_| wrong(format_args!("a thread has failed")));
        }
    });
}

struct Worker<'a> {
    setting: &'a Setting,
    area: Area,
    thread: usize,
    random: Rng,
    /// The last version that this thread wrote, for each page of the area.
    shadow: Vec<u32>,
    own: Own<'a>,
    forks: Option<Forks<'a>>,
    sweep: usize,
}

impl<'a> Worker<'a> {
    fn new(setting: &'a Setting, pager: &'a Pager, area: Area, thread: usize) -> Worker<'a> {
        let mut random = Rng::with_seed(setting.seed ^ (thread as u64 + 1) << 48);
        let own = Own::new(pager, setting, thread, &mut random);
        // Two threads fork, so that two forks can meet.
        let forks = (thread < 2).then(|| Forks::new(pager, setting, area));
        Worker { setting, area, thread, random, shadow: vec![0; area.pages], own, forks, sweep: 0 }
    }

    fn work(mut self, end: Instant, stop: &AtomicBool) {
        let mut steps = 0u32;
        while !stop.load(Ordering::Relaxed) {
            self.step();
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(64) {
                if let Some(forks) = &mut self.forks {
                    forks.step(self.thread, &self.shadow, &mut self.random);
                }
                if Instant::now() > end {
                    stop.store(true, Ordering::Relaxed);
                }
            }
        }
        self.finish();
    }

    fn step(&mut self) {
        if self.random.u16(..1000) < self.setting.calls {
            self.own.call(&mut self.random);
        }
        match self.random.u8(..8) {
            0 => self.own.touch(&mut self.random),
            _ => self.touch(),
        }
    }

    fn touch(&mut self) {
        let area = self.area;
        let page = self.page(area.pages);
        let last = &mut self.shadow[page];
        let k = self.random.usize(..Area::words());
        let write = self.random.u8(..100) < self.setting.writes;
        // A write to an absent page is a fault of its own kind, so some writes come without a read before.
        if write && self.random.bool() {
            area.write(page, self.thread, last);
        }
        area.check(page, self.thread, *last, k);
        if write {
            area.write(page, self.thread, last);
        }
        let other = self.random.usize(..self.setting.threads);
        area.look(page, other, k);
    }

    fn page(&mut self, pages: usize) -> usize {
        let pattern = match self.setting.pattern {
            Pattern::Mixed => [Pattern::Uniform, Pattern::Hot, Pattern::Sweep][self.sweep / 512 % 3],
            pattern => pattern,
        };
        self.sweep += 1;
        match pattern {
            Pattern::Sweep => self.sweep % pages,
            Pattern::Hot if self.random.bool() => self.random.usize(..pages.div_ceil(16)),
            _ => self.random.usize(..pages),
        }
    }

    fn finish(self) {
        for (page, last) in self.shadow.iter().enumerate() {
            self.area.check_all(page, self.thread, *last);
        }
        self.own.finish();
        if let Some(forks) = self.forks {
            forks.finish();
        }
    }
}

fn stay_on_one_processor() {
    // SAFETY: the set lives through the calls, and zero is an empty one.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(libc::sched_getcpu().max(0) as usize, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set);
    }
}
