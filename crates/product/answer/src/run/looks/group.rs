//! What a run's memory group is charged with, looked at while it runs: its parts, its work, the files that are mapped.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use coldframe_kernel::{Group, Tree};
use coldframe_proc::{mappings, Process};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a run's memory group has counted: all that the kernel charges, of all processes.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct GroupUse {
    /// The most bytes at one time.
    pub peak_bytes: u64,
    /// Of the look at which the sum of the next four was the largest: heap, stacks, private data.
    pub anonymous_bytes: u64,
    /// Pages of files in the cache.
    pub files_bytes: u64,
    /// Shared memory, files of a tmpfs among it.
    pub shared_bytes: u64,
    /// The kernel's own: page tables, buffers.
    pub kernel_bytes: u64,
    /// The most bytes at one look that cannot leave without swap: all but files.
    pub fixed_bytes: u64,
    /// Seconds of processor time and of waiting for memory or a disk; `None`: this kernel does not count them.
    pub worked_seconds: Option<f64>,
    /// Seconds in which a thread waited for a processor; `None`: not counted.
    pub waited_seconds: Option<f64>,
    /// Processors that other programs used meanwhile.
    pub others: f64,
}

impl GroupUse {
    /// Of its four parts.
    fn sum(&self) -> u64 {
        self.anonymous_bytes + self.files_bytes + self.shared_bytes + self.kernel_bytes
    }
}

/// The least time between two looks, which take some 100 us.
const PAUSE: Duration = Duration::from_millis(4);
/// The time between two looks at the files, which take about a millisecond for each process.
const FILES: Duration = Duration::from_millis(50);

/// Looks at one run.
pub struct GroupLooks<'a> {
    began: Instant,
    /// Seconds of work of all processors of the machine until now.
    busy: Option<f64>,
    /// Who wants to know the files.
    files: Option<&'a Mutex<BTreeSet<PathBuf>>>,
    seen: Mutex<GroupSeen>,
}

#[derive(Default)]
struct GroupSeen {
    usage: GroupUse,
    due: Duration,
    files_due: Duration,
    processor: f64,
}

impl<'a> GroupLooks<'a> {
    /// Of a run that starts now. `files`: where the mapped files are added, if they are wanted.
    pub fn new(files: Option<&'a Mutex<BTreeSet<PathBuf>>>) -> GroupLooks<'a> {
        let busy = Tree::machine().busy_seconds();
        GroupLooks { began: Instant::now(), busy, files, seen: Mutex::default() }
    }

    /// Looks. Returns whether the kernel has killed a process of it.
    pub fn look(&self, group: &Group) -> bool {
        let (Ok(mut seen), now) = (self.seen.lock(), self.began.elapsed()) else { return false };
        if now < seen.due {
            return false;
        }
        seen.due = now + PAUSE;
        let (counted, before) = (group.counters(), seen.usage);
        let files = counted.files.saturating_sub(counted.shared);
        let fixed = counted.data + counted.shared + counted.kernel;
        if fixed + files > before.sum() {
            (seen.usage.anonymous_bytes, seen.usage.shared_bytes) = (counted.data, counted.shared);
            (seen.usage.kernel_bytes, seen.usage.files_bytes) = (counted.kernel, files);
        }
        seen.usage.fixed_bytes = before.fixed_bytes.max(fixed);
        if let Some(work) = group.work() {
            seen.processor = work.processor.as_secs_f64();
            seen.usage.worked_seconds = Some((work.processor + work.stalled).as_secs_f64());
            seen.usage.waited_seconds = Some(work.waited.as_secs_f64());
        }
        if let Some(mapped) = self.files.filter(|_| now >= seen.files_due) {
            seen.files_due = now + FILES;
            let mut mapped = mapped.lock().unwrap_or_else(PoisonError::into_inner);
            for text in group.processes().into_iter().map(|process| Process::of(process).maps()) {
                let files = mappings(&text).into_iter().filter(|mapping| mapping.inode > 0).map(|mapping| mapping.name);
                mapped.extend(files.filter(|name| name.starts_with('/')).map(PathBuf::from));
            }
        }
        counted.killed > 0
    }

    /// What was seen of the run, whose group has had so much at its peak; `None`: nothing.
    pub fn end(self, peak_bytes: u64) -> Option<GroupUse> {
        let seconds = self.began.elapsed().as_secs_f64();
        let busy = Tree::machine().busy_seconds().zip(self.busy).map(|(after, before)| after - before);
        let seen = self.seen.into_inner().ok()?;
        let others = busy.map_or(0.0, |busy| ((busy - seen.processor) / seconds.max(1e-3)).max(0.0));
        let looked = seen.usage.sum();
        let peak_bytes = peak_bytes.max(looked);
        (peak_bytes > 0).then_some(GroupUse { peak_bytes, others, ..seen.usage })
    }
}
