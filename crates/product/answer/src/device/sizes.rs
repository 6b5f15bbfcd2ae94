//! What less RAM costs a device, with zram and with swap on its flash.
//!
//! ```text
//!   fixed = kernel + shared memory + reserve
//!   files = mapped files referenced in a minute        private = the programs' own memory
//!   zram:  fixed + files + private - out + c out = RAM         flash:  fixed + files + private - out = RAM
//!   pages that come back = faults with private - out bytes (`predict::bits::faults`)
//!   stall = pages that come back x price;   to flash a day = pages that leave = pages that come back, in the long run
//! ```

use coldframe_core::{Bytes, Ps};
use coldframe_proc::PAGE;
use coldframe_sheet::flash::{self, FlashKind, Moved};
use coldframe_sheet::sheet::Sheet;
use schemars::JsonSchema;
use serde::Serialize;

use crate::device::counts::Disk;
use crate::device::seen::Seen;
use crate::predict::bits::faults::{covered, in_stretch, Faults};
use crate::predict::bits::look::Stretch;
use crate::predict::bits::page_sample::Compression;

/// Seconds of a day.
pub const DAY: f64 = 86_400.0;
/// Room in a zram for more than was seen; and its sizes are multiples of this.
const ROOM: f64 = 1.25;
const STEP: u64 = 16 << 20;
/// The largest part of RAM that the kernel keeps free: one and a half times khugepaged's 5 % (mm/khugepaged.c).
const RESERVE_MAX: f64 = 0.075;
/// With zstd it may stall for this part of the time, since it takes less RAM; else lz4, which is faster.
const ZSTD_STALL: f64 = 0.01;
/// A device that waits for a larger part of the time cannot be used.
const STALL_MAX: f64 = 0.2;

/// A size of RAM.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct RamSize {
    /// It.
    pub ram_bytes: u64,
    /// With compressed RAM; null: no page could be read.
    pub zram: Option<Swap>,
    /// With swap on the flash.
    pub flash: Swap,
}

/// What is known of a size of RAM with its swap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RamVerdict {
    /// Processes wait for less than a fifth of the time.
    #[default]
    Fits,
    /// They may wait for that long, or not.
    MayWait,
    /// How long they wait at most was not seen: no look was that short, or no price is known.
    NotSeen,
    /// They wait for a fifth or more, or more has to leave than can.
    TooSmall,
}

/// What swap holds and costs at a size of RAM.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct Swap {
    /// Bytes of pages that have to leave RAM.
    pub out_bytes: u64,
    /// Whether the rest is known to fit.
    pub fits: bool,
    /// What is known of it.
    pub verdict: RamVerdict,
    /// The zram to make for it.
    pub plan: Option<ZramPlan>,
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
pub struct ZramPlan {
    /// Its size: the most bytes of pages in it.
    pub disk_bytes: u64,
    /// `lz4` or `zstd`.
    pub algorithm: String,
    /// The part of its size that a page takes.
    pub share: f64,
    /// The most RAM that it may take.
    pub limit_bytes: u64,
}

/// The life of a kind of flash: a range of its kind, not a number of this device.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct KindLife {
    /// As `TLC`.
    pub kind: &'static str,
    /// Erases that a block of this kind is rated for: from and to.
    pub cycles: [u64; 2],
    /// Years at what is written now: from and to.
    pub years: [f64; 2],
    /// Who says so.
    pub source: &'static str,
}

/// Years until the flash is worn: at least and at most; null: not known.
pub type Life = (Option<f64>, Option<f64>);

/// What a device needs, whatever its RAM, and its flash.
#[derive(Clone, Copy)]
pub(crate) struct Demand<'a> {
    pub seen: &'a Seen,
    /// The kernel's and shared memory.
    pub fixed_bytes: u64,
    /// Mapped files that were referenced in a minute.
    pub files_bytes: u64,
    /// The programs' own memory, in RAM and in swap, at most.
    pub private_bytes: u64,
    /// Of that, bytes that were not referenced for a minute.
    pub unused_bytes: u64,
    /// The disk, and the bytes that are written to it a day now.
    pub disk: Option<&'a Disk>,
    pub written_a_day: Option<f64>,
    pub sheet: Option<&'a Sheet>,
}

impl Demand<'_> {
    /// What this much RAM costs.
    pub fn with_ram(&self, ram_bytes: u64) -> RamSize {
        let pages = &self.seen.pages;
        let (zstd, lz4) = (self.zram(ram_bytes, "zstd", &pages.zstd), self.zram(ram_bytes, "lz4", &pages.lz4));
        let longest = |swap: &Swap| swap.stall.1.unwrap_or(f64::INFINITY);
        let faster = |lz4: &Swap, zstd: &Swap| longest(zstd) > ZSTD_STALL && longest(lz4) < longest(zstd);
        let better = |lz4: &Swap, zstd: &Swap| lz4.verdict < zstd.verdict || lz4.fits && faster(lz4, zstd);
        let zram = zstd.zip(lz4).map(|(zstd, lz4)| if better(&lz4, &zstd) { lz4 } else { zstd });
        RamSize { ram_bytes, zram, flash: self.flash(ram_bytes) }
    }

    /// What is left for the programs' own memory.
    fn room(&self, ram_bytes: u64) -> f64 {
        let reserve = (self.seen.memory.reserve_bytes as f64).min(RESERVE_MAX * ram_bytes as f64);
        ram_bytes as f64 - (self.fixed_bytes + self.files_bytes) as f64 - reserve
    }

    fn zram(&self, ram_bytes: u64, algorithm: &str, compression: &Compression) -> Option<Swap> {
        let share = self.seen.pages.share(compression)?.clamp(0.001, 1.0);
        let (private, room) = (self.private_bytes as f64, self.room(ram_bytes));
        let out = ((private - room) / (1.0 - share).max(1e-9)).max(0.0);
        let (pack, unpack) = self.seen.pages.mean_us(compression);
        let touch = self.seen.pages.touch_us;
        // What leaves goes to make room for what comes back: the same time, if a processor has none to spare.
        let (low, high) = (unpack + touch, 2.0 * (unpack + pack + touch));
        let disk = (out.min(private).max(self.unused_bytes as f64) * ROOM).max(1.0);
        let disk_bytes = (disk as u64).next_multiple_of(STEP);
        let limit_bytes = ((disk_bytes as f64 * share * ROOM) as u64).next_multiple_of(1 << 20);
        let plan = Some(ZramPlan { disk_bytes, algorithm: algorithm.into(), share, limit_bytes });
        let swap = self.swap(out, (low, high));
        Some(Swap { plan, life: self.life((0.0, Some(0.0))), ..swap })
    }

    fn flash(&self, ram_bytes: u64) -> Swap {
        let times = self
            .sheet
            .and_then(|sheet| Some((sheet.load().ok()? + sheet.transfer().ok()?, sheet.program().unwrap_or(Ps(0)))));
        let us = |time: Ps| time.0 as f64 / 1e6;
        let measured = self.seen.disk_us.map(|[low, _, high]| (low, high));
        let price =
            times.map(|(load, program)| (us(load), us(load + program))).or(measured).unwrap_or((0.0, f64::INFINITY));
        let mut swap = self.swap((self.private_bytes as f64 - self.room(ram_bytes)).max(0.0), price);
        let written = |back: f64| back * PAGE as f64 * DAY;
        let (low, about, high) = swap.back_per_second;
        swap.written_a_day = (written(low), written(about), high.map(written));
        swap.life = self.life((swap.written_a_day.0, swap.written_a_day.2));
        swap.joules_a_day = self.sheet.and_then(|sheet| joules(sheet, swap.written_a_day.1));
        swap
    }

    /// `price`: microseconds for a page that comes back, at least and at most.
    fn swap(&self, out: f64, (cheap, dear): (f64, f64)) -> Swap {
        if out <= 0.0 {
            let (back_per_second, stall) = ((0.0, 0.0, Some(0.0)), (0.0, Some(0.0)));
            return Swap { fits: true, back_per_second, stall, ..Swap::default() };
        }
        let (Faults { low, about, high }, known) = self.faults_per_second(out);
        let high = known.then_some(high);
        let longest = high.map(|high| high * dear / 1e6).filter(|stall| stall.is_finite());
        let private = self.private_bytes as f64;
        let verdict = match longest {
            _ if out >= private || low * cheap / 1e6 >= STALL_MAX => RamVerdict::TooSmall,
            None => RamVerdict::NotSeen,
            Some(stall) if stall < STALL_MAX => RamVerdict::Fits,
            Some(_) => RamVerdict::MayWait,
        };
        Swap {
            out_bytes: out.min(private) as u64,
            fits: verdict == RamVerdict::Fits,
            verdict,
            back_per_second: (low, about, high),
            stall: (low * cheap / 1e6, longest),
            ..Swap::default()
        }
    }

    /// Faults a second if so many bytes are out, and whether that is so little that the first looks show it. A stretch
    /// that a signal cut short, or that is the short one at the end of a day, says nothing.
    fn faults_per_second(&self, out: f64) -> (Faults, bool) {
        let stretches = &self.seen.stretches;
        let longest = stretches.iter().map(Stretch::seconds).fold(0.0, f64::max);
        let long: Vec<&Stretch> =
            stretches.iter().filter(|stretch| longest > 0.0 && 2.0 * stretch.seconds() >= longest).collect();
        let stays = |stretch: &Stretch| (stretch.private_bytes as f64 - out) / PAGE as f64;
        let seconds: f64 = long.iter().map(|stretch| stretch.seconds()).sum();
        let sum: Faults = long.iter().map(|stretch| in_stretch(stretch, stays(stretch))).sum();
        let known = !long.is_empty() && long.iter().all(|stretch| stays(stretch) >= covered([*stretch]));
        let part = |faults: f64| faults / seconds.max(1e-9);
        (Faults { low: part(sum.low), about: part(sum.about), high: part(sum.high) }, known)
    }

    /// With more bytes a day than now.
    pub fn life(&self, more: (f64, Option<f64>)) -> Life {
        let years = |more: f64| self.years(self.sheet?.cycles().ok()?, more);
        (more.1.and_then(years), years(more.0))
    }

    /// With so many erases a block, and more bytes a day than now.
    fn years(&self, cycles: u64, more: f64) -> Option<f64> {
        let sheet = self.sheet.and_then(|sheet| sheet.capacity().ok());
        let area = sheet.or(self.disk.map(|disk| Bytes(disk.size_bytes)))?;
        let erases = flash::erases_even(Bytes((self.written_a_day? + more) as u64), area);
        flash::life_years(cycles, erases, DAY * 1e9)
    }

    /// By kinds of flash, since the device's own erases are not known; none if they are.
    pub fn life_by_kind(&self) -> Vec<KindLife> {
        let life = |kind: &FlashKind| {
            let [low, high] = kind.cycles;
            let years = [self.years(low, 0.0)?, self.years(high, 0.0)?];
            Some(KindLife { kind: kind.name, cycles: kind.cycles, years, source: kind.source })
        };
        match self.sheet.map(Sheet::cycles) {
            Some(Ok(_)) => Vec::new(),
            _ => flash::KINDS.iter().filter_map(life).collect(),
        }
    }

    /// `vm.swappiness`: Documentation/admin-guide/sysctl/vm.rst gives it as the part, of 200, that reading from the
    /// file system costs of both.
    pub fn swappiness(&self) -> u64 {
        let time = self.sheet.and_then(|sheet| Some((sheet.load().ok()? + sheet.transfer().ok()?).0 as f64 / 1e6));
        let Some(file) = time.or(self.seen.disk_us.map(|[_, mean, _]| mean)) else { return 100 };
        let (pack, unpack) = self.seen.pages.mean_us(&self.seen.pages.lz4);
        let zram = pack + unpack + self.seen.pages.touch_us;
        (200.0 * file / (file + zram)).round().clamp(100.0, 180.0) as u64
    }
}

/// Joules for so many bytes out and as many back.
fn joules(sheet: &Sheet, bytes: f64) -> Option<f64> {
    let block = sheet.block().ok()?;
    let energy = flash::energy(sheet, Moved { read: block, written: block }).ok()?;
    Some(bytes / block.0 as f64 * flash::total(&energy).0 as f64 / 1e12)
}
