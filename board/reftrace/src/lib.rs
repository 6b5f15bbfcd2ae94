//! A TCG plugin for QEMU's system emulation: each change of the page that the emulated processor fetches, loads from or stores to, within a
//! range of virtual addresses, as a line of a `din` trace (0 load, 1 store, 2 fetch; address in hexadecimal).
//!
//!   -plugin libreftrace.so,out=FILE,page=1024,from=0x20000000,to=0x20200000
//!
//! References to the page of the reference just before are left out: nothing happens between them that a machine without reference bits could
//! tell. An access that faults is no reference until it is repeated; the instruction's fetch then comes twice.

use std::ffi::{c_char, c_int, c_uint, c_void, CStr};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Mutex;

#[repr(C)]
struct Block(u8);
#[repr(C)]
struct Instruction(u8);

// From QEMU's `include/qemu/qemu-plugin.h`, version 1 of the interface; Debian packages no such file.
extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: u64, call: extern "C" fn(u64, *const Block));
    fn qemu_plugin_register_atexit_cb(id: u64, call: extern "C" fn(u64, *mut c_void), data: *mut c_void);
    fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    fn qemu_plugin_tb_get_insn(block: *const Block, index: usize) -> *mut Instruction;
    fn qemu_plugin_insn_vaddr(instruction: *const Instruction) -> u64;
    fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut Instruction,
        call: extern "C" fn(c_uint, *mut c_void),
        flags: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut Instruction,
        call: extern "C" fn(c_uint, u32, u64, *mut c_void),
        flags: c_int,
        read_write: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_mem_is_store(info: u32) -> bool;
}
const NO_REGISTERS: c_int = 0;
const READ_WRITE: c_int = 3;

/// QEMU reads which version of the interface is meant.
#[no_mangle]
pub static qemu_plugin_version: c_int = 1;

struct Recorder {
    out: BufWriter<File>,
    page: u64,
    from: u64,
    to: u64,
    last: Option<u64>,
}

static RECORDER: Mutex<Option<Recorder>> = Mutex::new(None);

impl Recorder {
    fn note(&mut self, kind: u8, address: u64) {
        let page = address / self.page;
        if (self.from..self.to).contains(&address) && self.last != Some(page) {
            self.last = Some(page);
            writeln!(self.out, "{kind} {address:x}").expect("the trace can be written");
        }
    }
}

fn note(kind: u8, address: u64) {
    if let Some(recorder) = RECORDER.lock().expect("no recorder has panicked").as_mut() {
        recorder.note(kind, address);
    }
}

extern "C" fn on_executed(_: c_uint, address: *mut c_void) {
    note(2, address as u64);
}

extern "C" fn on_access(_: c_uint, info: u32, address: u64, _: *mut c_void) {
    // SAFETY: a pure function of the word that QEMU has passed.
    let store = unsafe { qemu_plugin_mem_is_store(info) };
    note(u8::from(store), address);
}

extern "C" fn on_translated(_: u64, block: *const Block) {
    // SAFETY: the block and its instructions live for the time of this call, which is when they may be asked and subscribed to.
    unsafe {
        for index in 0..qemu_plugin_tb_n_insns(block) {
            let instruction = qemu_plugin_tb_get_insn(block, index);
            let address = qemu_plugin_insn_vaddr(instruction) as usize as *mut c_void;
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_executed, NO_REGISTERS, address);
            qemu_plugin_register_vcpu_mem_cb(instruction, on_access, NO_REGISTERS, READ_WRITE, std::ptr::null_mut());
        }
    }
}

extern "C" fn at_exit(_: u64, _: *mut c_void) {
    let recorder = RECORDER.lock().expect("no recorder has panicked").take();
    if let Some(mut recorder) = recorder {
        recorder.out.flush().expect("the trace can be written");
    }
}

fn recorder(arguments: &[String]) -> Option<Recorder> {
    let value = |key: &str| arguments.iter().find_map(|a| a.strip_prefix(key)?.strip_prefix('='));
    let address = |key: &str| u64::from_str_radix(value(key)?.strip_prefix("0x")?, 16).ok();
    Some(Recorder {
        out: BufWriter::new(File::create(value("out")?).ok()?),
        page: value("page")?.parse().ok().filter(|page| *page > 0)?,
        from: address("from")?,
        to: address("to")?,
        last: None,
    })
}

/// QEMU calls this when it loads the plugin; anything but 0 makes it stop with an error.
#[no_mangle]
pub extern "C" fn qemu_plugin_install(
    id: u64,
    _: *const c_void,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    let text = |i| {
        // SAFETY: QEMU passes `count` strings that end with a zero byte.
        unsafe { CStr::from_ptr(*arguments.add(i)) }.to_string_lossy().into_owned()
    };
    let arguments: Vec<String> = (0..count as usize).map(text).collect();
    let Some(recorder) = recorder(&arguments) else {
        eprintln!("reftrace: {arguments:?}; give out=FILE,page=BYTES,from=0xADDRESS,to=0xADDRESS");
        return -1;
    };
    *RECORDER.lock().expect("no recorder has panicked") = Some(recorder);
    // SAFETY: the calls have the types that the interface wants, and live as long as the library.
    unsafe {
        qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
        qemu_plugin_register_atexit_cb(id, at_exit, std::ptr::null_mut());
    }
    0
}
