//! Takes memory from a group that runs, step by step, measures what each step costs, and puts the old limit back.

use std::time::Duration;

use coldframe_kernel::lowered;
use coldframe_kernel::{group_of, process_of, Guard, KernelError, Squeeze, SwapKind, SwapSpace, Tree, Version};
pub use coldframe_kernel::{End, Step, PART};
use coldframe_sheet::quantity::{human_seconds, human_size, things};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::AnswerError;
use crate::listener::Listener;
use crate::machine::costs::page_read;
use crate::machine::killers::{killers, present, Killer, OrdinaryWork};
use crate::machine::prices::prices;
use crate::run::by_kernel::swappable;
use crate::run::guards::{guard, warn};
use crate::run::program::default_backing;
use crate::run::signals::Signals;
use crate::SCHEMA_VERSION;

/// What to squeeze, and how.
pub struct SqueezeOrder<'a> {
    /// A unit, a container, a folder of the cgroup tree, or a process number.
    pub name: &'a str,
    /// The part of the time that some process may wait, in percent.
    pub max_stall_percent: f64,
    /// How long a step is watched.
    pub watch: Duration,
    /// Swap that is made for it.
    pub swap: Option<&'a str>,
    /// Whether the limit is changed.
    pub yes: bool,
}

/// What was squeezed, and what came of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Squeezed {
    /// Version of this object's form.
    pub schema_version: u32,
    /// Version of coldframe.
    pub version: &'static str,
    /// Its name.
    pub name: String,
    /// Its group.
    pub cgroup: Cgroup,
    /// Its processes.
    pub processes: usize,
    /// Bytes in use before the first step.
    pub in_use_bytes: u64,
    /// The most bytes that the group was charged before the first step; 0: this kernel does not keep it.
    pub peak_bytes: u64,
    /// Bytes that cannot leave.
    pub least_bytes: u64,
    /// The part of the time that some process may wait, in percent.
    pub max_stall_percent: f64,
    /// How long a step is watched.
    pub watch_seconds: f64,
    /// Whether the waits of others count, too, since the kernel does not count those of the group.
    pub stall_of_others: bool,
    /// The curve; the first step is without a new limit.
    pub steps: Vec<Step>,
    /// Why no more was taken; null: nothing was changed.
    pub end: Option<End>,
    /// Bytes of RAM that compressed pages took beside the group, of the whole machine.
    pub compressed_bytes: u64,
    /// The old limit is back.
    pub restored: bool,
    /// The last limit that did not stall too long.
    pub advised_bytes: Option<u64>,
    /// Bytes in use before, with those in swap.
    pub before_bytes: u64,
    /// Thresholds for the programs that kill when memory runs out, with the advised limit; empty: nothing was measured.
    pub killers: Vec<Killer>,
    /// Whose waits count, if not its own.
    #[serde(skip)]
    pub others: Option<&'static str>,
}

/// The group that is squeezed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Cgroup {
    /// Version of its tree.
    pub version: u8,
    /// Its folder.
    pub folder: String,
    /// The file with its limit.
    pub file: &'static str,
}

/// How long a step is watched if the user does not say, in seconds.
pub const WATCH: f64 = 10.0;

/// Steps until that part of its memory is left.
pub fn steps(part: f64) -> u64 {
    (part.ln() / (1.0 - 1.0 / PART as f64).ln()).ceil() as u64
}

/// How often a limit can go down before it is less than what cannot leave.
pub fn steps_to(limit: u64, least: u64) -> u64 {
    let lower = |limit: &u64| Some(lowered(*limit)).filter(|lower| *lower >= least.max(1) && *lower < *limit);
    std::iter::successors(Some(limit), lower).count() as u64 - 1
}

/// Less shows nothing.
const STEP_MIN: Duration = Duration::from_millis(100);

/// Squeezes; `words`: a step in a few words, for the listener.
///
/// # Errors
/// There is no such group, or it cannot be squeezed, or it has too little memory as it is.
pub fn squeeze(
    order: &SqueezeOrder,
    listener: &dyn Listener,
    words: fn(&Step) -> String,
) -> Result<Squeezed, AnswerError> {
    order.checked()?;
    warn(listener);
    let tree = Tree::machine();
    let (mut squeeze, kind) = target(order)?;
    let mut squeezed = Squeezed::new(order, &squeeze);
    if order.yes {
        if squeeze.others().is_some() {
            squeeze = squeeze.with_page_seconds(page_seconds().unwrap_or(f64::INFINITY));
        }
        let mut guard = guard()?;
        let done = begin(&mut guard, kind.as_ref(), &mut squeeze).map_err(AnswerError::from);
        let space = SwapSpace::on(&tree, squeeze.group().version());
        let done = done.and_then(|()| squeezed.take(&mut squeeze, &guard, order, listener, words));
        squeezed.compressed_bytes = space.compressed(None).taken;
        guard.end();
        done?;
        squeezed.killers = squeezed.advised().map_or(Vec::new(), |step| {
            let work = OrdinaryWork::with_more_in_swap(&tree, step.swapped_bytes, step.stalled_percent / 100.0);
            killers(&work, &present(&tree))
        });
    }
    squeezed.restored = squeeze.restored();
    Ok(squeezed)
}

impl SqueezeOrder<'_> {
    /// Refuses what measures nothing.
    pub(crate) fn checked(&self) -> Result<(), AnswerError> {
        if self.watch < STEP_MIN || self.max_stall_percent <= 0.0 || self.max_stall_percent >= 100.0 {
            let message = "give --for at least 100ms, and --max-stall more than 0% and less than 100%";
            return Err(AnswerError::usage(message));
        }
        Ok(())
    }
}

/// The group of a name, if it can be squeezed, and the swap to make for it.
pub(crate) fn target(order: &SqueezeOrder) -> Result<(Squeeze, Option<SwapKind>), AnswerError> {
    let tree = Tree::machine();
    let group = group_of(&tree, order.name)
        .or_else(|error| group_of(&tree, &process_of(&tree, order.name, error)?.to_string()))?;
    let kind = order.swap.map(SwapKind::parse);
    kind.as_ref().map_or(Ok(()), |kind| swappable(&tree, kind))?;
    let squeeze = Squeeze::new(&tree, group, kind.as_ref().map_or(0, |kind| kind.size(&tree, None)))?;
    Ok((squeeze, kind))
}

/// The most that a page takes to come back, of swap or of a file; `None`: it cannot be measured.
fn page_seconds() -> Option<f64> {
    let (swap, disk) = (prices().ok()?, page_read(&default_backing()).ok()?);
    swap.iter().map(|price| price.fault.high).chain([disk.high]).max().map(|time| time.0 as f64 / 1e12)
}

fn begin(guard: &mut Guard, swap: Option<&SwapKind>, squeeze: &mut Squeeze) -> Result<(), KernelError> {
    start_swap(guard, swap)?;
    squeeze.begin(guard)
}

/// Swap for a squeeze, if it is to be made.
pub(crate) fn start_swap(guard: &mut Guard, swap: Option<&SwapKind>) -> Result<(), KernelError> {
    swap.map_or(Ok(()), |kind| guard.swap(kind, kind.size(&Tree::machine(), None)).map(drop))
}

impl Squeezed {
    /// Before the first step.
    fn new(order: &SqueezeOrder, squeeze: &Squeeze) -> Squeezed {
        let group = squeeze.group();
        Squeezed {
            schema_version: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION"),
            name: order.name.into(),
            cgroup: Cgroup {
                version: if group.version() == Version::One { 1 } else { 2 },
                folder: group.folder().display().to_string(),
                file: group.version().squeeze_file(),
            },
            processes: group.processes().len(),
            in_use_bytes: squeeze.limit(),
            peak_bytes: group.peak().unwrap_or(0),
            least_bytes: squeeze.unreclaimable(),
            max_stall_percent: order.max_stall_percent,
            watch_seconds: order.watch.as_secs_f64(),
            stall_of_others: squeeze.others().is_some(),
            steps: Vec::new(),
            end: None,
            compressed_bytes: 0,
            restored: true,
            advised_bytes: None,
            before_bytes: squeeze.limit(),
            killers: Vec::new(),
            others: squeeze.others(),
        }
    }

    /// Steps that are left at most until the rest cannot leave, and their seconds; `limit`: what it has now.
    pub fn left(&self, limit: u64) -> (u64, f64) {
        let steps = steps_to(limit, self.least_bytes);
        (steps, steps as f64 * self.watch_seconds)
    }

    /// All steps at most, the first one as it is, and their seconds.
    pub fn longest(&self) -> (u64, f64) {
        let (steps, seconds) = self.left(self.in_use_bytes);
        (steps + 1, seconds + self.watch_seconds)
    }

    /// Takes memory away until something ends it.
    fn take(
        &mut self,
        squeeze: &mut Squeeze,
        guard: &Guard,
        order: &SqueezeOrder,
        listener: &dyn Listener,
        words: fn(&Step) -> String,
    ) -> Result<(), AnswerError> {
        let signals = Signals::catch()?;
        let stop = || signals.came() || !guard.is_alive();
        let (stall_max, (steps, seconds)) = (order.max_stall_percent / 100.0, self.longest());
        let most = things(steps, "step");
        listener.note(&format!("coldframe: at most {most}, {}; Ctrl-C ends it\n", human_seconds(seconds)));
        let end = loop {
            let step = match squeeze.watch(order.watch, stall_max, stop) {
                Ok(step) => step,
                Err(end) => break end,
            };
            let stalled = step.stalled_percent > order.max_stall_percent;
            let (left, seconds) = self.left(squeeze.limit());
            let left = format!("at most {} more, {}", things(left, "step"), human_seconds(seconds));
            listener.progress(self.steps.len() as u64 + 1, None, &format!("{}; {left}", words(&step)));
            self.add(step, stalled);
            if stalled {
                break End::Stall;
            }
            match squeeze.lower() {
                _ if stop() => break End::Stopped,
                Ok(()) => {}
                Err(end) => break end,
            }
        };
        listener.finish();
        if !guard.is_alive() {
            listener
                .warn("coldframe: the guard was killed, so the squeeze ends; another one puts the old limit back\n");
        }
        self.end = Some(end);
        self.usable()
    }

    fn add(&mut self, step: Step, stalled: bool) {
        if self.steps.is_empty() {
            self.before_bytes = step.in_ram_bytes + step.swapped_bytes;
        }
        if !stalled && step.limit_bytes.is_some() {
            self.advised_bytes = step.limit_bytes;
        }
        self.steps.push(step);
    }

    /// The step with the advised limit.
    pub fn advised(&self) -> Option<&Step> {
        self.steps.iter().rev().find(|step| step.limit_bytes.is_some() && step.limit_bytes == self.advised_bytes)
    }

    /// An error if nothing was measured.
    fn usable(&self) -> Result<(), AnswerError> {
        let name = &self.name;
        let message = match (self.end, self.steps.as_slice()) {
            (Some(End::Gone), [] | [_]) => {
                format!("{name} has ended meanwhile; start it again, and squeeze it while it works")
            }
            (Some(End::Stall), [only]) => format!(
                "{name}: some process waits for {} {:.1} % of the time as it is ({} in swap); give it more memory \
                 first, or a \
                 larger --max-stall",
                self.others.unwrap_or("its memory"),
                only.stalled_percent,
                human_size(only.swapped_bytes)
            ),
            _ => return Ok(()),
        };
        Err(AnswerError::new(4, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squeezed(stalls: &[f64], end: End) -> Squeezed {
        let mut all = Squeezed {
            schema_version: 1,
            version: "0",
            name: "a".into(),
            cgroup: Cgroup { version: 2, folder: "/".into(), file: "memory.high" },
            processes: 3,
            in_use_bytes: 60 << 20,
            peak_bytes: 90 << 20,
            least_bytes: 1 << 20,
            max_stall_percent: 5.0,
            watch_seconds: 10.0,
            stall_of_others: false,
            steps: vec![],
            end: Some(end),
            compressed_bytes: 0,
            restored: true,
            advised_bytes: None,
            before_bytes: 0,
            killers: vec![],
            others: None,
        };
        for (i, stalled) in stalls.iter().enumerate() {
            let limit = (60 - 4 * i as u64) << 20;
            let (limit_bytes, in_ram_bytes) = ((i > 0).then_some(limit), limit);
            let (swapped_bytes, pages_back_per_second, stalled_percent) = (8 << 20, 1e6, 100.0 * stalled);
            let step = Step { limit_bytes, in_ram_bytes, swapped_bytes, pages_back_per_second, stalled_percent };
            all.add(step, *stalled > 0.05);
        }
        all
    }

    #[test]
    fn steps_and_time_are_those_until_the_rest_cannot_leave() {
        // 16, 15 and 14.06 MiB; 13.18 are less than 14.
        assert_eq!([steps_to(16 << 20, 14 << 20), steps_to(16 << 20, 16 << 20), steps_to(0, 0)], [2, 0, 0]);
        let all = squeezed(&[0.0], End::Stopped);
        // (15/16)^63 of 60 MiB are 1.03 MiB, the first step is as it is, and each takes 10 s.
        assert_eq!(all.longest(), (64, 640.0));
        // Each step has one less before it, and the end has none.
        let mut limit = all.in_use_bytes;
        for left in (0..=63).rev() {
            assert_eq!(all.left(limit), (left, 10.0 * left as f64));
            limit = lowered(limit);
        }
    }

    #[test]
    fn the_last_step_that_did_not_stall_is_advised() {
        let all = squeezed(&[0.0, 0.01, 0.02, 0.3], End::Stall);
        // 52 MiB was the last good limit, and 60 MiB in RAM with 8 in swap were in use before.
        assert_eq!((all.advised_bytes, all.before_bytes), (Some(52 << 20), 68 << 20));
        assert!(all.usable().is_ok() && squeezed(&[0.0, 0.3], End::Stall).advised().is_none());
    }

    #[test]
    fn a_group_that_waits_for_its_memory_already_needs_more() {
        let failure = squeezed(&[0.2], End::Stall).usable().unwrap_err().to_string();
        assert!(
            failure.contains("20.0 %") && failure.contains("8 MiB in swap") && failure.contains("more memory first"),
            "{failure}"
        );
        assert!(squeezed(&[0.0], End::Gone).usable().unwrap_err().to_string().contains("ended"));
        assert!(squeezed(&[0.0], End::Stopped).usable().is_ok());
    }
}
