//! Declarations of QEMU's plugin API, version 1 (QEMU 4.2 to 8.x).
//!
//! Debian has no package with `qemu-plugin.h`, and none is needed: these are the functions of
//! `include/qemu/qemu-plugin.h` that this plugin calls, by name and type. Only `lib.rs` and its modules call them.

use std::ffi::{c_char, c_int, c_uint, c_void};

#[repr(C)]
pub struct Block(u8);
#[repr(C)]
pub struct Instruction(u8);

/// `qemu_info_t`, as far as user mode fills it in.
#[repr(C)]
pub struct Info {
    pub target_name: *const c_char,
    pub version_min: c_int,
    pub version_current: c_int,
    pub system_emulation: bool,
}

pub const NO_REGISTERS: c_int = 0;
pub const READ_WRITE: c_int = 3;

pub type OnBlockTranslated = extern "C" fn(u64, *const Block);
pub type OnExecuted = extern "C" fn(c_uint, *mut c_void);
pub type OnAccess = extern "C" fn(c_uint, u32, u64, *mut c_void);
pub type OnVcpu = extern "C" fn(u64, c_uint);
pub type OnSyscall = extern "C" fn(u64, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);
pub type OnSyscallReturn = extern "C" fn(u64, c_uint, i64, i64);

extern "C" {
    pub fn qemu_plugin_register_vcpu_tb_trans_cb(id: u64, call: OnBlockTranslated);
    pub fn qemu_plugin_register_vcpu_init_cb(id: u64, call: OnVcpu);
    pub fn qemu_plugin_register_vcpu_exit_cb(id: u64, call: OnVcpu);
    pub fn qemu_plugin_register_atexit_cb(id: u64, call: extern "C" fn(u64, *mut c_void), data: *mut c_void);
    pub fn qemu_plugin_register_vcpu_syscall_cb(id: u64, call: OnSyscall);
    pub fn qemu_plugin_register_vcpu_syscall_ret_cb(id: u64, call: OnSyscallReturn);

    pub fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    pub fn qemu_plugin_tb_get_insn(block: *const Block, index: usize) -> *mut Instruction;
    pub fn qemu_plugin_insn_vaddr(instruction: *const Instruction) -> u64;
    pub fn qemu_plugin_insn_size(instruction: *const Instruction) -> usize;
    pub fn qemu_plugin_register_vcpu_tb_exec_cb(block: *const Block, call: OnExecuted, flags: c_int, data: *mut c_void);
    pub fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut Instruction,
        call: OnAccess,
        flags: c_int,
        read_write: c_int,
        data: *mut c_void,
    );
    pub fn qemu_plugin_mem_is_store(info: u32) -> bool;
    pub fn qemu_plugin_mem_size_shift(info: u32) -> c_uint;
}
