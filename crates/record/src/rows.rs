//! Rows on their way to the file: gathered here, limited, and encoded by another thread.

use std::path::Path;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::thread::JoinHandle;

use coldframe_store::{Block, Columns, Kind, Provenance, Summary, TraceError, Writer};

use crate::{Limits, RecordError};

/// Rows gathered before they are passed on: 1 MiB of address, size and kind.
pub const ROWS: usize = 64 * 1024;

/// Consecutive rows of one task, column by column.
#[derive(Default, Clone)]
pub struct Rows {
    pub task: u32,
    pub address: Vec<u64>,
    pub size: Vec<u32>,
    pub kind: Vec<u32>,
    /// Empty if every row is one reference.
    pub count: Vec<u32>,
}

impl Rows {
    pub fn len(&self) -> usize {
        self.address.len()
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

    fn clear(&mut self) {
        self.address.clear();
        self.size.clear();
        self.kind.clear();
        self.count.clear();
    }

    fn references(&self) -> u64 {
        match self.count.is_empty() {
            true => self.len() as u64,
            false => self.count.iter().map(|c| u64::from(*c)).sum(),
        }
    }

    /// Drops the first `references`. A row with more references than are left to drop keeps the rest.
    fn drop_front(&mut self, references: u64) {
        let mut rows = self.len().min(usize::try_from(references).unwrap_or(usize::MAX));
        if !self.count.is_empty() {
            let mut left = references;
            rows = self
                .count
                .iter()
                .take_while(|c| (u64::from(**c) <= left).then(|| left -= u64::from(**c)).is_some())
                .count();
            if let Some(count) = self.count.get_mut(rows) {
                *count -= left as u32;
            }
            self.count.drain(..rows);
        }
        self.address.drain(..rows);
        self.size.drain(..rows);
        self.kind.drain(..rows);
    }

    /// Keeps the first `references` only.
    fn keep_front(&mut self, references: u64) {
        let mut rows = self.len().min(usize::try_from(references).unwrap_or(usize::MAX));
        if !self.count.is_empty() {
            let mut left = references;
            rows = 0;
            for count in &mut self.count {
                if left == 0 {
                    break;
                }
                *count = (*count).min(left.min(u64::from(u32::MAX)) as u32);
                left -= u64::from(*count);
                rows += 1;
            }
            self.count.truncate(rows);
        }
        self.address.truncate(rows);
        self.size.truncate(rows);
        self.kind.truncate(rows);
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
    pub fn create(path: &Path, counts: bool, limits: &Limits) -> Result<Self, RecordError> {
        let writer = Writer::create(path, Columns { time: false, count: counts, task: true })?;
        // Four blocks in progress keep the encoder busy while the reader waits for the program, and they fit the
        // cache.
        let (full, to_write) = sync_channel::<Rows>(4);
        let (recycle, empty) = sync_channel(8);
        let thread = std::thread::Builder::new()
            .name("encode".into())
            .spawn(move || encode(writer, &to_write, &recycle))
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

    /// References until the limit on them is reached, those that are skipped among them.
    pub fn wanted(&self) -> u64 {
        self.references_left.saturating_add(self.skip)
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
        if self.skip > 0 {
            let here = self.rows.references().min(self.skip);
            self.rows.drop_front(here);
            self.skip -= here;
            self.skipped += here;
        }
        let mut references = self.rows.references();
        if references >= self.references_left {
            self.rows.keep_front(self.references_left);
            references = self.references_left;
            self.limit = self.limit.or(Some("max-refs"));
        }
        if self.rows.len() == 0 {
            return;
        }
        self.references_left -= references;
        self.written += references;
        let mut next = self.empty.try_recv().unwrap_or_default();
        next.clear();
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
fn encode(mut writer: Writer, full: &Receiver<Rows>, recycle: &SyncSender<Rows>) -> Result<Writer, TraceError> {
    let mut block = Block::with_capacity(ROWS);
    while let Ok(rows) = full.recv() {
        block.assign(rows.task, &rows.address, &rows.size, &rows.kind, &rows.count);
        writer.write(&block)?;
        // It need not be taken back.
        let _ = recycle.try_send(rows);
    }
    Ok(writer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(counts: &[u32]) -> Rows {
        let mut rows = Rows::default();
        (0..counts.len() as u64).for_each(|i| rows.push(i, 1, Kind::Read));
        rows.count = counts.to_vec();
        rows
    }

    #[test]
    fn a_row_at_the_border_is_cut_in_two() {
        let mut front = rows(&[3, 5, 2]);
        let mut back = front.clone();
        front.keep_front(4);
        back.drop_front(4);
        assert_eq!((front.address, front.count), (vec![0, 1], vec![3, 1]));
        assert_eq!((back.address, back.count), (vec![1, 2], vec![4, 2]));
    }

    #[test]
    fn nothing_and_everything_can_be_dropped() {
        for counts in [&[][..], &[2, 2, 2]] {
            let mut all = rows(counts);
            if counts.is_empty() {
                (0..6).for_each(|i| all.push(i, 1, Kind::Read));
            }
            let mut same = all.clone();
            same.drop_front(0);
            same.keep_front(6);
            assert_eq!(same.references(), 6);
            same.drop_front(6);
            assert_eq!(same.len(), 0);
            all.keep_front(0);
            assert_eq!(all.len(), 0);
        }
    }
}
