//! The guest's memory: where it is in this process, its mappings, and its strings.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{shared, wire};

/// Sends the mappings once for each program.
pub fn send_first_maps() {
    static SENT: AtomicBool = AtomicBool::new(false);
    if !SENT.swap(true, Ordering::Relaxed) {
        send_maps();
    }
}

/// Sends this process's mappings. The recorder separates the guest's from QEMU's.
pub fn send_maps() {
    let Some(base) = base() else { return };
    let Ok(maps) = std::fs::read("/proc/self/maps") else { return };
    shared::send_event(wire::EVENT_MAPS, &format!("{base:x}"), &maps);
}

/// The host address of guest address 0. Debian's QEMU exports the variable; without it there is no table of mappings.
pub fn base() -> Option<u64> {
    // SAFETY: a lookup by name; QEMU's `guest_base` is a `uintptr_t` that is constant once the program is loaded.
    unsafe {
        let base = libc::dlsym(std::ptr::null_mut(), c"guest_base".as_ptr());
        (!base.is_null()).then(|| *base.cast::<usize>() as u64)
    }
}

/// The guest's memory, read through a file, so that a bad address is an error and not a crash.
pub struct Memory {
    file: File,
    base: u64,
    pointer_bytes: usize,
}

impl Memory {
    /// Linux allows 2 MiB of arguments by default, 128 KiB each (MAX_ARG_STRLEN).
    const STRING_MAX: usize = 128 * 1024;
    const STRINGS_MAX: u64 = 1 << 20;

    pub fn open(pointer_bytes: usize) -> Option<Self> {
        Some(Memory { file: File::open("/proc/self/mem").ok()?, base: base()?, pointer_bytes })
    }

    pub fn string(&self, at: u64) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        while at != 0 && text.len() < Self::STRING_MAX {
            // Up to the next multiple of 64, so as not to read an unmapped page behind the end.
            let from = self.base + at + text.len() as u64;
            let mut piece = vec![0; 64 - (from % 64) as usize];
            self.file.read_exact_at(&mut piece, from).ok()?;
            match piece.iter().position(|b| *b == 0) {
                Some(end) => {
                    text.extend_from_slice(&piece[..end]);
                    return Some(text);
                }
                None => text.extend_from_slice(&piece),
            }
        }
        None
    }

    pub fn strings(&self, at: u64) -> Option<Vec<Vec<u8>>> {
        let mut strings = Vec::new();
        if at == 0 {
            return Some(strings); // Linux takes a null list for an empty one
        }
        for index in 0..Self::STRINGS_MAX {
            let mut pointer = [0; 8];
            let from = self.base + at + index * self.pointer_bytes as u64;
            self.file.read_exact_at(&mut pointer[..self.pointer_bytes], from).ok()?;
            match u64::from_le_bytes(pointer) {
                0 => return Some(strings),
                pointer => strings.push(self.string(pointer)?),
            }
        }
        None
    }
}
