//! This machine as a device: its sheet, which is measured if no kept sheet is valid for this machine.

use std::path::{Path, PathBuf};

use crate::machine::costs::{self, swap_costs, CostTable, Extent, SwapCosts, ROOM};
use crate::run::rights::file_system;
use coldframe_kernel::{SwapKind, Tree};
use coldframe_live::{PAGE, READ_AHEAD_MAX};
use coldframe_sheet::quantity::show_time;
use coldframe_sheet::sheet::machine::Machine;
use coldframe_sheet::sheet::{stored, Kind, Sourced};
use coldframe_sheet::Sheet;

use crate::error::AnswerError;
use crate::listener::Listener;
use crate::run::by_kernel::swappable;
use crate::run::guards::guard;
use crate::run::program::allowed;

/// The version of the measurement in `machine/costs`. Raise it if its numbers can no longer be compared with
/// older ones.
const CALIBRATION: u32 = 4;

/// Seconds of a whole measurement on a solid-state disk.
const SECONDS: u32 = 8;

/// The kept sheet of this machine, if it applies to this machine and to the disk of `backing`. Otherwise the machine
/// is measured, and the sheet is kept.
pub fn sheet(backing: &Path, extent: Extent, listener: &dyn Listener) -> Result<Sheet, AnswerError> {
    known(backing).map_or_else(|| measured(backing, extent, &[], listener).map(|(sheet, _)| sheet), Ok)
}

/// The kept sheet, if it applies.
pub fn known(backing: &Path) -> Option<Sheet> {
    stored::read().ok().filter(|sheet| is_of(sheet, &machine(backing)))
}

/// Measures this machine, the swap that is on, and new swap of these kinds. Keeps the sheet, if possible, and returns
/// its file.
pub fn measured(
    backing: &Path,
    extent: Extent,
    swaps: &[String],
    listener: &dyn Listener,
) -> Result<(Sheet, Option<PathBuf>), AnswerError> {
    let swaps: Vec<SwapKind> = swaps.iter().map(|text| SwapKind::parse(text)).collect();
    swaps.iter().try_for_each(|kind| swappable(&Tree::machine(), kind))?;
    let backing = &std::path::absolute(backing).unwrap_or(backing.into());
    allowed(backing)?;
    has_room(backing, file_system(backing).1)?;
    if crate::run::rights::is_ram(backing) {
        listener.note(&format!("warning: {} lies in RAM; give --backing a folder on a disk\n", backing.display()));
    }
    let (load, processors) = (Tree::machine().load(), processors());
    if load > f64::from(processors) {
        listener.note(&format!(
            "warning: other programs are at work (load {load:.1}, {processors} CPUs); run \
                                `coldframe doctor --calibrate` when they are not\n"
        ));
    }
    let words = format!("measuring this machine once ({SECONDS} s)");
    let costs = costs::measure(backing, extent, &mut |done, all| listener.progress(done, Some(all), &words))?;
    listener.finish();
    let swap = match swaps[..] {
        [] => swap_costs().into_iter().collect(),
        _ => swaps.iter().map(of_new).collect::<Result<Vec<_>, _>>()?,
    };
    let sheet = written(machine(backing), &costs, &swap);
    let path = stored::store(&sheet);
    Ok((sheet, path))
}

/// The costs of a swap that is made for this time.
fn of_new(kind: &SwapKind) -> Result<SwapCosts, AnswerError> {
    let mut guard = guard()?;
    let costs = guard.swap(kind, SWAP).map(|_| swap_costs());
    guard.end();
    costs?.ok_or_else(|| {
        AnswerError::new(4, format!("--swap {kind}: it takes no pages of this process; is this a cgroup without swap?"))
    })
}

/// Bytes of a swap that is measured: the kernel keeps copies there only while half of it is free.
const SWAP: u64 = 256 << 20;

/// Whether a sheet applies to this machine.
fn is_of(sheet: &Sheet, machine: &Machine) -> bool {
    sheet.machine.as_ref().is_some_and(|measured| measured.is_like(machine))
}

fn has_room(backing: &Path, free: u64) -> Result<(), AnswerError> {
    if free >= ROOM || !backing.is_dir() {
        return Ok(());
    }
    let (shown, free, room) = (backing.display(), free >> 20, ROOM >> 20);
    let message = format!("{shown}: {free} MiB free, and measuring takes {room}; make room, or give another --backing");
    Err(AnswerError::new(5, message))
}

/// Identifies this machine.
fn machine(backing: &Path) -> Machine {
    Machine {
        processor: Tree::machine().processor(),
        processors: processors(),
        kernel: Tree::machine().kernel_release(),
        disk: disk(backing),
        calibration: CALIBRATION,
        measured: costs::today(),
        backing: backing.display().to_string(),
    }
}

fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

/// Number of the folder's disk, or of the disk that the path names, and the file system.
fn disk(backing: &Path) -> String {
    let (major, minor) = crate::run::disk::number(backing);
    format!("{major}:{minor} {}", if backing.is_dir() { file_system(backing).0 } else { "no file system".into() })
}

/// The sheet.
fn written(machine: Machine, costs: &CostTable, swap: &[SwapCosts]) -> Sheet {
    let source = format!("measured on {} by `coldframe doctor --calibrate`", machine.measured);
    let Machine { processor, processors, kernel, disk, .. } = &machine;
    let title = format!("this machine: {processor}, {processors} CPUs, Linux {kernel}, disk {disk}");
    let mut sheet = Sheet { name: stored::NAME.into(), kind: Kind::Machine, title, ..Sheet::default() };
    fn with<T>(value: T, source: &str) -> Option<Sourced<T>> {
        Some(Sourced { value, source: source.into() })
    }
    let swap = swap.iter().flat_map(|swap| match swap.compressed {
        true => vec![("zram_fault", swap.fault)],
        false => vec![("swap_fault", swap.fault), ("swap_ahead", swap.ahead)],
    });
    for (event, sample) in costs.events().into_iter().chain(swap) {
        let place = sheet.live.of(event).expect("a sheet has every event");
        *place = with(sample, &source);
    }
    for (kind, latency) in &costs.disk {
        let place = sheet.disk.of(kind).expect("a sheet has every kind of request");
        *place = with(*latency, &source);
    }
    let known = "a setting of the live pager, not measured";
    sheet.geometry.page = with(coldframe_sheet::quantity::show_bytes(coldframe_core::Bytes(PAGE as u64)), known);
    sheet.geometry.buffers = with(READ_AHEAD_MAX + 1, known);
    sheet.time.load = with(show_time(costs.disk("read_1").mean), &format!("{source}: disk.read_1, mean"));
    sheet.time.transfer = with(show_time(costs.transfer), &format!("{source}: stage TransHostMem of the live pager"));
    sheet.time.program = with(show_time(costs.disk("write_32").per_page), &format!("{source}: disk.write_32, a page"));
    sheet.machine = Some(machine);
    sheet
}

#[cfg(test)]
mod tests {
    use coldframe_core::Ps;
    use coldframe_sheet::here::Here;
    use coldframe_sheet::sheet::machine::{Latency, Spread};

    use super::*;

    fn costs() -> CostTable {
        let sample = Spread { low: Ps(1_000), mean: Ps(2_000), high: Ps(3_000) };
        let latency = Latency { p50: Ps(1_000), mean: Ps(2_000), p99: Ps(3_000), per_page: Ps(500) };
        let here = Here {
            zero_fill_native: sample,
            zero_fill: sample,
            device_fault: Spread { low: Ps(70_000_000), mean: Ps(80_500_000), high: Ps(90_000_000) },
            read_ahead: sample,
            memory_fault: sample,
            false_fault: sample,
            first_write: sample,
            evict_clean: sample,
            evict_dirty: sample,
            entry: sample,
        };
        let disk = ["read_1", "read_16", "write_1", "write_8", "write_32"].map(|kind| (kind, latency)).into();
        CostTable { here, zero_fill_huge: sample, evict_dirty_read: sample, transfer: Ps(1_000), disk }
    }

    #[test]
    fn what_is_measured_is_written_as_a_sheet_that_says_what_this_machine_costs() {
        let sample = costs().here.memory_fault;
        let swap = |compressed| SwapCosts { compressed, fault: costs().here.device_fault, ahead: sample };
        let sheet = written(machine(Path::new("/tmp")), &costs(), &[swap(true)]);
        let read = coldframe_sheet::sheet::parse("here.toml", &sheet.to_toml()).unwrap();
        assert_eq!(read, sheet);
        let here = Here::of(&read).unwrap();
        assert_eq!((here.device_fault.low, here.device_fault.mean), (Ps(70_000_000), Ps(80_500_000)));
        assert_eq!(here.entry, here.false_fault);
        assert_eq!((read.load().unwrap(), read.program().unwrap()), (Ps(2_000), Ps(500)));
        assert!(read.disk.read_4.is_none(), "what could not be measured is left out");
        assert_eq!(read.cost("live.zram_fault").unwrap().mean, Ps(80_500_000));
        assert!(
            read.live.swap_fault.is_none()
                && written(machine(Path::new("/tmp")), &costs(), &[swap(false)]).live.swap_ahead.is_some()
        );
    }

    #[test]
    fn a_sheet_of_another_machine_or_of_none_is_not_of_this_one() {
        let this = machine(Path::new("/tmp"));
        let sheet = written(this.clone(), &costs(), &[]);
        assert!(is_of(&sheet, &this) && is_of(&sheet, &Machine { measured: "long ago".into(), ..this.clone() }));
        assert!(!is_of(&sheet, &Machine { kernel: "0.99".into(), ..this.clone() }));
        assert!(!is_of(&coldframe_sheet::sheet::all()[0], &this));
    }

    #[test]
    fn a_full_disk_is_reported_with_what_is_needed() {
        let folder = std::env::temp_dir();
        assert!(has_room(&folder, ROOM).is_ok());
        let error = has_room(&folder, 3 << 20).unwrap_err().to_string();
        assert!(error.contains("3 MiB free") && error.contains("--backing"), "{error}");
    }
}
