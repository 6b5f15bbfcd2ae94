//! What a swap area does to its flash: time, write amplification, wear, life. Pure functions of counts and a sheet.

use coldframe_core::{Bytes, Ps};

use coldframe_sheet::sheet::{Sheet, SheetError};
use coldframe_sheet::time;

/// Operations on a flash, in slots and blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Operations {
    /// Slots read for a fault or a prefetch.
    pub reads: u64,
    /// Slots programmed from RAM.
    pub programs: u64,
    /// Slots that a collection read and programmed anew.
    pub copies: u64,
    pub erases: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlashTime {
    /// Reads, transfer included.
    pub reading: Ps,
    /// Programs from RAM, transfer included.
    pub programming: Ps,
    /// Collections: copies, which stay within the device (copy-back), and erases.
    pub collecting: Ps,
}

impl FlashTime {
    pub fn total(&self) -> Ps {
        self.reading + self.programming + self.collecting
    }
}

/// The device's time for these operations on slots of `slot` bytes, one after the other.
pub fn flash_time(sheet: &Sheet, slot: Bytes, done: Operations) -> Result<FlashTime, SheetError> {
    let (load, program) = (time::load(sheet, slot)?, time::program(sheet, slot)?);
    let transfer = time::transfer(sheet, slot)?;
    Ok(FlashTime {
        reading: (load + transfer) * done.reads,
        programming: (program + transfer) * done.programs,
        collecting: (load + program) * done.copies + sheet.erase()? * done.erases,
    })
}

/// Slots programmed for each slot programmed from RAM; `None`: nothing was programmed.
pub fn write_amplification(done: Operations) -> Option<f64> {
    (done.programs > 0).then(|| (done.programs + done.copies) as f64 / done.programs as f64)
}

/// How evenly blocks are worn, in erases.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Wear {
    pub mean: f64,
    /// Standard deviation over all blocks.
    pub deviation: f64,
    pub min: u32,
    pub max: u32,
}

/// The wear of some blocks; all zero for none.
pub fn wear(erases: &[u32]) -> Wear {
    let n = erases.len().max(1) as f64;
    let mean = erases.iter().map(|e| f64::from(*e)).sum::<f64>() / n;
    let variance = erases.iter().map(|e| (f64::from(*e) - mean).powi(2)).sum::<f64>() / n;
    let (min, max) = (erases.iter().min().copied().unwrap_or(0), erases.iter().max().copied().unwrap_or(0));
    Wear { mean, deviation: variance.sqrt(), min, max }
}

/// Nanoseconds of a year of 365.25 days.
const YEAR_NS: f64 = 365.25 * 24.0 * 3600.0 * 1e9;

/// Years until the most worn block has been erased `cycles` times, if the same work continues without a pause and wears
/// the same block most. The wear is that of the last `duration_ns`. `None`: no time has passed, or nothing was erased.
pub fn life_years(wear: &Wear, cycles: u64, duration_ns: u64) -> Option<f64> {
    let wears = wear.max > 0 && duration_ns > 0;
    wears.then(|| cycles as f64 / f64::from(wear.max) * duration_ns as f64 / YEAR_NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_sheet::sheet;

    #[test]
    fn the_slides_flash_weighs_a_copy_ten_reads_and_an_erase_seventy_five() {
        let sheet = sheet::find("LOBI-NAND").unwrap();
        let slot = Bytes(4096);
        let read = time::load(&sheet, slot).unwrap();
        let of = |copies, erases| {
            let done = Operations { copies, erases, ..Operations::default() };
            flash_time(&sheet, slot, done).unwrap().collecting
        };
        assert_eq!((of(1, 0), of(0, 1), of(3, 2)), (read * 10, read * 75, read * 180));
    }

    #[test]
    fn times_add_up_by_hand() {
        let sheet = sheet::find("LOBI-NAND").unwrap();
        let done = Operations { reads: 2, programs: 3, copies: 1, erases: 1 };
        let time = flash_time(&sheet, Bytes(4096), done).unwrap();
        // 2 * (20 + 37.92), 3 * (180 + 37.92), 200 + 1500 us.
        let expected = (Ps(115_840_000), Ps(653_760_000), Ps(1_700_000_000));
        assert_eq!((time.reading, time.programming, time.collecting), expected);
        assert_eq!(write_amplification(done), Some(4.0 / 3.0));
        assert_eq!(write_amplification(Operations::default()), None);
    }

    #[test]
    fn wear_and_life_by_hand() {
        let wear = wear(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!(wear, Wear { mean: 5.0, deviation: 2.0, min: 2, max: 9 });
        // 9 erases an hour: 100,000 of them take 11,111 hours, or 1.2675 years.
        let years = life_years(&wear, 100_000, 3_600_000_000_000).unwrap();
        assert!((years - 100_000.0 / 9.0 / (365.25 * 24.0)).abs() < 1e-9);
        assert_eq!(life_years(&super::wear(&[]), 100_000, 1), None);
        assert_eq!(life_years(&wear, 100_000, 0), None);
    }
}
