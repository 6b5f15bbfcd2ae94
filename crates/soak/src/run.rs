//! Runs one setting. The process exists for this setting alone.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use coldframe_live::{Pager, Region, PAGE};
use fastrand::Rng;

use crate::area::Area;
use crate::forks::Forks;
use crate::own::Own;
use crate::setting::{Pattern, Setting};
use crate::wrong;

/// The stack of a worker: small, as programs may have them. A fault must not need more of it.
const STACK: usize = 128 << 10;

/// The areas that all threads touch.
#[derive(Clone, Copy)]
struct Areas {
    shared: Area,
    file: Option<Area>,
}

/// The last version that a thread wrote, for each page of each area.
struct Shadow {
    shared: Vec<u32>,
    file: Vec<u32>,
}

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
    let path = memory.join("region");
    let file = (setting.file > 0).then(|| file_region(&pager, &path, setting.file));
    let areas = Areas { shared: Area::new(&region, 1), file: file.as_ref().map(|region| Area::new(region, 2)) };
    let shadows = workers(setting, &pager, areas, file.as_ref(), Instant::now() + Duration::from_millis(millis));
    pager.check();
    file.iter().for_each(flush);
    drop((region, file));
    if let Some(area) = areas.file {
        check_file(&path, &area, &shadows);
    }
}

fn file_region(pager: &Pager, path: &Path, pages: usize) -> Region {
    let made = std::fs::File::create(path).and_then(|file| file.set_len((pages * PAGE) as u64));
    made.expect("a file for a region");
    pager.file(path).unwrap_or_else(|e| wrong(format_args!("no file region: {e}")))
}

fn workers(setting: &Setting, pager: &Pager, areas: Areas, file: Option<&Region>, end: Instant) -> Vec<Shadow> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let worker = |thread: usize| {
            let stop = &stop;
            let work = move || Worker::new(setting, pager, areas, file, thread).work(end, stop);
            std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).expect("a thread")
        };
        let all: Vec<_> = (0..setting.threads).map(worker).collect();
        all.into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| wrong(format_args!("a thread has failed"))))
            .collect()
    })
}

struct Worker<'a> {
    setting: &'a Setting,
    areas: Areas,
    region: Option<&'a Region>,
    thread: usize,
    random: Rng,
    shadow: Shadow,
    own: Own<'a>,
    forks: Option<Forks<'a>>,
    /// The position of the sweep.
    sweep: usize,
}

impl<'a> Worker<'a> {
    fn new(
        setting: &'a Setting,
        pager: &'a Pager,
        areas: Areas,
        region: Option<&'a Region>,
        thread: usize,
    ) -> Worker<'a> {
        let mut random = Rng::with_seed(setting.seed ^ (thread as u64 + 1) << 48);
        let shadow = Shadow { shared: vec![0; areas.shared.pages], file: vec![0; areas.file.map_or(0, |a| a.pages)] };
        let own = Own::new(pager, setting, thread, &mut random);
        // Two threads fork, so that two forks can meet.
        let forks = (thread < 2).then(|| Forks::new(pager, setting, areas.shared));
        Worker { setting, areas, region, thread, random, shadow, own, forks, sweep: 0 }
    }

    fn work(mut self, end: Instant, stop: &AtomicBool) -> Shadow {
        let mut steps = 0u32;
        while !stop.load(Ordering::Relaxed) {
            self.step();
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(64) {
                if let Some(forks) = &mut self.forks {
                    forks.step(self.thread, &self.shadow.shared, &mut self.random);
                }
                if Instant::now() > end {
                    stop.store(true, Ordering::Relaxed);
                }
            }
        }
        self.finish()
    }

    fn step(&mut self) {
        if self.random.u16(..1000) < self.setting.calls {
            match self.region {
                Some(region) if self.random.u8(..4) == 0 => flush(region),
                _ => self.own.call(&mut self.random),
            }
        }
        match (self.random.u8(..8), self.areas.file) {
            (0, Some(file)) => self.touch(file, true),
            (1, _) => self.own.touch(&mut self.random),
            _ => self.touch(self.areas.shared, false),
        }
    }

    fn touch(&mut self, area: Area, is_file: bool) {
        let page = self.page(area.pages);
        let last = if is_file { &mut self.shadow.file[page] } else { &mut self.shadow.shared[page] };
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

    fn finish(self) -> Shadow {
        let areas = [(Some(self.areas.shared), &self.shadow.shared), (self.areas.file, &self.shadow.file)];
        for (area, shadow) in areas {
            for (page, last) in shadow.iter().enumerate() {
                area.expect("a shadow of pages has an area").check_all(page, self.thread, *last);
            }
        }
        self.own.finish();
        if let Some(forks) = self.forks {
            forks.finish();
        }
        self.shadow
    }
}

/// The most attempts to flush. A device that fails may refuse pages, which then stay dirty; each attempt may refuse
/// other pages.
const TRIES: usize = 8;

fn flush(region: &Region) {
    if let Err(e) = until_taken(|| region.flush()) {
        wrong(format_args!("flush: {e}"));
    }
}

fn until_taken<E>(mut flush: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    (1..TRIES).fold(flush(), |last, _| last.or_else(|_| flush()))
}

fn check_file(path: &Path, area: &Area, shadows: &[Shadow]) {
    let bytes = std::fs::read(path).expect("the file of the region");
    for (page, bytes) in bytes.chunks(PAGE).enumerate() {
        for (thread, shadow) in shadows.iter().enumerate() {
            area.check_bytes(bytes, page, thread, shadow.file[page]);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_once_is_not_flushed_again() {
        for refused in 0..TRIES + 1 {
            let mut calls = 0;
            let end = until_taken(|| {
                calls += 1;
                // Accepted once; what was written meanwhile is refused again.
                if calls == refused + 1 {
                    Ok(())
                } else {
                    Err(())
                }
            });
            assert_eq!((end.is_ok(), calls), (refused < TRIES, TRIES.min(refused + 1)));
        }
    }
}
