//! What less RAM costs a device, with zram and with swap on its flash (the equations are in `device_answer`).

use coldframe_core::{Bytes, Ps};
use coldframe_proc::PAGE;
use coldframe_sheet::flash::{self, Moved};
use coldframe_sheet::sheet::Sheet;

use crate::device::answer::{Device, Life, Plan, Size, Swap, DAY};
use crate::device::pages::Packed;
use crate::device::seen::Stretch;

/// Room in a zram for more than was seen; and its sizes are multiples of this.
const ROOM: f64 = 1.25;
const STEP: u64 = 16 << 20;
/// The largest part of RAM that the kernel keeps free: one and a half times khugepaged's 5 % (mm/khugepaged.c).
const RESERVE_MAX: f64 = 0.075;
/// With zstd it may stall for this part of the time, since it takes less RAM; else lz4, which is faster.
const ZSTD_STALL: f64 = 0.01;
/// A device that waits for a larger part of the time cannot be used.
const STALL_MAX: f64 = 0.2;

impl Device {
    pub(crate) fn size(&self, ram_bytes: u64, sheet: Option<&Sheet>) -> Size {
        let pages = &self.seen.pages;
        let (zstd, lz4) = (self.zram(ram_bytes, "zstd", &pages.zstd), self.zram(ram_bytes, "lz4", &pages.lz4));
        let longest = |swap: &Swap| swap.stall.1.unwrap_or(f64::INFINITY);
        let faster = |lz4: &Swap, zstd: &Swap| longest(zstd) > ZSTD_STALL && longest(lz4) < longest(zstd);
        let zram = zstd.zip(lz4).map(|(zstd, lz4)| if lz4.fits && faster(&lz4, &zstd) { lz4 } else { zstd });
        Size { ram_bytes, zram, flash: self.flash(ram_bytes, sheet) }
    }

    /// What is left for the programs' own memory.
    fn room(&self, ram_bytes: u64) -> f64 {
        let reserve = (self.seen.memory.reserve_bytes as f64).min(RESERVE_MAX * ram_bytes as f64);
        ram_bytes as f64 - (self.fixed_bytes + self.files_bytes) as f64 - reserve
    }

    fn zram(&self, ram_bytes: u64, algorithm: &str, packed: &Packed) -> Option<Swap> {
        let share = self.seen.pages.share(packed)?.clamp(0.001, 1.0);
        let (own, room) = (self.own_bytes as f64, self.room(ram_bytes));
        let out = ((own - room) / (1.0 - share).max(1e-9)).max(0.0);
        let (pack, unpack) = self.seen.pages.mean_us(packed);
        let touch = self.seen.pages.touch_us;
        // What leaves goes to make room for what comes back: the same time, if a processor has none to spare.
        let (low, high) = (unpack + touch, 2.0 * (unpack + pack + touch));
        let unused = self.cold.first().map_or(0, |(_, bytes)| *bytes) as f64;
        let disk = (out.min(own) * ROOM).max(unused).max(1.0);
        let disk_bytes = (disk as u64).next_multiple_of(STEP);
        let limit_bytes = ((disk_bytes as f64 * share * ROOM) as u64).next_multiple_of(1 << 20);
        let plan = Some(Plan { disk_bytes, algorithm: algorithm.into(), share, limit_bytes });
        let swap = self.swap(out, own, (low, high));
        Some(Swap { plan, life: self.life, ..swap })
    }

    fn flash(&self, ram_bytes: u64, sheet: Option<&Sheet>) -> Swap {
        let (own, room) = (self.own_bytes as f64, self.room(ram_bytes));
        let times = sheet
            .and_then(|sheet| Some((sheet.load().ok()? + sheet.transfer().ok()?, sheet.program().unwrap_or(Ps(0)))));
        let us = |time: Ps| time.0 as f64 / 1e6;
        let measured = self.seen.disk_us.map(|[low, _, high]| (low, high));
        let price =
            times.map(|(load, program)| (us(load), us(load + program))).or(measured).unwrap_or((0.0, f64::INFINITY));
        let mut swap = self.swap((own - room).max(0.0), own, price);
        let written = |back: f64| back * PAGE as f64 * DAY;
        let (low, about, high) = swap.back_per_second;
        swap.written_a_day = (written(low), written(about), high.map(written));
        swap.life = self.life_with(sheet, (swap.written_a_day.0, swap.written_a_day.2));
        swap.joules_a_day = sheet.and_then(|sheet| joules(sheet, swap.written_a_day.1));
        swap
    }

    /// `price`: microseconds for a page that comes back, at least and at most.
    fn swap(&self, out: f64, own: f64, (cheap, dear): (f64, f64)) -> Swap {
        if out <= 0.0 {
            let (back_per_second, stall) = ((0.0, 0.0, Some(0.0)), (0.0, Some(0.0)));
            return Swap { fits: true, back_per_second, stall, ..Swap::default() };
        }
        // A signal cuts a stretch short, and one at the end of a day may be short.
        let seconds = |stretch: &&Stretch| stretch.looks.last().map_or(0.0, |look| look.window.seconds);
        let longest = self.seen.stretches.iter().map(|stretch| seconds(&stretch)).fold(0.0, f64::max);
        let long = self.seen.stretches.iter().filter(|stretch| 2.0 * seconds(stretch) >= longest);
        let all: Vec<_> = long.map(|stretch| back(stretch, stretch.own_bytes as f64 - out)).collect();
        let mean = |of: &dyn Fn(&(f64, f64, Option<f64>)) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        let high = all.iter().all(|one| one.2.is_some()).then(|| mean(&|one| one.2.unwrap_or(0.0)));
        let (low, about) = if all.is_empty() { (0.0, 0.0) } else { (mean(&|one| one.0), mean(&|one| one.1)) };
        let longest = high.map(|high| high * dear / 1e6).filter(|stall| stall.is_finite());
        // An unknown most: more than was watched shows.
        let fits = out < own && longest.is_some_and(|stall| stall < STALL_MAX) && !all.is_empty();
        Swap {
            out_bytes: out.min(own) as u64,
            fits,
            back_per_second: (low, about, high),
            stall: (low * cheap / 1e6, longest),
            ..Swap::default()
        }
    }

    /// With more bytes a day than now.
    pub(crate) fn life_with(&self, sheet: Option<&Sheet>, more: (f64, Option<f64>)) -> Life {
        let years = |more: f64| {
            let (sheet, now) = (sheet?, self.written_a_day?);
            let area = sheet.capacity().ok().or(self.disk.as_ref().map(|disk| Bytes(disk.size_bytes)))?;
            let erases = flash::erases_even(Bytes((now + more) as u64), area);
            flash::life_years(sheet.cycles().ok()?, erases, DAY * 1e9)
        };
        (more.1.and_then(years), years(more.0))
    }

    /// `vm.swappiness`: Documentation/admin-guide/sysctl/vm.rst gives it as the part, of 200, that reading from the
    /// file system costs of both.
    pub(crate) fn swappiness_with(&self, sheet: Option<&Sheet>) -> u64 {
        let sheets = sheet.and_then(|sheet| Some((sheet.load().ok()? + sheet.transfer().ok()?).0 as f64 / 1e6));
        let Some(file) = sheets.or(self.seen.disk_us.map(|[_, mean, _]| mean)) else { return 100 };
        let (pack, unpack) = self.seen.pages.mean_us(&self.seen.pages.lz4);
        let zram = pack + unpack + self.seen.pages.touch_us;
        (200.0 * file / (file + zram)).round().clamp(100.0, 180.0) as u64
    }
}

/// Pages that come back a second if so many bytes of a stretch's stay: at least, about, at most.
fn back(stretch: &Stretch, stay: f64) -> (f64, f64, Option<f64>) {
    let looks = &stretch.looks;
    let rate = |from: usize| {
        let [a, b] = [from, from + 1].map(|at| looks[at]);
        let bytes = b.again_bytes.saturating_sub(a.again_bytes) as f64;
        bytes / PAGE as f64 / (b.window.seconds - a.window.seconds).max(1e-9)
    };
    if looks.len() < 2 {
        return (0.0, 0.0, None);
    }
    let hot = |at: usize| looks[at].window.own_bytes as f64;
    let last = looks.len() - 1;
    match (0..looks.len()).find(|i| hot(*i) > stay) {
        // Less than the first look: at least as many as there.
        Some(0) => (rate(0), rate(0), None),
        Some(next) => {
            let sides = [next.saturating_sub(2), next - 1, next.min(last - 1)].map(rate);
            let least = sides.into_iter().fold(f64::INFINITY, f64::min);
            (least, sides[1], Some(sides.into_iter().fold(0.0, f64::max)))
        }
        // All that was referenced stays.
        None => (0.0, 0.0, Some(rate(last - 1))),
    }
}

/// Joules for so many bytes out and as many back, whose parts of blocks count as such.
fn joules(sheet: &Sheet, bytes: f64) -> Option<f64> {
    let block = sheet.block().ok()?;
    let energy = flash::energy(sheet, Moved { read: block, written: block }).ok()?;
    Some(bytes / block.0 as f64 * flash::total(&energy).0 as f64 / 1e12)
}
