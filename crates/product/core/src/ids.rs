//! Indices as types, so that a frame number is never taken for a page number.

macro_rules! index {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as an index into a table.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<usize> for $name {
            /// From an index into a table, which must have fewer than 2^32 entries.
            #[inline]
            fn from(index: usize) -> Self {
                debug_assert!(index <= u32::MAX as usize);
                $name(index as u32)
            }
        }
    )*};
}

index! {
    /// A page, numbered densely from 0 by the machine.
    PageId;
    /// A frame of RAM, 0 to frames - 1.
    FrameId;
    /// A page-sized place on the backing device.
    SlotId;
    /// An erase block of the backing device.
    BlockId;
    /// A stopover buffer of the device.
    BufferId;
    /// A task (process or thread) that can fault; it has at most one fault open at a time.
    TaskId;
    /// A load in flight.
    Ticket;
}

impl PageId {
    /// The home slot of the page, which has the page's number. The page is there unless a swap area has given it
    /// another slot.
    pub const fn home(self) -> SlotId {
        SlotId(self.0)
    }
}
