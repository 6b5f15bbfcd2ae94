//! What was watched of a device becomes its answer: the RAM that was needed, what could leave, and what less RAM costs
//! with zram and with swap on its flash (`sizes`).
//!
//! Files that are read and not mapped are not in it: how much of them is needed is not seen.

use coldframe_sheet::quantity::{human_size, things};
use coldframe_sheet::sheet::Sheet;
use schemars::JsonSchema;
use serde::Serialize;

use crate::device::advice::{sleepers, Advice};
use crate::device::counts::Disk;
use crate::device::defaults::{defaults, DefaultSwap};
use crate::device::seen::Seen;
use crate::device::sizes::{Demand, KindLife, Life, RamSize, RamVerdict, Swap, ZramPlan, DAY};
use crate::machine::killers::{killers, Killer, OrdinaryWork};
use crate::predict::bits::look::{Look, Stretch};
use crate::SCHEMA_VERSION;

/// What could leave is asked for these ages, in seconds.
const AGES: [f64; 2] = [60.0, 600.0];
/// Smaller sizes of RAM that are asked about, and the powers of two that RAM is sold in.
const SMALLER: usize = 3;
const SOLD: std::ops::RangeInclusive<u32> = 26..=44;

/// The answer for a device.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct DeviceAnswer {
    /// Version of this object's form.
    pub schema_version: u32,
    /// Version of coldframe.
    pub version: &'static str,
    /// What was watched.
    pub seen: Seen,
    /// RAM that was needed in half of the windows, in 95 of 100, and at most.
    pub needed_bytes: Option<[u64; 3]>,
    /// The most that was needed in a window, without the reserve, which is smaller in less RAM; without windows, in the
    /// longest stretch; null: nothing was seen.
    pub needed_at_most_bytes: Option<u64>,
    /// Of that, always: the kernel's and shared memory; and what the kernel keeps free.
    pub fixed_bytes: u64,
    /// Mapped files that were referenced in a minute.
    pub files_bytes: u64,
    /// The programs' own memory, in RAM and in swap, at most.
    pub own_bytes: u64,
    /// Own memory that was not referenced for so many seconds; the last one is the longest time that was watched.
    pub cold: Vec<(f64, u64)>,
    /// This RAM, the smallest that RAM is sold in with which nothing has to leave, and the next smaller ones, at most
    /// three in all, to the first that is too small.
    pub sizes: Vec<RamSize>,
    /// What other systems make for this RAM by themselves.
    pub defaults: Vec<DefaultSwap>,
    /// What could be done about the memory of each of `seen.owners`.
    pub advice: Vec<Advice>,
    /// Thresholds for the programs that kill when memory runs out, with the recommended zram.
    pub killers: Vec<Killer>,
    /// The disk that swap on flash would write to.
    pub disk: Option<Disk>,
    /// Bytes that are written to it a day now.
    pub written_a_day: Option<f64>,
    /// Its life, if it goes on like that. Below an hour of watching this says little.
    pub life: Life,
    /// By kinds of flash, if it has no sheet, or that has no cycles.
    pub life_by_kind: Vec<KindLife>,
    /// The device's sheet.
    pub sheet: Option<String>,
    /// The kernel's `vm.swappiness` for zram beside this disk.
    pub swappiness: u64,
    /// What is not known, or worth knowing.
    pub notes: Vec<String>,
}

impl DeviceAnswer {
    /// The answer. `sheet`: of the flash, for its life, times and energy.
    pub fn new(seen: Seen, sheet: Option<&Sheet>) -> DeviceAnswer {
        let memory = seen.memory;
        let fixed = memory.kernel_bytes + memory.shared_bytes;
        let files = seen
            .stretches
            .iter()
            .map(|stretch| value_after(stretch, AGES[0], |look| look.file_bytes as f64))
            .fold(0.0, f64::max);
        let private = seen.stretches.iter().map(|stretch| stretch.private_bytes).max().unwrap_or(0);
        let mut windows: Vec<u64> = seen
            .windows
            .iter()
            .map(|look| fixed + memory.reserve_bytes + look.referenced_bytes + look.file_bytes)
            .collect();
        windows.sort_unstable();
        let rank = |part: f64| windows[((windows.len() as f64 * part).ceil() as usize).clamp(1, windows.len()) - 1];
        let needed = (!windows.is_empty()).then(|| [rank(0.5), rank(0.95), rank(1.0)]);
        let disk = seen.disks.iter().max_by_key(|disk| (disk.written_bytes, disk.size_bytes)).cloned();
        let written =
            disk.as_ref().filter(|_| seen.seconds > 0.0).map(|disk| disk.written_bytes as f64 * DAY / seen.seconds);
        let cold = cold(&seen);
        let demand = Demand {
            seen: &seen,
            fixed_bytes: fixed,
            files_bytes: files as u64,
            private_bytes: private,
            unused_bytes: cold.first().map_or(0, |(_, bytes)| *bytes),
            disk: disk.as_ref(),
            written_a_day: written,
            sheet,
        };
        let sizes = sizes(&demand, memory.total_bytes);
        let longest =
            seen.stretches.iter().filter_map(|stretch| stretch.looks.last()).map(|look| look.referenced_bytes);
        let in_stretch = longest.max().map(|bytes| fixed + files as u64 + bytes);
        let at_most = needed.map(|[.., maximum]| maximum - memory.reserve_bytes).or(in_stretch);
        let zram = sizes[0].zram.as_ref().and_then(|swap| swap.plan.as_ref().map(|plan| (swap, plan)));
        DeviceAnswer {
            schema_version: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION"),
            needed_bytes: needed,
            needed_at_most_bytes: at_most,
            killers: killers(&ordinary(&demand, at_most, zram), &seen.killers),
            defaults: defaults(memory.total_bytes, seen.pages.share(&seen.pages.lz4)),
            advice: seen.owners.iter().map(Advice::new).collect(),
            life_by_kind: demand.life_by_kind(),
            fixed_bytes: fixed,
            files_bytes: files as u64,
            own_bytes: private,
            sizes,
            written_a_day: written,
            life: demand.life((0.0, Some(0.0))),
            sheet: sheet.map(|sheet| sheet.name.clone()),
            swappiness: demand.swappiness(),
            notes: notes(&seen, &cold, sheet),
            cold,
            disk,
            seen,
        }
    }
}

/// What is not known, or worth knowing.
fn notes(seen: &Seen, cold: &[(f64, u64)], sheet: Option<&Sheet>) -> Vec<String> {
    let (memory, mut notes) = (seen.memory, Vec::new());
    let unmapped = memory.file_bytes.saturating_sub(memory.mapped_bytes);
    notes.push(format!(
        "{} of files were in RAM that are read, not mapped: how much of them is needed is not seen ({} pages of files \
             came back soon after they had left)",
        human_size(unmapped),
        seen.traffic.file_refaults
    ));
    if seen.swaps.iter().any(|(_, size, used)| *used > size - size / 20) {
        notes.push("A swap area is full: what could not leave is still in RAM, and processes may be killed".into());
    }
    if seen.traffic.killed > 0 {
        notes.push(format!("The kernel killed {} for lack of memory", things(seen.traffic.killed, "process")));
    }
    if 2 * memory.huge_bytes > memory.own_bytes {
        notes.push(
            "More than half of the programs' own memory is in huge pages, which have one bit for 2 MiB: less \
                    is needed \
             than this says"
                .into(),
        );
    }
    if seen.pages.pages == 0 {
        notes.push("No page could be read (/proc/PID/mem), so zram is not answered".into());
    }
    if !seen.zram {
        notes.push("This kernel has no zram: it needs CONFIG_ZRAM (Debian: sudo modprobe zram)".into());
    }
    if seen.windows.len() < 5 || cold.last().is_some_and(|(age, _)| *age < AGES[0]) {
        notes.push(
            "Watched for a short time: an hour or a day of ordinary work says more \
             (--for 1h, --for 24h --save FILE)"
                .into(),
        );
    }
    if sheet.is_none_or(|sheet| sheet.cycles().is_err()) {
        notes.push("How often the flash may be erased is not known: see its data sheet (--device SHEET)".into());
    }
    notes
}

/// This RAM, and the sizes that RAM is sold in from the smallest in which all stays.
fn sizes(demand: &Demand, total: u64) -> Vec<RamSize> {
    let sold: Vec<RamSize> =
        SOLD.rev().map(|power| 1 << power).filter(|size| *size < total).map(|ram| demand.with_ram(ram)).collect();
    let enough = sold.iter().rposition(|size| size.flash.out_bytes == 0).unwrap_or(0);
    let mut sizes = vec![demand.with_ram(total)];
    for size in sold.into_iter().skip(enough).take(SMALLER) {
        let verdicts = [size.zram.as_ref().map_or(RamVerdict::TooSmall, |zram| zram.verdict), size.flash.verdict];
        sizes.push(size);
        if verdicts == [RamVerdict::TooSmall; 2] {
            break;
        }
    }
    sizes
}

/// What ordinary work needs of this RAM with the recommended zram. What is unused for a minute may be in it.
fn ordinary(demand: &Demand, needed: Option<u64>, zram: Option<(&Swap, &ZramPlan)>) -> OrdinaryWork {
    let (seen, swap_bytes) = (demand.seen, zram.map_or(0, |(_, plan)| plan.disk_bytes));
    let used = zram.map_or(0, |(swap, _)| swap.out_bytes.max(demand.unused_bytes));
    let waited = seen.traffic.waited_us.map_or(0.0, |us| us as f64 / 1e6 / seen.seconds.max(1e-9));
    OrdinaryWork {
        ram_bytes: seen.memory.total_bytes,
        needed_bytes: needed.map(|needed| needed + seen.memory.reserve_bytes),
        swap_bytes,
        swap_fill: used as f64 / swap_bytes.max(1) as f64,
        sleepers: sleepers(&seen.owners, swap_bytes),
        waits: zram.and_then(|(swap, _)| swap.stall.1).map(|stall| stall.max(waited)),
    }
}

/// Own memory that was not referenced, by age; the last one is the longest that was watched.
fn cold(seen: &Seen) -> Vec<(f64, u64)> {
    let Some(stretch) = seen.stretches.iter().max_by(|a, b| a.seconds().total_cmp(&b.seconds())) else {
        return Vec::new();
    };
    let end = stretch.seconds();
    let ages = AGES.into_iter().filter(|age| *age < end).chain([end]);
    ages.map(|age| {
        let hot = value_after(stretch, age, |look| look.referenced_bytes as f64);
        (age, (stretch.private_bytes as f64 - hot).max(0.0) as u64)
    })
    .collect()
}

/// A number of a stretch's looks at an age, between looks by a straight line.
fn value_after(stretch: &Stretch, age: f64, number: fn(&Look) -> f64) -> f64 {
    let (mut time, mut value) = (0.0, 0.0);
    for look in &stretch.looks {
        let (next, then) = (look.seconds, number(look));
        if next >= age {
            return value + (then - value) * (age - time) / (next - time).max(1e-9);
        }
        (time, value) = (next, then);
    }
    value
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use coldframe_sheet::sheet;

    use super::*;
    use crate::device::counts::MachineMemory;
    use crate::device::seen::read;
    use crate::predict::bits::page_sample::{Compression, PageSample};

    const MIB: u64 = 1 << 20;

    /// 100 MiB of the kernel's, 50 MiB of files, 300 MiB of the programs' own: 100 MiB of it all the time, 1 MiB more
    /// each second from then on, until after 100 s 100 MiB are left that nobody uses. A page of zram takes a quarter.
    fn seen() -> Seen {
        let window = |seconds: f64, mib: u64| Look {
            seconds,
            referenced_bytes: mib * MIB,
            file_bytes: 50 * MIB,
            ..Look::default()
        };
        let look = |seconds: f64| {
            let again = 100 * MIB + (seconds.min(100.0) * MIB as f64) as u64;
            Look { referenced_bytes: again, again_bytes: again, ..window(seconds, 0) }
        };
        let looks: Vec<Look> = (0..14).map(|i| look(1.5f64.powi(i))).collect();
        let packed = Compression {
            stored_bytes: 1024 * 1000,
            unpack_us: 1000.0 * 5.0,
            pack_us: 1000.0 * 10.0,
            incompressible: 0,
        };
        let disk = Disk { name: "mmcblk0".into(), size_bytes: 1 << 30, written_bytes: 10 * MIB, ..Disk::default() };
        Seen {
            seconds: 200.0,
            memory: MachineMemory {
                total_bytes: 512 * MIB,
                kernel_bytes: 90 * MIB,
                shared_bytes: 10 * MIB,
                ..MachineMemory::default()
            },
            windows: (1..=20).map(|i| window(10.0, 100 + i)).collect(),
            stretches: vec![Stretch { private_bytes: 300 * MIB, looks }],
            pages: PageSample { pages: 1000, lz4: packed, zstd: packed, touch_us: 1.0, same_filled: 0 },
            disks: vec![disk],
            disk_us: Some([100.0, 200.0, 400.0]),
            zram: true,
            ..Seen::default()
        }
    }

    #[test]
    fn what_was_needed_is_the_kernels_the_files_and_the_programs_own_by_windows() {
        let device = DeviceAnswer::new(seen(), None);
        assert_eq!(device.needed_bytes.unwrap().map(|bytes| bytes / MIB), [260, 269, 270]);
        let cold: Vec<_> = device.cold.iter().map(|(age, bytes)| (age.round(), bytes / MIB)).collect();
        // After 60 s 160 of the 300 MiB were used, after all 200.
        assert_eq!((cold[0], cold.last().unwrap().1), ((60.0, 140), 100));
    }

    #[test]
    fn sizes_are_sold_ones_in_which_something_leaves_and_zram_takes_its_part() {
        let with = |mib: u64| {
            let seen = seen();
            DeviceAnswer::new(Seen { memory: MachineMemory { total_bytes: mib * MIB, ..seen.memory }, ..seen }, None)
        };
        let sold = |mib: u64| with(mib).sizes.iter().map(|size| size.ram_bytes / MIB).collect::<Vec<_>>();
        // All there is takes 450 MiB; in 128 MiB even what cannot leave has no room.
        assert_eq!(sold(512), [512, 256, 128]);
        assert_eq!(sold(24 << 10), [24 << 10, 512, 256, 128], "16, 8, 4, 2 and 1 GiB are like 512 MiB");
        let (device, smaller) = (with(512), with(384));
        let ([all, half, least], most) = ([0, 1, 2].map(|i| &device.sizes[i]), &smaller.sizes[0]);
        assert_eq!((all.flash.out_bytes, all.zram.as_ref().unwrap().stall), (0, (0.0, Some(0.0))));
        // 384 - 150 leave 234 of 300: 66 go to the flash, 88 to a zram that takes a quarter of them.
        assert_eq!((most.flash.out_bytes / MIB, most.zram.as_ref().unwrap().out_bytes / MIB), (66, 88));
        // Nobody uses these.
        assert_eq!((most.flash.back_per_second.0, most.flash.fits), (0.0, true));
        // 106 of 300 stay: what is used all the time and 6 s more; a MiB a second comes back, 256 pages.
        let flash = &half.flash;
        assert!((flash.back_per_second.1 - 256.0).abs() < 30.0, "{flash:?}");
        let day = flash.written_a_day.1 / (256.0 * 4096.0 * DAY);
        assert!((0.85..1.15).contains(&day) && flash.joules_a_day.is_none(), "{flash:?}");
        let cut = Stretch { private_bytes: 300 * MIB, looks: vec![Look::default()] };
        let with_cut = Seen { stretches: [seen().stretches, vec![cut]].concat(), ..seen() };
        assert_eq!(
            DeviceAnswer::new(with_cut, None).sizes[1].flash,
            *flash,
            "a stretch that a signal cut short says nothing"
        );
        assert_eq!((least.flash.verdict, least.flash.fits), (RamVerdict::TooSmall, false));
    }

    #[test]
    fn the_flash_lives_as_long_as_its_sheet_and_all_writes_say() {
        let sheet = sheet::find("LOBI-NAND").unwrap();
        let device = DeviceAnswer::new(seen(), Some(&sheet));
        // 10 MiB in 200 s are 4320 MiB a day.
        let (now, area) = (10.0 * MIB as f64 * DAY / 200.0, sheet.capacity().map_or(1u64 << 30, |bytes| bytes.0));
        let years = |a_day: f64| sheet.cycles().unwrap() as f64 * area as f64 / a_day / 365.25;
        let life = device.life.1.unwrap();
        assert!((life / years(now) - 1.0).abs() < 1e-6, "{life}");
        let half = &device.sizes[1].flash;
        let with_swap = half.life.1.unwrap();
        assert!((with_swap / years(now + half.written_a_day.0) - 1.0).abs() < 1e-6 && with_swap < life, "{half:?}");
        assert_eq!(DeviceAnswer::new(seen(), None).life, (None, None));
    }

    /// `docs/book/src/device.md` has what the same work then did with less RAM. The file has no spread of looks.
    #[test]
    fn a_debian_in_an_emulated_machine_pages_about_as_its_recorded_bits_say() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/traces/debian.device.json");
        let device = DeviceAnswer::new(read(&file).unwrap(), None);
        let size = |mib: u64| device.sizes.iter().find(|size| size.ram_bytes == mib * MIB).unwrap();
        for (swap, measured) in [(size(512).zram.as_ref().unwrap(), 358.0), (&size(512).flash, 300.0)] {
            let (low, about, high) = swap.back_per_second;
            assert!(low <= measured && measured <= high.unwrap(), "{measured}: {swap:?}");
            assert!((about / measured - 1.0).abs() < 0.3, "{measured}: {swap:?}");
        }
        for (swap, measured) in [(size(256).zram.as_ref().unwrap(), 1316.0), (&size(256).flash, 696.0)] {
            let (low, about, high) = swap.back_per_second;
            assert!(low <= measured && measured <= about && high.is_none(), "{measured}: {swap:?}");
        }
    }

    #[test]
    fn what_was_not_seen_is_not_called_too_small_nor_what_waits_a_fifth_fit() {
        let verdicts = |disk_us| {
            let device = DeviceAnswer::new(Seen { disk_us, ..seen() }, None);
            let size = device.sizes[1].clone();
            [size.zram.unwrap().verdict, size.flash.verdict]
        };
        // 124 to 25,856 pages a second: 13 % at most; 1 % or more; 62 % and more; unknown.
        assert_eq!(verdicts(Some([0.5, 1.0, 5.0])), [RamVerdict::NotSeen, RamVerdict::Fits]);
        assert_eq!(verdicts(Some([100.0, 200.0, 400.0]))[1], RamVerdict::MayWait);
        assert_eq!(verdicts(Some([5000.0; 3]))[1], RamVerdict::TooSmall);
        assert_eq!(verdicts(None)[1], RamVerdict::NotSeen);
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/traces/debian.device.json");
        let device = DeviceAnswer::new(read(&file).unwrap(), None);
        let debian = device.sizes.iter().find(|size| size.ram_bytes == 256 * MIB).unwrap();
        let both = [debian.zram.as_ref().unwrap().verdict, debian.flash.verdict];
        assert_eq!(both, [RamVerdict::NotSeen; 2], "its first look came after 10 s: {debian:?}");
    }

    #[test]
    fn a_flash_of_unknown_erases_lives_as_long_as_its_kind_and_a_known_one_as_its_sheet() {
        let years = |sheet: Option<&str>| {
            let sheet = sheet.map(|name| sheet::find(name).unwrap());
            let device = DeviceAnswer::new(seen(), sheet.as_ref());
            let years: Vec<_> = device.life_by_kind.iter().map(|kind| (kind.kind, kind.years)).collect();
            (years, device.life)
        };
        // 4320 MiB a day are 4.22 erases of each block of 1 GiB: 1000 in 0.65 years.
        let (kinds, life) = years(None);
        assert_eq!((kinds.len(), kinds[1].0, life), (3, "TLC", (None, None)));
        assert!((kinds[1].1[0] - 0.649).abs() < 0.001 && (kinds[1].1[1] - 1.947).abs() < 0.002, "{kinds:?}");
        // A card has no size of its own in its sheet, an eMMC has 59 GiB.
        assert_eq!(years(Some("SD-A2")).0, kinds);
        for name in ["eMMC-5.1", "UFS-3.1"] {
            let (larger, life) = years(Some(name));
            assert!(larger[2].1[0] > 10.0 * kinds[2].1[0] && life == (None, None), "{name}: {larger:?}");
        }
        assert_eq!(years(Some("NVMe-980")).0, []);
    }

    #[test]
    fn the_killers_thresholds_are_of_the_recommended_zram_as_it_is_filled() {
        let device = DeviceAnswer::new(Seen { killers: vec!["earlyoom".into()], ..seen() }, None);
        // 140 MiB unused for a minute in a zram of 176 MiB; 270 of 512 MiB needed.
        let lines: Vec<_> =
            device.killers.iter().flat_map(|one| &one.settings).map(|(_, line)| line.as_str()).collect();
        assert_eq!((lines[0], lines[1]), ("SwapUsedLimit=90%", "DefaultMemoryPressureLimit=20%"));
        assert!(lines.contains(&"EARLYOOM_ARGS=\"-m 10 -s 10\""), "{lines:?}");
        let nothing = DeviceAnswer::new(Seen::default(), None);
        assert!(nothing.killers.iter().all(|killer| killer.settings.is_empty()), "{:?}", nothing.killers);
    }

    #[test]
    fn what_is_needed_is_known_from_a_stretch_if_no_window_was_watched() {
        let short = DeviceAnswer::new(Seen { windows: vec![], ..seen() }, None);
        // 100 of the kernel's, 50 of files, 200 referenced in the stretch.
        assert_eq!((short.needed_bytes, short.needed_at_most_bytes), (None, Some(350 * MIB)));
        assert_eq!(DeviceAnswer::new(seen(), None).needed_at_most_bytes, Some(270 * MIB));
        assert_eq!(DeviceAnswer::new(Seen::default(), None).needed_at_most_bytes, None);
    }

    #[test]
    fn what_is_not_known_is_said() {
        let nothing = DeviceAnswer::new(Seen::default(), None);
        let notes = nothing.notes.join("; ");
        for words in ["No page could be read", "no zram", "short time", "--device"] {
            assert!(notes.contains(words), "{words}: {notes}");
        }
        assert!(nothing.needed_bytes.is_none() && nothing.sizes.iter().all(|size| size.zram.is_none()));
        let full = Seen { swaps: vec![("/swap".into(), 100, 99)], ..seen() };
        assert!(DeviceAnswer::new(full, None).notes.join("; ").contains("full"));
        let onenand = sheet::find("KFG5616").unwrap();
        assert!(DeviceAnswer::new(seen(), Some(&onenand)).notes.join("; ").contains("data sheet"));
    }
}
