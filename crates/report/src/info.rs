//! What a trace is: where it comes from, what it holds, where it is hot and how far apart its references to a page lie.

use std::path::{Path, PathBuf};

use coldframe_trace::heat::{heat, Heat};
use coldframe_trace::{Fidelity, Mapping, Provenance, Reader};
use serde_json::{json, Value};

use crate::experiment::sha256;
use crate::reuse::{reuse, Reuse};
use crate::ReportError;

/// Stretches of touched memory that are compared, and of the trace.
const STRETCHES: usize = 64;
const COLUMNS: usize = 40;
/// Stretches that are named.
const NAMED: usize = 4;

/// All that is known of a trace without simulating anything.
#[derive(Debug)]
pub struct Info {
    /// As given.
    pub path: PathBuf,
    /// Where it comes from, and its totals.
    pub provenance: Provenance,
    /// Rows of the file.
    pub rows: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Of the file.
    pub sha256: String,
    /// References by stretch of memory and of the trace.
    pub heat: Heat,
    /// The stretches with the most references.
    pub hottest: Vec<Hot>,
    /// Reuse distances; a sample of references has none.
    pub reuse: Option<Reuse>,
}

/// A stretch of memory that much is touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hot {
    /// Its first byte.
    pub address: u64,
    /// The mapping in which it begins; empty where none is known.
    pub name: String,
    /// References to it.
    pub references: u64,
}

impl Info {
    /// Reads a trace, some of it several times.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub fn read(path: &Path) -> Result<Info, ReportError> {
        let reader = Reader::open(path)?;
        let provenance = reader.provenance().clone();
        let heat = heat(path, STRETCHES, COLUMNS)?;
        let reuse = if distances_known(provenance.fidelity) { Some(reuse(path)?) } else { None };
        Ok(Info {
            path: path.to_path_buf(),
            rows: reader.rows(),
            bytes: reader.bytes(),
            sha256: sha256(path)?,
            hottest: hottest(&heat, &provenance.mappings),
            provenance,
            heat,
            reuse,
        })
    }

    /// For machines.
    pub fn json(&self) -> Value {
        let mut value = serde_json::to_value(&self.provenance).expect("provenance is plain data");
        value["path"] = json!(self.path);
        value["rows"] = self.rows.into();
        value["bytes"] = self.bytes.into();
        value["sha256"] = self.sha256.clone().into();
        value["working_set_pages_4KiB"] = json!(self.heat.working_set);
        value["phases"] = json!(self.heat.phases);
        let hot = |h: &Hot| json!({ "address": h.address, "name": h.name, "references": h.references });
        value["hottest"] = self.hottest.iter().map(hot).collect();
        value["reuse"] = json!(self.reuse.as_ref().map(distances));
        value
    }
}

/// Whether the references between two to the same page are there, all or in a known share.
fn distances_known(fidelity: Fidelity) -> bool {
    !matches!(fidelity, Fidelity::Sampled | Fidelity::Window | Fidelity::Faults)
}

fn distances(reuse: &Reuse) -> Value {
    let bin = |b: &crate::reuse::Bin| json!({ "up_to_pages": b.up_to, "references": b.references, "error": b.error });
    let bins: Vec<_> = reuse.bins.iter().map(bin).collect();
    json!({ "page": reuse.page, "first_references": reuse.first, "references": reuse.references, "followed": reuse.followed, "bins": bins })
}

/// The stretches with the most references, by the mapping in which they begin.
fn hottest(heat: &Heat, mappings: &[Mapping]) -> Vec<Hot> {
    let references = |row: usize| {
        let cells = row * heat.columns..(row + 1) * heat.columns;
        heat.reads[cells.clone()].iter().sum::<u64>() + heat.writes[cells].iter().sum::<u64>()
    };
    let name = |address: u64| {
        let mapping = mappings.iter().find(|mapping| (mapping.start..mapping.end).contains(&address));
        mapping.map_or_else(String::new, |mapping| mapping.name.clone())
    };
    let mut all: Vec<Hot> = (0..heat.rows)
        .map(|row| (heat.addresses[row], references(row)))
        .map(|(address, references)| Hot { address, name: name(address), references })
        .collect();
    all.sort_by_key(|hot| std::cmp::Reverse(hot.references));
    all.truncate(NAMED);
    all
}
