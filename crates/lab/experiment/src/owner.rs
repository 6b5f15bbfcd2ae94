//! Names of the owners of pages: a mapping, or the task of an address space.

use coldframe_store::provenance::Mapping;
use coldframe_store::Provenance;

pub fn mapping(mapping: &Mapping) -> String {
    match mapping.name.is_empty() {
        true => format!("anonymous {:#x} to {:#x} {}", mapping.start, mapping.end, mapping.protection),
        false => format!("{} {}", mapping.name, mapping.protection),
    }
}

/// Names the task of an address space.
pub fn task(space: u32, trace: &Provenance) -> String {
    let name = trace.tasks.iter().find(|task| task.space == space).map(|task| task.name.clone());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("address space {space}"))
}
