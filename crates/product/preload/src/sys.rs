//! System calls without the C library, since this crate replaces the C library's wrappers.

pub use coldframe_live::calls::raw as call;
pub use coldframe_live::calls::{
    block_signals, exit_group, futex_wait, futex_wake, map_memory, read_file, restore_signals, sleep_us, thread, Lock,
};

/// Maps a range and unmaps it again: its start if it was free, or an error.
pub fn probe(start: usize, len: usize) -> isize {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: replaces nothing, and takes only back what it has got.
    unsafe {
        let got = call(libc::SYS_mmap, [start, len, 0, flags as usize, usize::MAX, 0]);
        if got == start as isize {
            call(libc::SYS_munmap, [start, len, 0, 0, 0, 0]);
        }
        got
    }
}

/// What fstat says of a descriptor.
pub fn status(descriptor: i32) -> Option<libc::stat> {
    // SAFETY: all bytes zero is a value of it, and the call writes it.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        (call(libc::SYS_fstat, [descriptor as usize, &raw mut status as usize, 0, 0, 0, 0]) == 0).then_some(status)
    }
}

/// The result of the C library's wrappers: -1 and `errno`.
pub fn answer(result: isize) -> isize {
    if (-4095..0).contains(&result) {
        set_errno(-result as i32);
        return -1;
    }
    result
}

pub fn errno() -> i32 {
    // SAFETY: the C library gives every thread one.
    unsafe { *libc::__errno_location() }
}

pub fn set_errno(value: i32) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value }
}

pub fn undisturbed<T>(work: impl FnOnce() -> T) -> T {
    let before = block_signals();
    let result = work();
    restore_signals(before);
    result
}

/// A word of the program's memory, if there is one.
pub fn word_at(address: usize) -> Option<usize> {
    let mut word = [0];
    (words_at(address, &mut word) == 1).then_some(word[0])
}

/// Reads words of the program's memory. Returns how many there are before the first page that cannot be read.
pub fn words_at(address: usize, words: &mut [usize]) -> usize {
    let vector = |start| libc::iovec { iov_base: start as *mut libc::c_void, iov_len: size_of_val(words) };
    let (to, from) = (vector(words.as_ptr() as usize), vector(address));
    let at = |vector: &libc::iovec| std::ptr::from_ref(vector) as usize;
    // SAFETY: the kernel reads what is there, and writes the words.
    let read = unsafe {
        let own = call(libc::SYS_getpid, [0; 6]) as usize;
        call(libc::SYS_process_vm_readv, [own, at(&to), 1, at(&from), 1, 0])
    };
    read.max(0) as usize / size_of::<usize>()
}
