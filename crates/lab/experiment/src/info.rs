//! The content of a trace: its origin, its working set and its hottest memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use coldframe_store::heat::{heat, Heat, PAGE};
use coldframe_store::{Mapping, Provenance, Reader};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::ExperimentError;
use crate::string::sha256;

/// Parts of touched memory that are compared, and parts of the trace.
const STRETCHES: usize = 64;
const COLUMNS: usize = 40;
const NAMED: usize = 6;

/// All facts of a trace that need no simulation.
#[allow(non_snake_case)] // Outside a type the name carries the unit, as printed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Info {
    /// Where it comes from, and its totals.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// As given.
    pub path: PathBuf,
    /// Rows of the file.
    pub rows: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Of the file.
    pub sha256: String,
    /// References by stretch of memory and of the trace.
    #[serde(skip)]
    pub heat: Heat,
    /// Distinct pages touched in each stretch of the trace.
    pub working_set_pages_4KiB: Vec<u64>,
    /// The stretches at which a phase begins.
    pub phases: Vec<usize>,
    /// The regions with the most references.
    pub hottest: Vec<Hot>,
}

/// A region with many references: all mappings of one name, or a part of the heat map if there are none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Hot {
    /// First byte of its page with the most references.
    pub address: u64,
    /// The name of its mappings; empty if it is not known.
    pub name: String,
    /// References to it.
    pub references: u64,
    /// Its touched pages, of [`PAGE`] bytes.
    #[serde(rename = "pages_4KiB")]
    pub pages: u64,
}

impl Info {
    /// Reads a trace, some of it several times.
    pub fn read(path: &Path) -> Result<Info, ExperimentError> {
        let reader = Reader::open(path)?;
        let provenance = reader.provenance().clone();
        let heat = heat(path, STRETCHES, COLUMNS)?;
        Ok(Info {
            path: path.to_path_buf(),
            rows: reader.rows(),
            bytes: reader.bytes(),
            sha256: sha256(path)?,
            hottest: hottest(&heat, &provenance.mappings),
            provenance,
            working_set_pages_4KiB: heat.working_set.clone(),
            phases: heat.phases.clone(),
            heat,
        })
    }
}

/// The regions with the most references. A page belongs to the mapping of its first byte, or otherwise to a mapping
/// that begins within the page.
fn hottest(heat: &Heat, mappings: &[Mapping]) -> Vec<Hot> {
    let mut regions: BTreeMap<(&str, usize), (u64, Hot)> = BTreeMap::new();
    for (index, &(page, references)) in heat.counts.iter().enumerate() {
        let name = name_of(page * PAGE, mappings);
        let stretch = if name.is_empty() { index * heat.rows / heat.counts.len() } else { 0 };
        let new = || (0, Hot { address: 0, name: name.to_owned(), references: 0, pages: 0 });
        let (most, hot) = regions.entry((name, stretch)).or_insert_with(new);
        if references > *most {
            (*most, hot.address) = (references, page * PAGE);
        }
        (hot.references, hot.pages) = (hot.references + references, hot.pages + 1);
    }
    let mut all: Vec<Hot> = regions.into_values().map(|(_, hot)| hot).collect();
    all.sort_by_key(|hot| std::cmp::Reverse(hot.references));
    all.truncate(NAMED);
    all
}

fn name_of(page: u64, mappings: &[Mapping]) -> &str {
    let holds = mappings.iter().find(|mapping| (mapping.start..mapping.end).contains(&page));
    let begins = || mappings.iter().find(|mapping| (page..page + PAGE).contains(&mapping.start));
    holds.or_else(begins).map_or("", |mapping| &mapping.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_gathered_by_the_name_of_their_mapping() {
        let mapping = |start: u64, pages: u64, name: &str| Mapping {
            start: start * PAGE,
            end: (start + pages) * PAGE,
            protection: "r-xp".into(),
            name: name.into(),
        };
        let heat = Heat {
            reads: vec![],
            writes: vec![],
            rows: 2,
            columns: 1,
            addresses: vec![],
            working_set: vec![],
            phases: vec![],
            pages: 5,
            counts: vec![(1, 10), (2, 5), (9, 90), (20, 20), (50, 7)],
        };
        let mappings = [mapping(1, 1, "libc"), mapping(2, 8, "heap"), mapping(20, 4, "libc")];
        let hot = |page: u64, name: &str, references, pages| Hot {
            address: page * PAGE,
            name: name.into(),
            references,
            pages,
        };
        let expected = [hot(9, "heap", 95, 2), hot(20, "libc", 30, 2), hot(50, "", 7, 1)];
        assert_eq!(hottest(&heat, &mappings), expected);
        // Without mappings a region is a part of the map: the first three pages, and the other two.
        assert_eq!(hottest(&heat, &[]), [hot(9, "", 105, 3), hot(20, "", 27, 2)]);
    }
}
