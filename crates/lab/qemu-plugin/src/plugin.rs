//! QEMU's entry into the plugin, and the callbacks.

use std::ffi::{c_char, c_int, c_uint, c_void, CStr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::api::{self, Block, Info};
use crate::stream::Streams;
use crate::{exec, guest, shared, wire};

/// QEMU's loader reads this, and refuses the plugin if it does not support this version.
#[no_mangle]
pub static qemu_plugin_version: c_int = 1;

/// QEMU's loader calls this once, right after loading.
///
/// # Safety
/// Only QEMU's loader calls it, with a valid `info` and `count` valid strings.
#[no_mangle]
pub unsafe extern "C" fn qemu_plugin_install(
    id: u64,
    info: *const Info,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    // SAFETY: the caller's; all are alive during this call.
    let (info, arguments) = unsafe {
        let arguments = (0..count as usize).map(|i| CStr::from_ptr(*arguments.add(i)).to_string_lossy().into_owned());
        (&*info, arguments.collect::<Vec<_>>())
    };
    match install(id, info, &arguments) {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("coldframe plugin: {why}");
            -1
        }
    }
}

fn install(id: u64, info: &Info, arguments: &[String]) -> Result<(), String> {
    let (low, high) = (info.version_min, info.version_current);
    if low > qemu_plugin_version || high < qemu_plugin_version {
        return Err(format!(
            "this QEMU speaks plugin API {low} to {high}, this plugin {qemu_plugin_version}; QEMU 4.2 to 8.x will do"
        ));
    }
    if info.system_emulation {
        return Err("this plugin records QEMU's user mode only".into());
    }
    // SAFETY: `target_name` is a constant string of QEMU's.
    let target = unsafe { CStr::from_ptr(info.target_name) }.to_string_lossy().into_owned();
    let options = Options::parse(arguments)?;
    shared::map(&options.shm, options.recorder)?;
    exec::prepare(&target);
    // SAFETY: the functions have the types of QEMU's header; `id` is ours.
    unsafe {
        if libc::pthread_atfork(Some(before_fork), None, Some(in_child)) != 0 {
            return Err("pthread_atfork failed: no memory".into());
        }
        api::qemu_plugin_register_vcpu_init_cb(id, on_vcpu_init);
        api::qemu_plugin_register_vcpu_exit_cb(id, on_vcpu_exit);
        api::qemu_plugin_register_vcpu_tb_trans_cb(id, on_block_translated);
        api::qemu_plugin_register_vcpu_syscall_cb(id, exec::on_syscall);
        api::qemu_plugin_register_vcpu_syscall_ret_cb(id, exec::on_syscall_return);
        api::qemu_plugin_register_atexit_cb(id, at_exit, std::ptr::null_mut());
    }
    shared::mark_started();
    exec::announce();
    Ok(())
}

struct Options {
    shm: String,
    recorder: i32,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Options { shm: String::new(), recorder: 0 };
        for argument in arguments {
            let bad = || format!("argument '{argument}' not understood");
            let (name, value) = argument.split_once('=').ok_or_else(bad)?;
            match name {
                "shm" => options.shm = value.into(),
                "recorder" => options.recorder = value.parse().map_err(|_| bad())?,
                _ => return Err(bad()),
            }
        }
        if options.shm.is_empty() {
            return Err("shm=PATH is missing; this plugin is loaded by `coldframe-lab record`".into());
        }
        Ok(options)
    }
}

extern "C" fn on_vcpu_init(_: u64, vcpu: c_uint) {
    Streams::forget(vcpu);
}

extern "C" fn on_vcpu_exit(_: u64, vcpu: c_uint) {
    Streams::publish(vcpu);
}

extern "C" fn at_exit(_: u64, _: *mut c_void) {
    Streams::publish_all();
    guest::send_maps();
}

extern "C" fn before_fork() {
    Streams::publish_all();
}

extern "C" fn in_child() {
    shared::enter_space();
    Streams::forget_all();
    exec::announce();
}

/// Describes the block once, then asks for one callback for each run of it and for each data access.
extern "C" fn on_block_translated(_: u64, block: *const Block) {
    // SAFETY: `block` and its instructions are valid during this call; the callbacks have the right types.
    unsafe {
        let count = api::qemu_plugin_tb_n_insns(block);
        if count == 0 {
            return;
        }
        let mut sizes = [0u8; 1024];
        let count = count.min(sizes.len());
        for (index, size) in sizes[..count].iter_mut().enumerate() {
            let instruction = api::qemu_plugin_tb_get_insn(block, index);
            *size = api::qemu_plugin_insn_size(instruction) as u8;
            let tag = (index as u64) << wire::ACCESS_INSTRUCTION_SHIFT | wire::ACCESS;
            api::qemu_plugin_register_vcpu_mem_cb(
                instruction,
                on_access,
                api::NO_REGISTERS,
                api::READ_WRITE,
                tag as usize as *mut c_void,
            );
        }
        let address = api::qemu_plugin_insn_vaddr(api::qemu_plugin_tb_get_insn(block, 0));
        let Some(word) = shared::describe_block(address, &sizes[..count]) else { return };
        api::qemu_plugin_register_vcpu_tb_exec_cb(block, on_block, api::NO_REGISTERS, word as usize as *mut c_void);
    }
}

extern "C" fn on_block(vcpu: c_uint, word: *mut c_void) {
    Streams::push(vcpu, word as usize as u64);
}

extern "C" fn on_access(vcpu: c_uint, info: u32, address: u64, tag: *mut c_void) {
    let (shift, store) = decode(info);
    let word = tag as usize as u64
        | u64::from(shift) << wire::ACCESS_SIZE_SHIFT
        | if store { wire::ACCESS_STORE } else { 0 }
        | address & wire::ADDRESS_MASK;
    Streams::push(vcpu, word);
}

/// Log2 of the size, and whether it is a store.
///
/// QEMU's words of access information are opaque. Asking QEMU costs two calls through the linkage table, as much as
/// the rest of an access. A program uses a few dozen different words, so the answers are kept: key in the high half,
/// answer in the low half.
#[inline]
fn decode(info: u32) -> (u32, bool) {
    static KNOWN: [AtomicU64; 256] = [const { AtomicU64::new(0) }; 256];
    // A multiplication spreads the bits that differ; they are at both ends of the word.
    let slot = &KNOWN[(info.wrapping_mul(0x9e37_79b1) >> 24) as usize];
    let known = slot.load(Relaxed);
    let answer = if known >> 32 == u64::from(info) && known & 0x80 != 0 {
        known as u32
    } else {
        // SAFETY: `info` came from QEMU in this very callback.
        let answer = unsafe {
            api::qemu_plugin_mem_size_shift(info) & 7 | u32::from(api::qemu_plugin_mem_is_store(info)) << 3 | 0x80
        };
        slot.store(u64::from(info) << 32 | u64::from(answer), Relaxed);
        answer
    };
    (answer & 7, answer & 8 != 0)
}
