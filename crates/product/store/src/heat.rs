//! Where and when a trace touches memory: pages over references, in a grid of fixed size.
//!
//! Two passes over the file: the first finds the touched stretches of memory, the second counts. Untouched stretches
//! are left out, since an address space is mostly empty. Memory use depends on the footprint, not on the length of
//! the trace.

use std::collections::BTreeSet;
use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;

use crate::block::Block;
use crate::error::TraceError;
use crate::reference::Kind;
use crate::store::{Reader, Wanted};

/// A grid of counts: a row is a stretch of memory, a column a stretch of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Heat {
    /// References that read or fetched, row by row from low addresses to high ones.
    pub reads: Vec<u64>,
    /// References that wrote.
    pub writes: Vec<u64>,
    /// Rows of the grid.
    pub rows: usize,
    /// Columns of the grid.
    pub columns: usize,
    /// First address of each row.
    pub addresses: Vec<u64>,
    /// Distinct pages touched in each column: the working set over time.
    #[serde(rename = "working_set_pages")]
    pub working_set: Vec<u64>,
    /// Columns at which a phase begins: most of its pages are others than in the column before. The first column
    /// always begins one.
    pub phases: Vec<usize>,
    /// Pages touched in all.
    #[serde(skip)]
    pub pages: u64,
    /// The number of each touched page, in order, and the references to it.
    #[serde(skip)]
    pub counts: Vec<(u64, u64)>,
}

/// Bytes of a page of the map.
pub const PAGE: u64 = 4096;
/// Most rows and columns.
pub const SIDE_MAX: usize = 4096;
/// A phase begins where a column's pages differ from those of the column before by a relative distance, |A xor B| / |A
/// or B|, above one half (Dhodapkar and Smith, ISCA 2002, section 3).
const DISTANCE_MAX: f64 = 0.5;

/// Counts the references of the trace `from` in a grid of at most `rows` by `columns`.
///
/// # Errors
/// As [`Reader`]; [`TraceError::Usage`] for a grid of 0 or too many cells, [`TraceError::Empty`] for a trace without
/// rows.
pub fn heat(from: &Path, rows: usize, columns: usize) -> Result<Heat, TraceError> {
    heat_of(&mut Reader::open(from)?, from, rows, columns)
}

/// The same of a trace that has been opened, from its first row.
pub fn heat_of(reader: &mut Reader, from: &Path, rows: usize, columns: usize) -> Result<Heat, TraceError> {
    if !(1..=SIDE_MAX).contains(&rows) || !(1..=SIDE_MAX).contains(&columns) {
        return Err(TraceError::Usage {
            what: format!("grid of {columns} by {rows}"),
            problem: "a side is out of range".into(),
            remedy: format!("give 1 to {SIDE_MAX} columns and rows").into(),
        });
    }
    let total = reader.rows();
    if total == 0 {
        let remedy = "record the trace again".into();
        return Err(TraceError::Empty { path: from.to_owned(), lines: 0, skipped: 0, remedy });
    }
    reader.rewind();
    let pages = touched(reader)?;
    let rows = rows.min(pages.len());
    let columns = columns.min(usize::try_from(total).unwrap_or(columns));
    let mut grid = Grid::new(&pages, rows, columns, total);
    reader.rewind();
    let mut block = Block::new();
    while reader.read(&mut block, Wanted { count: true, ..Wanted::ACCESS })? > 0 {
        grid.count(&block);
    }
    Ok(grid.finish(&pages))
}

/// All pages that the trace touches, in order.
fn touched(reader: &mut Reader) -> Result<Vec<u64>, TraceError> {
    let mut pages = FxHashSet::default();
    let mut block = Block::new();
    let mut last = u64::MAX;
    while reader.read(&mut block, Wanted { size: true, ..Wanted::ADDRESS })? > 0 {
        for (first, end) in block.address().iter().zip(block.size()).map(span) {
            if first != last || end != last {
                last = end;
                pages.extend(first..=end);
            }
        }
    }
    Ok(pages.into_iter().collect::<BTreeSet<_>>().into_iter().collect())
}

/// The first and the last page of an access.
fn span((address, size): (&u64, &u32)) -> (u64, u64) {
    (address / PAGE, (address + (u64::from(*size) - 1)) / PAGE)
}

/// The grid being filled.
struct Grid {
    heat: Heat,
    /// Where each page is among the heat's counts.
    index_of: FxHashMap<u64, u32>,
    total: u64,
    references: u64,
    column: usize,
    /// The last column in which each page was touched, counted from [`FIRST`]; 0 for none.
    touched_in: Vec<u32>,
    /// Pages touched in this column, those of them that were touched in the one before, and the pages of that one.
    now: u64,
    both: u64,
    before: u64,
}

/// The number of the first column. It is chosen so that the column before it, which does not exist, has another
/// number than a page never touched.
const FIRST: u32 = 2;

impl Grid {
    fn new(pages: &[u64], rows: usize, columns: usize, total: u64) -> Grid {
        let index_of = pages.iter().enumerate().map(|(at, page)| (*page, at as u32)).collect();
        let heat = Heat {
            reads: vec![0; rows * columns],
            writes: vec![0; rows * columns],
            rows,
            columns,
            addresses: Vec::new(),
            working_set: Vec::new(),
            phases: Vec::new(),
            pages: pages.len() as u64,
            counts: pages.iter().map(|page| (*page, 0)).collect(),
        };
        Grid {
            heat,
            index_of,
            total,
            references: 0,
            column: 0,
            touched_in: vec![0; pages.len()],
            now: 0,
            both: 0,
            before: 0,
        }
    }

    fn count(&mut self, block: &Block) {
        let mut last = (u64::MAX, 0, 0);
        for (at, (first, end)) in block.address().iter().zip(block.size()).map(span).enumerate() {
            let column = (u128::from(self.references) * self.heat.columns as u128 / u128::from(self.total)) as usize;
            self.references += 1;
            if column != self.column {
                self.close();
                self.column = column;
                last.0 = u64::MAX;
            }
            let writes = block.kind()[at] == Kind::Write as u32;
            for page in first..=end {
                if page != last.0 {
                    let index = self.index_of[&page] as usize;
                    last = (page, index, index * self.heat.rows / self.heat.counts.len());
                    self.touch(index);
                }
                let references = u64::from(block.count()[at]);
                self.heat.counts[last.1].1 += references;
                let cells = if writes { &mut self.heat.writes } else { &mut self.heat.reads };
                cells[last.2 * self.heat.columns + column] += references;
            }
        }
    }

    /// Counts a page of this column once.
    #[inline]
    fn touch(&mut self, index: usize) {
        let column = self.column as u32 + FIRST;
        let before = std::mem::replace(&mut self.touched_in[index], column);
        self.now += u64::from(before != column);
        self.both += u64::from(before == column - 1);
    }

    /// Ends a column.
    fn close(&mut self) {
        let all = self.now + self.before - self.both;
        if (all - self.both) as f64 > DISTANCE_MAX * all as f64 {
            self.heat.phases.push(self.heat.working_set.len());
        }
        self.heat.working_set.push(self.now);
        (self.before, self.now, self.both) = (self.now, 0, 0);
    }

    fn finish(mut self, pages: &[u64]) -> Heat {
        self.close();
        let rows = self.heat.rows;
        // The first page whose row is this one.
        let first = |row: usize| pages[(row * pages.len()).div_ceil(rows)] * PAGE;
        self.heat.addresses = (0..rows).map(first).collect();
        self.heat
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Columns, Fidelity, Provenance, Reference, Writer};

    #[test]
    fn a_grid_counts_pages_over_references_and_marks_phases() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let row = |page: u64, kind| Reference::new(page * PAGE, 1, kind);
        let mut block: Block = (0..8).map(|i| row(i % 2, Kind::Read)).collect();
        (0..8).for_each(|i| block.push(row(1000 + i % 2, Kind::Write)));
        let mut writer = Writer::create(&path, Columns::default()).unwrap();
        writer.write(&block).unwrap();
        writer.finish(Provenance::new("test", Fidelity::ExactReferences)).unwrap();
        let heat = heat(&path, 2, 4).unwrap();
        assert_eq!((heat.rows, heat.columns, heat.pages), (2, 4, 4));
        assert_eq!(heat.reads, [4, 4, 0, 0, 0, 0, 0, 0]);
        assert_eq!(heat.writes, [0, 0, 0, 0, 0, 0, 4, 4]);
        assert_eq!(heat.addresses, [0, 1000 * PAGE]);
        assert_eq!(heat.working_set, [2, 2, 2, 2]);
        assert_eq!(heat.counts, [(0, 4), (1, 4), (1000, 4), (1001, 4)]);
        assert_eq!(heat.phases, [0, 2]);
        assert!(matches!(super::heat(&path, 0, 4), Err(TraceError::Usage { .. })));
    }
}
