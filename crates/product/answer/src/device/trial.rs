//! A trial: makes the recommended zram now, counts for as long as was watched, and puts everything back.

use std::path::Path;
use std::time::{Duration, Instant};

use coldframe_proc::Tree;
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
    if !guard.is_alive() {
        listener.warn("coldframe: the guard was killed, so the trial ends; another one puts the old settings back\n");
    }
    guard.end();
    Ok(ZramTrial { schema_version: SCHEMA_VERSION, version: env!("CARGO_PKG_VERSION"), plan, before, after, zram })
}
