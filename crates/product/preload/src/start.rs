//! The constructor. It runs before all others (`-z initfirst`). So it may not use anything that the C library's own
//! constructor sets up. It sets `environ` itself, which the C library's constructor does too.

use std::ffi::{c_char, c_int, CStr};

use coldframe_live::Options;

use crate::allocation::program_break;
use crate::descriptors::received;
use crate::entries;
use crate::kernel_access::threads;
use crate::managed::{gate, memory, stacks};
use crate::process::{files, fork, limits};
use crate::say::{fail, say};
use crate::symbols::{caller, deepbind, next, own_calls};
use crate::writes;

/// The result of `Options::encode`, from `coldframe run`.
const OPTIONS: &[u8] = b"COLDFRAME_OPTIONS";
/// In its place: the program's memory stays as it is, and its writes are noted.
const WRITES: &[u8] = b"COLDFRAME_WRITES";

/// Exit codes: wrong setting, and what this machine cannot do.
const SETTING: u8 = 2;
const MACHINE: u8 = 4;

extern "C" {
    static mut environ: *const *const c_char;
}

#[cfg(not(test))]
#[used]
// Before any other of this library.
#[link_section = ".init_array.00101"]
static CONSTRUCTOR: unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char) = constructor;

unsafe extern "C" fn constructor(_: c_int, _: *const *const c_char, environment: *const *const c_char) {
    // SAFETY: the C library's constructor sets it to the same, and no other thread runs.
    unsafe { environ = environment };
    caller::find();
    own_calls::bind();
    // The following calls may be the first to allocate. An allocator in the executable then registers handlers of its
    // own.
    fork::register();
    std::panic::set_hook(Box::new(|panic| {
        say(format_args!("a mistake in coldframe itself: {panic}"));
        std::process::abort();
    }));
    // SAFETY: glibc calls constructors with argc, argv and envp.
    let read = |name| unsafe { variable(environment, name) };
    let options = match read(OPTIONS).map(Options::decode) {
        Some(Ok(options)) => Some(options),
        Some(Err(error)) => fail(error.code(), format_args!("COLDFRAME_OPTIONS: {error}")),
        None if read(WRITES).is_some() => None,
        None => fail(SETTING, "COLDFRAME_OPTIONS is not set; start the program with `coldframe run`"),
    };
    deepbind::find();
    next::find();
    files::find();
    if !caller::known() {
        fail(MACHINE, "the C library is not glibc (no libc.so.6); only programs for glibc can be run");
    }
    let Some(options) = options else { return writes::note() };
    let (later, direct) = (coldframe_live::is_later(&options), received::inherited());
    // Before a pager process shares the memory: afterwards the kernel would wait for a grace period, some 10 ms.
    gate::start(threads::keep_robust_list);
    match memory::start(options, direct) {
        Ok(()) => {}
        // The program that started this one cannot know that a pager needs more rights than the program itself.
        Err(error) if later => {
            return say(format_args!("a program of this run is not paged, and in no budget: {error}"));
        }
        Err(error) => fail(error.code(), format_args!("{error}")),
    }
    if !stacks::start() {
        fail(MACHINE, "8 MiB of address space for the pager's own stacks cannot be had");
    }
    program_break::start();
    limits::start();
    coldframe_live::locked::never();
    memory::begin();
    match entries::take() {
        Ok(()) => memory::pager().leave_statistics(),
        // Programs that the C library itself starts inherit the statistics.
        Err(why) => {
            say(format_args!("malloc of the C library is not paged, only what the program maps: {why}"));
        }
    }
    // SAFETY: a function of that type, which stays loaded.
    unsafe { libc::atexit(at_exit) };
}

extern "C" fn at_exit() {
    memory::inside(|| memory::pager().end());
}

unsafe fn variable(mut environment: *const *const c_char, name: &[u8]) -> Option<&'static str> {
    // SAFETY: the environment ends with a null, its entries are C strings, and it stays for the life of the process.
    unsafe {
        while !environment.is_null() && !(*environment).is_null() {
            let entry = CStr::from_ptr(*environment).to_bytes();
            if let Some(value) = entry.strip_prefix(name).and_then(|rest| rest.strip_prefix(b"=")) {
                return std::str::from_utf8(value).ok();
            }
            environment = environment.add(1);
        }
    }
    None
}
