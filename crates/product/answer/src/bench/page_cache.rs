//! A program's time with less page cache for the files that it maps, measured by the kernel in a memory group whose limit is
//! for all memory.
//!
//! The kernel charges a page of a file to the group that reads it first. So the files leave the cache before each run, which
//! reads them from the disk again; the first run has room for all of them, and the others are compared with it. Pages that
//! another program maps cannot leave, and no limit on this one reaches them: then the first run takes much less than it may.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{fadvise, Advice};

use crate::bench::runner::{kernel_swap, Way};
use crate::bench::trials::Trials;
use crate::predict::common::Common;
use crate::predict::curve::round;
use crate::run::by_kernel::ready_here;
use crate::run::pager::Pager;
use crate::run::program::is_root;
use crate::run::runs::Measured;

/// Parts of what is referenced that runs have room for; the first one for all that is in RAM, too.
const PARTS: [f64; 3] = [1.0, 0.75, 0.5];
/// What the kernel takes for tables and for files that it reads ahead: a part of the files, and so many bytes.
const AHEAD: f64 = 1.0 / 16.0;
const FIRST: f64 = (4 << 20) as f64;
/// The times of so many runs, or seconds, if these are more, are left for these runs; as much is first for those with less heap,
/// unless the files are larger than the heap.
const RUNS: f64 = 8.0;
const SECONDS: f64 = 9.0;

/// When all other runs must end.
pub(crate) fn others_until(trials: &Trials, common: &Common) -> Instant {
    let files = common
        .not_paged
        .as_ref()
        .filter(|all| all.are_run(common.in_all(common.needed_bytes)))
        .map_or(0, |all| all.referenced_bytes);
    let (left, runs) = (trials.left().as_secs_f64(), (RUNS * trials.limit).max(SECONDS));
    let spare = if files > common.managed_bytes { left } else { (left - runs).max(0.0) };
    trials.until - Duration::from_secs_f64(if files > 0 { spare.min(runs) } else { 0.0 })
}

/// The runs, and why there are no more of them.
pub(crate) fn less(trials: &mut Trials, common: &Common, folder: &Path) -> (Vec<Measured>, Option<String>) {
    let mut runs = Vec::new();
    let Some(all) = common.not_paged.as_ref().filter(|all| all.are_run(common.in_all(common.needed_bytes))) else {
        return (runs, None);
    };
    let Some(swap) = kernel_swap(folder) else {
        let root = "only root may make the memory group and the swap that this takes; run it as root".into();
        return (runs, if is_root() { ready_here(None).err().map(|why| why.to_string()) } else { Some(root) });
    };
    let heap = (common.managed_bytes + all.shared_bytes + all.stacks_bytes + all.other_bytes) as f64;
    let of = |part: f64| heap + part * all.referenced_bytes as f64;
    let most = heap + (all.code_bytes + all.files_bytes) as f64 * (1.0 + AHEAD) + FIRST;
    for (at, part) in PARTS.into_iter().enumerate() {
        all.files.iter().for_each(|file| leave_cache(Path::new(&file.path)));
        let ram = round(if at == 0 { most } else { of(part) });
        let way = Way { by: Pager::Kernel, swap: swap.as_deref(), in_all: true };
        let Some(run) = trials.at(way, ram, 0.0).and_then(|_| trials.measured.pop()) else {
            return (runs, Some("no time was left".into()));
        };
        if at == 0 && run.more {
            return (vec![run], Some("to read its files from the disk takes too long for this answer".into()));
        }
        if at == 0 && (run.peak_bytes as f64) < of(PARTS[1]) {
            return (
                runs,
                Some("other programs hold its files in RAM, where no limit on this one reaches them".into()),
            );
        }
        runs.push(run);
    }
    (runs, None)
}

/// A file's pages leave the cache, if nobody maps them. What was not written yet is written. A device is not opened.
fn leave_cache(path: &Path) {
    if let Some(file) = path.is_file().then(|| File::open(path).ok()).flatten() {
        let _ = file.sync_data();
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
    }
}
