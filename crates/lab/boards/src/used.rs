//! The time and energy that a measured run would have cost a flash. Pure functions of the run's bytes and a sheet.
//!
//! ```text
//! loads    = bytes read / page       programs = bytes written / page       erases = bytes written / block
//! time     = loads (t_load + t_transfer) + programs (t_transfer + t_program) + erases t_erase
//! energy   = loads (e_load + e_transfer) + programs (e_transfer + e_program) + erases e_erase
//! ```
//!
//! Loads, programs and erases are rounded up to whole numbers. A log is written block by block through its whole
//! area, so all blocks wear equally, and each block's worth of bytes causes one erase. Copies of a collection come on
//! top. So the erases are a lower bound, and the life is an upper bound.

use coldframe_core::{Bytes, Pj, Ps};

use crate::flash::{flash_time, Operations};
use coldframe_sheet::sheet::{Sheet, SheetError};

/// The bytes that a run moved.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Moved {
    pub read: Bytes,
    pub written: Bytes,
}

/// The operations that move these bytes, in pages and blocks of the flash.
pub fn operations(sheet: &Sheet, moved: Moved) -> Result<Operations, SheetError> {
    let page = sheet.page()?.0;
    let erases = match moved.written.0 {
        0 => 0,
        written => written.div_ceil(sheet.block()?.0),
    };
    let (reads, programs) = (moved.read.0.div_ceil(page), moved.written.0.div_ceil(page));
    Ok(Operations { reads, programs, copies: 0, erases })
}

/// The device's time for them, one after the other.
pub fn time(sheet: &Sheet, moved: Moved) -> Result<Ps, SheetError> {
    let done = operations(sheet, moved)?;
    Ok(flash_time(sheet, sheet.page()?, done)?.total())
}

/// The device's energy for them. An operation that did not happen needs no number in the sheet.
pub fn energy(sheet: &Sheet, moved: Moved) -> Result<Pj, SheetError> {
    Ok(energy_terms(sheet, moved)?.iter().fold(Pj(0), |sum, (_, term)| sum + *term))
}

/// The same by term, without operations that did not happen.
pub fn energy_terms(sheet: &Sheet, moved: Moved) -> Result<Vec<(&'static str, Pj)>, SheetError> {
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
        terms.push(("erase", sheet.erase_energy()? * done.erases));
    }
    Ok(terms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_sheet::sheet;

    const MOVED: Moved = Moved { read: Bytes(10 * 4096 + 1), written: Bytes(128 << 10) };

    #[test]
    fn time_by_hand() {
        let sheet = sheet::find("LOBI-NAND").unwrap();
        let done = operations(&sheet, MOVED).unwrap();
        assert_eq!((done.reads, done.programs, done.erases), (11, 32, 1));
        // 11 (20 + 37.92) + 32 (37.92 + 180) + 1500 us.
        assert_eq!(time(&sheet, MOVED), Ok(Ps(9_110_560_000)));
    }

    #[test]
    fn energy_by_hand_and_what_a_sheet_lacks_is_named() {
        let energies = "[energy]\nload = { value = \"10nJ\", source = \"a test\" }\ntransfer = { value = \"4nJ\", \
                        source = \"a test\" }\n";
        let writes =
            "program = { value = \"50nJ\", source = \"a test\" }\nerase = { value = \"2uJ\", source = \"a test\" }\n";
        let text = sheet::SHIPPED.iter().find(|(file, _)| *file == "lobi-nand.toml").unwrap().1;
        let with = |more: &str| sheet::parse("t.toml", &format!("{text}\n{more}")).unwrap();
        // 11 (10 + 4) + 32 (4 + 50) + 2000 nJ.
        let whole = with(&format!("{energies}{writes}"));
        assert_eq!(energy(&whole, MOVED), Ok(Pj(3_882_000)));
        let nj = |n: u64| Pj(n * 1000);
        let terms = [("load", nj(110)), ("transfer", nj(172)), ("program", nj(1600)), ("erase", nj(2000))];
        assert_eq!(energy_terms(&whole, MOVED).unwrap(), terms);
        let lacking = energy(&with(energies), MOVED).unwrap_err();
        assert!(lacking.to_string().contains("energy.program"), "{lacking}");
        let read_only = Moved { written: Bytes(0), ..MOVED };
        assert_eq!(energy(&with(energies), read_only), Ok(Pj(154_000)));
    }
}
