//! The program runs another one. [`Execution::run`] is the one place from which the kernel is asked for it.
//!
//! A program that was built with a sanitizer cannot be paged, nor one that Valgrind runs: it does not get this library,
//! and one line says so. All other variables are passed on as they are.
//!
//! A child of vfork comes here, too: its memory is its parent's, and the C library's malloc may be in use.

use std::ffi::{c_char, c_int, CStr};

use coldframe_live::Inherited;
use coldframe_proc::sanitizer;

use crate::managed::memory;
use crate::managed::ranges::failed;
use crate::say::say;
use crate::sys;

/// The name of this library's file.
const LIBRARY: &[u8] = b"libcoldframe_preload.so";

/// Bytes of a script of which the kernel reads the interpreter's name (`BINPRM_BUF_SIZE`), and scripts behind scripts.
const SCRIPT: usize = 256;
const DEEPEST: usize = 5;

type Strings = *const *const c_char;

/// An execve, or an execveat, which has flags.
pub struct Execution {
    pub folder: c_int,
    pub path: *const c_char,
    pub arguments: Strings,
    pub environment: Strings,
    pub flags: Option<c_int>,
}

impl Execution {
    /// The kernel's answer, an error.
    ///
    /// # Safety
    /// As for the system call.
    pub unsafe fn run(self) -> isize {
        let Execution { folder, path, arguments, environment, flags } = self;
        // SAFETY: the caller's environment; it is only read for a file that there is.
        let without = self.obstacle().and_then(|what| Some((what, unsafe { Environment::without_own(environment) }?)));
        let environment = match &without {
            Some((what, environment)) => {
                // SAFETY: a file of this name could be opened.
                let program = unsafe { CStr::from_ptr(path) }.to_bytes();
                let program = if program.is_empty() { b"a program" } else { program }.escape_ascii();
                match what {
                    Obstacle::Sanitizer(name) => say(format_args!("{program} was built with {name}: it runs unpaged")),
                    Obstacle::Valgrind => say(format_args!("what {program} runs is unpaged")),
                }
                environment.all.as_ptr()
            }
            None => environment,
        };
        // Closed again if there is no such program.
        let _statistics = if memory::ready() && without.is_none() { statistics() } else { None };
        let [path, arguments, environment] = [path as usize, arguments as usize, environment as usize];
        // SAFETY: the caller's call.
        unsafe {
            match flags {
                None => sys::call(libc::SYS_execve, [path, arguments, environment, 0, 0, 0]),
                Some(flags) => {
                    let all = [folder as usize, path, arguments, environment, flags as usize, 0];
                    sys::call(libc::SYS_execveat, all)
                }
            }
        }
    }

    /// Why the program, or a script's interpreter, cannot be paged.
    fn obstacle(&self) -> Option<Obstacle> {
        let (mut path, mut folder, mut script) = (self.path as usize, self.folder, [0; SCRIPT + 1]);
        for _ in 0..DEEPEST {
            let itself = || self.flags.filter(|flags| flags & libc::AT_EMPTY_PATH != 0).and(OpenFile::copy(folder));
            let file = OpenFile::open(folder, path).or_else(itself)?;
            let len = file.read(0, &mut script[..SCRIPT]);
            let Some(line) = script[..len].strip_prefix(b"#!") else {
                // SAFETY: a file of this name could be opened.
                let tools = unsafe { CStr::from_ptr(path as *const c_char) }.to_bytes().windows(TOOLS.len());
                return match sanitizer(|offset, into| file.read(offset, into)) {
                    None => tools.into_iter().any(|part| part == TOOLS).then_some(Obstacle::Valgrind),
                    Some(name) => Some(Obstacle::Sanitizer(name)),
                };
            };
            let line = line.split(|byte| *byte == b'\n').next()?.trim_ascii_start();
            let end = line.iter().position(|byte| b" \t\0".contains(byte)).unwrap_or(line.len());
            let start = line.as_ptr() as usize - script.as_ptr() as usize;
            script[start + end] = 0;
            (path, folder) = (script[start..].as_ptr() as usize, libc::AT_FDCWD);
        }
        None
    }
}

/// What a later program of the run needs to be one.
fn statistics() -> Option<Inherited> {
    memory::inside(|| memory::pager().inherit_statistics())
}

enum Obstacle {
    Sanitizer(&'static str),
    Valgrind,
}

/// The folder of Valgrind's tools, each a static program that loads the program.
const TOOLS: &[u8] = b"/valgrind/";

struct OpenFile(usize);

impl OpenFile {
    fn open(folder: c_int, path: usize) -> Option<OpenFile> {
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY) as usize;
        // SAFETY: opens what there is; the kernel looks at the path.
        let opened = unsafe { sys::call(libc::SYS_openat, [folder as usize, path, flags, 0, 0, 0]) };
        usize::try_from(opened).ok().map(OpenFile)
    }

    fn copy(file: c_int) -> Option<OpenFile> {
        // SAFETY: makes a descriptor.
        let copied = unsafe { sys::call(libc::SYS_fcntl, [file as usize, libc::F_DUPFD_CLOEXEC as usize, 0, 0, 0, 0]) };
        usize::try_from(copied).ok().map(OpenFile)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> usize {
        // SAFETY: the kernel writes no more than there is room for.
        let read = unsafe {
            sys::call(libc::SYS_pread64, [self.0, into.as_mut_ptr() as usize, into.len(), offset as usize, 0, 0])
        };
        usize::try_from(read).unwrap_or(0)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // SAFETY: this value's own.
        unsafe { sys::call(libc::SYS_close, [self.0, 0, 0, 0, 0, 0]) };
    }
}

/// Another environment. Its memory is this library's own; a child of vfork that runs a program leaves it to its parent.
struct Environment {
    all: Vec<*const c_char>,
    _preload: Vec<u8>,
}

impl Environment {
    /// The environment without this library in `LD_PRELOAD`. `None`: it is not there.
    unsafe fn without_own(environment: Strings) -> Option<Environment> {
        const NAME: &[u8] = b"LD_PRELOAD=";
        // SAFETY: the caller's environment, which a null ends.
        let entry = |i: usize| unsafe { environment.add(i).read() };
        let count = if environment.is_null() { 0 } else { (0..).find(|i| entry(*i).is_null())? };
        let mut all: Vec<_> = (0..count).map(entry).collect();
        // SAFETY: its entries are C strings.
        let text = |offset: &*const c_char| unsafe { CStr::from_ptr(*offset) }.to_bytes();
        let offset = all.iter().position(|entry| text(entry).starts_with(NAME))?;
        let mut preload = rest(&text(&all[offset])[NAME.len()..])?;
        if preload.is_empty() {
            all.remove(offset);
        } else {
            preload.splice(..0, NAME.iter().copied());
            preload.push(0);
            all[offset] = preload.as_ptr().cast();
        }
        all.push(std::ptr::null());
        Some(Environment { all, _preload: preload })
    }
}

/// A list of libraries without this one; `None`: it is not in the list.
fn rest(list: &[u8]) -> Option<Vec<u8>> {
    let separates = |byte: &u8| b": ".contains(byte);
    let own = |part: &&[u8]| part.rsplit(|byte| *byte == b'/').next() == Some(LIBRARY);
    let others: Vec<_> = list.split(separates).filter(|part| !own(part)).collect();
    (others.len() < list.split(separates).count()).then(|| others.join(&b':'))
}

/// Replaces the C library's function, for its own calls, too.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn execve(path: *const c_char, arguments: Strings, environment: Strings) -> c_int {
    let call = Execution { folder: libc::AT_FDCWD, path, arguments, environment, flags: None };
    // SAFETY: the caller's call.
    sys::answer(unsafe { call.run() }) as c_int
}

/// Replaces the C library's function, for its own calls, too.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn execveat(
    folder: c_int,
    path: *const c_char,
    arguments: Strings,
    environment: Strings,
    flags: c_int,
) -> c_int {
    let call = Execution { folder, path, arguments, environment, flags: Some(flags) };
    // SAFETY: the caller's call.
    sys::answer(unsafe { call.run() }) as c_int
}

/// Replaces the C library's function, which makes a call of its own.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn fexecve(file: c_int, arguments: Strings, environment: Strings) -> c_int {
    if file < 0 || arguments.is_null() || environment.is_null() {
        return failed(libc::EINVAL) as c_int;
    }
    // SAFETY: the caller's call.
    unsafe { execveat(file, c"".as_ptr(), arguments, environment, libc::AT_EMPTY_PATH) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_leaves_its_list_and_the_others_stay() {
        let text = |list: &str| rest(list.as_bytes()).map(|rest| String::from_utf8(rest).unwrap());
        assert_eq!(text("$ORIGIN/../x/libcoldframe_preload.so"), Some(String::new()));
        assert_eq!(text("a.so /lib/libcoldframe_preload.so:b.so").as_deref(), Some("a.so:b.so"));
        assert_eq!(text("a.so:libcoldframe_preload.so.old"), None);
    }

    #[test]
    fn all_other_variables_are_passed_on() {
        let given = [c"A=1", c"LD_PRELOAD=/x/libcoldframe_preload.so:b.so", c"LD_PRELOADED=2"];
        let all: Vec<_> = given.iter().map(|entry| entry.as_ptr()).chain([std::ptr::null()]).collect();
        // SAFETY: C strings and a null.
        let texts: Vec<_> = unsafe {
            let new = Environment::without_own(all.as_ptr()).unwrap();
            assert!(new.all.last().unwrap().is_null());
            new.all[..3].iter().map(|entry| CStr::from_ptr(*entry).to_owned()).collect()
        };
        assert_eq!(texts, [c"A=1".to_owned(), c"LD_PRELOAD=b.so".to_owned(), c"LD_PRELOADED=2".to_owned()]);
    }
}
