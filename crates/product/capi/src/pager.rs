//! Pagers, and their statistics as text.

use std::ffi::{c_char, CString};
use std::ptr::null_mut;

use coldframe_live::Pager;

use crate::options::ColdframeOptions;
use crate::status::{call, give, Failure, Status};

/// A pager: one RAM budget for any number of regions. Several threads may use it at the same time.
pub struct ColdframePager(pub(crate) Pager);

/// The pager of a handle.
///
/// # Safety
/// `pager` is null or a handle that has not been closed.
pub(crate) unsafe fn pager<'a>(pager: *const ColdframePager) -> Result<&'a Pager, Failure> {
    // SAFETY: the caller answers for it.
    let handle = unsafe { pager.as_ref() };
    handle.map(|handle| &handle.0).ok_or_else(|| Failure::usage("pager: a null pointer"))
}

/// Starts a pager. `*out` is null if that fails.
///
/// Faults are handled by two threads of the pager.
///
/// # Safety
/// `options` is null or points to options whose strings are null or C strings; `out` is null or can be written to.
#[no_mangle]
pub unsafe extern "C" fn coldframe_start(options: *const ColdframeOptions, out: *mut *mut ColdframePager) -> Status {
    call(|| {
        let start = || {
            // SAFETY: the caller answers for it.
            let options = unsafe { options.as_ref() }.ok_or_else(|| Failure::usage("options: a null pointer"))?;
            // SAFETY: as above.
            Ok(ColdframePager(Pager::start(unsafe { options.read() }?)?))
        };
        // SAFETY: as above.
        unsafe { give("out", out, start) }
    })
}

/// Closes the handle; null is fine. The pager itself ends with the last of its regions.
///
/// # Safety
/// `pager` is null or a handle that has not been closed, and no thread uses it any more.
#[no_mangle]
pub unsafe extern "C" fn coldframe_close(pager: *mut ColdframePager) -> Status {
    call(|| {
        if !pager.is_null() {
            // SAFETY: made by `Box::into_raw` in `give`; the caller has given it up.
            drop(unsafe { Box::from_raw(pager) });
        }
        Ok(())
    })
}

/// The statistics now, as one JSON object (the counters of `coldframe run --stats`). Free it with
/// `coldframe_string_free`. Null on failure.
///
/// # Safety
/// `pager` is null or a handle that has not been closed.
#[no_mangle]
pub unsafe extern "C" fn coldframe_stats(pager: *const ColdframePager) -> *mut c_char {
    let mut text = null_mut();
    call(|| {
        // SAFETY: the caller answers for it.
        let stats = unsafe { self::pager(pager) }?.stats();
        let json = serde_json::to_string(&stats).map_err(|e| Failure::usage(e.to_string()))?;
        text = CString::new(json).map_or(null_mut(), CString::into_raw);
        Ok(())
    });
    text
}

/// Frees a string that coldframe has returned; null is fine.
///
/// # Safety
/// `text` is null or comes from `coldframe_stats` and has not been freed.
#[no_mangle]
pub unsafe extern "C" fn coldframe_string_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: made by `CString::into_raw`.
        drop(unsafe { CString::from_raw(text) });
    }
}
