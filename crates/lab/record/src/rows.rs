//! Rows on their way to the file: gathered here, limited, and reduced to pages and encoded by another thread.

use std::path::Path;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::thread::JoinHandle;

use coldframe_store::{Block, Columns, Kind, Provenance, Summary, TraceError, Writer};

use crate::runs::{self, Runs};
use crate::{Level, Limits, RecordError};

/// Rows gathered before they are passed on: 1 MiB of address, size and kind.
pub const ROWS: usize = 64 * 1024;

/// Consecutive references of one task, column by column.
#[derive(Default)]
pub struct Rows {
    pub task: u32,
    pub address: Vec<u64>,
    pub size: Vec<u32>,
    pub kind: Vec<u32>,
}

impl Rows {
    pub fn len(&self) -> usize {
        self.address.len()
    }

    fn iter(&self) -> impl Iterator<Item = (u64, u32, u32)> + '_ {
        self.address.iter().zip(&self.size).zip(&self.kind).map(|((&address, &size), &kind)| (address, size, kind))
    }

    #[inline(always)]
    pub fn push(&mut self, address: u64, size: u32, kind: Kind) {
        self.address.push(address);
        self.size.push(size);
        self.kind.push(kind as u32);
    }

    pub fn pop(&mut self) -> Option<(u64, u32, u32)> {
        Some((self.address.pop()?, self.size.pop()?, self.kind.pop()?))
    }

    /// Drops the first `references`.
    fn drop_front(&mut self, references: usize) {
        self.address.drain(..references);
        self.size.drain(..references);
        self.kind.drain(..references);
    }

    /// Keeps the first `references` only.
    fn keep_front(&mut self, references: usize) {
        self.address.truncate(references);
        self.size.truncate(references);
        self.kind.truncate(references);
    }
}

/// Takes rows, applies the limits, and passes the rows to the thread that writes the file.
pub struct Sink {
    pub rows: Rows,
    skip: u64,
    references_left: u64,
    /// References kept so far.
    pub written: u64,
    /// References skipped so far.
    pub skipped: u64,
    /// None once all rows are passed on.
    full: Option<SyncSender<Rows>>,
    empty: Receiver<Rows>,
    thread: Option<JoinHandle<Result<Writer, TraceError>>>,
    limit: Option<&'static str>,
}

impl Sink {
    pub fn create(path: &Path, level: Level, limits: &Limits) -> Result<Self, RecordError> {
        let count = matches!(level, Level::Pages(_));
        let writer = Writer::create(path, Columns { time: false, count, task: true })?;
        // Four blocks in progress keep the encoder busy while the reader waits for the program, and they fit the cache.
        let (full, to_write) = sync_channel::<Rows>(4);
        let (recycle, empty) = sync_channel(8);
        let thread = std::thread::Builder::new()
            .name("encode".into())
            .spawn(move || encode(writer, level, &to_write, &recycle))
            .map_err(RecordError::io("start a thread"))?;
        Ok(Sink {
            rows: Rows::default(),
            skip: limits.skip_refs,
            references_left: limits.max_refs.unwrap_or(u64::MAX),
            written: 0,
            skipped: 0,
            full: Some(full),
            empty,
            thread: Some(thread),
            limit: None,
        })
    }

    pub fn limit(&self) -> Option<&'static str> {
        self.limit
    }

    /// Call this often, between references; it passes the rows on once there are many.
    #[inline]
    pub fn turn_if_full(&mut self) {
        if self.rows.len() >= ROWS {
            self.turn();
        }
    }

    pub fn set_task(&mut self, task: u32) {
        if self.rows.task != task {
            self.turn();
            self.rows.task = task;
        }
    }

    /// Passes on the rows gathered.
    pub fn turn(&mut self) {
        let skipped = (self.rows.len() as u64).min(self.skip);
        self.rows.drop_front(skipped as usize);
        self.skip -= skipped;
        self.skipped += skipped;
        if self.rows.len() as u64 >= self.references_left {
            self.rows.keep_front(self.references_left as usize);
            self.limit = self.limit.or(Some("max-refs"));
        }
        let references = self.rows.len() as u64;
        if references == 0 {
            return;
        }
        self.references_left -= references;
        self.written += references;
        let mut next = self.empty.try_recv().unwrap_or_default();
        next.keep_front(0);
        next.task = self.rows.task;
        let rows = std::mem::replace(&mut self.rows, next);
        // If the writer has failed, it hangs up; `finish` returns its error.
        if self.full.as_ref().is_none_or(|full| full.send(rows).is_err()) {
            self.limit = self.limit.or(Some("error"));
        }
    }

    /// Writes what is left and completes the file.
    pub fn finish(mut self, provenance: Provenance) -> Result<Summary, RecordError> {
        self.turn();
        self.full = None;
        let writer = self.thread.take().map(JoinHandle::join);
        let Some(Ok(writer)) = writer else {
            return Err(RecordError::Io {
                action: "write the trace".into(),
                source: std::io::Error::other("the encoder died"),
            });
        };
        Ok(writer?.finish(provenance)?)
    }
}

/// Without [`Sink::finish`], the unfinished file is removed.
impl Drop for Sink {
    fn drop(&mut self) {
        self.full = None;
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// The encoder's thread.
fn encode(
    mut writer: Writer,
    level: Level,
    full: &Receiver<Rows>,
    recycle: &SyncSender<Rows>,
) -> Result<Writer, TraceError> {
    let (mut block, mut runs) = (Block::with_capacity(ROWS), Runs::default());
    while let Ok(rows) = full.recv() {
        match level {
            Level::Exact => block.assign(rows.task, &rows.address, &rows.size, &rows.kind, &[]),
            Level::Pages(page) => {
                runs::reduce(rows.iter(), page, &mut runs);
                block.assign(rows.task, &runs.address, &runs.size, &runs.kind, &runs.count);
            }
        }
        writer.write(&block)?;
        // It need not be taken back.
        let _ = recycle.try_send(rows);
    }
    Ok(writer)
}
