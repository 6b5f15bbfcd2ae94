//! What was watched of a device becomes its answer: the RAM that was needed, what could leave, and what less RAM costs
//! with zram and with swap on its flash (`sizes`).
//!
//! Files that are read and not mapped are not in it: how much of them is needed is not seen.

use coldframe_sheet::quantity::human_size;
use coldframe_sheet::sheet::Sheet;
use schemars::JsonSchema;
use serde::Serialize;

use crate::device::counts::Disk;
use crate::device::seen::Seen;
use crate::device::sizes::{Demand, Life, RamSize, DAY};
use crate::predict::bits::look::{Look, Stretch};
use crate::SCHEMA_VERSION;

/// What could leave is asked for these ages, in seconds.
const AGES: [f64; 2] = [60.0, 600.0];
/// Smaller sizes of RAM that are asked about.
const SMALLER: usize = 3;

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
    /// Of that, always: the kernel's and shared memory; and what the kernel keeps free.
    pub fixed_bytes: u64,
    /// Mapped files that were referenced in a minute.
    pub files_bytes: u64,
    /// The programs' own memory, in RAM and in swap, at most.
    pub own_bytes: u64,
    /// Own memory that was not referenced for so many seconds; the last one is the longest time that was watched.
    pub cold: Vec<(f64, u64)>,
    /// This RAM, and the next three sizes that RAM is sold in, with which something has to leave.
    pub sizes: Vec<RamSize>,
    /// The disk that swap on flash would write to.
    pub disk: Option<Disk>,
    /// Bytes that are written to it a day now.
    pub written_a_day: Option<f64>,
    /// Its life, if it goes on like that.
    pub life: Life,
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
        let in_use = memory.total_bytes.min(fixed + files as u64 + private);
        let sizes =
            std::iter::once(memory.total_bytes).chain(smaller(in_use)).map(|ram| demand.with_ram(ram)).collect();
        DeviceAnswer {
            schema_version: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION"),
            needed_bytes: needed,
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
        notes.push(format!("The kernel killed {} processes for lack of memory", seen.traffic.killed));
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
        notes.push("This kernel has no zram: it needs CONFIG_ZRAM (Debian: modprobe zram)".into());
    }
    if seen.windows.len() < 5 || cold.last().is_some_and(|(age, _)| *age < AGES[0]) {
        notes.push(
            "Watched for a short time: an hour or a day of ordinary work says more \
             (--for 1h, --for 24h --save FILE)"
                .into(),
        );
    }
    match sheet.map(Sheet::cycles) {
        None => notes.push("The flash's life needs its sheet: --device SHEET".into()),
        Some(Err(error)) => notes.push(format!("The flash's life is not known: {error}")),
        Some(Ok(_)) => {}
    }
    notes
}

/// The next sizes that RAM is sold in: powers of two, and one and a half of them.
fn smaller(bytes: u64) -> impl Iterator<Item = u64> {
    let sizes = (20..63).rev().flat_map(|power| [3u64 << (power - 1), 1 << power]);
    sizes.skip_while(move |size| *size >= bytes).take(SMALLER)
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
        let device = DeviceAnswer::new(seen(), None);
        let sizes: Vec<_> = device.sizes.iter().map(|size| size.ram_bytes / MIB).collect();
        // All there is takes 450 MiB.
        assert_eq!(sizes, [512, 384, 256, 192]);
        let [all, most, half, least] = [0, 1, 2, 3].map(|i| &device.sizes[i]);
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
            DeviceAnswer::new(with_cut, None).sizes[2].flash,
            *flash,
            "a stretch that a signal cut short says nothing"
        );
        assert!(!least.flash.fits && least.flash.stall.1.is_none(), "42 MiB are less than what is used all the time");
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
        let half = &device.sizes[2].flash;
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
        assert!(DeviceAnswer::new(seen(), Some(&onenand)).notes.join("; ").contains("endurance.cycles"));
    }
}
