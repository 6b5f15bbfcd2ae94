//! The board's half: start, heap, calls to the kernel.

use core::alloc::{GlobalAlloc, Layout};
use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::panic::PanicInfo;

global_asm!(
    r#"
    .section .text.start, "ax"
    .arm
    .global _start
_start:
    ldr   sp, =__stack_top
    ldr   r0, =__data_start
    ldr   r1, =__data_end
    ldr   r2, =__data_load
1:  cmp   r0, r1
    ldrlo r3, [r2], #4
    strlo r3, [r0], #4
    blo   1b
    ldr   r0, =__bss_start
    ldr   r1, =__bss_end
    mov   r2, #0
2:  cmp   r0, r1
    strlo r2, [r0], #4
    blo   2b
    bl    program_main
    mov   r0, #0
    mov   r7, #0
    svc   0
    .ltorg
    .text
"#
);

/// Writes bytes to the program's output.
pub fn write(bytes: &[u8]) {
    // SAFETY: the kernel reads the slice and changes nothing; it keeps all registers but r0.
    unsafe {
        asm!("svc 0", inlateout("r0") bytes.as_ptr() => _, in("r1") bytes.len(), in("r7") 1, lateout("lr") _);
    }
}

extern "C" {
    /// Where the data region starts (`program.ld`).
    static mut __paged_data: u8;
}

/// As on the host, in `lib.rs`.
pub fn data() -> &'static mut [u8] {
    // SAFETY: the kernel keeps this many bytes there, which fault when they are touched (`data=` on its command line);
    // called once.
    unsafe { core::slice::from_raw_parts_mut(&raw mut __paged_data, crate::DATA) }
}

/// Bytes of the heap; miniz_oxide's compressor takes some 320 KiB.
const HEAP: usize = 768 << 10;

#[repr(C, align(16))]
struct Heap {
    memory: UnsafeCell<[u8; HEAP]>,
    used: UnsafeCell<usize>,
}
// SAFETY: the program has one thread.
unsafe impl Sync for Heap {}

#[global_allocator]
static THE_HEAP: Heap = Heap { memory: UnsafeCell::new([0; HEAP]), used: UnsafeCell::new(0) };

// SAFETY: blocks are disjoint, aligned parts of `memory`, since `used` only grows; null when it is full.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: one thread; `start + size <= HEAP` is checked before the pointer is made.
        unsafe {
            let start = (*self.used.get()).next_multiple_of(layout.align());
            if start + layout.size() > HEAP {
                return core::ptr::null_mut();
            }
            *self.used.get() = start + layout.size();
            self.memory.get().cast::<u8>().add(start)
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: ends the program with status 1; does not return.
    unsafe { asm!("svc 0", in("r0") 1, in("r7") 0, options(noreturn)) }
}
