//! Formats of one line a request.

use std::io::Write;

use super::{reads, Job};
use coldframe_store::error::TraceError;
use coldframe_store::reference::Kind;

/// Bytes of a sector.
const SECTOR: u64 = 512;
/// The file that a fio log names; `fio --replay_redirect=FILE` names another.
const FIO_FILE: &str = "trace.img";

pub(super) fn lackey(job: &mut Job<'_>) -> Result<(), TraceError> {
    job.rows(&mut |out, row| {
        let mark = match row.kind {
            Kind::Fetch => "I ",
            Kind::Read => " L",
            Kind::Write => " S",
        };
        writeln!(out, "{mark} {:08x},{}", row.address, row.size).map(|()| 1)
    })
}

pub(super) fn mqsim(job: &mut Job<'_>) -> Result<(), TraceError> {
    job.requests(&mut |out, row| {
        let (first, last) = (row.address / SECTOR, (row.address + (u64::from(row.size) - 1)) / SECTOR);
        writeln!(out, "{} {} {first} {} {}", row.time, row.task, last - first + 1, u8::from(reads(&row)))
    })
}

pub(super) fn fio(job: &mut Job<'_>) -> Result<(), TraceError> {
    let refused = |error| TraceError::io(job.path, "write", error);
    writeln!(job.out, "fio version 3 iolog\n0 {FIO_FILE} add\n0 {FIO_FILE} open").map_err(refused)?;
    let mut last = 0;
    job.requests(&mut |out, row| {
        last = row.time / 1000;
        let action = if reads(&row) { "read" } else { "write" };
        writeln!(out, "{last} {FIO_FILE} {action} {} {}", row.address, row.size)
    })?;
    writeln!(job.out, "{last} {FIO_FILE} close").map_err(|error| TraceError::io(job.path, "write", error))
}
