//! Follows a guest's `execve`, and tells the recorder which program runs in which process.
//!
//! QEMU's user mode passes `execve` to the host kernel, which runs the new program natively. So this plugin calls
//! `execve` first: the same process becomes QEMU again, with this plugin and with the guest's arguments and
//! environment. If that is not possible (another machine's binary, set-user-id), the plugin reports it and QEMU goes
//! on.

use std::ffi::{c_char, c_uint, CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::guest::{self, Memory};
use crate::image::{self, Image};
use crate::stream::Streams;
use crate::{shared, wire};

/// What a process needs to become QEMU again; fixed at installation.
struct Itself {
    /// For example `qemu-x86_64`.
    emulator: String,
    /// QEMU's arguments up to the plugin's, which is included.
    front: Vec<Vec<u8>>,
    program: PathBuf,
    pointer_bytes: usize,
    execve: i64,
    execveat: i64,
}

static ITSELF: OnceLock<Itself> = OnceLock::new();

/// Notes how QEMU was started. The recorder starts it as `QEMU options... -plugin SPEC -0 NAME PROGRAM arguments...`.
pub fn prepare(target: &str) {
    let line = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let arguments: Vec<Vec<u8>> = line.split(|b| *b == 0).map(<[u8]>::to_vec).collect();
    let plugin = arguments.iter().position(|a| a == b"-plugin").map_or(0, |i| i + 2);
    let front = arguments.get(..plugin).unwrap_or_default().to_vec();
    let program = arguments.get(plugin + 2).cloned().unwrap_or_default();
    // Linux: arch/x86/entry/syscalls/syscall_64.tbl, arch/arm/tools/syscall.tbl, asm-generic/unistd.h.
    let (execve, execveat, pointer_bytes) = match target {
        "x86_64" => (59, 322, 8),
        "arm" => (11, 387, 4),
        "aarch64" => (221, 281, 8),
        _ => (-1, -1, 8),
    };
    let emulator = format!("qemu-{target}");
    let program = PathBuf::from(OsStr::from_bytes(&program));
    let _ = ITSELF.set(Itself { emulator, front, program, pointer_bytes, execve, execveat });
}

/// Tells the recorder which program this process runs.
pub fn announce() {
    if let Some(itself) = ITSELF.get() {
        shared::send_event(wire::EVENT_START, "", itself.program.as_os_str().as_bytes());
    }
}

#[allow(clippy::too_many_arguments)]
pub extern "C" fn on_syscall(
    _: u64,
    vcpu: c_uint,
    number: i64,
    a1: u64,
    a2: u64,
    a3: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
) {
    let Some(itself) = ITSELF.get() else { return };
    if number == itself.execve {
        follow(itself, vcpu, a1, a2, a3);
    } else if number == itself.execveat {
        let path = Memory::open(itself.pointer_bytes).and_then(|m| m.string(a2)).unwrap_or_default();
        native(&path, "by execveat, which is not followed");
    }
}

pub extern "C" fn on_syscall_return(_: u64, _: c_uint, number: i64, _: i64) {
    if ITSELF.get().is_some_and(|itself| number == itself.execve || number == itself.execveat) {
        shared::send_event(wire::EVENT_FAILED, "", b"");
    }
}

fn native(path: &[u8], why: &str) {
    let text = [path, b"\n", why.as_bytes()].concat();
    shared::send_event(wire::EVENT_NATIVE, "", &text);
}

/// Returns only if the process could not become the new program under QEMU.
fn follow(itself: &Itself, vcpu: u32, path: u64, arguments: u64, environment: u64) {
    if shared::stopped() {
        return;
    }
    let Some(memory) = Memory::open(itself.pointer_bytes) else { return };
    // Bad pointers are an error of the guest: QEMU answers EFAULT.
    let Some(path) = memory.string(path) else { return };
    let Some(mut arguments) = memory.strings(arguments) else { return };
    let Some(environment) = memory.strings(environment) else { return };
    let name = arguments.first().cloned().unwrap_or_default();

    // The guest means its own program, but the kernel would name QEMU.
    let program = match path.as_slice() {
        b"/proc/self/exe" => itself.program.clone(),
        other => PathBuf::from(OsStr::from_bytes(other)),
    };
    if !executable(&program) {
        return; // QEMU reports the error
    }
    let script_free = arguments.len();
    let Ok((binary, image)) = image::resolve(&program, &mut arguments) else { return };
    if !matches!(image, Image::Elf { .. }) || !executable(&binary) {
        return; // so does the kernel
    }
    if image::emulator(&image) != Some(itself.emulator.as_str()) {
        return native(&path, &format!("a program for {}", image::describe(&image)));
    }
    if matches!(image, Image::Elf { set_id: true, .. }) {
        return native(&path, "set-user-id or set-group-id");
    }

    let name = if arguments.len() > script_free { arguments[0].clone() } else { name };
    let mut line = itself.front.clone();
    line.push(b"-0".to_vec());
    line.push(name);
    line.push(not_an_option(&binary));
    line.extend(arguments.into_iter().skip(1));

    Streams::publish(vcpu);
    guest::send_maps();
    shared::send_event(wire::EVENT_EXEC, "", &path);
    let line = to_c(line);
    // The library is for the program, by `-E`; QEMU itself must not load it.
    let preloads = itself.front.iter().any(|argument| argument.starts_with(b"LD_PRELOAD="));
    let environment = to_c(environment.into_iter().filter(|e| !(preloads && e.starts_with(b"LD_PRELOAD="))).collect());
    // SAFETY: null-terminated arrays of null-terminated strings that live until the call fails.
    unsafe { libc::execve(c"/proc/self/exe".as_ptr(), pointers(&line).as_ptr(), pointers(&environment).as_ptr()) };
    shared::send_event(wire::EVENT_FAILED, "", b"");
    native(&path, "QEMU could not be started again");
}

/// QEMU takes the first argument without a dash for the program.
fn not_an_option(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.starts_with(b"-") {
        [b"./", bytes].concat()
    } else {
        bytes.to_vec()
    }
}

fn executable(path: &Path) -> bool {
    let Ok(text) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: a valid string.
    path.is_file() && unsafe { libc::access(text.as_ptr(), libc::X_OK) } == 0
}

fn to_c(strings: Vec<Vec<u8>>) -> Vec<CString> {
    strings.into_iter().filter_map(|s| CString::new(s).ok()).collect()
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|s: &CString| CStr::as_ptr(s)).chain([std::ptr::null()]).collect()
}
