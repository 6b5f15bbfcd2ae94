//! The callbacks of QEMU, and the trace that they write.

use std::ffi::{c_char, c_int, c_uint, c_void, CStr};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::api::{self, Block};

/// QEMU reads which version of the interface is meant.
#[no_mangle]
pub static qemu_plugin_version: c_int = 1;

struct Recorder {
    out: BufWriter<File>,
    last: Option<u64>,
}

/// The part to record.
struct Range {
    page: u64,
    from: u64,
    to: u64,
}

static RANGE: OnceLock<Range> = OnceLock::new();
static RECORDER: Mutex<Option<Recorder>> = Mutex::new(None);
/// Where the block that runs was entered.
static FETCHED: AtomicU64 = AtomicU64::new(0);

/// Whether the address is of interest.
fn in_range(address: u64) -> bool {
    RANGE.get().is_some_and(|range| (range.from..range.to).contains(&address))
}

fn note(kind: u8, address: u64) {
    if !in_range(address) {
        return;
    }
    let page = RANGE.get().map(|range| address / range.page);
    if let Some(recorder) = RECORDER.lock().expect("no recorder has panicked").as_mut() {
        if recorder.last != page {
            recorder.last = page;
            writeln!(recorder.out, "{kind} {address:x}").expect("the trace can be written");
        }
    }
}

extern "C" fn on_entered(_: c_uint, address: *mut c_void) {
    FETCHED.store(address as u64, Ordering::Relaxed);
    note(2, address as u64);
}

extern "C" fn on_access(_: c_uint, info: u32, address: u64, _: *mut c_void) {
    if in_range(address) {
        // SAFETY: a pure function of the word that QEMU has passed.
        let store = unsafe { api::qemu_plugin_mem_is_store(info) };
        note(u8::from(store), address);
        note(2, FETCHED.load(Ordering::Relaxed));
    }
}

extern "C" fn on_translated(_: u64, block: *const Block) {
    // SAFETY: the block and its instructions live during this call, the only time when they may be queried and
    // subscribed to.
    unsafe {
        for index in 0..api::qemu_plugin_tb_n_insns(block) {
            let instruction = api::qemu_plugin_tb_get_insn(block, index);
            api::qemu_plugin_register_vcpu_mem_cb(
                instruction,
                on_access,
                api::NO_REGISTERS,
                api::READ_WRITE,
                std::ptr::null_mut(),
            );
        }
        let first = api::qemu_plugin_insn_vaddr(api::qemu_plugin_tb_get_insn(block, 0)) as usize as *mut c_void;
        api::qemu_plugin_register_vcpu_tb_exec_cb(block, on_entered, api::NO_REGISTERS, first);
    }
}

extern "C" fn at_exit(_: u64, _: *mut c_void) {
    let recorder = RECORDER.lock().expect("no recorder has panicked").take();
    if let Some(mut recorder) = recorder {
        recorder.out.flush().expect("the trace can be written");
    }
}

fn recorder(arguments: &[String]) -> Option<(Recorder, Range)> {
    let value = |key: &str| arguments.iter().find_map(|a| a.strip_prefix(key)?.strip_prefix('='));
    let address = |key: &str| u64::from_str_radix(value(key)?.strip_prefix("0x")?, 16).ok();
    let page = value("page")?.parse().ok().filter(|page| *page > 0)?;
    let range = Range { page, from: address("from")?, to: address("to")? };
    Some((Recorder { out: BufWriter::new(File::create(value("out")?).ok()?), last: None }, range))
}

/// QEMU calls this when it loads the plugin; anything but 0 makes it stop with an error.
///
/// # Safety
/// `arguments` are `count` strings that end with a zero byte.
#[no_mangle]
pub unsafe extern "C" fn qemu_plugin_install(
    id: u64,
    _: *const c_void,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    let text = |i| {
        // SAFETY: the caller's promise, and `i` is less than `count`.
        unsafe { CStr::from_ptr(*arguments.add(i)) }.to_string_lossy().into_owned()
    };
    let arguments: Vec<String> = (0..count as usize).map(text).collect();
    let Some((recorder, range)) = recorder(&arguments) else {
        eprintln!("reftrace: {arguments:?}; give out=FILE,page=BYTES,from=0xADDRESS,to=0xADDRESS");
        return -1;
    };
    RANGE.get_or_init(|| range);
    *RECORDER.lock().expect("no recorder has panicked") = Some(recorder);
    // SAFETY: the calls have the types that the interface wants, and live as long as the library.
    unsafe {
        api::qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
        api::qemu_plugin_register_atexit_cb(id, at_exit, std::ptr::null_mut());
    }
    0
}
