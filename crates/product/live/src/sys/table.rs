//! Tables with an entry for each page of the managed address space. They cost no RAM until a page is used. They do
//! not come from an allocator, so a fault handler may use them.

use std::ops::Index;

use crate::sys;
use crate::LiveError;

/// A table of `T`, all bytes zero at first.
#[derive(Debug)]
pub struct Table<T: Zeroed> {
    start: *mut T,
    len: usize,
}

/// Types for which all bytes zero is a valid value.
///
/// # Safety
/// All bytes zero must be a valid value of the type, and the type must need no drop.
pub unsafe trait Zeroed {}

macro_rules! zeroed {
    ($($word:ty),*) => {
        // SAFETY: zero is a value of each, and none needs a drop.
        $(unsafe impl Zeroed for $word {})*
    };
}

zeroed!(std::sync::atomic::AtomicU8, std::sync::atomic::AtomicU16, std::sync::atomic::AtomicU32);
zeroed!(std::sync::atomic::AtomicU64, u8, u32, u64);

// SAFETY: a table is a slice that is elsewhere.
unsafe impl<T: Zeroed + Send> Send for Table<T> {}
// SAFETY: as above.
unsafe impl<T: Zeroed + Sync> Sync for Table<T> {}

impl<T: Zeroed> Table<T> {
    pub fn new(len: usize) -> Result<Table<T>, LiveError> {
        let bytes = (len * std::mem::size_of::<T>()).max(1);
        let start = sys::map_memory(bytes).map_err(|e| LiveError::os("address space for a table", e))?;
        Ok(Table { start: start as *mut T, len })
    }

    pub fn as_slice(&self) -> &[T] {
        // SAFETY: the mapping has room for `len` entries, and zero is a value.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }

    pub fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as above, and the table is borrowed once.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}

impl<T: Zeroed> Index<usize> for Table<T> {
    type Output = T;
    fn index(&self, i: usize) -> &T {
        &self.as_slice()[i]
    }
}

impl<T: Zeroed> Drop for Table<T> {
    fn drop(&mut self) {
        // SAFETY: no code can refer to it any more.
        unsafe { sys::unmap_memory(self.start as usize, self.len * std::mem::size_of::<T>()) };
    }
}
