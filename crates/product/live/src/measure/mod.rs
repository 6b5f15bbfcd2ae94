//! What this machine allows, and how fast it is. The start of a pager and `coldframe doctor` ask; nothing here outlives
//! the question. Here device and page table are measured; `coldframe_recording::plan` says what follows from the
//! result, and the statistics print it.

pub mod trials;

pub use coldframe_recording::plan::Measured;

use crate::memory::space::Space;
use crate::swap::device::Device;
use crate::sys::{self, Uffd};
use crate::{LiveError, PAGE};

/// Pages written and then read at random places; 1 MiB.
const SAMPLE: usize = 256;
const READS: usize = 16;

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
        reason: format!("cannot be written and read: {}; give a folder with at least 16 MiB free", sys::words(error)),
    };
    let timed = sys::with_memory(bytes, |buffer| {
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
    });
    timed.map_err(|e| LiveError::os("memory to measure with", e))?.map_err(refuse)
}

fn step(uffd: &Uffd, space: &Space) -> Result<u64, sys::Errno> {
    // Both in the aside mapping, which is empty and accessible.
    space.open_aside(0)?;
    let (page, aside) = (space.aside(), space.aside() + PAGE);
    uffd.copy(page, space.zeros, false)?;
    let mut times = Vec::new();
    for _ in 0..16 {
        let before = sys::now();
        let moved = uffd.move_page(aside, page);
        times.push(sys::now() - before);
        if moved.is_err() || uffd.move_page(page, aside).is_err() {
            break;
        }
    }
    // SAFETY: no other code has these pages.
    unsafe {
        sys::advise(page..page + PAGE, libc::MADV_DONTNEED)?;
        sys::advise(aside..aside + PAGE, libc::MADV_DONTNEED)?;
    }
    Ok(median(times))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use crate::Options;

    #[test]
    fn what_the_statistics_say_is_not_measured_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = crate::StatsFile::create().unwrap();
        let start = |read_ns: u64| {
            let backing = folder.path().to_path_buf();
            let options = Options { max_memory: 1 << 24, backing, stats_fd: Some(file.fd()), ..Options::new(1 << 20) };
            let pager = crate::Pager::start(options).unwrap();
            let measured = pager.stats().device_read_ns;
            pager.inner().stats.device_read_ns.store(read_ns, Relaxed);
            measured
        };
        assert_ne!(start(12_345_678), 0);
        assert_eq!(start(0), 12_345_678);
        assert_ne!(start(0), 12_345_678);
    }
}
