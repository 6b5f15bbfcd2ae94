//! Programs that the program starts. A program for musl's dynamic linker cannot load this library, which needs glibc;
//! it would end with 127 before its first instruction. Such a program, or a script whose interpreter is such a
//! program, is started without this library.
//!
//! This code may run in a child that shares its parent's memory (vfork). So it uses only system calls and the stack.

use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr::null;

use crate::next::{next, none};
use crate::shim::exported;
use crate::sys;

/// Most entries of an environment that is copied; a larger one is left as it is.
const ENTRIES: usize = 1024;
/// Bytes of a path, or of the list of libraries to load first.
const TEXT: usize = 4096;
/// The longest chain of interpreters: an interpreter of scripts may be a script.
const DEPTH: u32 = 4;

const VARIABLE: &[u8] = b"LD_PRELOAD=";
const OURS: &[u8] = b"libcoldframe_preload";

type Strings = *const *const c_char;

unsafe extern "C" {
    static environ: Strings;
}

/// The first bytes of a regular file, at an offset; fewer if it ends. Another kind of file is not opened: to open a
/// FIFO is to wait for its writer.
fn read(path: *const c_char, offset: u64, into: &mut [u8]) -> usize {
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK) as usize;
    // SAFETY: system calls on a path of the caller's and buffers of ours; a stat is numbers.
    unsafe {
        let mut kind: libc::stat = std::mem::zeroed();
        let arguments = [libc::AT_FDCWD as usize, path as usize, &raw mut kind as usize, 0, 0, 0];
        if sys::call(libc::SYS_newfstatat, arguments) < 0 || kind.st_mode & libc::S_IFMT != libc::S_IFREG {
            return 0;
        }
        let file = sys::call(libc::SYS_openat, [libc::AT_FDCWD as usize, path as usize, flags, 0, 0, 0]);
        if file < 0 {
            return 0;
        }
        let place = [file as usize, into.as_mut_ptr() as usize, into.len(), offset as usize, 0, 0];
        let done = sys::call(libc::SYS_pread64, place);
        sys::call(libc::SYS_close, [file as usize, 0, 0, 0, 0, 0]);
        done.max(0) as usize
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

/// Whether musl's dynamic linker would start the file.
#[inline(never)]
fn is_for_musl(path: *const c_char, depth: u32) -> bool {
    let mut head = [0; 1024];
    let len = read(path, 0, &mut head);
    let head = &head[..len];
    if head.starts_with(b"#!") && depth > 0 {
        let name = head[2..].split(|b| *b == b'\n').next().unwrap_or_default().trim_ascii();
        let name = name.split(|b| *b == b' ' || *b == b'\t').next().unwrap_or_default();
        let mut interpreter = [0; 256];
        if name.is_empty() || name.len() >= interpreter.len() {
            return false;
        }
        interpreter[..name.len()].copy_from_slice(name);
        return is_for_musl(interpreter.as_ptr().cast(), depth - 1);
    }
    if len < 64 || !head.starts_with(b"\x7fELF\x02") {
        return false;
    }
    // Program headers follow the file's header; one of type 3 names the interpreter.
    let (at, size, count) =
        (number(&head[32..40]) as usize, number(&head[54..56]) as usize, number(&head[56..58]) as usize);
    let headers = (0..count).filter_map(|i| head.get(at + i * size..at + (i + 1) * size)).filter(|h| h.len() >= 56);
    let Some(interpreter) = headers.into_iter().find(|header| number(&header[..4]) == 3) else { return false };
    let mut name = [0; 256];
    let len = read(path, number(&interpreter[8..16]), &mut name).min(number(&interpreter[32..40]) as usize);
    name[..len].windows(8).any(|part| part == b"/ld-musl")
}

/// The same of a program by its name; `search`: one without a slash is looked up in the search path.
///
/// # Safety
/// `name` is a C string.
#[inline(never)]
unsafe fn named_is_for_musl(name: *const c_char, search: bool) -> bool {
    if !search {
        return is_for_musl(name, DEPTH);
    }
    // SAFETY: the caller's.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    if bytes.contains(&b'/') {
        return is_for_musl(name, DEPTH);
    }
    // SAFETY: the environment ends with a null, and its entries are C strings.
    let entries = unsafe { entries(environ) }.map(|entry| unsafe { CStr::from_ptr(entry) }.to_bytes());
    let path = entries.filter_map(|entry| entry.strip_prefix(b"PATH=")).next().unwrap_or(b"/bin:/usr/bin");
    for folder in path.split(|b| *b == b':') {
        let mut text = [0; TEXT];
        let whole = [folder, if folder.is_empty() { &b""[..] } else { b"/" }, bytes];
        if whole.iter().map(|part| part.len()).sum::<usize>() >= TEXT {
            continue;
        }
        let mut at = 0;
        for part in whole {
            text[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        let arguments = [libc::AT_FDCWD as usize, text.as_ptr() as usize, libc::X_OK as usize, 0, 0, 0];
        // SAFETY: a system call on a path of ours.
        if unsafe { sys::call(libc::SYS_faccessat, arguments) } == 0 {
            return is_for_musl(text.as_ptr().cast(), DEPTH);
        }
    }
    false
}

/// # Safety
/// `list` is null, or ends with a null.
unsafe fn entries(list: Strings) -> impl Iterator<Item = *const c_char> {
    // SAFETY: the caller's; nothing behind the null is read.
    (0..).map_while(move |i| (!list.is_null()).then(|| unsafe { *list.add(i) }).filter(|entry| !entry.is_null()))
}

/// Calls `start` with the environment without this library. The environment is unchanged if it is too large or has no
/// such entry.
///
/// # Safety
/// `environment` is null, or ends with a null; its entries are C strings.
#[inline(never)]
unsafe fn without(environment: Strings, start: &mut dyn FnMut(Strings) -> c_int) -> c_int {
    let (mut list, mut text) = ([null::<c_char>(); ENTRIES + 1], [0u8; TEXT]);
    let mut len = 0;
    // SAFETY: the caller's.
    for entry in unsafe { entries(environment) } {
        if len == ENTRIES {
            return start(environment);
        }
        // SAFETY: an entry is a C string.
        let bytes = unsafe { CStr::from_ptr(entry) }.to_bytes();
        list[len] = entry;
        if let Some(libraries) = bytes.strip_prefix(VARIABLE) {
            if bytes.len() >= TEXT {
                return start(environment);
            }
            let separates = |b: &u8| *b == b':' || *b == b' ';
            text[..VARIABLE.len()].copy_from_slice(VARIABLE);
            let mut at = VARIABLE.len();
            let is_ours = |library: &[u8]| library.windows(OURS.len()).any(|part| part == OURS);
            for library in libraries.split(separates).filter(|library| !library.is_empty() && !is_ours(library)) {
                if at > VARIABLE.len() {
                    text[at] = b':';
                    at += 1;
                }
                text[at..at + library.len()].copy_from_slice(library);
                at += library.len();
            }
            if at == VARIABLE.len() {
                continue;
            }
            list[len] = text.as_ptr().cast();
        }
        len += 1;
    }
    start(list.as_ptr())
}

/// Calls `start` with the environment, without this library if the program is for musl.
///
/// # Safety
/// As for `without`.
unsafe fn begun(for_musl: bool, environment: Strings, start: &mut dyn FnMut(Strings) -> c_int) -> c_int {
    match for_musl {
        // SAFETY: the caller's.
        true => unsafe { without(environment, start) },
        false => start(environment),
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn execve(path: *const c_char, arguments: Strings, environment: Strings) -> c_int {
    let mut start = |environment: Strings| next!(EXECVE, (path, arguments, environment), none());
    // SAFETY: the caller's.
    unsafe { begun(is_for_musl(path, DEPTH), environment, &mut start) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn execvpe(name: *const c_char, arguments: Strings, environment: Strings) -> c_int {
    let mut start = |environment: Strings| next!(EXECVPE, (name, arguments, environment), none());
    // SAFETY: the caller's.
    unsafe { begun(named_is_for_musl(name, true), environment, &mut start) }
}

exported! {
    execv(path: *const c_char, arguments: Strings) -> c_int => execve(path, arguments, environ);
    execvp(name: *const c_char, arguments: Strings) -> c_int => execvpe(name, arguments, environ);
}

macro_rules! spawns {
    ($($name:ident $which:ident $search:expr;)*) => { $(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(
            child: *mut libc::pid_t,
            path: *const c_char,
            actions: *const c_void,
            attributes: *const c_void,
            arguments: Strings,
            environment: Strings,
        ) -> c_int {
            let mut start = |environment: Strings| {
                next!($which, (child, path, actions, attributes, arguments, environment), libc::ENOSYS)
            };
            // SAFETY: the caller's.
            unsafe { begun(named_is_for_musl(path, $search), environment, &mut start) }
        }
    )* };
}

spawns! {
    posix_spawn POSIX_SPAWN false;
    posix_spawnp POSIX_SPAWNP true;
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use super::*;

    #[test]
    fn this_library_and_no_other_is_taken_out_of_the_environment() {
        let with = |value: &str| {
            let texts: Vec<CString> =
                ["A=1", value, "B=2"].into_iter().map(|text| CString::new(text).unwrap()).collect();
            let list: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).chain([null()]).collect();
            let mut passed = Vec::new();
            let mut start = |environment: Strings| {
                // SAFETY: ends with a null, and its entries live until this returns.
                passed = unsafe { entries(environment) }
                    .map(|entry| unsafe { CStr::from_ptr(entry) }.to_str().unwrap().to_string())
                    .collect();
                7
            };
            // SAFETY: as above.
            assert_eq!(unsafe { without(list.as_ptr(), &mut start) }, 7);
            passed.join(" ")
        };
        assert_eq!(with("LD_PRELOAD=/x/libcoldframe_preload.so"), "A=1 B=2");
        assert_eq!(with("LD_PRELOAD=/x/libcoldframe_preload.so:/y/b.so c.so"), "A=1 LD_PRELOAD=/y/b.so:c.so B=2");
        assert_eq!(with("LD_PRELOADED=libcoldframe_preload.so"), "A=1 LD_PRELOADED=libcoldframe_preload.so B=2");
    }

    #[test]
    fn programs_of_this_machine_are_not_for_musl_nor_is_what_is_no_program() {
        for path in [c"/bin/sh", c"/proc/self/exe", c"/etc/passwd", c"/nowhere", c"/"] {
            assert!(!is_for_musl(path.as_ptr(), DEPTH), "{path:?}");
        }
    }
}
