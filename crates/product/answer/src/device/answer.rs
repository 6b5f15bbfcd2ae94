//! What was watched of a device becomes its answer: the RAM that was needed, what could leave, and what less RAM costs
//! with zram and with swap on its flash.
//!
//! ```text
//!   fixed = kernel + shared memory + reserve        files = mapped files referenced in a minute        own = the programs' own
//!   zram:  fixed + files + own - out + c out = RAM            flash:  fixed + files + own - out = RAM
//!   own - out bytes are those referenced in the last T seconds (LRU): pages that come back = d again / dT at T (Denning 1968)
//!   stall = pages that come back x price;   to flash a day = pages that leave = pages that come back, in the long run
//! ```
//! Files that are read and not mapped are not in it: how much of them is needed is not seen.

use coldframe_sheet::quantity::human_size;
use coldframe_sheet::sheet::Sheet;
use schemars::JsonSchema;
use serde::Serialize;

use crate::device::counts::Disk;
use crate::device::seen::{Look, Seen, Stretch};
use crate::SCHEMA_VERSION;

/// What could leave is asked for these ages, in seconds.
const AGES: [f64; 2] = [60.0, 600.0];
/// Seconds of a day.
pub(crate) const DAY: f64 = 86_400.0;
/// Smaller sizes of RAM that are asked about.
const SMALLER: usize = 3;

/// The answer for a device.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Device {
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
    pub sizes: Vec<Size>,
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

/// A size of RAM.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Size {
    /// It.
    pub ram_bytes: u64,
    /// With compressed RAM; null: no page could be read.
    pub zram: Option<Swap>,
    /// With swap on the flash.
    pub flash: Swap,
}

/// What swap holds and costs at a size of RAM.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct Swap {
    /// Bytes of pages that have to leave RAM.
    pub out_bytes: u64,
    /// Whether the rest fits.
    pub fits: bool,
    /// The zram to make for it.
    pub plan: Option<Plan>,
    /// Pages that come back a second: at least, about, and at most; the last is null: more than was watched shows.
    pub back_per_second: (f64, f64, Option<f64>),
    /// The part of the time for which some process waits: at least and at most.
    pub stall: (f64, Option<f64>),
    /// Bytes to the flash a day, in addition to what is written now: at least, about and at most.
    pub written_a_day: (f64, f64, Option<f64>),
    /// The flash's life with all writes.
    pub life: Life,
    /// Joules of the flash for that, a day; null: its sheet has no energies.
    pub joules_a_day: Option<f64>,
}

/// A compressed device.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct Plan {
    /// Its size: the most bytes of pages in it.
    pub disk_bytes: u64,
    /// `lz4` or `zstd`.
    pub algorithm: String,
    /// The part of its size that a page takes.
    pub share: f64,
    /// The most RAM that it may take.
    pub limit_bytes: u64,
}

/// Years until the flash is worn: at least and at most; null: not known.
pub type Life = (Option<f64>, Option<f64>);

impl Device {
    /// The answer. `sheet`: of the flash, for its life, times and energy.
    pub fn of(seen: Seen, sheet: Option<&Sheet>) -> Device {
        let memory = seen.memory;
        let fixed = memory.kernel_bytes + memory.shared_bytes;
        let files = seen
            .stretches
            .iter()
            .map(|stretch| at(stretch, AGES[0], |look| look.window.file_bytes as f64))
            .fold(0.0, f64::max);
        let most = |all: &mut dyn Iterator<Item = u64>| all.max().unwrap_or(0);
        let own = most(&mut seen.stretches.iter().map(|stretch| stretch.own_bytes));
        let mut windows: Vec<u64> =
            seen.windows.iter().map(|one| fixed + memory.reserve_bytes + one.own_bytes + one.file_bytes).collect();
        windows.sort_unstable();
        let rank = |part: f64| windows[((windows.len() as f64 * part).ceil() as usize).clamp(1, windows.len()) - 1];
        let needed = (!windows.is_empty()).then(|| [rank(0.5), rank(0.95), rank(1.0)]);
        let disk = seen.disks.iter().max_by_key(|disk| (disk.written_bytes, disk.size_bytes)).cloned();
        let written =
            disk.as_ref().filter(|_| seen.seconds > 0.0).map(|disk| disk.written_bytes as f64 * DAY / seen.seconds);
        let mut device = Device {
            schema_version: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION"),
            needed_bytes: needed,
            fixed_bytes: fixed,
            files_bytes: files as u64,
            own_bytes: own,
            cold: cold(&seen),
            sizes: Vec::new(),
            written_a_day: written,
            life: (None, None),
            sheet: sheet.map(|sheet| sheet.name.clone()),
            swappiness: 0,
            notes: Vec::new(),
            disk,
            seen,
        };
        device.swappiness = device.swappiness_with(sheet);
        device.life = device.life_with(sheet, (0.0, Some(0.0)));
        let sizes =
            std::iter::once(memory.total_bytes).chain(smaller(memory.total_bytes.min(fixed + files as u64 + own)));
        device.sizes = sizes.map(|ram| device.size(ram, sheet)).collect();
        device.notes = device.notes(sheet);
        device
    }

    fn notes(&self, sheet: Option<&Sheet>) -> Vec<String> {
        let (seen, mut all) = (&self.seen, Vec::new());
        let memory = seen.memory;
        let unmapped = memory.file_bytes.saturating_sub(memory.mapped_bytes);
        all.push(format!(
            "{} of files were in RAM that are read, not mapped: how much of them is needed is not seen ({} pages of files came back soon after they had left)",
            human_size(unmapped),
            seen.traffic.file_refaults
        ));
        if seen.swaps.iter().any(|(_, size, used)| *used > size - size / 20) {
            all.push("A swap area is full: what could not leave is still in RAM, and processes may be killed".into());
        }
        if seen.traffic.killed > 0 {
            all.push(format!("The kernel killed {} processes for lack of memory", seen.traffic.killed));
        }
        if 2 * memory.huge_bytes > memory.own_bytes {
            all.push("More than half of the programs' own memory is in huge pages, which have one bit for 2 MiB: less is needed than this says".into());
        }
        if seen.pages.pages == 0 {
            all.push("No page could be read (/proc/PID/mem), so zram is not answered".into());
        }
        if !seen.zram {
            all.push("This kernel has no zram: it needs CONFIG_ZRAM (Debian: modprobe zram)".into());
        }
        if seen.windows.len() < 5 || self.cold.last().is_some_and(|(age, _)| *age < AGES[0]) {
            all.push("Watched for a short time: an hour or a day of ordinary work says more (--for 1h, --for 24h --save FILE)".into());
        }
        match sheet.map(Sheet::cycles) {
            None => all.push("The flash's life needs its sheet: --device SHEET".into()),
            Some(Err(error)) => all.push(format!("The flash's life is not known: {error}")),
            Some(Ok(_)) => {}
        }
        all
    }
}

/// The next sizes that RAM is sold in: powers of two, and one and a half of them.
fn smaller(bytes: u64) -> impl Iterator<Item = u64> {
    let all = (20..63).rev().flat_map(|power| [3u64 << (power - 1), 1 << power]);
    all.skip_while(move |size| *size >= bytes).take(SMALLER)
}

/// Own memory that was not referenced, by age; the last one is the longest that was watched.
fn cold(seen: &Seen) -> Vec<(f64, u64)> {
    let longest = |stretch: &Stretch| stretch.looks.last().map_or(0.0, |look| look.window.seconds);
    let Some(stretch) = seen.stretches.iter().max_by(|a, b| longest(a).total_cmp(&longest(b))) else {
        return Vec::new();
    };
    let end = longest(stretch);
    let ages = AGES.into_iter().filter(|age| *age < end).chain([end]);
    ages.map(|age| {
        let hot = at(stretch, age, |look| look.window.own_bytes as f64);
        (age, (stretch.own_bytes as f64 - hot).max(0.0) as u64)
    })
    .collect()
}

/// A number of a stretch's looks at an age, between looks by a straight line.
fn at(stretch: &Stretch, age: f64, number: fn(&Look) -> f64) -> f64 {
    let (mut time, mut value) = (0.0, 0.0);
    for look in &stretch.looks {
        let (next, there) = (look.window.seconds, number(look));
        if next >= age {
            return value + (there - value) * (age - time) / (next - time).max(1e-9);
        }
        (time, value) = (next, there);
    }
    value
}

#[cfg(test)]
mod tests {
    use coldframe_sheet::sheet;

    use super::*;
    use crate::device::counts::Memory;
    use crate::device::pages::{Packed, Pages};
    use crate::device::seen::Window;

    const MIB: u64 = 1 << 20;

    /// 100 MiB of the kernel's, 50 MiB of files, 300 MiB of the programs' own: 100 MiB of it all the time, 1 MiB more
    /// each second from then on, until after 100 s 100 MiB are left that nobody uses. A page of zram takes a quarter.
    fn seen() -> Seen {
        let window = |seconds: f64, own: u64| Window { seconds, own_bytes: own * MIB, file_bytes: 50 * MIB };
        let look = |seconds: f64| {
            let again = 100 * MIB + (seconds.min(100.0) * MIB as f64) as u64;
            Look { window: Window { own_bytes: again, ..window(seconds, 0) }, again_bytes: again }
        };
        let looks: Vec<Look> = (0..14).map(|i| look(1.5f64.powi(i))).collect();
        let packed =
            Packed { stored_bytes: 1024 * 1000, unpack_us: 1000.0 * 5.0, pack_us: 1000.0 * 10.0, incompressible: 0 };
        let disk = Disk { name: "mmcblk0".into(), size_bytes: 1 << 30, written_bytes: 10 * MIB, ..Disk::default() };
        Seen {
            seconds: 200.0,
            memory: Memory {
                total_bytes: 512 * MIB,
                kernel_bytes: 90 * MIB,
                shared_bytes: 10 * MIB,
                ..Memory::default()
            },
            windows: (1..=20).map(|i| window(10.0, 100 + i)).collect(),
            stretches: vec![Stretch { own_bytes: 300 * MIB, looks }],
            pages: Pages { pages: 1000, lz4: packed, zstd: packed, touch_us: 1.0, same_filled: 0 },
            disks: vec![disk],
            disk_us: Some([100.0, 200.0, 400.0]),
            zram: true,
            ..Seen::default()
        }
    }

    #[test]
    fn what_was_needed_is_the_kernels_the_files_and_the_programs_own_by_windows() {
        let device = Device::of(seen(), None);
        assert_eq!(device.needed_bytes.unwrap().map(|bytes| bytes / MIB), [260, 269, 270]);
        let cold: Vec<_> = device.cold.iter().map(|(age, bytes)| (age.round(), bytes / MIB)).collect();
        // After 60 s 160 of the 300 MiB were used, after all 200.
        assert_eq!((cold[0], cold.last().unwrap().1), ((60.0, 140), 100));
    }

    #[test]
    fn sizes_are_sold_ones_in_which_something_leaves_and_zram_takes_its_part() {
        let device = Device::of(seen(), None);
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
        let cut = Stretch { own_bytes: 300 * MIB, looks: vec![Look::default()] };
        let with_cut = Seen { stretches: [seen().stretches, vec![cut]].concat(), ..seen() };
        assert_eq!(Device::of(with_cut, None).sizes[2].flash, *flash, "a stretch that a signal cut short says nothing");
        assert!(!least.flash.fits && least.flash.stall.1.is_none(), "42 MiB are less than what is used all the time");
    }

    #[test]
    fn the_flash_lives_as_long_as_its_sheet_and_all_writes_say() {
        let sheet = sheet::find("LOBI-NAND").unwrap();
        let device = Device::of(seen(), Some(&sheet));
        // 10 MiB in 200 s are 4320 MiB a day.
        let (now, area) = (10.0 * MIB as f64 * DAY / 200.0, sheet.capacity().map_or(1u64 << 30, |bytes| bytes.0));
        let years = |a_day: f64| sheet.cycles().unwrap() as f64 * area as f64 / a_day / 365.25;
        let life = device.life.1.unwrap();
        assert!((life / years(now) - 1.0).abs() < 1e-6, "{life}");
        let half = &device.sizes[2].flash;
        let with_swap = half.life.1.unwrap();
        assert!((with_swap / years(now + half.written_a_day.0) - 1.0).abs() < 1e-6 && with_swap < life, "{half:?}");
        assert_eq!(Device::of(seen(), None).life, (None, None));
    }

    #[test]
    fn what_is_not_known_is_said() {
        let nothing = Device::of(Seen::default(), None);
        let notes = nothing.notes.join("; ");
        for words in ["No page could be read", "no zram", "short time", "--device"] {
            assert!(notes.contains(words), "{words}: {notes}");
        }
        assert!(nothing.needed_bytes.is_none() && nothing.sizes.iter().all(|size| size.zram.is_none()));
        let full = Seen { swaps: vec![("/swap".into(), 100, 99)], ..seen() };
        assert!(Device::of(full, None).notes.join("; ").contains("full"));
        let onenand = sheet::find("KFG5616").unwrap();
        assert!(Device::of(seen(), Some(&onenand)).notes.join("; ").contains("endurance.cycles"));
    }
}
