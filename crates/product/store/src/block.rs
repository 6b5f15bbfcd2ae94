//! Consecutive rows, column by column.
//!
//! The vectors hold `i64` and `i32`, the types that the parquet crate decodes into. Callers see them as unsigned
//! slices of the same memory. A column that was not asked for is empty; [`Block::get`] then returns its default.

use std::ops::Range;

use crate::reference::{Kind, Reference};

/// Rows per block by default. Address, size and kind of 64 Ki rows are 16 bytes x 65,536 = 1 MiB. This stays in a
/// level-2 cache between the reader that fills the block and the simulator that reads it.
pub const ROWS_DEFAULT: usize = 64 * 1024;

/// The optional columns of a stored trace; address, size and kind are always there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Columns {
    /// Nanoseconds. Absent: [`Block::time`] is empty.
    pub time: bool,
    /// References per row. Absent: every row is one.
    pub count: bool,
    /// Tasks. Absent: every row is of task 0.
    pub task: bool,
}

/// One column. `constant` is the common value of all of `values`, if there is one and it is known. Refilling a column
/// with the value that it already holds then costs nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Column<T> {
    values: Vec<T>,
    constant: Option<T>,
}

impl<T: Copy + PartialEq> Column<T> {
    fn with_capacity(rows: usize) -> Column<T> {
        Column { values: Vec::with_capacity(rows), constant: None }
    }

    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }

    /// Makes the column `rows` times `value`.
    pub(crate) fn fill(&mut self, value: T, rows: usize) {
        if self.constant != Some(value) {
            self.values.clear();
            self.constant = Some(value);
        }
        self.values.resize(rows, value);
    }

    /// The empty vector to decode into.
    pub(crate) fn restart(&mut self) -> &mut Vec<T> {
        self.constant = None;
        self.values.clear();
        &mut self.values
    }

    /// Drops the rows, but keeps the known constant value.
    pub(crate) fn empty(&mut self) {
        if !self.values.is_empty() {
            self.values.clear();
            self.constant = None;
        }
    }

    #[inline]
    fn push(&mut self, value: T) {
        self.constant = None;
        self.values.push(value);
    }

    /// Appends rows of another column, or as many defaults if it is empty.
    fn append(&mut self, other: &Column<T>, rows: &Range<usize>, default: T) {
        self.constant = None;
        match other.values.get(rows.clone()) {
            Some(values) => self.values.extend_from_slice(values),
            None => self.values.resize(self.values.len() + rows.len(), default),
        }
    }

    fn pad(&mut self, value: T, rows: usize) {
        if self.values.len() < rows {
            self.constant = None;
            self.values.resize(rows, value);
        }
    }
}

/// Up to [`Block::capacity`] consecutive rows of a trace, column by column.
///
/// All non-empty columns have [`Block::len`] entries. [`Reader::read`](crate::Reader::read) and
/// `RowReader::read` replace the contents; a block is meant to be reused.
#[derive(Clone, Debug)]
pub struct Block {
    pub(crate) address: Column<i64>,
    pub(crate) size: Column<i32>,
    pub(crate) kind: Column<i32>,
    pub(crate) task: Column<i32>,
    pub(crate) time: Column<i64>,
    pub(crate) count: Column<i32>,
    pub(crate) rows: usize,
    capacity: usize,
}

impl Default for Block {
    fn default() -> Block {
        Block::new()
    }
}

/// Equal rows, as [`Block::get`] gives them; capacities do not matter.
impl PartialEq for Block {
    fn eq(&self, other: &Block) -> bool {
        self.rows == other.rows && (0..self.rows).all(|row| self.get(row) == other.get(row))
    }
}

impl Block {
    /// An empty block of [`ROWS_DEFAULT`] rows.
    pub fn new() -> Block {
        Block::with_capacity(ROWS_DEFAULT)
    }

    /// An empty block that readers fill with at most `rows` rows (at least 1). Memory is allocated when columns are
    /// used.
    pub fn with_capacity(rows: usize) -> Block {
        let capacity = rows.max(1);
        Block {
            address: Column::with_capacity(capacity),
            size: Column::with_capacity(capacity),
            kind: Column::with_capacity(capacity),
            task: Column::with_capacity(0),
            time: Column::with_capacity(0),
            count: Column::with_capacity(0),
            rows: 0,
            capacity,
        }
    }

    /// Rows held.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether no row is held.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The most rows that a reader puts here.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Drops all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.rows = 0;
        self.address.empty();
        self.size.empty();
        self.kind.empty();
        self.task.empty();
        self.time.empty();
        self.count.empty();
    }

    /// Appends a row with all six columns. A column that was empty so far is first filled with its default.
    pub fn push(&mut self, reference: Reference) {
        let rows = self.rows;
        self.size.pad(1, rows);
        self.kind.pad(Kind::Read as i32, rows);
        self.task.pad(0, rows);
        self.time.pad(0, rows);
        self.count.pad(1, rows);
        self.address.push(reference.address as i64);
        self.size.push(reference.size as i32);
        self.kind.push(reference.kind as i32);
        self.task.push(reference.task as i32);
        self.time.push(reference.time as i64);
        self.count.push(reference.count as i32);
        self.rows += 1;
    }

    /// Appends rows of another block with the columns in `columns`. A column that the other lacks gets its default.
    pub(crate) fn append(&mut self, other: &Block, rows: Range<usize>, columns: Columns) {
        self.rows += rows.len();
        self.address.append(&other.address, &rows, 0);
        self.size.append(&other.size, &rows, 1);
        self.kind.append(&other.kind, &rows, Kind::Read as i32);
        if columns.task {
            self.task.append(&other.task, &rows, 0);
        }
        if columns.time {
            self.time.append(&other.time, &rows, 0);
        }
        if columns.count {
            self.count.append(&other.count, &rows, 1);
        }
    }

    /// Sets the number of rows to 0, before columns are replaced one by one.
    pub(crate) fn clear_rows(&mut self) {
        self.rows = 0;
    }

    /// Replaces the contents by rows of one task without times, given as columns, as a recorder gathers them. An
    /// empty `count` means that every row is one reference.
    ///
    /// # Panics
    /// If the columns differ in length.
    pub fn assign(&mut self, task: u32, address: &[u64], size: &[u32], kind: &[u32], count: &[u32]) {
        let rows = address.len();
        assert!(size.len() == rows && kind.len() == rows && (count.is_empty() || count.len() == rows));
        self.rows = rows;
        self.address.restart().extend_from_slice(bytemuck::cast_slice(address));
        self.size.restart().extend_from_slice(bytemuck::cast_slice(size));
        self.kind.restart().extend_from_slice(bytemuck::cast_slice(kind));
        self.task.fill(task as i32, rows);
        self.time.empty();
        match count {
            [] => self.count.fill(1, rows),
            count => self.count.restart().extend_from_slice(bytemuck::cast_slice(count)),
        }
    }

    /// First step of filling the block with [`Block::push_access`] alone.
    pub fn begin_accesses(&mut self) {
        self.rows = 0;
        self.address.restart();
        self.size.restart();
        self.kind.restart();
        self.task.empty();
        self.time.empty();
        self.count.empty();
    }

    /// Appends a row of a source that knows neither task nor time.
    #[inline]
    pub fn push_access(&mut self, address: u64, size: u32, kind: Kind) {
        self.address.values.push(address as i64);
        self.size.values.push(size as i32);
        self.kind.values.push(kind as i32);
    }

    /// Appends a row of a source that knows the optional columns in `columns`.
    #[inline]
    pub fn push_request(&mut self, row: Reference, columns: Columns) {
        self.push_access(row.address, row.size, row.kind);
        if columns.task {
            self.task.push(row.task as i32);
        }
        if columns.time {
            self.time.push(row.time as i64);
        }
        if columns.count {
            self.count.push(row.count as i32);
        }
    }

    /// The last step after [`Block::push_request`]: fills the columns that are not in `columns` with their defaults.
    /// Returns the rows in the block.
    pub fn end_requests(&mut self, columns: Columns) -> usize {
        self.rows = self.address.values.len();
        if !columns.task {
            self.task.fill(0, self.rows);
        }
        if !columns.count {
            self.count.fill(1, self.rows);
        }
        self.rows
    }

    /// First byte of each access.
    pub fn address(&self) -> &[u64] {
        bytemuck::cast_slice(&self.address.values)
    }

    /// Bytes of each access.
    pub fn size(&self) -> &[u32] {
        bytemuck::cast_slice(&self.size.values)
    }

    /// Kind of each access, as the numbers of [`Kind`]: 0, 1 or 2 and nothing else.
    pub fn kind(&self) -> &[u32] {
        bytemuck::cast_slice(&self.kind.values)
    }

    /// Task of each access.
    pub fn task(&self) -> &[u32] {
        bytemuck::cast_slice(&self.task.values)
    }

    /// Nanoseconds of each access; empty when the source has no time.
    pub fn time(&self) -> &[u64] {
        bytemuck::cast_slice(&self.time.values)
    }

    /// How many references each row stands for.
    pub fn count(&self) -> &[u32] {
        bytemuck::cast_slice(&self.count.values)
    }

    /// Row `row`, with defaults for columns that were not read: size 1, read, task 0, time 0, count 1.
    ///
    /// # Panics
    /// If `row` is not below [`Block::len`].
    pub fn get(&self, row: usize) -> Reference {
        Reference {
            address: self.address()[row],
            size: self.size().get(row).copied().unwrap_or(1),
            kind: self.kind().get(row).and_then(|&number| Kind::from_number(number)).unwrap_or(Kind::Read),
            task: self.task().get(row).copied().unwrap_or(0),
            time: self.time().get(row).copied().unwrap_or(0),
            count: self.count().get(row).copied().unwrap_or(1),
        }
    }

    /// All rows in order, as [`Block::get`] gives them.
    pub fn iter(&self) -> impl Iterator<Item = Reference> + '_ {
        (0..self.rows).map(|row| self.get(row))
    }
}

impl Extend<Reference> for Block {
    fn extend<I: IntoIterator<Item = Reference>>(&mut self, references: I) {
        references.into_iter().for_each(|reference| self.push(reference));
    }
}

impl FromIterator<Reference> for Block {
    fn from_iter<I: IntoIterator<Item = Reference>>(references: I) -> Block {
        let mut block = Block::new();
        block.extend(references);
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushed_rows_come_back_unsigned() {
        let reference = Reference {
            address: u64::MAX - 7,
            size: 8,
            kind: Kind::Write,
            task: u32::MAX,
            time: 1 << 63,
            count: u32::MAX,
        };
        let block: Block = [reference, Reference::new(1, 2, Kind::Fetch)].into_iter().collect();
        assert_eq!(block.len(), 2);
        assert_eq!(block.get(0), reference);
        assert_eq!(block.address()[0], u64::MAX - 7);
        assert_eq!(block.kind(), &[2, 0]);
    }

    #[test]
    fn filling_with_the_same_value_again_only_moves_the_end() {
        let mut column = Column::default();
        column.fill(7, 3);
        column.fill(7, 2);
        assert_eq!(column.values(), &[7, 7]);
        column.fill(7, 4);
        assert_eq!(column.values(), &[7, 7, 7, 7]);
        column.fill(8, 2);
        assert_eq!(column.values(), &[8, 8]);
        column.restart().extend([1, 2, 3]);
        column.fill(8, 4);
        assert_eq!(column.values(), &[8, 8, 8, 8]);
    }

    #[test]
    fn assigned_columns_replace_all_that_was_there() {
        let mut block: Block =
            [Reference { time: 9, task: 1, ..Reference::new(1, 1, Kind::Write) }; 3].into_iter().collect();
        block.assign(7, &[16, 32], &[4, 8], &[1, 2], &[]);
        assert_eq!((block.len(), block.time().len()), (2, 0));
        assert_eq!(block.get(1), Reference { task: 7, ..Reference::new(32, 8, Kind::Write) });
        block.assign(7, &[16], &[4], &[1], &[5]);
        assert_eq!(block.get(0), Reference { task: 7, count: 5, ..Reference::new(16, 4, Kind::Read) });
    }

    #[test]
    fn a_block_of_accesses_can_be_pushed_to_and_cleared() {
        let mut block = Block::with_capacity(4);
        block.begin_accesses();
        block.push_access(16, 4, Kind::Read);
        assert_eq!(block.end_requests(Columns::default()), 1);
        assert_eq!((block.task(), block.count(), block.time().len()), (&[0][..], &[1][..], 0));
        block.push(Reference { time: 9, ..Reference::new(1, 1, Kind::Write) });
        assert_eq!(block.time(), &[0, 9]);
        block.clear();
        assert!(block.is_empty() && block.address().is_empty());
        block.push(Reference::new(3, 1, Kind::Write));
        assert_eq!(block.get(0), Reference::new(3, 1, Kind::Write));
    }
}
