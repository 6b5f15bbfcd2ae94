//! Page level, only on request: the buffers of the program that the kernel reads and writes in system calls that move
//! bytes. No instruction of the program touches these bytes, but their pages must be present.
//!
//! A call is noted when it begins. It is counted when it ends, for as many bytes as it moved. Left out are lists of
//! buffers (`readv`, `recvmsg`), and results that the kernel writes to other places (`stat`, `epoll_wait`).

use std::ffi::c_uint;
use std::sync::OnceLock;

use crate::stream::{Buffer, Streams};

/// Numbers of the calls whose second argument is a buffer and whose result is the number of bytes moved: calls that
/// fill the buffer, and calls that read it.
struct Calls {
    fill: [i64; 3],
    empty: [i64; 3],
}

static CALLS: OnceLock<Calls> = OnceLock::new();

/// Starts to record these calls. Linux: arch/x86/entry/syscalls/syscall_64.tbl, asm-generic/unistd.h; in the order
/// read, pread64, recvfrom, write, pwrite64, sendto.
pub fn keep(target: &str) {
    let calls = match target {
        "x86_64" => Calls { fill: [0, 17, 45], empty: [1, 18, 44] },
        "aarch64" => Calls { fill: [63, 67, 207], empty: [64, 68, 206] },
        _ => return,
    };
    let _ = CALLS.set(calls);
}

/// A system call begins.
pub fn begin(vcpu: c_uint, number: i64, buffer: u64) {
    let Some(calls) = CALLS.get() else { return };
    let (fills, empties) = (calls.fill.contains(&number), calls.empty.contains(&number));
    if let Some(stream) = Streams::get(vcpu) {
        stream.call = (fills || empties).then_some(Buffer { address: buffer, store: fills });
    }
}

/// A system call ends.
pub fn end(vcpu: c_uint, result: i64) {
    if CALLS.get().is_none() {
        return;
    }
    let Some(stream) = Streams::get(vcpu) else { return };
    let (Some(Buffer { address, store }), Ok(bytes)) = (stream.call.take(), u64::try_from(result)) else { return };
    if bytes > 0 {
        stream.moved(address, bytes, store);
    }
}
