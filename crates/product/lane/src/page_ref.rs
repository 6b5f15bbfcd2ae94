//! References as the page table takes them.

/// A page reference: the page's dense number, whether it is a write, and whether it is quiet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageRef(pub u32);

impl PageRef {
    /// The bit of [`PageRef::kind`] for a write.
    pub const WRITE_KIND: usize = 2;
    /// The bit of [`PageRef::kind`] for a quiet reference: it leaves no reference bit if the page is mapped (a TLB hit
    /// under reading C).
    pub const QUIET_KIND: usize = 1;
    /// The largest number of pages.
    pub const PAGES_MAX: usize = 1 << 30;

    /// Packs a reference.
    #[inline(always)]
    pub const fn new(page: u32, writing: bool, quiet: bool) -> PageRef {
        PageRef(page | (writing as u32) << 31 | (quiet as u32) << 30)
    }

    /// The page's number.
    #[inline(always)]
    pub const fn page(self) -> usize {
        (self.0 & (Self::PAGES_MAX as u32 - 1)) as usize
    }

    /// Those of the bits `WRITE_KIND` and `QUIET_KIND` that hold.
    #[inline(always)]
    pub const fn kind(self) -> usize {
        (self.0 >> 30) as usize
    }

    /// Whether it is a write.
    #[inline(always)]
    pub const fn writing(self) -> bool {
        self.0 >> 31 != 0
    }

    /// Whether it is quiet.
    #[inline(always)]
    pub const fn quiet(self) -> bool {
        self.0 >> 30 & 1 != 0
    }
}
