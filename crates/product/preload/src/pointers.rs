//! What the program's pointers point to, as the kernel takes it: no signal where nothing can be read. The replaced
//! calls then go to the kernel as they are, and it says what is wrong (EFAULT), in its own order of checks.
//!
//! Not covered: memory that another thread unmaps at that very moment.

use coldframe_live::PAGE;

use crate::sys;

/// Whether the kernel can read at an address. Its first step here is to copy a set of signals; it then refuses to do
/// anything with it. A page that is out of RAM comes in. No filter of the program's takes this call
/// away (`process/filter.rs`).
fn is_readable(address: usize) -> bool {
    const NOTHING: usize = usize::MAX;
    let a = [NOTHING, address / WORD * WORD, 0, WORD, 0, 0];
    // SAFETY: the kernel only reads. A null pointer would mean no set.
    a[1] != 0 && unsafe { sys::call(libc::SYS_rt_sigprocmask, a) != -(libc::EFAULT as isize) }
}

/// The length of a set of signals.
const WORD: usize = 8;

/// A copy of `count` values, which may be at any address; `None`: not all can be read.
pub fn values<T: Copy>(from: *const T, count: usize) -> Option<Vec<T>> {
    let start = from as usize;
    let end = start.checked_add(count.checked_mul(size_of::<T>())?)?;
    let mut pages = (start / PAGE * PAGE..end).step_by(PAGE);
    // SAFETY: every page of it can be read, and all types here have a value for any bytes.
    (start == end || pages.all(|page| is_readable(page.max(start))))
        .then(|| (0..count).map(|i| unsafe { from.add(i).read_unaligned() }).collect())
}

/// A copy of one value.
pub fn value<T: Copy>(from: *const T) -> Option<T> {
    values(from, 1)?.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_read_is_copied_and_the_rest_raises_no_signal() {
        let two = sys::map_memory(2 * PAGE).unwrap();
        let at = |offset: usize| (two + offset) as *mut u32;
        // SAFETY: new memory.
        unsafe {
            at(PAGE - 4).write(7);
            at(PAGE).write(8);
            assert_eq!(values(at(PAGE - 4), 2), Some(vec![7, 8]));
            assert_eq!(value(at(PAGE - 2)), Some(8 << 16));
            assert_eq!(sys::call(libc::SYS_mprotect, [two + PAGE, PAGE, 0, 0, 0, 0]), 0);
        }
        assert_eq!((value(at(PAGE - 4)), values(at(PAGE - 4), 2), value(at(PAGE - 2))), (Some(7), None, None));
        assert_eq!(
            (value(8 as *const u32), values(at(0), usize::MAX), values(at(PAGE), 0)),
            (None, None, Some(vec![]))
        );
        assert_eq!((value((usize::MAX - 1) as *const u32), value(std::ptr::null::<u32>())), (None, None));
    }
}
