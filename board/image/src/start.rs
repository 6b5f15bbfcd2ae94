//! From reset to `kernel_main`, the exception vectors, and the switches to user mode and back.
//!
//! An abort handler saves the registers that a Rust function may change, calls the function in abort mode on a separate
//! stack, and repeats the instruction: the fault has been handled when the function returns. The user program calls
//! with `svc 0`; r7 selects the call: 0 ends the program, 1 writes. Interrupts are open in user mode only; the handler
//! keeps the task's registers where it can put another's.

use core::arch::global_asm;

global_asm!(
    r#"
    .section .text.start, "ax"
    .arm
    .global _start
_start:
    // SVC mode, interrupts off, MMU off: so QEMU starts an ELF given as -kernel.
    ldr   sp, =svc_stack_top
    mov   r0, #0xd7                 // abort mode
    msr   cpsr_c, r0
    ldr   sp, =abort_stack_top
    mov   r0, #0xdb                 // undefined mode
    msr   cpsr_c, r0
    ldr   sp, =svc_stack_top
    mov   r0, #0xd2                 // interrupt mode
    msr   cpsr_c, r0
    ldr   sp, =interrupt_stack_top
    mov   r0, #0xd3                 // SVC mode again
    msr   cpsr_c, r0
    ldr   r0, =__bss_start
    ldr   r1, =__bss_end
    mov   r2, #0
1:  cmp   r0, r1
    strlo r2, [r0], #4
    blo   1b
    // Paint the stacks of aborts and interrupts, to measure their depth.
    ldr   r0, =abort_stack
    ldr   r1, =interrupt_stack_top
    ldr   r2, =0xa5a5a5a5
2:  cmp   r0, r1
    strlo r2, [r0], #4
    blo   2b
    bl    kernel_main
3:  b     3b

    .global vectors, vectors_end
vectors:
    ldr pc, [pc, #24]               // reset
    ldr pc, [pc, #24]               // undefined instruction
    ldr pc, [pc, #24]               // supervisor call
    ldr pc, [pc, #24]               // prefetch abort
    ldr pc, [pc, #24]               // data abort
    nop
    ldr pc, [pc, #20]               // interrupt
    ldr pc, [pc, #20]               // fast interrupt
    .word v_unexpected, v_undefined, v_call, v_prefetch_abort, v_data_abort, v_interrupt, v_unexpected
vectors_end:

v_unexpected:
v_undefined:
    mov   r0, lr
    bl    on_unexpected
v_prefetch_abort:
    sub   lr, lr, #4                // back to the instruction
    stmfd sp!, {{r0-r3, r12, lr}}
    mov   r0, lr
    bl    on_prefetch_abort
    ldmfd sp!, {{r0-r3, r12, pc}}^
v_data_abort:
    sub   lr, lr, #8
    stmfd sp!, {{r0-r3, r12, lr}}
    mov   r0, lr
    bl    on_data_abort
    ldmfd sp!, {{r0-r3, r12, pc}}^
v_call:
    cmp   r7, #0
    beq   4f
    stmfd sp!, {{r1-r3, r12, lr}}
    bl    on_write
    ldmfd sp!, {{r1-r3, r12, pc}}^
4:  mov   r4, r0                    // the program's end: the next task, or back to the caller of run_user
    sub   sp, sp, #72
    mov   r1, sp
    bl    on_end
    cmp   r0, #0
    bne   resume
    mov   r0, r4
    ldr   r12, =saved_sp
    ldr   sp, [r12]
    ldmfd sp!, {{r4-r11, pc}}
v_interrupt:
    sub   lr, lr, #4                // back to the instruction
    sub   sp, sp, #72
    stmia sp, {{r0-r14}}^             // Registers, as in `task.rs`; only user mode is interrupted
    nop
    mrs   r1, spsr
    str   r1, [sp, #60]
    str   lr, [sp, #64]
    mov   r0, sp
    bl    on_interrupt
resume:
    ldr   r1, [sp, #60]
    msr   spsr_cxsf, r1
    ldr   lr, [sp, #64]
    ldmia sp, {{r0-r14}}^
    nop
    add   sp, sp, #72
    movs  pc, lr

    .global run_user
run_user:
    stmfd sp!, {{r4-r11, lr}}
    ldr   r12, =saved_sp
    str   sp, [r12]
    mov   r12, #0x10                // user mode
    msr   spsr_cxsf, r12
    mov   lr, r0
    movs  pc, lr
    .ltorg

    .section .bss.stacks, "aw", %nobits
    .balign 8
    .space 16384
svc_stack_top:
    .global abort_stack, abort_stack_top
abort_stack:
    .space 16384
abort_stack_top:
    .global interrupt_stack_top
    .space 16384
interrupt_stack_top:
saved_sp: .space 8
    .text
"#
);

extern "C" {
    /// First byte of the vectors, to be copied to virtual address 0.
    pub static vectors: u32;
    /// Their end.
    pub static vectors_end: u32;
    /// The lowest word of the abort handlers' stack.
    pub static abort_stack: u32;
    /// Its top.
    pub static abort_stack_top: u32;
    /// The top of the interrupts' stack, which stands above.
    pub static interrupt_stack_top: u32;
    /// Runs the user program from `entry` until it ends; r0 is what it returned.
    pub fn run_user(entry: u32) -> u32;
}

/// The pattern that fills both stacks at the start.
const PAINT: u32 = 0xa5a5_a5a5;

/// The deepest that the abort handlers' stack has been, and the interrupts', in bytes.
pub fn stack_depths() -> [usize; 2] {
    let (low, middle) = (&raw const abort_stack as usize, &raw const abort_stack_top as usize);
    [(low, middle), (middle, &raw const interrupt_stack_top as usize)].map(|(low, top)| {
        (low..top).step_by(4).find(|at| crate::io::read32(*at as u32) != PAINT).map_or(0, |deepest| top - deepest)
    })
}
