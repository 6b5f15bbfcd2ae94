//! One stream of words for each guest thread, by vCPU index.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::shared::{self, Chunk};
use crate::{guest, wire, PAGE_SHIFT};

/// The most guest threads at one time; further ones are not recorded.
const STREAMS_MAX: usize = 4096;
const NO_TASK: u32 = u32::MAX;
const FULL: u64 = wire::CHUNK_WORDS;

const NO_PAGE: u64 = u64::MAX;
const ONE: u64 = 1 << wire::RUN_COUNT_SHIFT;
const READ: u64 = 1;
const WRITE: u64 = 2;

/// Its chunk is one of three: a chunk of the recorder; `SEALED`, which is always full, so that the first word asks
/// for a chunk; or, once recording is over, `WASTE`, which drops all words.
#[repr(C, align(128))]
pub struct Stream {
    chunk: *const Chunk,
    task: u32,
    pub runs: Runs,
}

/// The open runs of a stream, and the last data access, which may still grow.
///
/// If an instruction loads and stores one place, QEMU shows two accesses. QEMU shows 16 or 32 bytes of SSE or AVX as
/// halves of 8. Each of these is one reference. So an access waits in `pending` until something else happens.
pub struct Runs {
    pub fetch_page: u64,
    pub fetch_place: u32,
    data_place: u32,
    data_page: u64,
    data_kind: u64,
    /// Counts the segments run, so that an instruction in a loop is distinguished from itself in the next iteration.
    pub turn: u64,
    pub pending: bool,
    pub pending_store: bool,
    pub pending_by: u64,
    pub pending_start: u64,
    pub pending_end: u64,
}

impl Runs {
    const fn new() -> Self {
        Runs {
            fetch_page: NO_PAGE,
            fetch_place: 0,
            data_place: 0,
            data_page: NO_PAGE,
            data_kind: READ,
            turn: 0,
            pending: false,
            pending_store: false,
            pending_by: 0,
            pending_start: 0,
            pending_end: 0,
        }
    }

    /// The chunk with the open runs' words is gone. The next references begin new runs.
    fn close(&mut self) {
        self.fetch_page = NO_PAGE;
        self.data_page = NO_PAGE;
    }
}

#[repr(transparent)]
struct Slot(UnsafeCell<Stream>);

// SAFETY: a slot is used by the one thread that runs its vCPU, or by another while QEMU holds that thread stopped.
unsafe impl Sync for Slot {}

static STREAMS: [Slot; STREAMS_MAX] = [const { Slot(UnsafeCell::new(Stream::new())) }; STREAMS_MAX];
static CONTENT: AtomicU32 = AtomicU32::new(0);

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
        instructions: AtomicU64::new(0),
        reads: AtomicU64::new(0),
        writes: AtomicU64::new(0),
        space: AtomicU64::new(0),
        words: [const { AtomicU64::new(0) }; wire::CHUNK_WORDS as usize],
    }
}

impl Stream {
    const fn new() -> Self {
        Stream { chunk: SEALED.0.get(), task: NO_TASK, runs: Runs::new() }
    }

    #[inline(always)]
    pub fn chunk(&self) -> &'static Chunk {
        // SAFETY: it points at SEALED, at WASTE or into the mapping, none of which ever goes away.
        unsafe { &*self.chunk }
    }

    /// Appends a word and returns its place. The place belongs to this stream until the chunk is full.
    #[inline(always)]
    pub fn push(&mut self, word: u64) -> usize {
        let mut chunk = self.chunk();
        let mut used = chunk.used.load(Ordering::Relaxed);
        if used >= FULL {
            chunk = self.turn();
            used = chunk.used.load(Ordering::Relaxed);
        }
        let place = used as usize;
        // All streams share WASTE, so its `used` may have changed since.
        if let Some(slot) = chunk.words.get(place) {
            slot.store(word, Ordering::Relaxed);
        }
        chunk.used.store(used + 1, Ordering::Release);
        place.min(FULL as usize - 1)
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
        self.chunk = match shared::acquire(self.task, CONTENT.load(Ordering::Relaxed)) {
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

    /// Publishes the chunk, full or not; the next word takes another. Open runs end here.
    fn hand_over(&mut self) {
        let chunk = self.chunk();
        if !std::ptr::eq(chunk, SEALED.0.get()) && !std::ptr::eq(chunk, WASTE.0.get()) {
            shared::publish(chunk);
        }
        self.chunk = SEALED.0.get();
        self.runs.close();
    }

    /// Ends the last data access, which may have been waiting for its second half.
    #[inline]
    pub fn finish(&mut self) {
        if self.runs.pending {
            self.commit();
        }
    }

    #[inline]
    pub fn commit(&mut self) {
        self.runs.pending = false;
        let shift = PAGE_SHIFT.load(Ordering::Relaxed);
        let first = self.runs.pending_start >> shift;
        let last = (self.runs.pending_end - 1) >> shift;
        let store = self.runs.pending_store;
        self.touch(first, store);
        for page in first + 1..=last {
            self.touch(page, store);
        }
        let chunk = self.chunk();
        let counter = if store { &chunk.writes } else { &chunk.reads };
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    #[inline]
    fn touch(&mut self, page: u64, store: bool) {
        if page == self.runs.data_page && (!store || self.runs.data_kind == WRITE) {
            let word = &self.chunk().words[self.runs.data_place as usize];
            let old = word.load(Ordering::Relaxed);
            if old >> wire::RUN_COUNT_SHIFT < wire::RUN_COUNT_MAX {
                word.store(old.wrapping_add(ONE), Ordering::Relaxed);
                return;
            }
        }
        let kind = if store { WRITE } else { READ };
        self.runs.data_place = self.push(ONE | kind << wire::RUN_KIND_SHIFT | page & wire::RUN_PAGE_MASK) as u32;
        self.runs.data_page = page;
        self.runs.data_kind = kind;
    }
}

/// All streams, by vCPU index.
pub struct Streams;

impl Streams {
    pub fn set_content(content: u32) {
        CONTENT.store(content, Ordering::Relaxed);
    }

    /// The stream of a vCPU. All vCPUs beyond the table share the last stream, which drops its words.
    ///
    /// The caller must be the thread that runs the vCPU, or run while QEMU holds that thread stopped, and must not
    /// keep the reference.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub fn get(vcpu: u32) -> Option<&'static mut Stream> {
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
            stream.finish();
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
