//! What swapping does to a flash: its time, energy, wear and life, as pure functions of counts and a sheet.
//!
//! ```text
//! operations  reads = bytes read / page     programs = bytes written / page     erases = bytes written / block
//! time        reads (t_load + t_transfer) + programs (t_transfer + t_program) + copies (t_load + t_program)
//!             + erases t_erase
//! energy      reads (e_load + e_transfer) + programs (e_transfer + e_program) + erases e_erase
//! life        rated erases of a block / (erases of a block / duration)
//! ```
//!
//! The sheet says of each number which page of which data sheet it is from. The device does one operation at a time, so
//! each sum has a term for each operation, and none for overlap. A year has 365.25 days.
//!
//! Of a run only the bytes may be known ([`operations`]). Then reads, programs and erases are rounded up to whole
//! numbers. A log is written block by block through its whole area, so all blocks wear equally, and each block's worth
//! of bytes causes one erase ([`erases_even`]). Copies of a collection come on top. So these erases are a lower bound,
//! and the life is an upper bound.

use coldframe_core::{Bytes, Pj, Ps};

use crate::sheet::{Kind, Sheet, SheetError};
use crate::time;

/// The bytes that a run moved.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Moved {
    /// From the flash.
    pub read: Bytes,
    /// To the flash.
    pub written: Bytes,
}

/// Operations on a flash, in slots and blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Operations {
    /// Slots read for a fault or a prefetch.
    pub reads: u64,
    /// Slots programmed from RAM.
    pub programs: u64,
    /// Slots that a collection read and programmed anew.
    pub copies: u64,
    /// Blocks erased.
    pub erases: u64,
}

/// The operations that move these bytes, in pages and blocks of the flash.
///
/// Erases behind a controller are its own affair: a sheet without a block has none, and their energy is within that of
/// its programs.
///
/// # Errors
/// The sheet has no page; something was written, and the sheet of a bare flash has no block.
pub fn operations(sheet: &Sheet, moved: Moved) -> Result<Operations, SheetError> {
    let page = sheet.page()?.0;
    let erases = match moved.written.0 {
        0 => 0,
        _ if sheet.kind == Kind::Emmc && sheet.block().is_err() => 0,
        written => written.div_ceil(sheet.block()?.0),
    };
    let (reads, programs) = (moved.read.0.div_ceil(page), moved.written.0.div_ceil(page));
    Ok(Operations { reads, programs, copies: 0, erases })
}

/// The time of a flash, by what it did.
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
    /// All of it.
    pub fn total(&self) -> Ps {
        self.reading + self.programming + self.collecting
    }
}

/// The device's time for these operations on slots of `slot` bytes, one after the other.
///
/// # Errors
/// The sheet lacks a time, or the size of a page.
pub fn time(sheet: &Sheet, slot: Bytes, done: Operations) -> Result<FlashTime, SheetError> {
    let (load, program) = (time::load(sheet, slot)?, time::program(sheet, slot)?);
    let transfer = time::transfer(sheet, slot)?;
    Ok(FlashTime {
        reading: (load + transfer) * done.reads,
        programming: (program + transfer) * done.programs,
        collecting: (load + program) * done.copies + sheet.erase()? * done.erases,
    })
}

/// The device's energy for these bytes, by term, without operations that did not happen: these need no number in the
/// sheet.
///
/// # Errors
/// The sheet lacks an energy of what happened, or as [`operations`].
pub fn energy(sheet: &Sheet, moved: Moved) -> Result<Vec<(&'static str, Pj)>, SheetError> {
    let done = operations(sheet, moved)?;
    let mut terms = Vec::new();
    if done.reads > 0 {
        terms.push(("load", sheet.load_energy()? * done.reads));
    }
    if done.reads + done.programs > 0 {
        terms.push(("transfer", sheet.transfer_energy()? * (done.reads + done.programs)));
    }
    if done.programs > 0 {
        terms.push(("program", sheet.program_energy()? * done.programs));
    }
    if done.erases > 0 {
        terms.push(("erase", sheet.erase_energy()? * done.erases));
    }
    Ok(terms)
}

/// The sum of an energy's terms.
pub fn total(terms: &[(&'static str, Pj)]) -> Pj {
    terms.iter().map(|(_, term)| *term).sum()
}

/// Slots programmed for each slot programmed from RAM; `None`: nothing was programmed.
pub fn write_amplification(done: Operations) -> Option<f64> {
    (done.programs > 0).then(|| (done.programs + done.copies) as f64 / done.programs as f64)
}

/// How evenly blocks are worn, in erases.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Wear {
    /// Mean over all blocks.
    pub mean: f64,
    /// Standard deviation over all blocks.
    pub deviation: f64,
    /// Of the least worn block.
    pub min: u32,
    /// Of the most worn block.
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

/// Erases of each block if these bytes are written round an area, and nothing is copied.
pub fn erases_even(written: Bytes, area: Bytes) -> f64 {
    written.0 as f64 / area.0 as f64
}

/// A kind of flash, for a device whose sheet has no cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlashKind {
    /// Its name.
    pub name: &'static str,
    /// Erases that a block is rated for: from and to.
    pub cycles: [u64; 2],
    /// Who says so.
    pub source: &'static str,
}

/// Ranges of kinds: no number of a device. Makers of cards and eMMC do not say which kind is in them, except in
/// industrial ones.
pub const KINDS: [FlashKind; 3] = [
    FlashKind {
        name: "pSLC",
        cycles: [30_000, 100_000],
        source: "Swissbit, 4 reasons to use industrial 3D TLC NAND flash as pseudo-SLC (2023): the earlier and the \
                 latest flash in pSLC mode",
    },
    FlashKind {
        name: "TLC",
        cycles: [1_000, 3_000],
        source: "Lexar Enterprise, Comparing NAND Flash Technology (2026)",
    },
    FlashKind {
        name: "QLC",
        cycles: [100, 1_000],
        source: "Kalstor, SLC, MLC, TLC, QLC and pSLC, after Lexar and Delkin",
    },
];

/// Nanoseconds of a year of 365.25 days.
const YEAR_NS: f64 = 365.25 * 24.0 * 3600.0 * 1e9;

/// Years until a block has been erased as often as it is rated for (`cycles`), if it was erased so often in the last
/// `duration_ns` and the same work continues without a pause: of the most worn block (`Wear::max`), or of every block
/// ([`erases_even`]). `None`: no time has passed, or nothing was erased.
pub fn life_years(cycles: u64, erases: f64, duration_ns: f64) -> Option<f64> {
    (erases > 0.0 && duration_ns > 0.0).then(|| cycles as f64 / erases * duration_ns / YEAR_NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sheet;

    const MOVED: Moved = Moved { read: Bytes(10 * 4096 + 1), written: Bytes(128 << 10) };

    #[test]
    fn the_slides_flash_weighs_a_copy_ten_reads_and_an_erase_seventy_five() {
        let sheet = sheet::find("LOBI-NAND").unwrap();
        let slot = Bytes(4096);
        let read = time::load(&sheet, slot).unwrap();
        let collecting = |copies, erases| {
            let done = Operations { copies, erases, ..Operations::default() };
            time(&sheet, slot, done).unwrap().collecting
        };
        assert_eq!((collecting(1, 0), collecting(0, 1), collecting(3, 2)), (read * 10, read * 75, read * 180));
    }

    #[test]
    fn times_add_up_by_hand() {
        let sheet = sheet::find("LOBI-NAND").unwrap();
        let done = Operations { reads: 2, programs: 3, copies: 1, erases: 1 };
        let parts = time(&sheet, Bytes(4096), done).unwrap();
        // 2 * (20 + 37.92), 3 * (180 + 37.92), 200 + 1500 us.
        let expected = (Ps(115_840_000), Ps(653_760_000), Ps(1_700_000_000));
        assert_eq!((parts.reading, parts.programming, parts.collecting), expected);
        assert_eq!(write_amplification(done), Some(4.0 / 3.0));
        assert_eq!(write_amplification(Operations::default()), None);
    }

    #[test]
    fn time_of_bytes_by_hand() {
        let sheet = sheet::find("LOBI-NAND").unwrap();
        let done = operations(&sheet, MOVED).unwrap();
        assert_eq!((done.reads, done.programs, done.erases), (11, 32, 1));
        // 11 (20 + 37.92) + 32 (37.92 + 180) + 1500 us.
        assert_eq!(time(&sheet, Bytes(4096), done).unwrap().total(), Ps(9_110_560_000));
    }

    #[test]
    fn energy_by_hand_and_what_a_sheet_lacks_is_named() {
        let energies = "[energy]\nload = { value = \"10nJ\", source = \"a test\" }\n\
            transfer = { value = \"4nJ\", source = \"a test\" }\n";
        let writes =
            "program = { value = \"50nJ\", source = \"a test\" }\nerase = { value = \"2uJ\", source = \"a test\" }\n";
        let text = sheet::SHIPPED.iter().find(|(file, _)| *file == "lobi-nand.toml").unwrap().1;
        let with = |more: &str| sheet::parse("t.toml", &format!("{text}\n{more}")).unwrap();
        // 11 (10 + 4) + 32 (4 + 50) + 2000 nJ.
        let terms = energy(&with(&format!("{energies}{writes}")), MOVED).unwrap();
        assert_eq!(total(&terms), Pj(3_882_000));
        let nj = |n: u64| Pj(n * 1000);
        assert_eq!(terms, [("load", nj(110)), ("transfer", nj(172)), ("program", nj(1600)), ("erase", nj(2000))]);
        let lacking = energy(&with(energies), MOVED).unwrap_err();
        assert!(lacking.to_string().contains("energy.program"), "{lacking}");
        let read_only = Moved { written: Bytes(0), ..MOVED };
        assert_eq!(total(&energy(&with(energies), read_only).unwrap()), Pj(154_000));
    }

    #[test]
    fn wear_and_life_by_hand() {
        let wear = wear(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!(wear, Wear { mean: 5.0, deviation: 2.0, min: 2, max: 9 });
        // 9 erases an hour: 100,000 of them take 11,111 hours, or 1.2675 years.
        let years = life_years(100_000, f64::from(wear.max), 3.6e12).unwrap();
        assert!((years - 100_000.0 / 9.0 / (365.25 * 24.0)).abs() < 1e-9);
        assert_eq!(life_years(100_000, 0.0, 1.0), None);
        assert_eq!(life_years(100_000, 9.0, 0.0), None);
    }

    #[test]
    fn life_of_an_area_that_is_written_evenly_by_hand() {
        // 1 MiB/s round 1 GiB wears all of it once in 1024 s; 100,000 times that are 3.245 years.
        let life = |written| life_years(100_000, erases_even(Bytes(written), Bytes(1 << 30)), 10e9);
        let years = life(10 << 20).unwrap();
        assert!((years - 1024.0 * 100_000.0 / 31_557_600.0).abs() < 1e-9, "{years}");
        assert_eq!(life(0), None);
        let error = sheet::find("KFG5616").unwrap().cycles().unwrap_err();
        assert!(error.to_string().contains("endurance.cycles"));
    }
}
