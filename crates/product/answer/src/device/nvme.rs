//! An NVMe drive's own count of its life.

use std::fs::File;
use std::os::fd::AsRawFd;

/// `struct nvme_passthru_cmd` of linux/nvme_ioctl.h. The opcode's word has flags, too.
#[repr(C)]
#[derive(Default)]
struct Command {
    opcode: u32,
    namespace: u32,
    words_2: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_len: u32,
    len: u32,
    word_10: u32,
    words_11: [u32; 5],
    timeout_ms: u32,
    result: u32,
}

/// `NVME_IOCTL_ADMIN_CMD` of the same file.
const ADMIN: libc::Ioctl = 0xc048_4e41u32 as libc::Ioctl;
/// Get Log Page: SMART / Health Information, and its words, without one (NVM Express Base Specification 2.0, sections
/// 5.16 and 5.16.1.3).
const GET_LOG_PAGE: u32 = 2;
const HEALTH: u32 = 2;
const WORDS: u32 = 127;

/// The part of its life that a drive calls used, in percent, at most 255 (byte 5 of that page). `None`: it is no such
/// drive, or this process may not ask it.
pub fn nvme_used_percent(drive: &File) -> Option<u8> {
    let mut page = [0u8; 512];
    let mut command = Command {
        opcode: GET_LOG_PAGE,
        namespace: u32::MAX,
        address: page.as_mut_ptr() as u64,
        len: page.len() as u32,
        word_10: WORDS << 16 | HEALTH,
        ..Command::default()
    };
    // SAFETY: the kernel reads the command and writes 512 bytes to the page; both live through the call.
    (unsafe { libc::ioctl(drive.as_raw_fd(), ADMIN, &mut command) } == 0).then_some(page[5])
}
