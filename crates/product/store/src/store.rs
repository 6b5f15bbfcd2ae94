//! The trace store: one Parquet file, written by [`Writer`] and read by [`Reader`].
//!
//! ```text
//! column   Parquet type      holds
//! address  INT64 UINT_64     first byte touched                          always
//! size     INT32 UINT_32     bytes touched, 1 to SIZE_MAX                always
//! kind     INT32 UINT_8      0 fetch, 1 read, 2 write                    always
//! task     INT32 UINT_32     thread or task; 0 when absent               optional
//! time     INT64 UINT_64     nanoseconds since the start                 optional
//! count    INT32 UINT_32     references the row stands for; 1 if absent  optional
//! ```
//!
//! All columns are REQUIRED, dictionary-encoded or PLAIN, and compressed with zstd. Delta encodings are never written:
//! they read several times slower in our measurements. The file metadata holds the
//! [`Provenance`](crate::Provenance) as JSON under `coldframe`, and its most-asked parts as the plain keys `fidelity`,
//! `recorder` and `command`.

mod check;
mod chunk;
mod count;
mod decode;
mod encode;
mod reader;
mod schema;
mod writer;

pub use reader::Reader;
pub use reader::Source;
pub use schema::{Wanted, SIZE_MAX};
pub use writer::{Summary, Writer, LEVEL_DEFAULT, LEVEL_SHIPPED};

/// Reads `data` as a stored trace to its end, in several ways. For fuzzing: any result is fine, except a panic.
#[doc(hidden)]
pub fn fuzz_read(data: &[u8]) -> Result<u64, crate::TraceError> {
    /// A few bytes may mean 2^60 equal rows, which is valid and would take for ever.
    const ROWS_MAX: u64 = 4 << 20;
    let source = Source::Bytes(bytes::Bytes::copy_from_slice(data));
    let mut reader = Reader::from_source("fuzz".as_ref(), source)?;
    let mut block = crate::Block::with_capacity(5000);
    let mut rows = 0;
    while rows < ROWS_MAX {
        match reader.read(&mut block, Wanted::ALL)? {
            0 => break,
            read => rows += read as u64,
        }
    }
    reader.rewind();
    reader.skip(reader.rows() / 2)?;
    reader.read(&mut block, Wanted::ACCESS)?;
    Ok(rows)
}
