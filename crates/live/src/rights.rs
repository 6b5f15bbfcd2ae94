//! The pager's threads need no right: all that they use is open. They drop all capabilities and can get no new ones.

use crate::sys::{self, Sys};

/// `_LINUX_CAPABILITY_VERSION_3` (`include/uapi/linux/capability.h`).
const VERSION: u32 = 0x2008_0522;

/// Of the calling thread, for good.
pub fn drop_all() -> Sys<()> {
    let (head, none) = ([VERSION, 0], [0u32; 6]);
    // SAFETY: the structures that the kernel reads, of two and of six words.
    unsafe {
        // A filter of the program's may refuse this; without capabilities it is the second lock on the same door.
        let _ = sys::call(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0, 0]);
        sys::call(libc::SYS_capset, [head.as_ptr() as usize, none.as_ptr() as usize, 0, 0, 0, 0])?;
    }
    Ok(())
}
