//! Data of this process alone.

use std::cell::UnsafeCell;

/// Data of this process alone, made anew in a forked child. Only the child's one thread changes it.
pub struct Own<T>(UnsafeCell<T>);

// SAFETY: changed only when the process has one thread (`renew`).
unsafe impl<T: Sync> Sync for Own<T> {}

impl<T> Own<T> {
    pub fn new(value: T) -> Own<T> {
        Own(UnsafeCell::new(value))
    }

    pub fn get(&self) -> &T {
        // SAFETY: it does not change while there are several threads.
        unsafe { &*self.0.get() }
    }

    /// # Safety
    /// The process has one thread, which holds no result of `get`.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn renew(&self) -> &mut T {
        // SAFETY: the caller answers for it.
        unsafe { &mut *self.0.get() }
    }
}
