//! Bytes for the parquet crate, and checks of each page before it is decoded.
//!
//! A column chunk (one column of one row group, a few MiB) is read in one go; its pages are then slices of that
//! memory. All places and lengths that the file claims are checked here, because the crate asserts some of them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use parquet::basic::{Encoding, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

/// A whole store: a file, or its bytes.
pub enum Source {
    /// A file and its length.
    File(File, u64),
    /// Bytes in memory.
    Bytes(Bytes),
}

impl Source {
    /// Opens a file.
    pub fn open(path: &std::path::Path) -> io::Result<Source> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(Source::File(file, metadata.len()))
    }

    /// The `length` bytes from `start` on.
    pub(super) fn read(&self, start: u64, length: usize) -> io::Result<Bytes> {
        let end = start.checked_add(length as u64).filter(|&end| end <= self.len());
        if end.is_none() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match self {
            Source::File(file, _) => {
                let mut file: &File = file;
                let mut bytes = vec![0; length];
                file.seek(SeekFrom::Start(start))?;
                file.read_exact(&mut bytes)?;
                Ok(bytes.into())
            }
            Source::Bytes(bytes) => Ok(bytes.slice(start as usize..start as usize + length)),
        }
    }
}

impl Length for Source {
    fn len(&self) -> u64 {
        match self {
            Source::File(_, length) => *length,
            Source::Bytes(bytes) => bytes.len() as u64,
        }
    }
}

/// For the footer only.
impl ChunkReader for Source {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let rest = self.len().saturating_sub(start);
        Ok(self.get_bytes(start, rest as usize)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        Ok(self.read(start, length)?)
    }
}

/// The most bytes of a page, decompressed. Writers aim at 1 MiB (parquet-mr, pyarrow), or make at most one page of a
/// row group (DuckDB: 122,880 rows). So a page that claims more is meant to fill the memory.
const PAGE_MAX: u64 = 256 << 20;

/// One column chunk, addressed by its place in the file.
struct Chunk {
    start: u64,
    bytes: Bytes,
    /// Whether the crate reads a page's header next. If it has already seen the header, it reads the page from behind
    /// the header.
    header_next: AtomicBool,
}

impl Chunk {
    fn new(start: u64, bytes: Bytes) -> Chunk {
        Chunk { start, bytes, header_next: AtomicBool::new(true) }
    }

    fn slice(&self, start: u64, length: Option<usize>) -> Result<Bytes> {
        let from = start.checked_sub(self.start).and_then(|from| usize::try_from(from).ok());
        let from = from.filter(|&from| from <= self.bytes.len());
        let to = from.and_then(|from| match length {
            Some(length) => from.checked_add(length).filter(|&to| to <= self.bytes.len()),
            None => Some(self.bytes.len()),
        });
        match (from, to) {
            (Some(from), Some(to)) => Ok(self.bytes.slice(from..to)),
            _ => Err(ParquetError::EOF("a page runs past its column chunk".into())),
        }
    }
}

impl Length for Chunk {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Chunk {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let rest = self.slice(start, None)?;
        if self.header_next.swap(true, Ordering::Relaxed) {
            check_header(&rest)?;
        }
        Ok(rest.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.slice(start, Some(length))
    }
}

/// Checks a page's header before the crate allocates memory for the page. A header begins with two required 32-bit
/// fields, the page's type and its decompressed bytes (parquet.thrift, PageHeader). Each is the byte 0x15 and a
/// zigzag number (thrift's compact protocol).
fn check_header(header: &[u8]) -> Result<()> {
    let claimed = field(header).and_then(|(_, rest)| field(rest)).map(|(bytes, _)| bytes);
    match claimed {
        Some(bytes) if bytes <= PAGE_MAX => Ok(()),
        Some(bytes) => {
            Err(ParquetError::General(format!("a page claims {bytes} bytes unpacked, more than the {PAGE_MAX} of any")))
        }
        None => Err(ParquetError::General("a page does not begin with its type and length".into())),
    }
}

/// The next field of a header, and the bytes after it. The field is a 32-bit number; its field number is one more than
/// that of the field before.
fn field(header: &[u8]) -> Option<(u64, &[u8])> {
    let rest = header.strip_prefix(&[0x15])?;
    let mut number = 0u64;
    for (at, byte) in rest.iter().take(5).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            // An odd number is a negative one, which the crate refuses.
            return Some((number >> 1, &rest[at + 1..]));
        }
    }
    None
}

/// Reads a column chunk and hands out its pages.
pub(super) fn pages(source: &Source, chunk: &ColumnChunkMetaData, rows: usize) -> Result<Box<dyn PageReader>> {
    let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
    let (Ok(start), Ok(length)) = (u64::try_from(start), usize::try_from(chunk.compressed_size())) else {
        return Err(ParquetError::General("a column chunk has a negative place or length".into()));
    };
    if usize::try_from(chunk.num_values()) != Ok(rows) {
        return Err(ParquetError::General(format!("a column chunk has {} values for {rows} rows", chunk.num_values())));
    }
    let bytes = source.read(start, length)?;
    let bytes = Arc::new(Chunk::new(start, bytes));
    let inner = SerializedPageReader::new(bytes.clone(), chunk, rows, None)?;
    Ok(Box::new(Checked { inner, chunk: bytes, physical: chunk.column_type(), dictionary: false, peeked: false }))
}

/// Passes on pages whose claims hold. The crate trusts a dictionary's length when it allocates, and expects a
/// dictionary before the pages that use it.
struct Checked {
    inner: SerializedPageReader<Chunk>,
    chunk: Arc<Chunk>,
    physical: Physical,
    dictionary: bool,
    /// Whether the crate has read the next page's header.
    peeked: bool,
}

impl Checked {
    fn check(&mut self, page: &Page) -> Result<()> {
        let fault = |problem: &str| Err(ParquetError::General(problem.to_owned()));
        match page {
            Page::DictionaryPage { buf, num_values, .. } => {
                // Text is kept as 4 bytes of length and the text.
                let width = if matches!(self.physical, Physical::INT64 | Physical::DOUBLE) { 8 } else { 4 };
                if *num_values as usize > buf.len() / width {
                    return fault("a dictionary is shorter than it claims");
                }
                if std::mem::replace(&mut self.dictionary, true) {
                    return fault("a column chunk has two dictionaries");
                }
                Ok(())
            }
            _ if matches!(page.encoding(), Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY)
                && !self.dictionary =>
            {
                fault("a page needs a dictionary that is not there")
            }
            // For a damaged page of this encoding, the crate indexes past the end. No tool uses it for integers by
            // default.
            _ if page.encoding() == Encoding::BYTE_STREAM_SPLIT => {
                fault("pages of split byte streams are not supported")
            }
            _ => Ok(()),
        }
    }
}

impl PageReader for Checked {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.chunk.header_next.store(!std::mem::take(&mut self.peeked), Ordering::Relaxed);
        let page = self.inner.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.chunk.header_next.store(!self.peeked, Ordering::Relaxed);
        self.peeked = true;
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.chunk.header_next.store(!std::mem::take(&mut self.peeked), Ordering::Relaxed);
        self.inner.skip_next_page()
    }
}

impl Iterator for Checked {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes as thrift's compact protocol writes them: 100 is zigzag 200, which is 0x48 and 1 times 128.
    #[test]
    fn a_page_that_claims_too_much_is_refused_before_it_is_unpacked() {
        assert!(check_header(&[0x15, 0x00, 0x15, 0xc8, 0x01, 0x15, 0x10]).is_ok());
        // 2^31 - 1 is zigzag 2^32 - 2.
        let error = check_header(&[0x15, 0x00, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f]).unwrap_err();
        assert!(error.to_string().contains("claims 2147483647 bytes"), "{error}");
        for header in [&[0x25, 0x00, 0x15, 0x02][..], &[0x15, 0x00], &[], &[0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0x15]] {
            assert!(check_header(header).is_err(), "{header:?}");
        }
    }
}
