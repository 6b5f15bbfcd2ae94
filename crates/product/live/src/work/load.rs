//! Loads: finds the place of a page's bytes, asks the device for them, waits, and checks that they are the right bytes.

use std::sync::atomic::Ordering;

use coldframe_core::Stage;

use super::Work;
use crate::stats::Stats;
use crate::swap::log::Location;
use crate::sys::{self, Errno};
use crate::task::{Load, LoadSource, Ring, Todo};
use crate::PAGE;

impl Work {
    /// Notes a load, and starts the read if the bytes are on the device. `together`: more loads follow at once.
    pub fn note_load(&self, todo: &mut Todo, mut load: Load, together: bool) {
        if !self.tasks().have_rings() {
            return todo.loads.push(load);
        }
        self.look_for(&mut load);
        let ring = self.ring(todo.task);
        if load.source == LoadSource::Device && ring.works() {
            let (device, own) = (self.log().device(), load.slot.map(|slot| self.log().place(slot)));
            if let Some((offset, true)) = own.filter(|_| !device.injects()) {
                ring.read(device.raw(), load.into, offset, todo.loads.len());
                load.source = LoadSource::Noted;
            }
        }
        todo.loads.push(load);
        if !together {
            self.start_loads(todo);
        }
    }

    /// Finds the place of the bytes, and copies them if they are in RAM.
    fn look_for(&self, load: &mut Load) {
        load.source = LoadSource::Device;
        match self.log().find(self.pages(), load.page, load.into) {
            Location::Zeros => load.source = LoadSource::Zeros,
            Location::Memory => load.source = LoadSource::Memory,
            Location::Device(slot) => load.slot = Some(slot),
        }
    }

    /// Submits the noted reads. If this thread may not submit, plain reads do the work.
    pub fn start_loads(&self, todo: &mut Todo) {
        if todo.loads.iter().all(|load| load.source != LoadSource::Noted) {
            return;
        }
        if todo.requested_at == 0 {
            todo.requested_at = sys::now();
        }
        let requested = if self.ring(todo.task).submit() { LoadSource::Requested } else { LoadSource::Device };
        for load in todo.loads.iter_mut().filter(|load| load.source == LoadSource::Noted) {
            load.source = requested;
            Stats::add(&self.stats.device_reads, u64::from(requested == LoadSource::Requested));
        }
        todo.laps.lap(Stage::LoadStopover);
    }

    #[allow(clippy::mut_from_ref)]
    fn ring(&self, task: usize) -> &mut Ring {
        // SAFETY: only the thread that has taken the task calls this, and holds the result for one call.
        unsafe { self.task(task).ring() }
    }

    pub fn finish_loads(&self, todo: &mut Todo, victims: u64) {
        if todo.loads.is_empty() {
            return;
        }
        let waited_for = todo.loads.iter().any(|load| load.source == LoadSource::Requested);
        let hand_over = || self.reader.hand_over_for_read(self.stats.device_read_ns.load(Ordering::Relaxed));
        if waited_for {
            hand_over();
        }
        let there = waited_for && self.reap(todo);
        for i in 0..todo.loads.len() {
            let mut load = todo.loads[i];
            if load.source == LoadSource::Unknown {
                self.look_for(&mut load);
            }
            if load.source == LoadSource::Device {
                hand_over();
                let before = sys::now();
                load.good = Some(self.read_now(&load));
                if todo.requested_at == 0 {
                    todo.requested_at = before;
                }
                self.stats.device_wait.record(sys::now() - before);
            }
            load.good = Some(self.verified(&mut load));
            todo.loads[i] = load;
        }
        if waited_for {
            Stats::add(&self.stats.evict_ns, victims);
            // The time of arrival is not known: a median read after the last request, with which `victims` begins.
            let read = self.stats.device_read_ns.load(Ordering::Relaxed) * todo.laps.weight();
            Stats::add(&self.stats.evict_exposed_ns, if there { victims.saturating_sub(read) } else { 0 });
        }
    }

    /// Takes the completions. Returns true if all of them had arrived already; then the work done in the meantime was
    /// not hidden.
    fn reap(&self, todo: &mut Todo) -> bool {
        let mut left =
            todo.loads.iter().filter(|load| load.source == LoadSource::Requested && load.good.is_none()).count();
        let mut there = true;
        while left > 0 {
            let ring = self.ring(todo.task);
            match ring.next() {
                Some((number, result)) => {
                    todo.loads[number].good = Some(result == PAGE as i32);
                    left -= 1;
                }
                None => {
                    there = false;
                    match !self.stats.are_awake() && sys::now() - todo.requested_at < self.poll_ns {
                        true => std::hint::spin_loop(),
                        false => ring.sleep(left),
                    }
                }
            }
        }
        self.stats.device_wait.record(sys::now() - todo.requested_at);
        there
    }

    fn read_now(&self, load: &Load) -> bool {
        let slot = load.slot.or_else(|| self.pages().slot(load.page)).expect("the page lies on a device");
        Stats::add(&self.stats.device_reads, 1);
        // SAFETY: the buffer is the load's.
        match unsafe { self.log().read(slot, load.into) } {
            Ok(()) => true,
            Err(error) => {
                self.last_error.store(error.raw_os_error(), Ordering::Relaxed);
                false
            }
        }
    }

    /// Whether the buffer holds the right bytes. A collection may have moved the page after the request, and its old
    /// slot may hold other bytes by now; then the page is looked up once more.
    fn verified(&self, load: &mut Load) -> bool {
        loop {
            match load.source {
                LoadSource::Zeros => {
                    // SAFETY: the buffer is the load's.
                    unsafe { std::ptr::write_bytes(load.into as *mut u8, 0, PAGE) };
                    Stats::add(&self.stats.cold_faults, 1);
                    return true;
                }
                LoadSource::Memory => {
                    Stats::add(&self.stats.log_hits, 1);
                    return true;
                }
                _ if self.is_whole(load) && self.check(load) => return true,
                _ => {}
            }
            if !load.slot.is_some_and(|slot| self.log().has_moved(load.page, slot, self.pages())) {
                Stats::add(&self.stats.failures, 1);
                return false;
            }
            self.look_for(load);
            if load.source == LoadSource::Device {
                load.good = Some(self.read_now(load));
            }
        }
    }

    /// Whether the device has returned all bytes. A read that the ring did not complete is repeated as a plain read.
    fn is_whole(&self, load: &Load) -> bool {
        let whole = load.good == Some(true) || (load.source == LoadSource::Requested && self.read_now(load));
        Stats::add(&self.stats.device_bytes_read, if whole { PAGE as u64 } else { 0 });
        whole
    }

    fn check(&self, load: &Load) -> bool {
        // SAFETY: the buffer is the load's.
        let good = unsafe { self.log().verify(self.pages(), load.page, load.into) };
        if !good {
            self.last_error.store(0, Ordering::Relaxed);
        }
        good
    }

    /// In a child that does not page: reads the bytes of a page from its slot. If they are not what they were, the
    /// process stops, as it would at a touch of the page.
    pub fn bring(&self, page: usize, slot: u64, address: usize) {
        // SAFETY: no other thread knows the page yet.
        let read = unsafe { self.log().read(slot, address) };
        self.last_error.store(read.err().map_or(0, Errno::raw_os_error), Ordering::Relaxed);
        // SAFETY: as above.
        if read.is_err() || !unsafe { self.log().verify(self.pages(), page, address) } {
            self.lost(page);
        }
    }
}
