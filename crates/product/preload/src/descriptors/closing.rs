//! Descriptors. A program that closes all descriptors, as daemons do, must not close the pager's. The program sees
//! the pager's descriptors as not open.

use std::ffi::{c_int, c_uint};

use coldframe_live::own_descriptors;

use crate::descriptors::direct;
use crate::managed::memory;
use crate::managed::ranges::{failed, pass};
use crate::say::once;
use crate::symbols::caller;
use crate::symbols::next::next;
use crate::symbols::shim::with_caller;

fn raw(number: i64, a: usize, b: usize, c: usize) -> c_int {
    pass(number, [a, b, c, 0, 0, 0]) as c_int
}

with_caller!(close(1) => close_from);
/// close. This library closes only its own descriptors.
unsafe extern "C" fn close_from(descriptor: c_int, caller: usize) -> c_int {
    let raw = || raw(libc::SYS_close, descriptor as usize, 0, 0);
    // Nothing more for this library's own calls: they also come while a fork has shut the gate.
    if caller::is_own(caller) {
        return raw();
    }
    if own_descriptors::has(descriptor) {
        return failed(libc::EBADF) as c_int;
    }
    next!(CLOSE, (descriptor), raw())
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    let range = |first: c_uint, last: c_uint| raw(libc::SYS_close_range, first as usize, last as usize, flags as usize);
    let mut from = first;
    while let Some(own) = own_descriptors::next(from).filter(|own| *own <= last) {
        if from < own && range(from, own - 1) < 0 {
            return -1;
        }
        if own == last {
            return 0;
        }
        from = own + 1;
    }
    range(from, last) // where `first` is beyond `last`, the kernel has the word for it
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn closefrom(first: c_int) {
    // SAFETY: the caller's call.
    unsafe { close_range(first.max(0) as c_uint, c_uint::MAX, 0) };
}

/// The copy is the same file, including O_DIRECT.
fn copied(from: c_int, result: c_int) -> c_int {
    if result >= 0 && result != from && direct::is_noted(from) {
        direct::note(result);
    }
    result
}

/// Whether the pager needs the descriptor of this number. The handlers wait in a read of one of them, so none can be
/// moved away.
fn is_taken(to: c_int) -> bool {
    let taken = own_descriptors::has(to);
    if taken {
        once!("the program wants descriptor {to}, which the pager has, and does not get it");
    }
    taken
}

with_caller!(dup(1) => dup_from);
unsafe extern "C" fn dup_from(from: c_int, caller: usize) -> c_int {
    let raw = || raw(libc::SYS_dup, from as usize, 0, 0);
    if caller::is_own(caller) {
        return raw();
    }
    if own_descriptors::has(from) {
        return failed(libc::EBADF) as c_int;
    }
    copied(from, next!(DUP, (from), raw()))
}

/// Copies a descriptor to a number that the program has chosen, by this call.
pub fn copied_to(from: c_int, to: c_int, copy: impl FnOnce() -> c_int) -> c_int {
    if own_descriptors::has(from) || is_taken(to) {
        return failed(libc::EBADF) as c_int;
    }
    copied(from, copy())
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn dup2(from: c_int, to: c_int) -> c_int {
    // aarch64 has no such call, but its C library has the function.
    copied_to(from, to, || next!(DUP2, (from, to), raw(libc::SYS_dup3, from as usize, to as usize, 0)))
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
    let raw = || raw(libc::SYS_dup3, from as usize, to as usize, flags as usize);
    copied_to(from, to, || next!(DUP3, (from, to, flags), raw()))
}

with_caller!(fcntl, fcntl64(3) => fcntl_from);
/// fcntl. Its third argument, a number or a pointer, is passed as if the function were not variadic.
unsafe extern "C" fn fcntl_from(descriptor: c_int, command: c_int, argument: usize, caller: usize) -> c_int {
    let raw = |argument: usize| raw(libc::SYS_fcntl, descriptor as usize, command as usize, argument);
    if caller::is_own(caller) {
        return raw(argument);
    }
    controlled(descriptor, command, argument, |argument| next!(FCNTL, (descriptor, command, argument), raw(argument)))
}

/// fcntl of the program's by this call.
pub fn controlled(descriptor: c_int, command: c_int, argument: usize, pass: impl Fn(usize) -> c_int) -> c_int {
    if !memory::ready() {
        return pass(argument);
    }
    if own_descriptors::has(descriptor) {
        return failed(libc::EBADF) as c_int;
    }
    match command {
        libc::F_SETFL => {
            let (flags, direct) = direct::set_flags(descriptor, argument as c_int);
            let result = pass(flags as usize);
            if result >= 0 {
                (if direct { direct::note } else { direct::forget })(descriptor);
            }
            result
        }
        libc::F_GETFL => match pass(argument) {
            flags if flags >= 0 && direct::is_noted(descriptor) => flags | libc::O_DIRECT,
            flags => flags,
        },
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => copied(descriptor, pass(argument)),
        _ => pass(argument),
    }
}
