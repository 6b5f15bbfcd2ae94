//! Reads the memory of the second task. On the board the second domain is closed to it; there is no such memory on the
//! host, where it writes that it was not there.
#![cfg_attr(target_os = "none", no_std, no_main)]

use programs::write;

programs::program!(run);

fn run() {
    #[cfg(target_os = "none")]
    {
        // SAFETY: no Rust object is there. The board must stop at this read.
        let byte = unsafe { core::ptr::read_volatile(0x3020_0000 as *const u8) };
        write(&[byte]);
    }
    write(b"not stopped\n");
}
