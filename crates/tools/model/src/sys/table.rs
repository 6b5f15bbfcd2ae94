//! Replaces `live/src/sys/table.rs`: the scheduler's atomics cannot be made from zeroed memory.

use std::ops::Index;

use crate::sys::sync::{AtomicU16, AtomicU32, AtomicU64};
use crate::LiveError;

/// A table of `T`, all zero at first.
#[derive(Debug)]
pub struct Table<T: Zeroed>(Vec<T>);

/// Types that have a zero value.
///
/// # Safety
/// For a type that does not override `zeros`, all bytes zero must be a valid value.
pub unsafe trait Zeroed: Sized {
    /// This many zeros. The memory of a large table is used only where it is written.
    fn zeros(len: usize) -> Vec<Self> {
        let mut zeros = Vec::<std::mem::MaybeUninit<Self>>::new();
        if len > 0 {
            let layout = std::alloc::Layout::array::<Self>(len).expect("a table of some size");
            // SAFETY: the allocation has this layout, so it has room for `len` values.
            zeros = unsafe { Vec::from_raw_parts(std::alloc::alloc_zeroed(layout).cast(), len, len) };
        }
        let mut zeros = std::mem::ManuallyDrop::new(zeros);
        // SAFETY: all bytes are zero, which is a valid value.
        unsafe { Vec::from_raw_parts(zeros.as_mut_ptr().cast(), zeros.len(), zeros.capacity()) }
    }
}

macro_rules! words {
    ($($word:ty),*) => { $(
        // SAFETY: it overrides `zeros`.
        unsafe impl Zeroed for $word {
            fn zeros(len: usize) -> Vec<$word> {
                (0..len).map(|_| <$word>::default()).collect()
            }
        }
    )* };
}

words!(AtomicU16, AtomicU32, AtomicU64);

// SAFETY: all bytes zero is a valid value.
unsafe impl Zeroed for u8 {}
// SAFETY: all bytes zero is a valid value.
unsafe impl Zeroed for u32 {}
// SAFETY: all bytes zero is a valid value.
unsafe impl Zeroed for u64 {}

impl<T: Zeroed> Table<T> {
    /// A table of `len` entries.
    pub fn new(len: usize) -> Result<Table<T>, LiveError> {
        Ok(Table(T::zeros(len)))
    }

    /// The table's addresses.
    pub fn range(&self) -> std::ops::Range<usize> {
        let all = self.0.as_ptr_range();
        all.start as usize..all.end as usize
    }

    /// As a slice.
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }

    /// As a slice.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: Zeroed> Index<usize> for Table<T> {
    type Output = T;
    fn index(&self, i: usize) -> &T {
        &self.0[i]
    }
}
