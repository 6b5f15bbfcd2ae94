//! A block trace as a swap trace: the events of the swap area if a system swapped to this device, with the requests
//! that it made to its files.
//!
//! Each page of a write is an `out`, each page of a read an `in`. The slot is the page's place on the device. A slot
//! is never freed, since no block trace says when its contents are no longer needed (the store has no discards).
//! Owners are unknown; the device is the owner.

use std::io::{self, Write};

use super::Job;
use crate::format::swap::SLOT_MAX;
use coldframe_store::error::TraceError;
use coldframe_store::fidelity::Fidelity;
use coldframe_store::reference::Kind;

pub(super) fn write(job: &mut Job<'_>) -> Result<(), TraceError> {
    let (fidelity, page) = (job.reader.provenance().fidelity, job.page);
    if fidelity != Fidelity::BlockOnly {
        return Err(TraceError::Usage {
            what: "format `swap`".into(),
            problem: format!("a {fidelity} trace does not say what is written back, and when"),
            remedy: "give a block trace of the device that was swapped to".into(),
        });
    }
    writeln!(job.out, "ts_ns,op,slot,pid").map_err(|error| TraceError::io(job.path, "write", error))?;
    let mut devices: Vec<u32> = Vec::new();
    let mut beyond = None;
    let done = job.rows(&mut |out, row| {
        let device = devices.iter().position(|device| *device == row.task).unwrap_or(devices.len());
        if device == devices.len() {
            devices.push(row.task);
        }
        let (first, last) = (row.address / page, (row.address + (u64::from(row.size) - 1)) / page);
        if last > u64::from(SLOT_MAX) {
            beyond = Some(last);
            return Err(io::ErrorKind::InvalidData.into());
        }
        let op = if row.kind == Kind::Write { "out" } else { "in" };
        for slot in first..=last {
            writeln!(out, "{},{op},{slot},{}", row.time, device + 1)?;
        }
        Ok(last - first + 1)
    });
    match beyond {
        None if devices.len() <= 1 => done,
        None => Err(TraceError::Usage {
            what: "format `swap`".into(),
            problem: format!("{} devices, and a swap area is one", devices.len()),
            remedy: "import the requests of one device".into(),
        }),
        Some(page) => Err(TraceError::Usage {
            what: "format `swap`".into(),
            problem: format!("page {page} of the device, and a swap area has at most {SLOT_MAX}"),
            remedy: "give larger pages with --page, or trace a device or partition of at most 64 GiB".into(),
        }),
    }
}
