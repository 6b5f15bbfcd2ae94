//! From the plugin's words to rows.

use std::collections::HashMap;
use std::io;

use coldframe_store::Kind;

use crate::ring::{Chunk, Ring};
use crate::rows::Sink;
use crate::wire;

/// The descriptions of translated blocks, unpacked so that a run of instructions is two slices to copy.
#[derive(Default)]
struct Code {
    /// By block id (a word offset in the arena): the place of its instructions in the vectors below. A count of zero
    /// means that no block begins there.
    blocks: Vec<Span>,
    /// The arena up to `blocks.len()` words has been unpacked; words of a block not yet complete are read again.
    address: Vec<u64>,
    size: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
struct Span {
    start: u32,
    count: u32,
}

impl Code {
    /// The block `id`. If it is new, the blocks translated since the last time are read first.
    #[inline(always)]
    fn block(&mut self, ring: &Ring, id: usize) -> io::Result<Span> {
        match self.blocks.get(id) {
            Some(span) if span.count > 0 => Ok(*span),
            _ => self.read(ring, id),
        }
    }

    #[cold]
    fn read(&mut self, ring: &Ring, id: usize) -> io::Result<Span> {
        let mut words = Vec::new();
        // Another thread may be describing a block just now: its words are still zero, and later ones may be good. So
        // one block is read by its own id; larger reads are only a cache of the file.
        ring.code(id as u64, &mut words)?;
        let malformed = || io::Error::new(io::ErrorKind::InvalidData, format!("no block of code with id {id}"));
        let &[first, count, ref sizes @ ..] = words.as_slice() else { return Err(malformed()) };
        if count == 0 || count > 1024 {
            return Err(malformed());
        }
        let span = Span { start: self.address.len() as u32, count: count as u32 };
        let mut address = first;
        for index in 0..count as usize {
            let size = sizes.get(index / 8).ok_or_else(malformed)?.to_le_bytes()[index % 8];
            self.address.push(address);
            self.size.push(u32::from(size.max(1)));
            address += u64::from(size);
        }
        if self.blocks.len() <= id {
            self.blocks.resize(id + 1, Span::default());
        }
        self.blocks[id] = span;
        Ok(span)
    }

    /// Whether the last instruction of a block was not executed there. If an instruction crosses the page's end, QEMU's
    /// x86 translator gives it up, unless it is the first of its block, and begins the next block with it. Up to 7.2
    /// the plugin is still shown the instruction in the block before, with the bytes before the border.
    #[inline]
    fn is_given_up(&self, block: Span, next: Span) -> bool {
        let Some(last) = block.count.checked_sub(1).map(|last| (block.start + last) as usize) else { return false };
        let first = next.start as usize;
        self.address[last] == self.address[first] && self.size[last] < self.size[first]
    }
}

/// The state of a guest thread between two chunks.
#[derive(Clone, Copy, Default)]
struct ThreadState {
    block: Span,
    /// Instructions of the block already given out.
    given: u32,
    /// The instruction of the last data access, if nothing else came since.
    last: Option<u32>,
    /// That access, held back because it may grow in the thread's next chunk.
    held: Option<(u64, u32, u32)>,
}

/// Interleaves the instructions of each block with its data accesses.
///
/// A block's word says that the block starts; an access's word names its instruction. So the instructions up to that
/// one come first, and the rest when the next block starts. If an instruction loads and stores one place, one write
/// remains. If QEMU shows 16 or 32 bytes in halves, one access remains.
pub struct Exact {
    code: Code,
    tasks: HashMap<u32, ThreadState>,
    wide_in_halves: bool,
    pub instructions: u64,
}

impl Exact {
    pub fn new(wide_in_halves: bool) -> Self {
        Exact { code: Code::default(), tasks: HashMap::new(), wide_in_halves, instructions: 0 }
    }

    pub fn chunk(&mut self, ring: &Ring, chunk: &Chunk, sink: &mut Sink) -> io::Result<()> {
        let mut at = self.tasks.get(&chunk.task).copied().unwrap_or_default();
        sink.set_task(chunk.task);
        if let Some((address, size, kind)) = at.held.take() {
            sink.rows.address.push(address);
            sink.rows.size.push(size);
            sink.rows.kind.push(kind);
        }
        for &word in &chunk.words {
            if word & wire::ACCESS == 0 {
                let next = self.code.block(ring, word as usize)?;
                if self.code.is_given_up(at.block, next) {
                    at.block.count -= 1;
                    self.instructions -= 1;
                }
                self.give(&mut at, sink, u32::MAX);
                at.last = None;
                // Here no row can grow any more.
                sink.turn_if_full();
                at.block = next;
                at.given = 0;
                self.instructions += u64::from(at.block.count);
            } else {
                self.access(&mut at, sink, word);
            }
        }
        if at.last.is_some() {
            at.held = sink.rows.pop();
        }
        self.tasks.insert(chunk.task, at);
        Ok(())
    }

    /// Gives out the block's instructions before index `end`.
    #[inline(always)]
    fn give(&self, at: &mut ThreadState, sink: &mut Sink, end: u32) {
        let end = end.min(at.block.count);
        if end > at.given {
            let range = (at.block.start + at.given) as usize..(at.block.start + end) as usize;
            let rows = &mut sink.rows;
            rows.address.extend_from_slice(&self.code.address[range.clone()]);
            rows.size.extend_from_slice(&self.code.size[range]);
            rows.kind.resize(rows.address.len(), Kind::Fetch as u32);
            at.given = end;
        }
    }

    #[inline(always)]
    fn access(&self, at: &mut ThreadState, sink: &mut Sink, word: u64) {
        let address = word & wire::ADDRESS_MASK;
        let size = 1 << (word >> wire::ACCESS_SIZE_SHIFT & 7);
        let kind = if word & wire::ACCESS_STORE != 0 { Kind::Write } else { Kind::Read };
        let instruction = (word >> wire::ACCESS_INSTRUCTION_SHIFT & wire::ACCESS_INSTRUCTION_MASK) as u32;
        if at.last == Some(instruction) && self.grow(sink, address, size, kind) {
            return;
        }
        self.give(at, sink, instruction + 1);
        sink.rows.push(address, size, kind);
        at.last = Some(instruction);
    }

    /// Merges the access into the last row of the same instruction, if they are one reference.
    fn grow(&self, sink: &mut Sink, address: u64, size: u32, kind: Kind) -> bool {
        let rows = &mut sink.rows;
        let (Some(&start), Some(old), Some(old_kind)) =
            (rows.address.last(), rows.size.last_mut(), rows.kind.last_mut())
        else {
            return false;
        };
        if kind == Kind::Write && *old_kind == Kind::Read as u32 && (start, *old) == (address, size) {
            *old_kind = Kind::Write as u32;
            return true;
        }
        let halves = kind as u32 == *old_kind && size == 8 && start + u64::from(*old) == address;
        if self.wide_in_halves && halves && *old % 8 == 0 && *old < 32 {
            *old += 8;
            return true;
        }
        false
    }

    /// The blocks and accesses still open at the end.
    pub fn finish(&mut self, sink: &mut Sink) {
        let mut tasks: Vec<(u32, ThreadState)> = self.tasks.drain().collect();
        tasks.sort_unstable_by_key(|(task, _)| *task);
        for (task, mut at) in tasks {
            sink.set_task(task);
            if let Some((address, size, kind)) = at.held.take() {
                sink.rows.address.push(address);
                sink.rows.size.push(size);
                sink.rows.kind.push(kind);
            }
            self.give(&mut at, sink, u32::MAX);
        }
    }
}
