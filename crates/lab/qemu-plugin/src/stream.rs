//! One stream of words for each guest thread, by vCPU index.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::shared::{self, Chunk};
use crate::{guest, wire};

/// The most guest threads at one time; further ones are not recorded.
const STREAMS_MAX: usize = 4096;
const NO_TASK: u32 = u32::MAX;
const FULL: u64 = wire::CHUNK_WORDS;

/// Its chunk is one of three: a chunk of the recorder; `SEALED`, which is always full, so that the first word asks
/// for a chunk; or, once recording is over, `WASTE`, which drops all words.
#[repr(C, align(128))]
pub struct Stream {
    chunk: *const Chunk,
    task: u32,
}

#[repr(transparent)]
struct Slot(UnsafeCell<Stream>);

// SAFETY: a slot is used by the one thread that runs its vCPU, or by another while QEMU holds that thread stopped.
unsafe impl Sync for Slot {}

static STREAMS: [Slot; STREAMS_MAX] = [const { Slot(UnsafeCell::new(Stream::new())) }; STREAMS_MAX];

/// A chunk of the plugin, not of the recorder.
struct Own(UnsafeCell<Chunk>);
// SAFETY: all fields of a chunk that change are atomics.
unsafe impl Sync for Own {}

static SEALED: Own = Own(UnsafeCell::new(own(FULL)));
static WASTE: Own = Own(UnsafeCell::new(own(0)));

const fn own(used: u64) -> Chunk {
    Chunk {
        sequence: AtomicU64::new(0),
        task: AtomicU32::new(0),
        pid: AtomicU32::new(0),
        tid: AtomicU32::new(0),
        content: AtomicU32::new(0),
        used: AtomicU64::new(used),
        space: AtomicU64::new(0),
        words: [const { AtomicU64::new(0) }; wire::CHUNK_WORDS as usize],
    }
}

impl Stream {
    const fn new() -> Self {
        Stream { chunk: SEALED.0.get(), task: NO_TASK }
    }

    #[inline(always)]
    fn chunk(&self) -> &'static Chunk {
        // SAFETY: it points at SEALED, at WASTE or into the mapping, none of which ever goes away.
        unsafe { &*self.chunk }
    }

    /// Appends a word.
    #[inline(always)]
    fn push(&mut self, word: u64) {
        let mut chunk = self.chunk();
        let mut used = chunk.used.load(Ordering::Relaxed);
        if used >= FULL {
            chunk = self.turn();
            used = chunk.used.load(Ordering::Relaxed);
        }
        // All streams share WASTE, so its `used` may have changed since.
        if let Some(slot) = chunk.words.get(used as usize) {
            slot.store(word, Ordering::Relaxed);
        }
        chunk.used.store(used + 1, Ordering::Release);
    }

    /// Publishes the full chunk and takes another.
    #[cold]
    #[inline(never)]
    fn turn(&mut self) -> &'static Chunk {
        self.hand_over();
        if self.task == NO_TASK && !shared::stopped() {
            self.task = shared::next_task();
            // The program is loaded by now. A program that is killed sends no table at its end.
            guest::send_first_maps();
        }
        self.chunk = match shared::acquire(self.task, wire::CONTENT_REFERENCES) {
            Some(chunk) => chunk,
            None => {
                let waste = WASTE.0.get();
                // SAFETY: WASTE is never freed.
                unsafe { &*waste }.used.store(0, Ordering::Relaxed);
                waste
            }
        };
        self.chunk()
    }

    /// Publishes the chunk, full or not; the next word takes another.
    fn hand_over(&mut self) {
        let chunk = self.chunk();
        if !std::ptr::eq(chunk, SEALED.0.get()) && !std::ptr::eq(chunk, WASTE.0.get()) {
            shared::publish(chunk);
        }
        self.chunk = SEALED.0.get();
    }
}

/// All streams, by vCPU index.
pub struct Streams;

impl Streams {
    /// The stream of a vCPU. All vCPUs beyond the table share the last stream, which drops its words.
    ///
    /// The caller must be the thread that runs the vCPU, or run while QEMU holds that thread stopped, and must not
    /// keep the reference.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    fn get(vcpu: u32) -> Option<&'static mut Stream> {
        // SAFETY: see `Slot`: one thread at a time, and no reference outlives a callback.
        STREAMS.get(vcpu as usize).map(|slot| unsafe { &mut *slot.0.get() })
    }

    #[inline(always)]
    pub fn push(vcpu: u32, word: u64) {
        if let Some(stream) = Self::get(vcpu) {
            stream.push(word);
        }
    }

    /// Sends what the vCPU's stream holds.
    pub fn publish(vcpu: u32) {
        if let Some(stream) = Self::get(vcpu) {
            if !std::ptr::eq(stream.chunk, SEALED.0.get()) {
                stream.hand_over();
            }
        }
    }

    /// Publishes all streams. Call it only while QEMU has stopped the other guest threads.
    pub fn publish_all() {
        (0..STREAMS_MAX as u32).for_each(Self::publish);
    }

    /// The vCPU is a new thread: its stream points at another thread's chunk, which it forgets.
    pub fn forget(vcpu: u32) {
        if let Some(stream) = Self::get(vcpu) {
            *stream = Stream::new();
        }
    }

    pub fn forget_all() {
        (0..STREAMS_MAX as u32).for_each(Self::forget);
    }
}
