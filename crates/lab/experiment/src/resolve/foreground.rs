//! Tasks that take turns in the foreground.

use coldframe_core::fault::handler;
use coldframe_core::{Below, Bytes, Caps, Ps};
use coldframe_drivers::tasks::{OnFault, Prefetching, TasksConfig, CAPS};
use coldframe_sheet::quantity;
use coldframe_store::Provenance;

use super::backed::{self, BackedArea};
use super::tasks::{Base, ForegroundPlan, TasksPlan};
use super::{bad, failures, front, names, refuse, size, Pages};
use crate::error::ExperimentError;
use crate::phone::MachineParameters;
use crate::settings::{self, Machine, Sap, Settings, Tasks, Time};
use crate::swap_prices::PhoneArea;
use crate::systems;
use crate::systems::backing::{Backing, PAGE};

/// Time of a reference in a trace without times: 1 ns, an assumption.
const REFERENCE: Ps = Ps(1_000);

/// The plan for this backing, with `ram` and `size` bytes.
pub fn on_phone(
    settings: &Settings,
    backing: &Backing,
    (ram, size): (Bytes, Bytes),
    phone: &MachineParameters,
) -> Result<TasksPlan, ExperimentError> {
    let area = PhoneArea::of(backing, settings.device.as_deref(), size)?;
    plan(settings, backed::in_area(settings, area, *phone)?, (ram.0 / PAGE.0) as usize)
}

/// Resolves settings for tasks in the foreground.
pub fn foreground(settings: &Settings, trace: &Provenance, touched: Pages<'_>) -> Result<TasksPlan, ExperimentError> {
    refuse_others(settings)?;
    let front = front::front_key(&Settings::default(), None, trace, PAGE)?;
    let backed = backed::backed(settings, settings.device.as_deref(), &front, touched)?;
    let frames = size::frames(settings, &front, touched)?;
    plan(settings, backed, frames)
}

fn plan(settings: &Settings, backed: BackedArea, frames: usize) -> Result<TasksPlan, ExperimentError> {
    /// Without an end: nothing takes the processor from a task before its turn in the trace is over.
    const FOREVER: Ps = Ps(i64::MAX as u64);
    let system = names::system(settings)?;
    let handler = names::handler(settings.handler.as_deref().unwrap_or(handler::sequential::HANDLER.name))?;
    if handler.needs_xip {
        return bad("handler", format!("{} runs pages from a device's buffer, and a swap area has none", handler.name));
    }
    let mut machine = backed.prices.machine();
    (machine.reads_max, machine.failures) = (backed.reads_max, failures(settings)?);
    let area: Below = match &backed.log {
        Some(log) => {
            machine.collect = log.collect;
            log.areas.clone().into()
        }
        None => backed.slots((backed.phone.files_min_mb * 1_000_000 / PAGE.0) as usize).into(),
    };
    let config = TasksConfig {
        policy: names::policy(settings.policy.as_deref().unwrap_or("clock"))?,
        handler,
        frames: backed.leaves(frames)?,
        evict_batch: 1,
        machine,
        caps: Caps { direct_read: backed.area.direct_read, ..CAPS },
        area,
        xip_surplus: Ps::ZERO,
        reference: Ps::ZERO,
        tick: FOREVER,
        scheduler: names::scheduler("round-robin")?.1,
        slice: Some(FOREVER),
        on_fault: OnFault::Keeps,
        prefetching: Prefetching::NEVER,
        read_together: 1,
    };
    let foreground = ForegroundPlan {
        system: system.unwrap_or(systems::of_foreground().0),
        reference: settings::time("front_end.reference", &settings.front_end.reference)?.unwrap_or(REFERENCE),
    };
    Ok(TasksPlan {
        base: Base::Phone(foreground),
        config,
        backed: Some(backed),
        settings: Tasks::default(),
        sap: Sap::default(),
    })
}

/// Refuses settings that tasks in the foreground do not have.
fn refuse_others(s: &Settings) -> Result<(), ExperimentError> {
    const WHY: &str =
        "does not go with tasks in the foreground, whose pages are 4KiB and are loaded one at a time; leave it out";
    const ONE_STRING: &str = "is not there for tasks in the foreground; leave it out";
    let page = s.page.as_deref().filter(|page| !quantity::bytes(page).is_ok_and(|bytes| bytes == PAGE));
    let front_end = s.front_end.name.as_deref().is_some_and(|name| name != "none");
    refuse(&[
        ("page", page.is_some(), WHY),
        ("main_memory", s.main_memory.is_some(), WHY),
        ("front_end.name", front_end, WHY),
        ("machine", s.machine != Machine::default(), ONE_STRING),
        (
            "time",
            s.time != Time::default(),
            "is for stages; a fault in the foreground has one price, fault_us of swap.phone",
        ),
        ("limit.skip", s.limit.skip.is_some_and(|rows| rows > 0), ONE_STRING),
        ("limit.accesses", s.limit.accesses.is_some(), ONE_STRING),
        ("stream", s.stream.as_deref().is_some_and(|stream| stream != "ID"), ONE_STRING),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_store::Fidelity;

    fn resolved(sets: &[&str]) -> Result<TasksPlan, ExperimentError> {
        let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
        let trace = Provenance::new("a test", Fidelity::ExactReferences);
        foreground(&Settings::read(None, &sets).unwrap(), &trace, &mut |_| Ok((100 << 20) / PAGE.0 as usize))
    }

    #[test]
    fn sizes_are_bytes_or_parts_of_the_footprint() {
        let sizes = |plan: &TasksPlan| {
            (plan.config.frames, plan.config.area.slots.expect("slots that are rewritten in place").slots)
        };
        let plan = resolved(&["ram=50%", "swap.size=8MiB", "swap.backing=nvm"]).unwrap();
        assert_eq!(sizes(&plan), (12_800, 2_048));
        assert!(!plan.config.caps.direct_read && resolved(&["ram=50%"]).unwrap().config.caps.direct_read);
        assert_eq!(sizes(&resolved(&["frames=7", "swap.backing=none", "swap.size=4GiB"]).unwrap()), (7, 0));
    }

    #[test]
    fn the_threshold_is_a_number_or_the_sheets() {
        let of = |set: &str| resolved(&["ram=1MiB", set]).unwrap().config.machine.reads_max;
        assert_eq!((of("swap.reads_max=7"), of("swap.backing=nvm")), (Some(7), None));
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_field() {
        for (sets, reason) in [
            (&["ram=1MiB", "swap.backing=tape"][..], "swap.backing"),
            (&["ram=1MiB", "swap.backing=nvm_dr"], "did you mean `nvm-dr`"),
            (&["ram=1MiB", "swap.size=2GiB"], "1GiB of LPDDR2-PCM"),
            (&["ram=1MiB", "swap.size=0%"], "swap.size"),
            (&["ram=1KiB"], "ram"),
            (&["ram=-1MiB"], "ram"),
            (&["swap.size=1MiB"], "ram"),
            (&["ram=1MiB", "page=8KiB"], "page"),
            (&["ram=1MiB", "swap.read_ahead=block:8"], "swap.read_ahead"),
            (&["ram=1MiB", "swap.layout=linux-ftl"], "swap.layout"),
            (&["ram=1MiB", "handler=delayed-dual-buffering"], "handler"),
            (&["ram=1MiB", "policy=lru2"], "policy"),
            (&["ram=1MiB", "machine.evict_batch=4"], "machine"),
            (&["ram=1MiB", "limit.skip=9"], "limit.skip"),
            (&["ram=1MiB", "time.program=1us"], "fault_us"),
            (&["ram=1MiB", "device=STT-MRAM", "swap.size=129MiB"], "128MiB of STT-MRAM"),
            (&["ram=1MiB", "swap.phone=nowhere.toml"], "nowhere.toml"),
            (&["ram=1MiB", "device=nowhere.toml"], "nowhere.toml"),
            (&["ram=1MiB", "front_end.reference=-3ns"], "front_end.reference"),
        ] {
            let error = resolved(sets).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(reason), "{sets:?}: {error}");
        }
    }
}
