//! A device's answer in words: the RAM that was needed, what could leave, less RAM with zram and with swap on the
//! flash, who has unused memory, and lines to paste.

use coldframe_answer::device::{DeviceAnswer, Life, Owner, RamSize, Swap, ZramPlan, ZramTrial};
use coldframe_sheet::quantity::{human_count, human_seconds, human_size};

use crate::limits::mib;
use crate::table::styled;
use crate::text::paragraph;

/// Owners with less unused memory are not worth a line.
const UNUSED_LEAST: u64 = 4 << 20;
/// A unit's limit has this part more than it uses.
const ROOM: f64 = 1.1;
const DAY: f64 = 86_400.0;

/// All of it.
pub fn words(device: &DeviceAnswer) -> String {
    let mut text = watched(device) + "\n" + &needed(device) + "\n" + &sizes(device);
    text += &format!("\n{}", owners(device));
    text += &device.notes.iter().map(|note| paragraph(&format!("- {note}."), 2)).collect::<String>();
    text + "\n" + &lines(device)
}

fn watched(device: &DeviceAnswer) -> String {
    let seen = &device.seen;
    let watch_share = 100.0 * seen.own_seconds / seen.seconds.max(1e-9);
    let time = human_seconds(seen.seconds);
    paragraph(
        &format!(
            "Watched for {time}: {} processes, {} of RAM. {} looks at all page tables took {watch_share:.1} % of a \
             processor.",
            seen.processes,
            human_size(seen.memory.total_bytes),
            seen.reads
        ),
        0,
    )
}

fn needed(device: &DeviceAnswer) -> String {
    let size = human_size;
    let mut text = device.needed_bytes.map_or(
        "RAM that was needed: watched for too short a time.\n".into(),
        |[half, most_of_it, maximum]| {
            let window =
                device.seen.windows.iter().map(|window| window.seconds).sum::<f64>() / device.seen.windows.len() as f64;
            let words = format!(
                "RAM that was needed (in windows of {}): {} half of the time, {} for 95 % of it, {} at most.",
                human_seconds(window),
                size(half),
                size(most_of_it),
                size(maximum)
            );
            paragraph(&words, 0)
        },
    );
    text += &paragraph(
        &format!(
            "  of it the kernel's, shared memory and its reserve {}, mapped files {}",
            size(device.fixed_bytes + device.seen.memory.reserve_bytes),
            size(device.files_bytes)
        ),
        2,
    );
    let cold: Vec<_> =
        device.cold.iter().map(|(age, bytes)| format!("{} unused for {}", size(*bytes), human_seconds(*age))).collect();
    text += &paragraph(
        &format!("What could leave, of {} of the programs' own: {}.", size(device.own_bytes), cold.join(", ")),
        0,
    );
    let pages = &device.seen.pages;
    if let (Some(lz4), Some(zstd)) = (pages.share(&pages.lz4), pages.share(&pages.zstd)) {
        let words = format!(
            "In zram a page takes {:.0} % of its size by zstd, {:.0} % by lz4 ({} pages tried, {:.0} % of one word, \
             {:.0} % do not compress).",
            100.0 * zstd,
            100.0 * lz4,
            pages.pages,
            100.0 * pages.same_filled as f64 / pages.pages as f64,
            100.0 * pages.lz4.incompressible as f64 / pages.pages as f64,
        );
        text += &paragraph(&words, 0);
    }
    text
}

fn sizes(device: &DeviceAnswer) -> String {
    let row = |ram: u64, swap: &Swap| {
        let plan = swap.plan.as_ref();
        let kind = plan.map_or("flash".into(), |plan| format!("{} {}", human_size(plan.disk_bytes), plan.algorithm));
        let out = if swap.out_bytes == 0 { "-".into() } else { human_size(swap.out_bytes) };
        let waits = match swap.fits {
            true => waits(swap.stall),
            false => "too small".into(),
        };
        let (written, life) = match plan {
            None if swap.fits => (range(swap.written_a_day.0, swap.written_a_day.2, human_bytes), years(swap.life)),
            None => ("-".into(), "-".into()),
            Some(_) => ("-".into(), years(swap.life)),
        };
        vec![human_size(ram), kind, out, waits, written, life]
    };
    let rows = |size: &RamSize| {
        let zram = size.zram.as_ref().map(|swap| row(size.ram_bytes, swap));
        zram.into_iter().chain([row(size.ram_bytes, &size.flash)]).collect::<Vec<_>>()
    };
    let rows = device.sizes.iter().flat_map(rows).collect();
    let table = styled(&["RAM", "zram, or flash", "out", "waits", "to flash/day", "years"], rows, 2);
    let now = match (&device.disk, device.written_a_day) {
        (Some(disk), Some(written)) => {
            let used = match disk.used_percent {
                Some([low, high]) if low == high => format!("; its own counter: {low} % of its life is used"),
                Some([low, high]) => format!("; its own counter: {low} to {high} % of its life is used"),
                None => String::new(),
            };
            let life = if device.life.1.is_some() {
                format!("; it is worn after at most {} years of that", years(device.life))
            } else {
                String::new()
            };
            paragraph(
                &format!(
                    "{}, {}, is written {} a day now, without swap{life}{used}.",
                    disk.name,
                    human_size(disk.size_bytes),
                    human_bytes(written)
                ),
                0,
            )
        }
        _ => String::new(),
    };
    let joules = device.sizes.iter().filter_map(|size| {
        Some(format!("{} with {}", human_count(size.flash.joules_a_day? as u64), human_size(size.ram_bytes)))
    });
    let joules: Vec<_> = joules.collect();
    let energy = if joules.is_empty() {
        String::new()
    } else {
        paragraph(&format!("Joules of the flash a day for swap: {}.", joules.join(", ")), 0)
    };
    format!("{table}\n{now}{energy}")
}

fn human_bytes(bytes: f64) -> String {
    human_size(bytes as u64)
}

/// From and to; the unit is that of the latter, if both have the same.
fn range(low: f64, high: Option<f64>, show: fn(f64) -> String) -> String {
    let Some(to) = high.map(show) else { return format!("> {}", show(low)) };
    match (show(low), to.rsplit_once(' ')) {
        (from, _) if from == to => to,
        _ if low <= 0.0 => format!("< {to}"),
        (from, Some((_, unit))) => format!("{}-{to}", from.strip_suffix(unit).unwrap_or(&from).trim_end()),
        (from, None) => format!("{from}-{to}"),
    }
}

/// The part of the time for which some process waits.
fn waits((low, high): (f64, Option<f64>)) -> String {
    let percent = |part: f64| match 100.0 * part {
        part if part < 0.01 => "0 %".into(),
        part if part < 1.0 => format!("{part:.2} %"),
        part => format!("{part:.0} %"),
    };
    range(low, high, percent)
}

/// Years, at least and at most.
fn years((low, high): Life) -> String {
    let show = |years: f64| match years {
        years if years >= 100.0 => "> 100".into(),
        years if years >= 10.0 => format!("{years:.0}"),
        years => format!("{years:.1}"),
    };
    match (low, high) {
        (_, Some(high)) if high >= 100.0 && low.is_none_or(|low| low >= 100.0) => show(high),
        (Some(low), Some(high)) => range(low, Some(high), show),
        (None, Some(high)) => format!("< {}", show(high)),
        _ => "-".into(),
    }
}

/// What a limit has to hold of a unit: all that its group is charged but what it did not use, and a tenth more.
fn used(owner: &Owner) -> u64 {
    (owner.own_bytes.max(owner.charged_bytes).saturating_sub(owner.cold_bytes) as f64 * ROOM) as u64
}

fn owners(device: &DeviceAnswer) -> String {
    let kept = device.seen.owners.iter().filter(|owner| owner.cold_bytes >= UNUSED_LEAST);
    let rows: Vec<_> = kept
        .map(|owner| {
            let advice = match owner.unit {
                true => format!("MemoryHigh={}M", mib(used(owner)).max(1)),
                false => format!("coldframe park {}", owner.process),
            };
            let name =
                if owner.processes > 1 { format!("{} ({})", owner.name, owner.processes) } else { owner.name.clone() };
            vec![name, advice, human_size(owner.own_bytes), human_size(owner.cold_bytes)]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let time = device.cold.last().map_or(0.0, |(age, _)| *age);
    let unused = format!("unused for {}", human_seconds(time));
    format!("{}\n", styled(&["who", "could have", "own", &unused], rows, 2))
}

/// Settings to paste.
fn lines(device: &DeviceAnswer) -> String {
    let Some(plan) = device.sizes.first().and_then(|size| size.zram.as_ref()?.plan.as_ref()) else {
        return String::new();
    };
    let ZramPlan { disk_bytes, algorithm, limit_bytes, .. } = plan;
    let (size, limit) = (mib(*disk_bytes), mib(*limit_bytes));
    let disks = device
        .seen
        .swaps
        .iter()
        .filter(|(name, ..)| !name.starts_with("/dev/zram"))
        .map(|(name, ..)| name.as_str())
        .collect::<Vec<_>>();
    let mut text = format!(
        "Lines to paste, for this RAM:\n  /etc/systemd/zram-generator.conf   [zram0]\n{pad}zram-size = \
         {size}\n{pad}compression-algorithm = {algorithm}\n\
         {pad}zram-resident-limit = {limit}\n  or /etc/default/zramswap           ALGO={algorithm} SIZE={size} \
         PRIORITY=100\n  /etc/sysctl.d/60-zram.conf         vm.page-cluster = 0\n{pad}vm.swappiness = {}\n",
        device.swappiness,
        pad = " ".repeat(37),
    );
    if !disks.is_empty() {
        let percent = (100 * limit_bytes).div_ceil(device.seen.memory.total_bytes.max(1)).clamp(1, 50);
        text += &format!(
            "  or zswap before {}, in the kernel's line:\n{}zswap.enabled=1 \
             zswap.compressor={algorithm}\n{}zswap.max_pool_percent={percent}\n",
            disks.join(", "),
            " ".repeat(37),
            " ".repeat(37)
        );
    }
    let why = "page-cluster is 0 since zram has no head to move: a page's neighbours would be unpacked for nothing. \
               swappiness is the part, of 200, that a page of a file costs beside a page of zram.";
    text + &paragraph(why, 0)
}

/// What a trial has shown.
pub fn trial(trial: &ZramTrial) -> String {
    let hour = |count: u64, seconds: f64| human_count((count as f64 * 3600.0 / seconds.max(1e-9)) as u64);
    let both = |number: fn(&coldframe_answer::device::trial::Counted) -> u64| {
        [&trial.before, &trial.after].map(|phase| hour(number(phase), phase.seconds))
    };
    let row = |name: &str, [before, after]: [String; 2]| vec![name.to_string(), before, after];
    let waited = [&trial.before, &trial.after].map(|phase| {
        phase.traffic.waited_us.map_or("-".into(), |us| format!("{:.2} %", us as f64 / 1e4 / phase.seconds.max(1e-9)))
    });
    let written = [&trial.before, &trial.after]
        .map(|phase| human_bytes(phase.written_bytes as f64 * DAY / phase.seconds.max(1e-9)));
    let rows = vec![
        row("pages out/h", both(|phase| phase.traffic.swapped_out)),
        row("pages back/h", both(|phase| phase.traffic.swapped_in)),
        row("waiting faults/h", both(|phase| phase.traffic.major_faults)),
        row("files back/h", both(|phase| phase.traffic.file_refaults)),
        row("killed", [&trial.before, &trial.after].map(|phase| phase.traffic.killed.to_string())),
        row("time waited", waited),
        row("to disks a day", written),
    ];
    let (zram, plan) = (&trial.zram, &trial.plan);
    let share = match zram.data_bytes {
        0 => "the zram stayed empty".into(),
        data => format!(
            "the zram held {} in {}, {:.0} % of their size ({:.0} % expected)",
            human_size(data),
            human_size(zram.ram_bytes),
            100.0 * zram.ram_bytes as f64 / data as f64,
            100.0 * plan.share
        ),
    };
    let words = format!(
        "ZramTrial: {} of zram by {}, {} before and {} with it; {share}.",
        human_size(plan.disk_bytes),
        plan.algorithm,
        human_seconds(trial.before.seconds),
        human_seconds(trial.after.seconds)
    );
    format!(
        "\n{}{}\nAll settings are as before.\n",
        paragraph(&words, 0),
        styled(&["", "before", "with zram"], rows, 1)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_units_limit_holds_its_files_too_and_without_a_group_its_own_memory() {
        let owner = |charged_bytes| Owner { own_bytes: 60, cold_bytes: 20, charged_bytes, ..Owner::default() };
        assert_eq!([0, 100].map(|charged| used(&owner(charged))), [44, 88]);
    }

    #[test]
    fn ranges_say_what_is_not_known() {
        assert_eq!((waits((0.0, Some(0.0))), waits((0.0, Some(0.03)))), ("0 %".into(), "< 3 %".into()));
        assert_eq!((waits((0.011, Some(0.05))), waits((0.1, None))), ("1-5 %".into(), "> 10 %".into()));
        assert_eq!((years((Some(2.0), Some(3.5))), years((None, None))), ("2.0-3.5".into(), "-".into()));
        assert_eq!((years((Some(200.0), Some(300.0))), years((None, Some(4.0)))), ("> 100".into(), "< 4.0".into()));
    }
}
