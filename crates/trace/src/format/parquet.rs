//! Parquet files that other tools wrote, with declared columns or with the column names of the [store](crate::store).
//!
//! The user declares the columns and their units, as for `csv` (see `declared.rs`). A file whose columns have the
//! store's names needs no declaration: it must have integer columns `address`, `size` (bytes) and `kind` (0 fetch, 1
//! read, 2 write), of 32 or 64 bits, signed or not; it may have `task` and `time` (nanoseconds). A user who imports
//! such a file declares its rows to be exact references. Reduced traces carry a page size, which only a store written
//! by this crate has.

use std::path::PathBuf;

use super::options::{self, Options, COLUMNS, KINDS, UNIT_ADDRESS, UNIT_SIZE, UNIT_TIME};
use super::{Format, Input, RowReader};
use crate::block::Block;
use crate::error::TraceError;
use crate::fidelity::Fidelity;
use crate::store::{Columns, Origin, Reader, Source, Wanted};

mod declared;

pub(super) const FORMAT: Format = Format {
    name: "parquet",
    summary:
        "Parquet of other tools, with --columns and --unit; or integer columns address, size, kind (0 fetch, 1 read, 2 write), [task, time in ns]",
    example: "parquet:trace.parquet  (with --columns address=offset,size=length,kind=op --unit address=1B,size=1B)",
    fidelity: Fidelity::ExactReferences,
    skips: "nothing",
    takes: &[COLUMNS, UNIT_ADDRESS, UNIT_SIZE, UNIT_TIME, KINDS],
    guess: None,
    open,
};

struct Foreign {
    path: PathBuf,
    reader: Reader,
}

fn open(input: Input, options: &Options) -> Result<Box<dyn RowReader>, TraceError> {
    let path = input.name().to_owned();
    let source = match input {
        Input::Path(path) => Source::open(&path).map_err(|error| TraceError::io(&path, "open", error))?,
        Input::Bytes(bytes) => Source::Bytes(bytes),
        Input::Stdin => {
            return Err(TraceError::Usage {
                what: "trace `parquet:-`".into(),
                found: "Parquet is read from its end, which a pipe does not have yet".into(),
                remedy: "write it to a file and name that".into(),
            });
        }
    };
    if !options.columns.is_empty() {
        return declared::open(&path, source, options);
    }
    let bare = Options { skip_bad: options.skip_bad, ..Options::default() };
    if *options != bare {
        return Err(options::usage(
            "`parquet` without --columns",
            "such a file's columns are address, size and kind in bytes and numbers, and nothing else can be declared"
                .into(),
            "name the columns that the units are of, as in --columns address=address,size=size",
        ));
    }
    let reader = Reader::from_source(&path, source, Origin::Foreign)?;
    Ok(Box::new(Foreign { path, reader }))
}

impl RowReader for Foreign {
    fn read(&mut self, block: &mut Block) -> Result<usize, TraceError> {
        let first = self.reader.position();
        let rows = self.reader.read(block, Wanted::ALL)?;
        match block.count().iter().position(|&count| count != 1) {
            None => Ok(rows),
            Some(row) => Err(TraceError::Row {
                path: self.path.clone(),
                row: first + row as u64,
                field: "count",
                found: format!("{}, and nothing says to which page size the rows were reduced", block.count()[row]),
                remedy: "import unreduced references, or write the file with coldframe_trace::Writer".into(),
            }),
        }
    }

    fn skipped(&self) -> u64 {
        0
    }

    fn lines(&self) -> u64 {
        self.reader.position()
    }

    fn columns(&self) -> Columns {
        Columns { count: false, ..self.reader.columns() }
    }

    fn position(&self) -> u64 {
        let rows = self.reader.rows().max(1) as f64;
        (self.reader.bytes() as f64 * (self.reader.position() as f64 / rows)) as u64
    }

    fn length(&self) -> Option<u64> {
        Some(self.reader.bytes())
    }

    fn notes(&self) -> Vec<String> {
        vec!["rows of a foreign Parquet file, declared to be exact references by its import; time taken as nanoseconds"
            .into()]
    }
}
