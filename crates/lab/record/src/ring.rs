//! The recorder's side of the memory shared with the plugin. `wire.rs` has the layout and the protocol.
//!
//! The plugin maps the memfd. The recorder reads and writes it as a file, which needs no `unsafe` and costs one copy
//! at memory speed. Both use the same pages, so the recorder reads what a guest thread stored. A state is one byte,
//! so it is never read half. A chunk is read by a system call after the one that saw it FULL, which orders the two on
//! every machine that Linux runs on.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use crate::wire;

pub struct Ring {
    file: File,
    /// The sequence number to come next.
    next: u64,
    /// Since when chunks with later numbers wait for `next`.
    gap_since: Option<Instant>,
    states: Vec<u8>,
    /// Full chunks seen but not yet taken: (sequence, index).
    waiting: Vec<(u64, usize)>,
    counted: Vec<bool>,
}

#[derive(Default)]
pub struct Chunk {
    pub task: u32,
    pub pid: u32,
    pub space: u32,
    pub content: u32,
    pub words: Vec<u64>,
    bytes: Vec<u8>,
}

impl Chunk {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes[wire::HEADER_BYTES as usize..]).into_owned()
    }
}

impl Ring {
    pub fn create() -> io::Result<Self> {
        let memory = rustix::fs::memfd_create("coldframe-record", rustix::fs::MemfdFlags::CLOEXEC)?;
        let file = File::from(memory);
        file.set_len(wire::TOTAL_BYTES)?;
        file.write_all_at(&wire::MAGIC.to_le_bytes(), wire::MAGIC_AT)?;
        Ok(Ring {
            file,
            next: 0,
            gap_since: None,
            states: vec![0; wire::CHUNKS as usize],
            waiting: Vec::new(),
            counted: vec![false; wire::CHUNKS as usize],
        })
    }

    /// A path by which processes of this user can open the memory while this process lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    fn byte(&self, at: u64) -> io::Result<u8> {
        let mut byte = [0];
        self.file.read_exact_at(&mut byte, at)?;
        Ok(byte[0])
    }

    pub fn started(&self) -> io::Result<bool> {
        Ok(self.byte(wire::STARTED_AT)? != 0)
    }

    /// Whether something had to be left out.
    pub fn lost(&self) -> io::Result<bool> {
        Ok(self.byte(wire::LOST_AT)? != 0)
    }

    /// From now on nothing is recorded.
    pub fn stop(&self) -> io::Result<()> {
        self.file.write_all_at(&[1], wire::STOP_AT)
    }

    /// Takes the next chunk in sequence, if there is one. `chunk` is reused.
    pub fn take(&mut self, chunk: &mut Chunk) -> io::Result<bool> {
        if self.waiting.is_empty() {
            self.look()?;
        }
        // A sequence number is assigned just before the state is set, so a number may be seen before its predecessor.
        // If a number does not appear for a while, its thread was killed in between.
        const PATIENCE: Duration = Duration::from_millis(20);
        match self.waiting.last() {
            None => {
                self.gap_since = None;
                return Ok(false);
            }
            Some((sequence, _)) if *sequence != self.next => {
                let since = *self.gap_since.get_or_insert_with(Instant::now);
                self.look()?;
                if self.waiting.last().is_some_and(|(s, _)| *s != self.next) && since.elapsed() < PATIENCE {
                    return Ok(false);
                }
            }
            Some(_) => {}
        }
        self.gap_since = None;
        let Some((sequence, index)) = self.waiting.pop() else { return Ok(false) };
        self.next = sequence + 1;
        self.read(index, chunk)?;
        self.free(index)?;
        Ok(true)
    }

    /// Every chunk that still belongs to a thread, with the words written so far, by task. Call it only after
    /// [`Ring::take`] found none and recording has ended.
    pub fn salvage(&mut self) -> io::Result<Vec<Chunk>> {
        self.file.read_exact_at(&mut self.states, wire::STATES_AT)?;
        let mut chunks = Vec::new();
        for index in (0..self.states.len()).filter(|index| self.states[*index] == wire::OWNED) {
            let mut chunk = Chunk::default();
            self.read(index, &mut chunk)?;
            chunks.push(chunk);
        }
        chunks.sort_by_key(|chunk| chunk.task);
        Ok(chunks)
    }

    /// Notes the chunks that are full, the next to take last.
    fn look(&mut self) -> io::Result<()> {
        self.file.read_exact_at(&mut self.states, wire::STATES_AT)?;
        for index in 0..self.states.len() {
            if self.states[index] == wire::FULL && !self.counted[index] {
                let mut sequence = [0; 8];
                self.file.read_exact_at(&mut sequence, Self::place(index) + wire::SEQUENCE_AT)?;
                self.counted[index] = true;
                self.waiting.push((u64::from_le_bytes(sequence), index));
            }
        }
        self.waiting.sort_unstable_by_key(|(sequence, _)| std::cmp::Reverse(*sequence));
        Ok(())
    }

    fn place(index: usize) -> u64 {
        wire::CHUNKS_AT + index as u64 * wire::CHUNK_BYTES
    }

    fn free(&mut self, index: usize) -> io::Result<()> {
        self.counted[index] = false;
        self.file.write_all_at(&[wire::FREE], wire::STATES_AT + index as u64)
    }

    fn read(&self, index: usize, chunk: &mut Chunk) -> io::Result<()> {
        let mut header = [0; wire::HEADER_BYTES as usize];
        self.file.read_exact_at(&mut header, Self::place(index))?;
        let half = |at: u64| u32::from_le_bytes(std::array::from_fn(|i| header[at as usize + i]));
        let word = |at: u64| u64::from_le_bytes(std::array::from_fn(|i| header[at as usize + i]));
        chunk.task = half(wire::TASK_AT);
        chunk.pid = half(wire::PID_AT);
        chunk.content = half(wire::CONTENT_AT);
        chunk.space = half(wire::SPACE_AT);
        let unit = if chunk.content == wire::CONTENT_EVENT { 1 } else { 8 };
        let length = (word(wire::USED_AT).saturating_mul(unit)).min(wire::CHUNK_WORDS * 8);
        chunk.bytes.resize((wire::HEADER_BYTES + length) as usize, 0);
        self.file.read_exact_at(&mut chunk.bytes, Self::place(index))?;
        chunk.words.clear();
        let body = chunk.bytes[wire::HEADER_BYTES as usize..].chunks_exact(8);
        chunk.words.extend(body.map(|b| u64::from_le_bytes(b.try_into().unwrap_or_default())));
        Ok(())
    }

    /// Reads the code arena from word `from` on, up to the end of the described blocks.
    pub fn code(&self, from: u64, into: &mut Vec<u64>) -> io::Result<()> {
        let mut end = [0; 8];
        self.file.read_exact_at(&mut end, wire::CODE_END_AT)?;
        let end = u64::from_le_bytes(end).min(wire::CODE_BYTES / 8);
        let mut bytes = vec![0; (end.saturating_sub(from) * 8) as usize];
        self.file.read_exact_at(&mut bytes, wire::CODE_AT + from * 8)?;
        into.extend(bytes.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap_or_default())));
        Ok(())
    }
}
