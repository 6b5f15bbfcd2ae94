//! Lowers the memory limit of a running group step by step, and measures the stalls.
//!
//! ```text
//!   new ── checks ─► begin ── the guard knows the old limit ─► watch (as it is) ─► lower ─► watch ─► lower ─► …
//! ```
//!
//! v2: `memory.high`. Above it the kernel pushes pages out and slows the group down, but kills nothing. v1 has only the
//! hard limit, which the kernel refuses if it cannot push out enough at once. There the killer is turned off during the
//! squeeze (`memory.oom_control`): a process that gets no page sleeps until the old limit is back.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;

use crate::files::{number, write};
use crate::group::counters::Counters;
use crate::group::place::{mounted, path_of, WRITABLE};
use crate::group::pressure::stalled;
use crate::group::processes::waiting;
use crate::group::version::Version;
use crate::group::Group;
use crate::swap::Swaps;
use crate::{Guard, KernelError};
use coldframe_proc::{field, text, Tree, PAGE};

pub(crate) mod hold;

/// A step takes this part of the memory away.
pub const PART: u64 = 16;
const LOOK: Duration = Duration::from_millis(50);

/// A step.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Step {
    /// The limit; null: as it was.
    pub limit_bytes: Option<u64>,
    /// Bytes in RAM.
    pub in_ram_bytes: u64,
    /// Bytes in swap.
    pub swapped_bytes: u64,
    /// Pages that came back in a second.
    pub pages_back_per_second: f64,
    /// The part of the time in which some process waited, in percent.
    pub stalled_percent: f64,
}

/// Why no more was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// A step stalled too long.
    Stall,
    /// The rest cannot leave.
    Least,
    /// The kernel could not push out enough.
    Stuck,
    /// The kernel has killed a process of the group.
    Killed,
    /// The last process has ended.
    Gone,
    /// A signal came.
    Stopped,
}

/// The limit after a step.
pub fn lowered(limit: u64) -> u64 {
    (limit - limit / PART) / PAGE * PAGE
}

/// A group that can be squeezed.
#[derive(Debug)]
pub struct Squeeze {
    tree: Tree,
    group: Group,
    pressure: PathBuf,
    old: String,
    limit: u64,
    lowered: bool,
    unreclaimable: u64,
    killed: u64,
    page_seconds: f64,
}

impl Squeeze {
    /// Checks that it is safe. `swap`: bytes of swap that will be made for it.
    ///
    /// # Errors
    /// It is not: another user's group, one with this process, too little swap, nothing that can leave.
    pub fn new(tree: &Tree, group: Group, swap: u64) -> Result<Squeeze, KernelError> {
        let (counted, shown, processes) = (group.counters(), group.folder().display(), group.processes());
        let file = group.file(group.version().squeeze_file());
        let lacks = |what: String, remedy: &str| Err(KernelError::lacks(what, remedy));
        if !file.exists() {
            return lacks(
                format!("{shown} has no memory limit"),
                "name a group whose parent has memory in cgroup.subtree_control",
            );
        }
        if rustix::fs::access(&file, rustix::fs::Access::WRITE_OK).is_err() {
            return lacks(format!("{} cannot be written by you", file.display()), WRITABLE);
        }
        if processes.is_empty() {
            return lacks(format!("{shown} has no process"), "start the program, and squeeze it while it works");
        }
        if processes.contains(&std::process::id()) {
            return lacks(
                format!("this command is in {shown} itself, with {} other processes", processes.len() - 1),
                "start the program in a group of its own: systemd-run --scope (with --user: as yourself) -- PROGRAM",
            );
        }
        let swaps = Swaps::read(tree);
        if swap == 0 {
            swaps.ready()?;
        }
        let room = (swaps.free() + swap).min(allowed(&group));
        if room < counted.data {
            return lacks(
                format!(
                    "{} MiB of swap are free for {shown}, which has {} MiB of data",
                    room >> 20,
                    counted.data >> 20
                ),
                "as root, give --swap zram or --swap FILE, or let the group swap more (memory.swap.max)",
            );
        }
        let unreclaimable = counted.locked + counted.kernel + (1 << 20);
        let limit = in_ram(&group);
        if limit - limit / PART < unreclaimable {
            return lacks(
                format!(
                    "{} MiB of the {} MiB of {shown} are locked or the kernel's own and cannot leave",
                    unreclaimable >> 20,
                    limit >> 20
                ),
                "let it lock less (LimitMEMLOCK=), or name a larger group",
            );
        }
        let (pressure, old) = (pressure(tree, &group, processes[0]), text(&file));
        Ok(Squeeze {
            tree: tree.clone(),
            group,
            pressure,
            old,
            limit,
            lowered: false,
            unreclaimable,
            killed: counted.killed,
            page_seconds: f64::INFINITY,
        })
    }

    /// The most that a page takes that comes back and pushes another one out. Where the waits of others count, too, the
    /// group has waited no longer than for its own pages.
    #[must_use]
    pub fn with_page_seconds(self, page_seconds: f64) -> Squeeze {
        Squeeze { page_seconds, ..self }
    }

    /// The group.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Bytes in use before the first step, then the limit.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes that cannot leave.
    pub fn unreclaimable(&self) -> u64 {
        self.unreclaimable
    }

    /// Whether the old limit is back, or the group is gone.
    pub fn restored(&self) -> bool {
        let file = self.group.file(self.group.version().squeeze_file());
        text(&file) == self.old || !file.exists()
    }

    /// Whose waiting counts, if not only the group's.
    pub fn others(&self) -> Option<&'static str> {
        match self.pressure == self.tree.path("/proc/pressure/memory") {
            true if text(&self.pressure).is_empty() => {
                Some("any device; this kernel does not count waiting for memory (psi=1 does)")
            }
            true => Some(
                "memory on the whole machine, at most what the group's own pages take; this kernel does not count it \
                 for the group",
            ),
            false => None,
        }
    }

    /// Lets the guard know the old limit. From now on the limit may be lowered.
    ///
    /// # Errors
    /// The old limit cannot be recorded, or the killer cannot be turned off (v1).
    pub fn begin(&mut self, guard: &mut Guard) -> Result<(), KernelError> {
        guard.hold(&self.group)?;
        let oom = self.group.file("memory.oom_control");
        match self.group.version() {
            Version::One => write(&oom, "1").map_err(|e| KernelError::file(&oom, e, "run it as root")),
            Version::Two => Ok(()),
        }
    }

    /// Lowers the limit by a part.
    ///
    /// # Errors
    /// Why it cannot be lowered.
    pub fn lower(&mut self) -> Result<(), End> {
        let base = if self.lowered { self.limit } else { in_ram(&self.group) };
        let limit = lowered(base);
        if limit < self.unreclaimable {
            return Err(End::Least);
        }
        if write(&self.group.file(self.group.version().squeeze_file()), limit.to_string()).is_err() {
            return Err(self.gone().unwrap_or(End::Stuck));
        }
        (self.limit, self.lowered) = (limit, true);
        Ok(())
    }

    /// Watches the group for so long, or until some process has waited for more than this part of that time.
    ///
    /// # Errors
    /// What ends the squeeze before a step could be measured.
    pub fn watch(&self, time: Duration, share_max: f64, stop: impl Fn() -> bool) -> Result<Step, End> {
        let (before, began) = (back(&self.group.counters()), Instant::now());
        let (mut waited, mut stuck) = (Waited::new(self), false);
        while began.elapsed() < time && waited.seconds(self) <= share_max * time.as_secs_f64() && !stuck {
            if stop() {
                return Err(End::Stopped);
            }
            if let Some(end) = self.gone() {
                return Err(end);
            }
            std::thread::sleep(LOOK.min(time));
            stuck = field(&text(&self.group.file("memory.oom_control")), "under_oom") == Some(1);
        }
        let (seconds, counters) = (began.elapsed().as_secs_f64(), self.group.counters());
        if counters.killed > self.killed {
            return Err(End::Killed);
        }
        Ok(Step {
            limit_bytes: self.lowered.then_some(self.limit),
            in_ram_bytes: in_ram(&self.group),
            swapped_bytes: counters.swapped,
            pages_back_per_second: back(&counters).saturating_sub(before) as f64 / seconds,
            stalled_percent: 100.0 * if stuck { 1.0 } else { (waited.seconds(self) / seconds).min(1.0) },
        })
    }

    fn gone(&self) -> Option<End> {
        self.group.processes().is_empty().then_some(End::Gone)
    }
}

/// How long some process has waited since the start.
struct Waited {
    /// From the kernel's count.
    before: Option<Duration>,
    /// Without it: looks at all, and those at which a thread waited for a device.
    looks: (u32, u32),
    began: Instant,
    /// What the group had counted.
    counters: Counters,
}

impl Waited {
    fn new(squeeze: &Squeeze) -> Waited {
        let before = stalled(&text(&squeeze.pressure)).map(|stall| stall.some);
        Waited { before, looks: (0, 0), began: Instant::now(), counters: squeeze.group.counters() }
    }

    fn seconds(&mut self, squeeze: &Squeeze) -> f64 {
        let all = self.counted(squeeze);
        match squeeze.others() {
            Some(_) => all.min(moved(&self.counters, &squeeze.group.counters()) as f64 * squeeze.page_seconds),
            None => all,
        }
    }

    /// As the kernel counts it, for the group or for all.
    fn counted(&mut self, squeeze: &Squeeze) -> f64 {
        if let (Some(before), Some(now)) = (self.before, stalled(&text(&squeeze.pressure))) {
            return now.some.saturating_sub(before).as_secs_f64();
        }
        self.looks.0 += 1;
        self.looks.1 += u32::from(waiting(&squeeze.tree, &squeeze.group.processes()));
        self.began.elapsed().as_secs_f64() * f64::from(self.looks.1) / f64::from(self.looks.0)
    }
}

/// Pages that have come back.
fn back(counters: &Counters) -> u64 {
    counters.refaults + counters.file_refaults
}

/// Pages that have come back since, and those that have left in addition: new ones push out others.
fn moved(before: &Counters, now: &Counters) -> u64 {
    back(now).saturating_sub(back(before)) + now.swapped.saturating_sub(before.swapped) / PAGE
}

/// The file that counts waiting for memory: the group's; with v1, that of the v2 group of its first process, if it is
/// not the root of all groups; or the machine's.
fn pressure(tree: &Tree, group: &Group, process: u32) -> PathBuf {
    let second = || {
        let path = path_of(&tree.process(process), Version::Two)?.trim_matches('/').to_string();
        let mount = mounted(tree, Version::Two)?.mount;
        (!path.is_empty()).then(|| mount.join(path).join("memory.pressure"))
    };
    let group_file = match group.version() {
        Version::One => second(),
        Version::Two => Some(group.file("memory.pressure")),
    };
    let counts = |file: &PathBuf| stalled(&text(file)).is_some();
    group_file.filter(counts).unwrap_or_else(|| tree.path("/proc/pressure/memory"))
}

/// Bytes that the group may have in swap more than it has.
fn allowed(group: &Group) -> u64 {
    let left = |limit: &str, usage: &str| {
        let (limit, usage) = (number(&group.file(limit))?, number(&group.file(usage)).unwrap_or(0));
        Some(limit.saturating_sub(usage))
    };
    let left = match group.version() {
        // RAM and swap together. What leaves for swap gives its RAM back.
        Version::One => {
            left("memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes").map(|left| left + group.usage())
        }
        Version::Two => left("memory.swap.max", "memory.swap.current"),
    };
    left.unwrap_or(u64::MAX)
}

fn in_ram(group: &Group) -> u64 {
    let counted = group.counters();
    group.usage().saturating_sub(counted.files.saturating_sub(counted.mapped))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_moves_pages_that_come_back_and_those_that_new_ones_push_out() {
        let before = Counters { refaults: 10, file_refaults: 5, swapped: 40 * PAGE, ..Counters::default() };
        assert_eq!(moved(&before, &before), 0);
        let back = Counters { refaults: 17, file_refaults: 6, swapped: 30 * PAGE, ..before };
        assert_eq!(moved(&before, &back), 8);
        assert_eq!(moved(&before, &Counters { swapped: 43 * PAGE, ..back }), 11);
    }
}
