//! Messages to the user on file descriptor 2, without buffers or locks.

pub use coldframe_live::say;

use crate::sys;

/// Prints one line, only the first time that the program comes here.
macro_rules! once {
    ($($text:tt)*) => {{
        static IS_PRINTED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
        if !IS_PRINTED.swap(true, std::sync::atomic::Ordering::Relaxed) {
            crate::say::say(format_args!($($text)*));
        }
    }};
}

pub(crate) use once;

/// The program gets an error where it asks for memory.
pub fn full(error: &coldframe_live::LiveError) {
    once!("the program gets no more memory: {error}");
}

pub fn fail(code: u8, text: impl std::fmt::Display) -> ! {
    say(text);
    sys::exit_group(code.into())
}
