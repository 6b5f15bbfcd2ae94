//! lz4 frames, one after the other (LZ4 Frame Format 1.6.x).
//!
//! ```text
//! magic, flags, block size, [content size 8], [dictionary 4], header checksum | size, block, [checksum] ... | 0, [checksum]
//! ```
//! A library decodes the blocks. The frame is read here, because the library's reader takes data that stop at the
//! border of a block for a whole frame.

use std::io::{self, BufRead, Read};

use lz4_flex::block::decompress_into_with_dict;
use xxhash_rust::xxh32::Xxh32;

const MAGIC: u32 = 0x184d_2204;
/// How far a block may refer back into the ones before it.
const WINDOW: usize = 64 * 1024;
const PLAIN: u32 = 1 << 31;

/// A decompressed stream.
pub(super) struct Lz4<R> {
    inner: R,
    frame: Option<Frame>,
    packed: Vec<u8>,
    /// The last block, in front of it up to [`WINDOW`] bytes before it: `text[taken..]` is to be handed out.
    text: Vec<u8>,
    taken: usize,
}

struct Frame {
    linked: bool,
    block_checksum: bool,
    content: Option<Xxh32>,
    block_max: usize,
}

fn corrupt(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl<R: BufRead> Lz4<R> {
    pub(super) fn new(inner: R) -> Lz4<R> {
        Lz4 { inner, frame: None, packed: Vec::new(), text: Vec::new(), taken: 0 }
    }

    fn number(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.inner.read_exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Begins the next frame; `false` at the end of the data.
    fn header(&mut self) -> io::Result<bool> {
        if self.inner.fill_buf()?.is_empty() {
            return Ok(false);
        }
        if self.number()? != MAGIC {
            return Err(corrupt("what follows the first frame is not lz4"));
        }
        let mut descriptor = vec![0; 2];
        self.inner.read_exact(&mut descriptor)?;
        let (flags, block) = (descriptor[0], descriptor[1] >> 4 & 7);
        let has = |bit: u8| flags >> bit & 1 == 1;
        if flags >> 6 != 1 || !(4..=7).contains(&block) || has(0) {
            return Err(corrupt("an unknown frame version or block size, or a dictionary"));
        }
        descriptor.resize(2 + 8 * usize::from(has(3)) + 1, 0);
        self.inner.read_exact(&mut descriptor[2..])?;
        let checksum = descriptor.pop();
        if checksum != Some((xxhash_rust::xxh32::xxh32(&descriptor, 0) >> 8) as u8) {
            return Err(corrupt("the frame header's checksum is wrong"));
        }
        let content = has(2).then(|| Xxh32::new(0));
        let block_max = 1 << (8 + 2 * u32::from(block));
        self.frame = Some(Frame { linked: !has(5), block_checksum: has(4), content, block_max });
        self.text.clear();
        Ok(true)
    }

    /// Unpacks the next block; `false` at the end of the frame.
    fn block(&mut self) -> io::Result<bool> {
        let size = self.number()?;
        let Some(mut frame) = self.frame.take() else { return Ok(false) };
        if size == 0 {
            let wrong = match &frame.content {
                Some(hash) => hash.digest() != self.number()?,
                None => false,
            };
            return if wrong { Err(corrupt("the frame's checksum is wrong")) } else { Ok(false) };
        }
        let length = (size & !PLAIN) as usize;
        if length > frame.block_max {
            return Err(corrupt("a block is larger than its frame allows"));
        }
        self.packed.resize(length, 0);
        self.inner.read_exact(&mut self.packed)?;
        if frame.block_checksum && xxhash_rust::xxh32::xxh32(&self.packed, 0) != self.number()? {
            return Err(corrupt("a block's checksum is wrong"));
        }
        self.unpack(size & PLAIN != 0, &frame)?;
        if let Some(hash) = &mut frame.content {
            hash.update(&self.text[self.taken..]);
        }
        self.frame = Some(frame);
        Ok(true)
    }

    fn unpack(&mut self, plain: bool, frame: &Frame) -> io::Result<()> {
        let keep = if frame.linked { self.text.len().min(WINDOW) } else { 0 };
        self.text.drain(..self.text.len() - keep);
        self.taken = keep;
        if plain {
            self.text.extend_from_slice(&self.packed);
            return Ok(());
        }
        self.text.resize(keep + frame.block_max, 0);
        let (window, into) = self.text.split_at_mut(keep);
        let length =
            decompress_into_with_dict(&self.packed, into, window).map_err(|error| corrupt(&error.to_string()))?;
        self.text.truncate(keep + length);
        Ok(())
    }
}

impl<R: BufRead> Read for Lz4<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let left = &self.text[self.taken..];
            if !left.is_empty() {
                let count = left.len().min(buffer.len());
                buffer[..count].copy_from_slice(&left[..count]);
                self.taken += count;
                return Ok(count);
            }
            if self.frame.is_none() && !self.header()? {
                return Ok(0);
            }
            self.taken = self.text.len();
            self.block()?;
        }
    }
}
