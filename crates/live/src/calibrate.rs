//! Measures the device and the page table of this machine when a pager starts. The result decides how to wait for the
//! device, the budget of PA-Clock and the length of an invalid list. The statistics print it.

use std::sync::atomic::Ordering::Relaxed;

use crate::device::Device;
use crate::space::Space;
use crate::stats::Stats;
use crate::sys::{self, Uffd};
use crate::{LiveError, Options, Wait, PAGE};

/// Pages written and then read at random places; 1 MiB.
const SAMPLE: usize = 256;
/// Reads that are timed.
const READS: usize = 48;
/// A device this fast is read synchronously: a ring costs more than it hides. Measured: with a device of 5 us a fault
/// takes 13 us by reads and 19 us by the ring. At 15 us both take the same time, and a stream with read-ahead is
/// three times as fast through the ring.
const FAST_NS: u64 = 8_000;
/// A false fault in steps of a walk: the signal and the move back (4.2 us if a move takes 1.0 us).
const FALSE_FAULT_STEPS: u64 = 4;

/// More victims at a time save no time (live notes, section 10).
pub const BATCH_MAX: usize = 32;

/// Medians in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// A read of one page.
    pub read_ns: u64,
    /// One step of a walk that clears an emulated reference bit: the page is taken out of the page table.
    pub step_ns: u64,
}

/// The measurements of an earlier program that keeps the same statistics: this process was that program, or was
/// started by it. Otherwise a shell's commands would measure again, each time.
pub fn known(stats: &Stats) -> Option<Measured> {
    let (read_ns, step_ns) = (stats.device_read_ns.load(Relaxed), stats.walk_step_ns.load(Relaxed));
    (read_ns > 0 && step_ns > 0).then_some(Measured { read_ns, step_ns })
}

/// Measures device and page table. Leaves nothing behind in `space`.
pub fn measure(device: &Device, uffd: &Uffd, space: &Space) -> Result<Measured, LiveError> {
    Ok(Measured { read_ns: read(device)?, step_ns: step(uffd, space).unwrap_or(1000) })
}

fn median(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    times[times.len() / 2]
}

fn read(device: &Device) -> Result<u64, LiveError> {
    let bytes = SAMPLE * PAGE;
    let refuse = |error: sys::Errno| LiveError::Backing {
        path: device.path().to_path_buf(),
        reason: format!("cannot be written and read: {}; give a folder with at least 16 MiB free", error.io()),
    };
    let buffer = sys::map_memory(bytes, None).map_err(|e| LiveError::os("memory to measure with", e))?;
    let timed = (|| {
        device.reserve(0, bytes as u64)?;
        // SAFETY: the buffer is ours and has this many bytes.
        unsafe { std::ptr::write_bytes(buffer as *mut u8, 0x5a, bytes) };
        // SAFETY: as above.
        unsafe { device.write(buffer, bytes, 0)? };
        let mut times = Vec::with_capacity(READS);
        for i in 0..READS {
            let place = (i * 97 % SAMPLE * PAGE) as u64;
            let before = sys::now();
            // SAFETY: as above.
            unsafe { device.read(buffer, place)? };
            times.push(sys::now() - before);
        }
        Ok(median(times))
    })();
    // SAFETY: no other thread knows it.
    unsafe { sys::unmap_memory(buffer, bytes) };
    timed.map_err(refuse)
}

fn step(uffd: &Uffd, space: &Space) -> Result<u64, sys::Errno> {
    // Both in the holding area, which is empty and accessible.
    let (page, holding) = (space.holding(), space.holding() + PAGE);
    uffd.copy(page, space.zeros(), false)?;
    let mut times = Vec::new();
    for _ in 0..16 {
        let before = sys::now();
        let moved = uffd.move_page(holding, page);
        times.push(sys::now() - before);
        if moved.is_err() || uffd.move_page(page, holding).is_err() {
            break;
        }
    }
    // SAFETY: no other code has these pages.
    unsafe {
        sys::advise(page..page + PAGE, libc::MADV_DONTNEED)?;
        sys::advise(holding..holding + PAGE, libc::MADV_DONTNEED)?;
    }
    Ok(median(times))
}

impl Measured {
    /// How to wait, if the options do not say.
    pub fn wait(&self, asked: Wait) -> Wait {
        match asked {
            Wait::Auto if self.read_ns < FAST_NS => Wait::Read,
            Wait::Auto => Wait::Brief,
            given => given,
        }
    }

    /// Victims that are evicted together: as many as can be taken out during a read, at about 2 us each (measured: 8
    /// victims hide 93 % of the work behind a read of 17 us, 32 hide 79 %); 32 if nothing overlaps.
    pub fn evict_batch(&self, wait: Wait) -> usize {
        match wait {
            Wait::Read => BATCH_MAX,
            _ => (self.read_ns / 2_000).clamp(8, BATCH_MAX as u64) as usize,
        }
    }

    /// The policy, with the parameters that depend on this machine filled in.
    pub fn policy(&self, options: &Options) -> String {
        let asked = options.policy.as_deref().unwrap_or("multi-queue");
        let missing = |parameter: &str| !asked.contains(&format!("{parameter}="));
        let joined = |parameter: String| {
            let joint = if asked.contains(':') { ',' } else { ':' };
            format!("{asked}{joint}{parameter}")
        };
        match asked.split(':').next().unwrap_or_default() {
            "pa-clock" if missing("budget") => joined(format!("budget={}", self.budget())),
            "fifo-sc" | "pa-fifo-sc" if missing("valid") => joined(format!("valid={}%", 100 - self.invalid_percent())),
            _ => asked.to_string(),
        }
    }

    /// Steps of a walk that a read hides: SWL section 3.2, equation 2.
    pub fn budget(&self) -> u64 {
        (self.read_ns / self.step_ns.max(1)).max(1)
    }

    /// Percentage of frames to keep unmapped. A false fault pays if it saves more load time than it costs. With half
    /// the frames unmapped, FIFO loads 12 % fewer pages of a Zipf string and has 0.6 false faults for each load (live
    /// notes: 18.5 % to 16.3 % of accesses for 9.7 %). So this pays if a read takes at least about 5 false faults;
    /// with an eighth of the frames unmapped, at least about 2.
    pub fn invalid_percent(&self) -> u64 {
        match self.read_ns / (self.step_ns.max(1) * FALSE_FAULT_STEPS) {
            0..=1 => 1,
            2..=4 => 12,
            5..=9 => 25,
            _ => 50,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_statistics_say_is_not_measured_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = crate::StatsFile::create().unwrap();
        let start = |read_ns: u64| {
            let backing = folder.path().to_path_buf();
            let options = Options { max_memory: 1 << 24, backing, stats_fd: Some(file.fd()), ..Options::new(1 << 20) };
            let pager = crate::Pager::start(options).unwrap();
            let measured = pager.stats().device_read_ns;
            pager.inner.stats().device_read_ns.store(read_ns, Relaxed);
            measured
        };
        assert_ne!(start(12_345_678), 0);
        assert_eq!(start(0), 12_345_678);
        assert_ne!(start(0), 12_345_678);
    }

    #[test]
    fn a_slow_device_gives_a_long_walk_and_a_long_invalid_list() {
        let (disk, ram) = (Measured { read_ns: 70_000, step_ns: 1_000 }, Measured { read_ns: 4_000, step_ns: 1_000 });
        let with = |policy: &str| Options { policy: Some(policy.to_string()), ..Options::new(1 << 20) };
        assert_eq!(disk.policy(&with("pa-clock")), "pa-clock:budget=70");
        assert_eq!(disk.policy(&with("pa-clock:insert-bit=set")), "pa-clock:insert-bit=set,budget=70");
        assert_eq!(disk.policy(&with("pa-clock:budget=3")), "pa-clock:budget=3");
        assert_eq!(disk.policy(&with("fifo-sc")), "fifo-sc:valid=50%");
        assert_eq!(ram.policy(&with("pa-fifo-sc")), "pa-fifo-sc:valid=99%");
        assert_eq!(ram.policy(&with("clock")), "clock");
        assert_eq!((disk.wait(Wait::Auto), ram.wait(Wait::Auto)), (Wait::Brief, Wait::Read));
        assert_eq!(ram.wait(Wait::Sleep), Wait::Sleep);
        assert_eq!(
            (disk.evict_batch(Wait::Brief), ram.evict_batch(Wait::Brief), ram.evict_batch(Wait::Read)),
            (32, 8, 32)
        );
    }
}
