//! The owner of a page: the mapping that contains it, or its task if a trace has several address spaces.

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

/// Numbers for owners of pages.
pub struct Owners<'a> {
    trace: &'a Provenance,
    /// Mappings belong to one program; with several address spaces they are not used.
    one_space: bool,
}

impl<'a> Owners<'a> {
    pub fn new(trace: &'a Provenance) -> Owners<'a> {
        let one_space = trace.tasks.windows(2).all(|pair| pair[0].space == pair[1].space);
        Owners { trace, one_space }
    }

    /// The owner of the page at this place.
    pub fn of(&self, space: u32, address: u64) -> u32 {
        let mappings = &self.trace.mappings;
        let index = || mappings.iter().position(|m| (m.start..m.end).contains(&address)).unwrap_or(mappings.len());
        if self.one_space {
            index() as u32
        } else {
            space
        }
    }

    pub fn name(&self, owner: u32) -> String {
        match (self.one_space, self.trace.mappings.get(owner as usize)) {
            (false, _) => task(owner, self.trace),
            (true, Some(one)) => mapping(one),
            (true, None) => "no mapping noted".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use coldframe_store::provenance::Task;
    use coldframe_store::Fidelity;

    use super::*;

    #[test]
    fn one_program_s_pages_belong_to_mappings_and_several_programs_to_tasks() {
        let mut trace = Provenance::new("a test", Fidelity::ExactReferences);
        let heap = Mapping { name: "[heap]".into(), start: 0x1000, end: 0x4000, protection: "rw-p".into() };
        trace.mappings.push(heap);
        let owners = Owners::new(&trace);
        assert_eq!(owners.name(owners.of(0, 0x1fff)), "[heap] rw-p");
        assert_eq!(owners.name(owners.of(0, 0x4000)), "no mapping noted");
        let task = |space: u32, name: &str| Task { id: space, space, name: name.into() };
        trace.tasks = vec![task(0, "one"), task(1, "two")];
        let owners = Owners::new(&trace);
        assert_eq!(owners.name(owners.of(1, 0x1fff)), "two");
    }
}
