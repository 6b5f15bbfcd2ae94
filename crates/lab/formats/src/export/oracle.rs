//! libCacheSim's oracleGeneral, with the next access of each object, which Belady's policy reads.
//!
//! The file is first written without next accesses; they are then filled in backwards, piece by piece. So memory
//! depends on the number of pages and not on the length of the trace. Pages of different address spaces get different
//! ids.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use rustc_hash::FxHashMap;

use super::{partial, Job};
use coldframe_store::error::TraceError;

const RECORD: usize = 24;
const NEVER: i64 = -1;
/// Records filled in at once.
const PIECE: u64 = 64 * 1024;
/// Bits of an id for a page number; the address space is above them. 48 are enough for pages of 64 KiB or for the
/// 57-bit addresses of 64-bit processors.
const SPACE_SHIFT: u32 = 48;

pub(super) fn write(job: &mut Job<'_>) -> Result<(), TraceError> {
    let tasks = &job.reader.provenance().tasks;
    let spaces: FxHashMap<u32, u64> = tasks.iter().map(|task| (task.id, u64::from(task.space))).collect();
    let several = tasks.windows(2).any(|pair| pair[0].space != pair[1].space);
    let page = job.page;
    job.rows(&mut |out, row| {
        let (first, last) = (row.address / page, (row.address + (u64::from(row.size) - 1)) / page);
        let space = spaces.get(&row.task).copied().unwrap_or(u64::from(row.task));
        for number in first..=last {
            let id = if several { id(space, number)? } else { number };
            let seconds = u32::try_from(row.time / 1_000_000_000).unwrap_or(u32::MAX);
            let mut record = [0; RECORD];
            record[..4].copy_from_slice(&seconds.to_le_bytes());
            record[4..12].copy_from_slice(&id.to_le_bytes());
            record[12..16].copy_from_slice(&(page as u32).to_le_bytes());
            record[16..].copy_from_slice(&NEVER.to_le_bytes());
            out.write_all(&record)?;
        }
        Ok(last - first + 1)
    })?;
    job.out.flush().and_then(|()| fill_in(job)).map_err(|error| TraceError::io(job.path, "write", error))
}

fn id(space: u64, page: u64) -> io::Result<u64> {
    match space.checked_shl(SPACE_SHIFT) {
        Some(upper) if upper >> SPACE_SHIFT == space && page >> SPACE_SHIFT == 0 => Ok(upper | page),
        _ => Err(io::Error::other(format!(
            "page {page:#x} of address space {space} has no id of 64 bits; cut to one task"
        ))),
    }
}

/// Goes through the records from last to first, and fills in the next request for each page, counted from 1.
fn fill_in(job: &Job<'_>) -> io::Result<()> {
    let mut file = File::options().read(true).write(true).open(partial(job.path))?;
    let mut next: FxHashMap<[u8; 8], i64> = FxHashMap::default();
    let mut end = job.written;
    let mut piece = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(PIECE);
        let place = SeekFrom::Start(start * RECORD as u64);
        piece.resize((end - start) as usize * RECORD, 0);
        file.seek(place)?;
        file.read_exact(&mut piece)?;
        for (at, record) in piece.chunks_exact_mut(RECORD).enumerate().rev() {
            let mut id = [0; 8];
            id.copy_from_slice(&record[4..12]);
            let number = (start + at as u64 + 1) as i64;
            let then = next.insert(id, number).unwrap_or(NEVER);
            record[16..].copy_from_slice(&then.to_le_bytes());
        }
        file.seek(place)?;
        file.write_all(&piece)?;
        end = start;
    }
    Ok(())
}
