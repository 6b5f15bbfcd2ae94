//! Reads and sets the limit of a group that is held low for long; what limit, others decide.
//!
//! A limit is written when what is above it has left, where the kernel can push out without one (`memory.reclaim`, v2
//! since Linux 5.19): a program that meets `memory.high` while it allocates is made to sleep.

use std::path::PathBuf;

use super::{back, End, Squeeze};
use crate::files::write;
use crate::group::counters::Counters;
use crate::group::pressure::stalled;
use crate::group::version::Version;
use crate::{Guard, KernelError};
use coldframe_proc::{field, text, PAGE};

/// This part of the limit is left free below it, so that what the program allocates next does not wait for reclaim.
const ROOM: u64 = 32;

/// Seconds that a page takes which comes back, where the kernel does not count the waits of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PageTimes {
    /// A page that the program waits for.
    pub fault: f64,
    /// A page of a stream, read ahead.
    pub ahead: f64,
}

/// What a group did since the look before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// What the file of the limit says, if somebody else has written it meanwhile.
    pub foreign: Option<String>,
    /// Bytes charged to the group.
    pub usage: u64,
    /// Bytes in swap.
    pub swapped: u64,
    /// Bytes that cannot leave.
    pub least: u64,
    /// Seconds in which some process waited for memory.
    pub waited: f64,
    /// Pages that came back.
    pub back: u64,
    /// Of those, the ones that a somewhat larger group would have kept.
    pub near: u64,
    /// A process of it gets no page (v1), or was killed for lack of memory.
    pub starved: bool,
}

/// A group whose limit is held.
#[derive(Debug)]
pub struct Hold {
    squeeze: Squeeze,
    file: PathBuf,
    /// What the file said after the last write.
    written: String,
    times: PageTimes,
    before: (Counters, Option<f64>),
}

impl Hold {
    /// From now on the limit may be lowered: the guard knows the old one, and no other guard does.
    ///
    /// # Errors
    /// Another coldframe has changed it and lives, or as [`Squeeze::begin`].
    pub fn begin(mut squeeze: Squeeze, guard: &mut Guard, times: PageTimes) -> Result<Hold, KernelError> {
        let file = squeeze.group.file(squeeze.group.version().squeeze_file());
        let counts = text(&squeeze.group.file("memory.stat")).contains("workingset_refault");
        if !counts && !Hold::counts_waits(&squeeze) {
            let what = "this kernel counts neither the waits nor the refaults of a group";
            return Err(KernelError::lacks(
                what,
                "boot with psi=1, or with cgroup v2 (systemd.unified_cgroup_hierarchy)",
            ));
        }
        guard.claim(&file)?;
        squeeze.begin(guard)?;
        let mut hold = Hold { written: text(&file), file, squeeze, times, before: Default::default() };
        hold.before = hold.counted();
        Ok(hold)
    }

    /// Whether the kernel counts the group's own waits; else they are counted by its pages.
    pub fn counts_waits(squeeze: &Squeeze) -> bool {
        squeeze.others().is_none()
    }

    fn counted(&self) -> (Counters, Option<f64>) {
        let counts = Hold::counts_waits(&self.squeeze);
        let stall = stalled(&text(&self.squeeze.pressure)).filter(|_| counts);
        (self.squeeze.group.counters(), stall.map(|stall| stall.some.as_secs_f64()))
    }

    /// Looks at it.
    ///
    /// # Errors
    /// The last process has ended.
    pub fn look(&mut self) -> Result<Reading, End> {
        if let Some(end) = self.squeeze.gone() {
            return Err(end);
        }
        let (group, (old, old_stall)) = (&self.squeeze.group, self.before);
        let (now, stall) = self.counted();
        let limit = text(&self.file);
        let waited = match (old_stall, stall) {
            (Some(old), Some(now)) => (now - old).max(0.0),
            _ => waits(&old, &now, self.times),
        };
        self.before = (now, stall);
        Ok(Reading {
            foreign: (limit != self.written).then_some(limit),
            usage: group.usage(),
            swapped: now.swapped,
            least: now.locked + now.kernel + (1 << 20),
            waited,
            back: back(&now).saturating_sub(back(&old)),
            near: now.near.saturating_sub(old.near),
            starved: now.killed > old.killed || field(&text(&group.file("memory.oom_control")), "under_oom") == Some(1),
        })
    }

    /// Pushes out what is above a limit, then sets it, or what is left if not all could leave. Returns what was set;
    /// `None`: the kernel could not push out enough (v1).
    pub fn lower(&mut self, limit: u64) -> Option<u64> {
        let (group, low) = (&self.squeeze.group, limit - limit / ROOM);
        let more = group.usage().saturating_sub(low);
        let reclaim = group.file("memory.reclaim");
        let reclaims = group.version() == Version::Two && reclaim.exists();
        let pushed = match (more, reclaims) {
            (0, _) => Ok(()),
            (_, true) => write(&reclaim, more.to_string()),
            (_, false) => write(&self.file, low.to_string()),
        };
        // What `memory.reclaim` refuses (EAGAIN) is that not all could leave.
        let limit = if reclaims { limit.max(group.usage()) } else { limit } / PAGE * PAGE;
        let done = (reclaims || pushed.is_ok()) && self.write(&limit.to_string());
        // What was pushed out here made nobody of the group wait.
        self.before.0.swapped = self.before.0.swapped.max(self.squeeze.group.counters().swapped);
        done.then_some(limit)
    }

    /// The old limit, at once.
    pub fn raise(&mut self) -> bool {
        let old = self.squeeze.old.clone();
        self.write(&old)
    }

    /// Somebody else has set the limit, and it stays: the guard forgets the old one.
    pub fn leave(&self, guard: &mut Guard) -> Result<(), KernelError> {
        guard.forget(&self.file)
    }

    /// The most bytes charged to it so far; `None`: this kernel does not keep them.
    pub fn peak(&self) -> Option<u64> {
        self.squeeze.group.peak()
    }

    /// Whether the old limit is back, or the group is gone.
    pub fn restored(&self) -> bool {
        self.squeeze.restored()
    }

    fn write(&mut self, limit: &str) -> bool {
        let done = write(&self.file, limit).is_ok();
        self.written = text(&self.file);
        done
    }
}

/// How long a group has waited by its pages: those that it waited for, and those that were read ahead or pushed out.
fn waits(old: &Counters, now: &Counters, times: PageTimes) -> f64 {
    let faults = now.major_faults.saturating_sub(old.major_faults);
    let out = now.swapped.saturating_sub(old.swapped) / PAGE;
    let others = (back(now).saturating_sub(back(old)) + out).saturating_sub(faults);
    faults as f64 * times.fault + others as f64 * times.ahead
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_kernels_count_a_group_waits_for_its_own_pages() {
        let times = PageTimes { fault: 100e-6, ahead: 10e-6 };
        let old = Counters { major_faults: 5, refaults: 50, swapped: 10 * PAGE, ..Counters::default() };
        let now = Counters { major_faults: 15, refaults: 90, file_refaults: 10, swapped: 20 * PAGE, ..old };
        // 10 faults; 50 pages came back and 10 left.
        assert!((waits(&old, &now, times) - (10.0 * 100e-6 + 50.0 * 10e-6)).abs() < 1e-12);
        assert_eq!(waits(&old, &old, times), 0.0);
    }
}
