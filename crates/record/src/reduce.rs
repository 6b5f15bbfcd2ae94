//! Collapses exact references to runs on pages, outside the plugin: for valgrind, and as the plugin's naive twin in
//! the tests.

use coldframe_store::{Kind, Reference};

/// Collapses fetches and data accesses as the plugin's page level does. It takes one task's references in order.
pub struct Runs {
    shift: u32,
    /// Rows that were begun and not yet given out, including open runs.
    rows: Vec<Reference>,
    /// Places of the open runs in `rows`.
    fetch: Option<usize>,
    data: Option<usize>,
    references: u64,
}

impl Runs {
    /// `page` is a power of two.
    pub fn new(page: u64) -> Self {
        Runs { shift: page.trailing_zeros(), rows: Vec::new(), fetch: None, data: None, references: 0 }
    }

    /// Adds a reference: one for each page that it touches.
    pub fn push(&mut self, address: u64, size: u32, kind: Kind) {
        let last = address.saturating_add(u64::from(size.max(1)) - 1) >> self.shift;
        for page in address >> self.shift..=last {
            self.touch(page << self.shift, kind);
        }
    }

    fn touch(&mut self, page: u64, kind: Kind) {
        self.references += 1;
        let open = if kind == Kind::Fetch { &mut self.fetch } else { &mut self.data };
        if let Some(row) = open.and_then(|at| self.rows.get_mut(at)) {
            let dirty_already = row.kind == Kind::Write || kind != Kind::Write;
            if row.address == page && dirty_already && row.count < u32::MAX {
                row.count += 1;
                return;
            }
        }
        *open = Some(self.rows.len());
        self.rows.push(Reference { count: 1, ..Reference::new(page, 1 << self.shift, kind) });
    }

    /// Rows held, including open ones.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// References in these rows.
    pub fn references(&self) -> u64 {
        self.references
    }

    /// Gives out all rows; open runs end.
    pub fn drain(&mut self) -> impl Iterator<Item = Reference> + '_ {
        (self.fetch, self.data, self.references) = (None, None, 0);
        self.rows.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_collapse_apart_and_a_write_after_reads_begins_a_row() {
        let mut runs = Runs::new(1024);
        use Kind::{Fetch, Read, Write};
        let stream = [
            (0, Fetch),
            (5000, Read),
            (4, Fetch),
            (5008, Read),
            (1022, Fetch),
            (5000, Write),
            (5000, Read),
            (1026, Fetch),
        ];
        stream.into_iter().for_each(|(address, kind)| runs.push(address, 4, kind));
        let rows: Vec<_> = runs.drain().map(|r| (r.address, r.kind, r.count)).collect();
        assert_eq!(rows, [(0, Fetch, 3), (4096, Read, 2), (1024, Fetch, 2), (4096, Write, 2)]);
    }
}
