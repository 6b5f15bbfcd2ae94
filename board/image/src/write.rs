//! The programs' only call besides their exit: one writes bytes to its file of the host.

use core::cell::UnsafeCell;

use crate::debug::File;
use crate::mmu::TASKS;
use crate::{fault, io};

type Files = [Option<File>; TASKS as usize];

struct Slot(UnsafeCell<Files>);
// SAFETY: one processor; set before the program runs, read by its calls only.
unsafe impl Sync for Slot {}
static OUT: Slot = Slot(UnsafeCell::new([const { None }; TASKS as usize]));

/// Where each program's bytes go.
pub fn to(files: Files) {
    // SAFETY: no program runs yet.
    unsafe { *OUT.0.get() = files }
}

/// The bytes are copied first, since the host reads memory without faulting on pages that are not there.
#[no_mangle]
extern "C" fn on_write(from: u32, bytes: u32) {
    let running = fault::with(|pager| pager.scheduler.running());
    // SAFETY: set by `to` before the program runs, not written to since.
    let out = unsafe { (*OUT.0.get())[running].as_ref() }.expect("a file to write to");
    let mut piece = [0u8; 256];
    for start in (0..bytes).step_by(piece.len()) {
        let length = (bytes - start).min(piece.len() as u32) as usize;
        io::copy_from_user(from + start, &mut piece[..length]);
        out.write(&piece[..length]);
    }
}
