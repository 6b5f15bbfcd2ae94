//! A trial: makes the recommended zram now, counts for as long as was watched, and puts everything back.

use std::path::Path;
use std::time::{Duration, Instant};

use coldframe_proc::{Tree, PAGE};
use schemars::JsonSchema;
use serde::Serialize;

use crate::device::answer::DeviceAnswer;
use crate::device::counts::{disks, moved, zrams, Disk, Traffic, Zram};
use crate::device::sizes::ZramPlan;
use crate::error::AnswerError;
use crate::listener::Listener;
use crate::run::guards::guard;
use crate::run::signals::Signals;
use crate::SCHEMA_VERSION;

const TICK: Duration = Duration::from_millis(100);

/// What was counted without the recommended zram, and with it.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ZramTrial {
    /// Version of this object's form.
    pub schema_version: u32,
    /// Version of coldframe.
    pub version: &'static str,
    /// What was made.
    pub plan: ZramPlan,
    /// Without it: seconds, what moved, and bytes written to the disk.
    pub before: Counted,
    /// With it.
    pub after: Counted,
    /// The zram at its end.
    pub zram: Zram,
    /// Pages that went to this zram, and that came back from it; what else moved was in other swap.
    pub own_pages: [u64; 2],
    /// Whether so little went to it that the trial says nothing.
    pub says_nothing: bool,
}

impl ZramTrial {
    /// Bytes that went to its zram.
    pub fn own_bytes(&self) -> u64 {
        self.own_pages[0] * PAGE
    }
}

/// A zram that had less than this part of what is expected in it says nothing.
const LITTLE: f64 = 0.01;

/// Whether a trial says nothing: hardly a page of those that the zram is for has been in it.
fn says_nothing(plan: &ZramPlan, own_pages: [u64; 2]) -> bool {
    ((own_pages[0] * PAGE) as f64) < LITTLE * plan.disk_bytes as f64
}

/// Pages that were written to and read from a block device (`stat`: sectors of 512 bytes, third and seventh field).
fn own_pages(tree: &Tree, name: &str) -> [u64; 2] {
    let stat = tree.text(format!("/sys/block/{name}/stat"));
    let sectors =
        |word: usize| stat.split_whitespace().nth(word).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    [sectors(6), sectors(2)].map(|sectors| sectors * 512 / PAGE)
}

/// What was counted in a time.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct Counted {
    /// Seconds.
    pub seconds: f64,
    /// What moved.
    pub traffic: Traffic,
    /// Bytes written to disks.
    pub written_bytes: u64,
}

/// Makes the zram for this RAM and the kernel's settings for it, counts as long as was watched or until a signal, and
/// puts everything back.
///
/// # Errors
/// No page could be read, there is no zram, or a setting is refused: then all is as before.
pub fn trial(device: &DeviceAnswer, listener: &dyn Listener) -> Result<ZramTrial, AnswerError> {
    let (tree, signals) = (Tree::machine(), Signals::catch()?);
    let plan = device.sizes.first().and_then(|size| size.zram.as_ref()?.plan.clone());
    let plan = plan.ok_or_else(|| {
        AnswerError::new(4, "nothing to try: no page of this machine could be read, so no zram is recommended")
    })?;
    let mut guard = guard()?;
    let made = guard.zram(plan.disk_bytes, &plan.algorithm, plan.limit_bytes).and_then(|name| {
        for (name, value) in [("page-cluster", 0), ("swappiness", device.swappiness)] {
            guard.set(Path::new("/proc/sys/vm").join(name).as_path(), &value.to_string())?;
        }
        Ok(name)
    });
    let name = match made {
        Ok(name) => name,
        Err(error) => {
            guard.end();
            return Err(error.into());
        }
    };
    let (began, traffic, start) = (Instant::now(), Traffic::now(&tree), disks(&tree));
    let time = Duration::from_secs_f64(device.seen.seconds);
    while began.elapsed() < time && !signals.came() && guard.is_alive() {
        std::thread::sleep(TICK.min(time));
        listener.progress(began.elapsed().as_secs(), Some(time.as_secs()), &format!("counting with {name}"));
    }
    listener.finish();
    let written = |disks: &[Disk]| disks.iter().map(|disk| disk.written_bytes).sum();
    let after = Counted {
        seconds: began.elapsed().as_secs_f64(),
        traffic: Traffic::now(&tree).since(traffic),
        written_bytes: written(&moved(&start, disks(&tree), &[])),
    };
    let seen = &device.seen;
    let before = Counted { seconds: seen.seconds, traffic: seen.traffic, written_bytes: written(&seen.disks) };
    let zram = zrams(&tree).into_iter().find(|zram| name.ends_with(&zram.name)).unwrap_or_default();
    let own_pages = own_pages(&tree, &zram.name);
    if !guard.is_alive() {
        listener.warn("coldframe: the guard was killed, so the trial ends; another one puts the old settings back\n");
    }
    guard.end();
    let says_nothing = says_nothing(&plan, own_pages);
    let (schema_version, version) = (SCHEMA_VERSION, env!("CARGO_PKG_VERSION"));
    Ok(ZramTrial { schema_version, version, plan, before, after, zram, own_pages, says_nothing })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zram_that_had_hardly_a_page_says_nothing_and_its_pages_are_its_own_sectors() {
        let plan = ZramPlan { disk_bytes: 1 << 30, ..ZramPlan::default() };
        assert!(says_nothing(&plan, [1, 0]) && says_nothing(&plan, [2000, 9000]) && !says_nothing(&plan, [3000, 0]));
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("sys/block/zram1")).unwrap();
        std::fs::write(folder.path().join("sys/block/zram1/stat"), "1 0 24 0 9 0 80 0 0 0 0\n").unwrap();
        assert_eq!(own_pages(&Tree::new(folder.path()), "zram1"), [10, 3]);
    }
}
