//! Programs that run: started, ended, given less RAM by our pager or by the kernel.

pub mod awake;
pub mod bundle;
pub mod by_kernel;
pub mod child;
pub mod choice;
pub mod disk;
pub mod guards;
#[allow(unsafe_code, reason = "between fork and exec a child asks for a signal")]
pub mod halt;
#[allow(missing_docs)]
pub mod image;
pub mod looks;
pub mod lookup;
pub mod order;
pub mod paged;
pub mod pager;
pub mod program;
#[allow(unsafe_code, reason = "between fork and exec a child sets its memory's node")]
pub mod rented;
pub mod rights;
pub mod runs;
pub mod runtime;
#[allow(unsafe_code, reason = "it handles signals, and a child restores those of the start between fork and exec")]
pub mod signals;
pub mod streams;
