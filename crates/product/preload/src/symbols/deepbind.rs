//! `dlopen` without RTLD_DEEPBIND. A library loaded with that flag would close the pager's descriptors, or lock managed
//! memory, by the C library's functions. The real `dlopen` takes from its return address where to search, so this
//! function only clears the flag and jumps there.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::symbols::next::{call_at, look};

/// The C library's function, once it is found.
static REAL: AtomicUsize = AtomicUsize::new(0);

/// Finds it. Before version 2.34 it is in a library of its own, which may not be loaded yet.
pub fn find() {
    let address = look(c"dlopen");
    REAL.store(if address == 0 { late as *const () as usize } else { address }, Relaxed);
}

unsafe extern "C" fn late(name: *const c_char, flags: c_int) -> *mut c_void {
    match look(c"dlopen") {
        0 => std::ptr::null_mut(),
        // SAFETY: the C library's function of that name has that type.
        real => unsafe { call_at!(real, (name, flags)) },
    }
}

/// Replaces the C library's function. RTLD_DEEPBIND is 8.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C" fn dlopen() {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!("and esi, -9", "jmp [rip + {real}]", real = sym REAL);
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!(
        "and w1, w1, #0xfffffff7",
        "adrp x16, {real}",
        "ldr x16, [x16, :lo12:{real}]",
        "br x16",
        real = sym REAL
    );
}
