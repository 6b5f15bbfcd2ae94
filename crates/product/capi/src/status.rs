//! Status codes and error messages.

use std::cell::RefCell;
use std::ffi::{c_char, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};

use coldframe_live::LiveError;

/// The result of a call. The numbers are the exit codes of the `coldframe` command.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Success.
    Ok = 0,
    /// An argument is wrong: a null pointer, text that is not UTF-8, too little RAM, a range beyond the region.
    Usage = 2,
    /// This machine does not allow it; `coldframe doctor` gives the reason.
    Machine = 4,
    /// The swap file cannot be used, or there is no room left.
    Backing = 5,
    /// A bug in coldframe. The handles of this call must not be used any more.
    Bug = 125,
}

/// A failed call: its status and its message.
pub struct Failure(Status, String);

impl Failure {
    /// A wrong argument.
    pub fn usage(words: impl Into<String>) -> Failure {
        Failure(Status::Usage, words.into())
    }
}

impl From<LiveError> for Failure {
    fn from(error: LiveError) -> Failure {
        let status = match error.code() {
            2 => Status::Usage,
            4 => Status::Machine,
            _ => Status::Backing,
        };
        Failure(status, error.to_string())
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

fn keep(words: &str) {
    let bytes: Vec<u8> = words.bytes().filter(|byte| *byte != 0).collect();
    LAST.with(|last| *last.borrow_mut() = CString::new(bytes).unwrap_or_default());
}

/// Runs the body of a call; a panic becomes a status.
pub fn call(inside: impl FnOnce() -> Result<(), Failure>) -> Status {
    match catch_unwind(AssertUnwindSafe(inside)) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(Failure(status, words))) => {
            keep(&words);
            status
        }
        Err(panic) => {
            let words = panic.downcast_ref::<String>().map(String::as_str);
            let words = words.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            keep(&format!("a mistake in coldframe itself: {words}"));
            Status::Bug
        }
    }
}

/// The message of this thread's last failed call. Never null; empty if no call has failed. It stays valid until this
/// thread's next failed call.
#[no_mangle]
pub extern "C" fn coldframe_last_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

/// Reads a C string.
///
/// # Safety
/// `text` is null or a C string that lives as long as the result is used.
pub unsafe fn text<'a>(name: &str, text: *const c_char) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller answers for it.
    let bytes = unsafe { CStr::from_ptr(text) };
    bytes.to_str().map(Some).map_err(|_| Failure::usage(format!("{name}: not UTF-8 text")))
}

/// Stores a new handle at `out`.
///
/// # Safety
/// `out` is null or can be written to.
pub unsafe fn give<T>(name: &str, out: *mut *mut T, make: impl FnOnce() -> Result<T, Failure>) -> Result<(), Failure> {
    if out.is_null() {
        return Err(Failure::usage(format!("{name}: a null pointer; give the address of a pointer")));
    }
    // SAFETY: the caller answers for it. What the caller reads after a failure is null.
    unsafe { *out = std::ptr::null_mut() };
    let made = Box::into_raw(Box::new(make()?));
    // SAFETY: as above.
    unsafe { *out = made };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> String {
        // SAFETY: a C string that stays unchanged during the call.
        unsafe { CStr::from_ptr(coldframe_last_error()) }.to_str().unwrap().to_string()
    }

    #[test]
    fn a_panic_becomes_a_status_with_its_words() {
        assert_eq!(last(), "");
        assert_eq!(call(|| panic!("page {} is nowhere", 3)), Status::Bug);
        assert_eq!(last(), "a mistake in coldframe itself: page 3 is nowhere");
        assert_eq!(call(|| Err(Failure::usage("len: a\0b"))), Status::Usage);
        assert_eq!(last(), "len: ab");
        assert_eq!(call(|| Ok(())), Status::Ok);
        assert_eq!(last(), "len: ab", "it stays");
    }
}
