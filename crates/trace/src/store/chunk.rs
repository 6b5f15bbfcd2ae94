//! Bytes for the parquet crate: where they come from, and a look at each page before it is decoded.
//!
//! A column chunk (one column of one row group, a few MiB) is read in one go; its pages are then slices of that memory.
//! Everything that the file claims about places and lengths is checked here, because the crate asserts some of it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use bytes::{Buf, Bytes};
use parquet::basic::{Encoding, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use std::sync::Arc;

/// A whole store: a file, or its bytes.
pub(crate) enum Source {
    File(File, u64),
    Bytes(Bytes),
}

impl Source {
    pub(crate) fn open(path: &std::path::Path) -> io::Result<Source> {
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

/// One column chunk, addressed by its place in the file.
struct Chunk {
    start: u64,
    bytes: Bytes,
}

impl Chunk {
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
        Ok(self.slice(start, None)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.slice(start, Some(length))
    }
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
    let reader = SerializedPageReader::new(Arc::new(Chunk { start, bytes }), chunk, rows, None)?;
    Ok(Box::new(Checked { inner: reader, physical: chunk.column_type(), dictionary: false }))
}

/// Passes on pages whose claims hold. The crate trusts a dictionary's length when it allocates, and expects a dictionary
/// before the pages that use it.
struct Checked {
    inner: SerializedPageReader<Chunk>,
    physical: Physical,
    dictionary: bool,
}

impl Checked {
    fn check(&mut self, page: &Page) -> Result<()> {
        let fault = |found: &str| Err(ParquetError::General(found.to_owned()));
        match page {
            Page::DictionaryPage { buf, num_values, .. } => {
                let width = if self.physical == Physical::INT64 { 8 } else { 4 };
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
            // The crate indexes past the end of a damaged page of this encoding, which no tool uses for integers unasked.
            _ if page.encoding() == Encoding::BYTE_STREAM_SPLIT => {
                fault("pages of split byte streams are not supported")
            }
            _ => Ok(()),
        }
    }
}

impl PageReader for Checked {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.inner.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.skip_next_page()
    }
}

impl Iterator for Checked {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
