//! The second, denser compressor, zstd, for pages that stay in the pool for long.
//!
//! Its memory is mapped once for all pagers of the process, and taken for one page at a time. So nothing is allocated
//! while a fault is served, and a page needs no more than a few microseconds of it.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use zstd_sys::{
    ZSTD_compress_advanced, ZSTD_decompressDCtx, ZSTD_frameParameters, ZSTD_getCParams, ZSTD_initStaticCCtx,
    ZSTD_initStaticDCtx, ZSTD_isError, ZSTD_parameters,
};

use crate::sync::pause;
use crate::{sys, LiveError, PAGE};

/// The level: with level 1, pages of sort, ruby and gawk become 1.4 to 2.0 times smaller than with lz4, in 10 to 12 us
/// (`docs/book/src/speed.md`). Faster levels have little effect, slower ones little more.
const LEVEL: i32 = 1;
/// Memory of an encoder and of a decoder. zstd 1.5.7 needs 73,752 and 95,976 bytes; the test asks it.
const ENCODER: usize = 20 * PAGE;
const DECODER: usize = 24 * PAGE;
const ENCODERS: usize = 2;
const DECODERS: usize = 4;

/// All of it.
pub const BYTES: usize = ENCODERS * ENCODER + DECODERS * DECODER;

/// Equal pieces of memory that are free or taken.
struct Pieces {
    /// A bit for each.
    free: AtomicU32,
    /// Those that zstd has prepared.
    ready: AtomicU32,
    count: usize,
    bytes: usize,
    offset: usize,
}

/// A piece that is taken as long as this lives.
struct Piece<'a> {
    of: &'a Pieces,
    number: usize,
    address: usize,
}

static MEMORY: AtomicUsize = AtomicUsize::new(0);
static ALL: [Pieces; 2] = [Pieces::new(ENCODERS, ENCODER, 0), Pieces::new(DECODERS, DECODER, ENCODERS * ENCODER)];

impl Pieces {
    const fn new(count: usize, bytes: usize, offset: usize) -> Pieces {
        let free = AtomicU32::new((1 << count) - 1);
        Pieces { free, ready: AtomicU32::new(0), count, bytes, offset }
    }

    /// Takes a piece; spins while there is none. `None`: there is no memory.
    fn take(&self) -> Option<Piece<'_>> {
        let memory = MEMORY.load(Ordering::Acquire);
        if memory == 0 {
            return None;
        }
        loop {
            let free = self.free.load(Ordering::Relaxed);
            let number = free.trailing_zeros();
            if free == 0 {
                pause();
            } else if self
                .free
                .compare_exchange(free, free & !(1 << number), Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                let number = number as usize;
                let address = memory + self.offset + number * self.bytes;
                return Some(Piece { of: self, number, address });
            }
        }
    }
}

impl Piece<'_> {
    /// Prepares it, unless that has been done.
    fn ready(&self, prepare: impl FnOnce(*mut c_void, usize) -> bool) -> bool {
        let bit = 1 << self.number;
        if self.of.ready.load(Ordering::Relaxed) & bit != 0 {
            return true;
        }
        let done = prepare(self.address as *mut c_void, self.of.bytes);
        self.of.ready.fetch_or(if done { bit } else { 0 }, Ordering::Relaxed);
        done
    }
}

impl Drop for Piece<'_> {
    fn drop(&mut self) {
        self.of.free.fetch_or(1 << self.number, Ordering::Release);
    }
}

/// Maps the memory. Further calls do nothing.
pub fn prepare() -> Result<(), LiveError> {
    if MEMORY.load(Ordering::Acquire) != 0 {
        return Ok(());
    }
    let new = sys::map_memory(BYTES, None).map_err(|error| LiveError::os("memory for zstd", error))?;
    if MEMORY.compare_exchange(0, new, Ordering::AcqRel, Ordering::Acquire).is_err() {
        // SAFETY: another thread was faster; nobody has seen this memory.
        unsafe { sys::unmap_memory(new, BYTES) };
    }
    Ok(())
}

/// In a forked child: threads of the parent hold nothing here.
pub fn forget() {
    ALL.iter().for_each(|pieces| pieces.free.store((1 << pieces.count) - 1, Ordering::Release));
}

/// Compresses a page. Returns the size; `None`: it does not fit into `room` bytes.
///
/// # Safety
/// `page` must be good for a page and `into` for `room` bytes, and no other thread may write to either.
pub unsafe fn compress(page: usize, into: usize, room: usize) -> Option<usize> {
    let piece = ALL[0].take()?;
    // SAFETY: the piece is this thread's.
    if !piece.ready(|memory, bytes| unsafe { !ZSTD_initStaticCCtx(memory, bytes).is_null() }) {
        return None;
    }
    // SAFETY: plain numbers; the context begins at the piece's start; the caller answers for the bytes.
    let size = unsafe {
        let frame = ZSTD_frameParameters { contentSizeFlag: 0, checksumFlag: 0, noDictIDFlag: 1 };
        let parameters = ZSTD_parameters { cParams: ZSTD_getCParams(LEVEL, PAGE as u64, 0), fParams: frame };
        let (context, into, from) = (piece.address as *mut _, into as *mut c_void, page as *const c_void);
        ZSTD_compress_advanced(context, into, room, from, PAGE, std::ptr::null(), 0, parameters)
    };
    // SAFETY: a plain number.
    (unsafe { ZSTD_isError(size) } == 0).then_some(size)
}

/// Decompresses a page. Returns false if these are not the bytes of a page.
///
/// # Safety
/// `from` must be good for `size` bytes, `into` for a page, and no other thread may write to either.
pub unsafe fn decompress(from: usize, size: usize, into: usize) -> bool {
    let Some(piece) = ALL[1].take() else { return false };
    // SAFETY: the piece is this thread's.
    if !piece.ready(|memory, bytes| unsafe { !ZSTD_initStaticDCtx(memory, bytes).is_null() }) {
        return false;
    }
    // SAFETY: the context begins at the piece's start; the caller answers for the bytes.
    let size = unsafe {
        let (context, into, from) = (piece.address as *mut _, into as *mut c_void, from as *const c_void);
        ZSTD_decompressDCtx(context, into, PAGE, from, size)
    };
    size == PAGE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> Vec<u8> {
        (0..PAGE).map(|i| b"the page of a program "[(i * i / 7) % 22]).collect()
    }

    #[test]
    fn the_memory_is_as_large_as_zstd_wants_it() {
        // SAFETY: plain numbers.
        let (encoder, decoder) = unsafe {
            let parameters = ZSTD_getCParams(LEVEL, PAGE as u64, 0);
            (zstd_sys::ZSTD_estimateCCtxSize_usingCParams(parameters), zstd_sys::ZSTD_estimateDCtxSize())
        };
        assert!(encoder <= ENCODER && decoder <= DECODER, "zstd wants {encoder} and {decoder} bytes");
    }

    #[test]
    fn pages_come_back_from_all_threads_at_once_and_spoilt_ones_do_not() {
        prepare().unwrap();
        let page = text();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let (mut packed, mut back) = (vec![0u8; PAGE], vec![0u8; PAGE]);
                        // SAFETY: memory of this test.
                        unsafe {
                            let (into, back_at) = (packed.as_mut_ptr() as usize, back.as_mut_ptr() as usize);
                            let size = compress(page.as_ptr() as usize, into, PAGE).unwrap();
                            assert!(size < PAGE / 4);
                            assert!(decompress(into, size, back_at));
                            assert!(
                                !decompress(into, size - 1, back_at)
                                    && !decompress(page.as_ptr() as usize, size, back_at)
                            );
                            assert_eq!(compress(page.as_ptr() as usize, into, 16), None);
                            assert!(!decompress(into, 0, back_at));
                        }
                    }
                });
            }
        });
        assert_eq!(ALL[0].free.load(Ordering::Relaxed), (1 << ENCODERS) - 1);
    }
}
