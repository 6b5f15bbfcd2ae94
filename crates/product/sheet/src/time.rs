//! Time equations: pure functions from a sheet's numbers and a size to a time. The result is rounded up once, at the
//! end, to whole picoseconds.

use coldframe_core::{Bytes, Ps};

use crate::sheet::{Sheet, SheetError};

/// LoadStopover: the cell array to the stopover buffer. The array senses whole flash pages, so a part of a page takes
/// as long as the whole.
pub fn load(sheet: &Sheet, size: Bytes) -> Result<Ps, SheetError> {
    Ok(sheet.load()? * size.0.div_ceil(sheet.page()?.0))
}

/// TransHostMem: the stopover buffer to the host, in proportion to the bytes.
pub fn transfer(sheet: &Sheet, size: Bytes) -> Result<Ps, SheetError> {
    Ok(Ps((sheet.transfer()?.0 * size.0).div_ceil(sheet.page()?.0)))
}

/// Programs the flash pages that hold `size` bytes, without the transfer.
pub fn program(sheet: &Sheet, size: Bytes) -> Result<Ps, SheetError> {
    Ok(sheet.program()? * size.0.div_ceil(sheet.page()?.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sheet;

    #[test]
    fn a_part_of_a_page_is_sensed_as_long_as_a_whole_one_but_crosses_the_bus_in_proportion() {
        let sheet = sheet::find("KFG1G16Q2M").unwrap();
        assert_eq!(load(&sheet, Bytes(1024)), Ok(Ps::from_us(30)));
        assert_eq!(load(&sheet, Bytes(4096)), Ok(Ps::from_us(60)));
        assert_eq!(transfer(&sheet, Bytes(1024)), Ok(Ps(9_480_000)));
    }

    #[test]
    fn a_number_that_no_source_gives_is_missed_by_name() {
        let sheet = sheet::find("kfg5616").unwrap();
        let refusal = program(&sheet, Bytes(1024)).unwrap_err().to_string();
        assert!(refusal.contains("KFG5616") && refusal.contains("time.program"), "{refusal}");
    }
}
