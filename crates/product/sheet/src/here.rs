//! This machine as a device: the time that a program waits for paging here. `coldframe doctor --calibrate` measures
//! these times with the live pager and keeps them as a sheet. Each number says when and how it was measured.

use crate::sheet::machine::Spread;
use crate::{Sheet, SheetError};

macro_rules! costs {
    ($($field:ident,)*) => {
        /// The cost of each paging event on this machine, as time of the thread that causes the event.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct Here {
            $(#[doc = concat!("`live.", stringify!($field), "` of a sheet: what that is, \
                                                             [`crate::sheet::machine::Live`] says.")]
            pub $field: Spread,)*
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
    zero_fill_native,
    zero_fill,
    device_fault,
    read_ahead,
    memory_fault,
    false_fault,
    first_write,
    evict_clean,
    evict_dirty,
    entry,
}
