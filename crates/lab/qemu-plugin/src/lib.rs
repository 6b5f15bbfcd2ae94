//! The QEMU plugin of `coldframe-lab record`: writes what a guest program references into shared memory.
//!
//! QEMU loads it by `-plugin libcoldframe_plugin.so,shm=PATH,recorder=PID`. It registers one callback for each
//! translation block and one for each data access, and none for single instructions. `wire.rs` describes what the
//! callbacks write; `coldframe-record` reads it.
//!
//! Rules for this code. It runs inside another program's process, on that program's threads. So it must never panic
//! (that would abort the guest), never hold a file descriptor (the guest shares the numbers, and may close or reuse
//! them), and never wait for a recorder that is gone. A stream belongs to the guest thread that runs its vCPU. Only
//! `publish_all` touches other threads' streams, and it runs while QEMU has stopped those threads (fork and exit are
//! exclusive sections).
//!
//! After `fork` the child has a copy of `STREAMS` that points at the parent's chunks. So the fork handlers publish all
//! streams before the fork and forget them in the child, and nothing is sent twice. QEMU 7.2 passes a guest's `execve`
//! to the host, where the new program would run unrecorded; `exec::follow` starts QEMU with this plugin instead.

mod api;
mod exec;
mod guest;
#[allow(dead_code)] // the recorder uses the rest
#[path = "../../../product/answer/src/run/image.rs"]
mod image;
mod plugin;
mod shared;
mod stream;
#[allow(dead_code)] // the recorder uses the rest
mod wire;
