//! This machine as a device: what paging costs a program here, measured as the time that the program waits.
//! `coldframe calibrate` measures it with the live pager and keeps it as a sheet; each number says when and how it
//! was measured.

use coldframe_core::Ps;

use crate::{Sheet, SheetError};

/// A time that varies: what a long run pays on average, and between what the averages of short stretches lay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spread {
    /// The mean of the best tenth of stretches.
    pub low: Ps,
    /// The mean of all.
    pub mean: Ps,
    /// The mean of the worst tenth of stretches.
    pub high: Ps,
}

/// What paging costs on this machine, for each event, in the time of the thread that meets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Here {
    /// The first touch of a page where nobody pages: the kernel's own zero-fill fault.
    pub zero_fill_native: Spread,
    /// The first touch of a page under the pager, while nothing has to leave.
    pub zero_fill: Spread,
    /// A page that comes back from the device, one at a time, while clean pages leave.
    pub device_fault: Spread,
    /// Each page of a sequential stream that is read ahead, clean pages leaving.
    pub read_ahead: Spread,
    /// A page that comes back before it was written to the device.
    pub memory_fault: Spread,
    /// A touch of a page in RAM that was unmapped.
    pub false_fault: Spread,
    /// The first write to a page that was mapped read-only.
    pub first_write: Spread,
    /// What a fault takes longer for each clean page that leaves with it, where no device hides that.
    pub evict_clean: Spread,
    /// What a fault takes longer for each written page that leaves with it, the time to write it to the device included.
    pub evict_dirty: Spread,
    /// An entry of a page into the recorder's window, another page leaving it.
    pub entry: Spread,
}

impl Here {
    /// What the sheet of a machine says.
    ///
    /// # Errors
    /// It lacks one of the costs, as the sheet of a device on a board lacks all.
    pub fn of(sheet: &Sheet) -> Result<Here, SheetError> {
        Ok(Here {
            zero_fill_native: sheet.cost("live.zero_fill_native")?,
            zero_fill: sheet.cost("live.zero_fill")?,
            device_fault: sheet.cost("live.device_fault")?,
            read_ahead: sheet.cost("live.read_ahead")?,
            memory_fault: sheet.cost("live.memory_fault")?,
            false_fault: sheet.cost("live.false_fault")?,
            first_write: sheet.cost("live.first_write")?,
            evict_clean: sheet.cost("live.evict_clean")?,
            evict_dirty: sheet.cost("live.evict_dirty")?,
            entry: sheet.cost("live.entry")?,
        })
    }
}
