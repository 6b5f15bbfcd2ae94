//! The program's only call besides its exit: it writes bytes to a file of the host.

use core::cell::UnsafeCell;

use crate::debug::File;
use crate::io;

struct Slot(UnsafeCell<Option<File>>);
// SAFETY: one processor; set before the program runs, read by its calls only.
unsafe impl Sync for Slot {}
static OUT: Slot = Slot(UnsafeCell::new(None));

/// Where the program's bytes go.
pub fn to(file: File) {
    // SAFETY: the program does not run yet.
    unsafe { *OUT.0.get() = Some(file) }
}

/// The bytes are copied first, since the host reads memory without faulting on pages that are not there.
#[no_mangle]
extern "C" fn on_write(from: u32, bytes: u32) {
    // SAFETY: set by `to` before the program runs, not written to since.
    let out = unsafe { (*OUT.0.get()).as_ref() }.expect("a file to write to");
    let mut piece = [0u8; 256];
    for start in (0..bytes).step_by(piece.len()) {
        let length = (bytes - start).min(piece.len() as u32) as usize;
        io::copy_from_user(from + start, &mut piece[..length]);
        out.write(&piece[..length]);
    }
}
