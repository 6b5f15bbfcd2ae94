//! How a replaced function gets the address of its caller: a few instructions pass the return address on as one more
//! argument. No stack frame may be between the caller and these instructions; the compiler promises that only for
//! naked functions. And how functions are replaced that call others.

/// `with_caller!(sbrk(1) => from)`: exports `sbrk`, which has one argument, and calls `from(argument, caller)`;
/// also for several names. The register is that of the next argument in the machine's C ABI.
macro_rules! with_caller {
    ($($name:ident),+ ($count:tt) => $inner:ident) => { $(with_caller!(@ $count, $name, $inner);)+ };
    (@ 1, $name:ident, $inner:ident) => { with_caller!(@ $name, "rsi", "x1", $inner); };
    (@ 2, $name:ident, $inner:ident) => { with_caller!(@ $name, "rdx", "x2", $inner); };
    (@ 3, $name:ident, $inner:ident) => { with_caller!(@ $name, "rcx", "x3", $inner); };
    (@ 4, $name:ident, $inner:ident) => { with_caller!(@ $name, "r8", "x4", $inner); };
    // On x86-64 the seventh argument is on the stack, where the call aligns it to 16 bytes.
    (@ 6, $name:ident, $inner:ident) => {
        with_caller!(@ $name, $inner,
            ["push [rsp]", ".cfi_adjust_cfa_offset 8", "call {inner}",
             "add rsp, 8", ".cfi_adjust_cfa_offset -8", "ret"],
            ["mov x6, x30", "b {inner}"]);
    };
    // Here the seventh argument is already on the stack, and the eighth goes before it.
    (@ 7, $name:ident, $inner:ident) => {
        with_caller!(@ $name, $inner,
            ["mov r10, [rsp]", "mov r11, [rsp + 8]", "sub rsp, 8", "push r10", "push r11", ".cfi_adjust_cfa_offset 24",
             "call {inner}", "add rsp, 24", ".cfi_adjust_cfa_offset -24", "ret"],
            ["mov x7, x30", "b {inner}"]);
    };
    (@ $name:ident, $intel:literal, $arm:literal, $inner:ident) => {
        with_caller!(@ $name, $inner,
            [concat!("mov ", $intel, ", [rsp]"), "jmp {inner}"],
            [concat!("mov ", $arm, ", x30"), "b {inner}"]);
    };
    (@ $name:ident, $inner:ident, [$($intel:expr),*], [$($arm:expr),*]) => {
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(".cfi_startproc", $($intel,)* ".cfi_endproc", inner = sym $inner);
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!($($arm,)* inner = sym $inner);
        }
    };
}

/// Exports functions that replace the C library's and only call others.
macro_rules! exported {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty => $call:expr;)*) => { $(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            // SAFETY: the caller's call.
            unsafe { $call }
        }
    )* };
}

pub(crate) use {exported, with_caller};
