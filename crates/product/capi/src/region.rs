//! Regions: managed memory with a base and a length. Ranges are in bytes from the base. A range that covers a part of
//! a page acts on the whole page.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr::null_mut;

use coldframe_live::Region;

use crate::pager::{pager, ColdframePager};
use crate::status::{call, give, Failure, Status};

/// A region: memory, aligned to a page, that may be larger than RAM. Any thread may touch it.
///
/// A system call that is given a page which is not in RAM fails with EFAULT: pin the range first.
pub struct ColdframeRegion(Region);

/// A range of bytes of a region.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ColdframeRange {
    /// First byte, counted from the region's base.
    pub offset: usize,
    /// Length in bytes.
    pub len: usize,
}

/// The region of a handle.
///
/// # Safety
/// `region` is null or a handle that has not been closed.
unsafe fn region<'a>(region: *const ColdframeRegion) -> Result<&'a Region, Failure> {
    // SAFETY: the caller answers for it.
    let handle = unsafe { region.as_ref() };
    handle.map(|handle| &handle.0).ok_or_else(|| Failure::usage("region: a null pointer"))
}

fn range(offset: usize, len: usize) -> Range<usize> {
    offset..offset.saturating_add(len)
}

/// Private memory, zero at first, backed by the pager's swap file. `*out` is null if that fails.
///
/// # Safety
/// `pager` is null or a handle that has not been closed; `out` is null or can be written to.
#[no_mangle]
pub unsafe extern "C" fn coldframe_region_anonymous(
    pager: *const ColdframePager,
    len: usize,
    out: *mut *mut ColdframeRegion,
) -> Status {
    call(|| {
        // SAFETY: the caller answers for both.
        unsafe { give("out", out, || Ok(ColdframeRegion(self::pager(pager)?.anonymous(len)?))) }
    })
}

/// The region's first byte; null for a null handle.
///
/// # Safety
/// `region` is null or a handle that has not been closed.
#[no_mangle]
pub unsafe extern "C" fn coldframe_region_base(region: *const ColdframeRegion) -> *mut c_void {
    // SAFETY: the caller answers for it.
    unsafe { self::region(region) }.map_or(null_mut(), |region| region.as_ptr().cast())
}

/// The region's length in bytes; 0 for a null handle.
///
/// # Safety
/// `region` is null or a handle that has not been closed.
#[no_mangle]
pub unsafe extern "C" fn coldframe_region_len(region: *const ColdframeRegion) -> usize {
    // SAFETY: the caller answers for it.
    unsafe { self::region(region) }.map_or(0, Region::len)
}

/// Loads a range and keeps it in RAM until `coldframe_unpin` of the same range. Pins nest.
///
/// # Safety
/// `region` is null or a handle that has not been closed.
#[no_mangle]
pub unsafe extern "C" fn coldframe_pin(region: *const ColdframeRegion, offset: usize, len: usize) -> Status {
    call(|| {
        // SAFETY: the caller answers for it.
        let pin = unsafe { self::region(region) }?.pin(range(offset, len))?;
        // Undone by `coldframe_unpin`, not when it is dropped.
        std::mem::forget(pin);
        Ok(())
    })
}

/// Undoes `coldframe_pin`.
///
/// # Safety
/// `region` is null or a handle that has not been closed.
#[no_mangle]
pub unsafe extern "C" fn coldframe_unpin(region: *const ColdframeRegion, offset: usize, len: usize) -> Status {
    call(|| {
        // SAFETY: the caller answers for it.
        Ok(unsafe { self::region(region) }?.unpin(range(offset, len))?)
    })
}

/// Loads a range, many pages at a time, and waits until it is loaded. Of a range larger than RAM, only the end is
/// then in RAM.
///
/// # Safety
/// `region` is null or a handle that has not been closed.
#[no_mangle]
pub unsafe extern "C" fn coldframe_prefault(region: *const ColdframeRegion, offset: usize, len: usize) -> Status {
    // SAFETY: the caller answers for it.
    call(|| Ok(unsafe { self::region(region) }?.will_need(&[range(offset, len)])?))
}

/// Loads scattered ranges with as few submissions as possible.
///
/// # Safety
/// `region` is null or a handle that has not been closed; `ranges` is null or points to `count` ranges.
#[no_mangle]
pub unsafe extern "C" fn coldframe_will_need(
    region: *const ColdframeRegion,
    ranges: *const ColdframeRange,
    count: usize,
) -> Status {
    call(|| {
        // SAFETY: the caller answers for it.
        let region = unsafe { self::region(region) }?;
        if ranges.is_null() && count > 0 {
            return Err(Failure::usage("ranges: a null pointer"));
        }
        // SAFETY: as above, and without ranges none is read.
        let wanted = (0..count).map(|i| unsafe { *ranges.add(i) }).map(|wanted| range(wanted.offset, wanted.len));
        Ok(region.will_need(&wanted.collect::<Vec<_>>())?)
    })
}

/// Drops the content of a range. It reads as zeros from then on.
///
/// # Safety
/// `region` is null or a handle that has not been closed, and the range's content is not needed any more.
#[no_mangle]
pub unsafe extern "C" fn coldframe_discard(region: *const ColdframeRegion, offset: usize, len: usize) -> Status {
    // SAFETY: the caller answers for it.
    call(|| Ok(unsafe { self::region(region) }?.discard(range(offset, len))?))
}

/// Closes the region; null is fine. Its memory must not be touched any more.
///
/// # Safety
/// `region` is null or a handle that has not been closed, and no thread uses it or its memory any more.
#[no_mangle]
pub unsafe extern "C" fn coldframe_region_close(region: *mut ColdframeRegion) -> Status {
    call(|| {
        if !region.is_null() {
            // SAFETY: made by `Box::into_raw` in `give`; the caller has given it up.
            drop(unsafe { Box::from_raw(region) });
        }
        Ok(())
    })
}
