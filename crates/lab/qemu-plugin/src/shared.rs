//! The mapping shared with the recorder: chunks and the code arena. `wire.rs` describes layout and protocol.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicU8, Ordering};
use std::time::Duration;

use crate::wire;

/// A chunk, as `wire.rs` describes it.
#[repr(C)]
pub struct Chunk {
    pub sequence: AtomicU64,
    pub task: AtomicU32,
    pub pid: AtomicU32,
    pub tid: AtomicU32,
    pub content: AtomicU32,
    pub used: AtomicU64,
    pub space: AtomicU64,
    pub words: [AtomicU64; wire::CHUNK_WORDS as usize],
}

const _: () = assert!(size_of::<Chunk>() as u64 == wire::CHUNK_BYTES);
const _: () = assert!(std::mem::offset_of!(Chunk, words) as u64 == wire::HEADER_BYTES);
const _: () = assert!(std::mem::offset_of!(Chunk, used) as u64 == wire::USED_AT);
const _: () = assert!(std::mem::offset_of!(Chunk, space) as u64 == wire::SPACE_AT);

/// Start of the mapping; null until `map` succeeded, constant afterwards.
static BASE: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static RECORDER: AtomicI32 = AtomicI32::new(0);
static PROCESS: AtomicU32 = AtomicU32::new(0);
static SPACE: AtomicU64 = AtomicU64::new(0);

/// Maps the recorder's memory and closes the file: the guest may use any descriptor.
pub fn map(path: &str, recorder: i32) -> Result<(), String> {
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(|e| format!("{path}: {e}"))?;
    // SAFETY: a fresh shared mapping of the whole file; the recorder never shrinks it.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            wire::TOTAL_BYTES as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(format!("{path}: cannot map {} bytes", wire::TOTAL_BYTES));
    }
    BASE.store(base.cast(), Ordering::Release);
    RECORDER.store(recorder, Ordering::Relaxed);
    if u64_at(wire::MAGIC_AT).load(Ordering::Acquire) != wire::MAGIC {
        return Err("the recorder is of another version than this plugin; build both from one tree".into());
    }
    enter_space();
    Ok(())
}

/// This process is new, or it runs another program: it gets an address space of its own.
pub fn enter_space() {
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    SPACE.store(u64_at(wire::NEXT_SPACE_AT).fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
}

pub fn process() -> u32 {
    PROCESS.load(Ordering::Relaxed)
}

fn at(offset: u64) -> *mut u8 {
    debug_assert!(offset < wire::TOTAL_BYTES);
    BASE.load(Ordering::Relaxed).wrapping_add(offset as usize)
}

fn u64_at(offset: u64) -> &'static AtomicU64 {
    // SAFETY: inside the mapping, aligned (all offsets of words are multiples of 8), never unmapped.
    unsafe { AtomicU64::from_ptr(at(offset).cast()) }
}

fn u8_at(offset: u64) -> &'static AtomicU8 {
    // SAFETY: inside the mapping, which is never unmapped.
    unsafe { AtomicU8::from_ptr(at(offset)) }
}

fn states() -> &'static [AtomicU8; wire::CHUNKS as usize] {
    // SAFETY: the states are inside the mapping, and AtomicU8 has the layout of a byte.
    unsafe { &*at(wire::STATES_AT).cast() }
}

pub fn mark_started() {
    u8_at(wire::STARTED_AT).store(1, Ordering::Release);
}

pub fn stopped() -> bool {
    u8_at(wire::STOP_AT).load(Ordering::Relaxed) != 0
}

pub fn next_task() -> u32 {
    u64_at(wire::NEXT_TASK_AT).fetch_add(1, Ordering::Relaxed) as u32
}

fn stop() {
    u8_at(wire::STOP_AT).store(1, Ordering::Relaxed);
}

fn mark_lost() {
    u8_at(wire::LOST_AT).store(1, Ordering::Relaxed);
}

/// A chunk for this thread, or `None` when recording is over. Waits while the recorder is behind.
pub fn acquire(task: u32, content: u32) -> Option<&'static Chunk> {
    let states = states();
    for waited in 0u64.. {
        if stopped() {
            return None;
        }
        let mut full = 0;
        let mut free = None;
        for (index, state) in states.iter().enumerate() {
            match state.load(Ordering::Relaxed) {
                wire::FREE if free.is_none() => free = Some(index),
                wire::FULL => full += 1,
                _ => {}
            }
            // Few chunks are full, unless the recorder is behind; so counting may stop after the first free one.
            if free.is_some() && index >= 2 * wire::FULL_MAX {
                break;
            }
        }
        if let (Some(index), true) = (free, full < wire::FULL_MAX) {
            let taken = states[index].compare_exchange(wire::FREE, wire::OWNED, Ordering::Acquire, Ordering::Relaxed);
            if taken.is_ok() {
                return Some(take(index, task, content));
            }
            continue;
        }
        if free.is_none() && full == 0 {
            // Thousands of threads hold all chunks, and none will be free soon.
            mark_lost();
            return None;
        }
        std::thread::sleep(Duration::from_micros(30));
        // If the recorder was killed, it frees no chunk any more: the program continues alone.
        // SAFETY: signal 0 only asks whether the process exists.
        if waited % 4096 == 4095 && unsafe { libc::kill(RECORDER.load(Ordering::Relaxed), 0) } != 0 {
            stop();
        }
    }
    None
}

fn take(index: usize, task: u32, content: u32) -> &'static Chunk {
    // SAFETY: inside the mapping; OWNED makes it this thread's alone, and all fields are atomics of the right
    // alignment.
    let chunk: &Chunk = unsafe { &*at(wire::CHUNKS_AT + index as u64 * wire::CHUNK_BYTES).cast() };
    chunk.used.store(0, Ordering::Relaxed);
    chunk.task.store(task, Ordering::Relaxed);
    chunk.pid.store(process(), Ordering::Relaxed);
    // SAFETY: no arguments, cannot fail.
    chunk.tid.store(unsafe { libc::gettid() } as u32, Ordering::Relaxed);
    chunk.content.store(content, Ordering::Relaxed);
    chunk.space.store(SPACE.load(Ordering::Relaxed), Ordering::Relaxed);
    chunk
}

/// Hands a chunk to the recorder.
pub fn publish(chunk: &'static Chunk) {
    let offset = (chunk as *const Chunk as usize) - (at(wire::CHUNKS_AT) as usize);
    let sequence = u64_at(wire::NEXT_SEQUENCE_AT).fetch_add(1, Ordering::Relaxed);
    chunk.sequence.store(sequence, Ordering::Relaxed);
    states()[offset / wire::CHUNK_BYTES as usize].store(wire::FULL, Ordering::Release);
}

/// Sends a text, in as many chunks as it needs, each starting with `word` and `head`.
pub fn send_event(word: &str, head: &str, text: &[u8]) {
    let room = (wire::CHUNK_BYTES - wire::HEADER_BYTES) as usize - word.len() - head.len() - 2;
    let mut rest = text;
    loop {
        let Some(chunk) = acquire(u32::MAX, wire::CONTENT_EVENT) else { return };
        // Whole lines, so that the reader need not join parts.
        let end = match rest.len() <= room {
            true => rest.len(),
            false => rest[..room].iter().rposition(|b| *b == b'\n').map_or(room, |i| i + 1),
        };
        let bytes =
            [word.as_bytes(), b"\n", head.as_bytes(), if head.is_empty() { b"" } else { b"\n" }, &rest[..end]].concat();
        for (slot, piece) in chunk.words.iter().zip(bytes.chunks(8)) {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            slot.store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
        chunk.used.store(bytes.len() as u64, Ordering::Release);
        publish(chunk);
        rest = &rest[end..];
        if rest.is_empty() {
            return;
        }
    }
}

/// Appends a block's description to the arena. Returns its id, or `None` if the arena is full.
pub fn describe_block(address: u64, sizes: &[u8]) -> Option<u64> {
    let words = wire::BLOCK_HEADER_WORDS + sizes.len().div_ceil(8) as u64;
    let id = u64_at(wire::CODE_END_AT).fetch_add(words, Ordering::Relaxed);
    if (id + words) * 8 > wire::CODE_BYTES {
        mark_lost();
        return None;
    }
    let word = |index: u64| u64_at(wire::CODE_AT + (id + index) * 8);
    word(0).store(address, Ordering::Relaxed);
    word(1).store(sizes.len() as u64, Ordering::Relaxed);
    for (index, piece) in sizes.chunks(8).enumerate() {
        let mut bytes = [0; 8];
        bytes[..piece.len()].copy_from_slice(piece);
        word(wire::BLOCK_HEADER_WORDS + index as u64).store(u64::from_le_bytes(bytes), Ordering::Relaxed);
    }
    // The block's id reaches the recorder by a later store with release order.
    Some(id)
}
