//! This machine as a device: the time that a program waits for paging here. `coldframe doctor --calibrate` measures these
//! times with the live pager and keeps them as a sheet. Each number says when and how it was measured.

use crate::sheet::machine::Spread;
use crate::{Sheet, SheetError};

macro_rules! costs {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// The cost of each paging event on this machine, as time of the thread that causes the event.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct Here {
            $($(#[$doc])* pub $field: Spread,)*
        }

        impl Here {
            /// The costs in the sheet of a machine.
            ///
            /// # Errors
            /// The sheet lacks one of the costs. The sheet of a device on a board lacks all of them.
            pub fn of(sheet: &Sheet) -> Result<Here, SheetError> {
                Ok(Here { $($field: sheet.cost(concat!("live.", stringify!($field)))?,)* })
            }

            /// Each cost with its key in a sheet.
            pub fn all(&self) -> Vec<(&'static str, Spread)> {
                vec![$((stringify!($field), self.$field),)*]
            }
        }
    };
}

costs! {
    /// The first touch of a page without the pager: the kernel's own zero-fill fault, huge pages off.
    zero_fill_native,
    /// The first touch of a page under the pager, while no page has to leave.
    zero_fill,
    /// A page loaded from the device, one at a time, while clean pages are evicted.
    device_fault,
    /// Each page of a sequential stream that is read ahead, while clean pages are evicted.
    read_ahead,
    /// A page that is needed again before it was written to the device; evictions for it are not included.
    memory_fault,
    /// A touch of a page in RAM that was unmapped.
    false_fault,
    /// The first write to a page that was mapped read-only.
    first_write,
    /// The extra time of a fault for each clean page evicted with it, if no device time hides it.
    evict_clean,
    /// The extra time of a fault for each dirty page evicted with it, if no device time hides it.
    evict_dirty,
    /// The entry of a page into the recorder's window, while another page leaves the window.
    entry,
}
