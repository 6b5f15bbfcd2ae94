//! Bytes of a trace: from a file, standard input or memory, decompressed if their first bytes say so.
//!
//! gzip with several members, zstd with several frames and xz with several streams are read to their ends. Data that
//! stop in the middle are an error, since results from half a trace would be wrong.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use bytes::{Buf, Bytes};

use super::Progress;
use coldframe_store::error::TraceError;

#[derive(Clone, Debug)]
pub enum Input {
    Path(PathBuf),
    Stdin,
    Bytes(Bytes),
}

/// Bytes read from the system at once, and given to a decoder. Readers of plain files read more at a time, and so
/// bypass this buffer.
const READ_BYTES: usize = 128 * 1024;
/// The most memory for an xz dictionary, in KiB: `xz -9` needs 64 MiB, and a hostile file may demand 4 GiB.
const XZ_MEMORY_KIB: u32 = 1 << 20;

/// The first bytes of compressed data, and their formats. Formats without a decoder are refused by name.
const MAGICS: &[(&[u8], Magic)] = &[
    (&[0x1f, 0x8b], Magic::Gzip),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], Magic::Xz),
    (&[0x28, 0xb5, 0x2f, 0xfd], Magic::Zstd),
    (b"BZh", Magic::Refused("bzip2 data", PIPE_IT)),
    (&[4, 0x22, 0x4d, 0x18], Magic::Refused("lz4 data", PIPE_IT)),
    (b"PK\x03\x04", Magic::Refused("a zip archive", "unpack it first")),
    (
        b"PAR1",
        Magic::Refused(
            "a Parquet file",
            "name it as a stored trace; if another tool wrote it, export it as csv and name it csv:PATH",
        ),
    ),
];

const PIPE_IT: &str = "unpack it first, or pipe what its tool unpacks to FORMAT:-";

#[derive(Clone, Copy)]
enum Magic {
    Gzip,
    Xz,
    Zstd,
    Refused(&'static str, &'static str),
}

pub(super) struct Stream {
    name: PathBuf,
    inner: Box<dyn Read + Send>,
    format: Option<&'static str>,
    delivered: u64,
    consumed: Arc<AtomicU64>,
    length: Option<u64>,
}

impl Input {
    /// The file's name, or a word for the other two.
    pub fn name(&self) -> &Path {
        match self {
            Input::Path(path) => path,
            Input::Stdin => Path::new("stdin"),
            Input::Bytes(_) => Path::new("memory"),
        }
    }

    pub(super) fn stream(self) -> Result<Stream, TraceError> {
        let name = self.name().to_owned();
        let consumed = Arc::new(AtomicU64::new(0));
        let (raw, length) = self.raw().map_err(|error| TraceError::io(&name, "open", error))?;
        let mut counted = Counted { inner: raw, consumed: consumed.clone() };
        let head = head(&mut counted).map_err(|error| TraceError::io(&name, "read", error))?;
        let magic = MAGICS.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, magic)| *magic);
        let whole = BufReader::with_capacity(READ_BYTES, Read::chain(Cursor::new(head), counted));
        let (format, inner): (_, Box<dyn Read + Send>) = match magic {
            None => (None, Box::new(whole)),
            Some(Magic::Gzip) => (Some("gzip"), Box::new(flate2::bufread::MultiGzDecoder::new(whole))),
            Some(Magic::Xz) => (Some("xz"), Box::new(lzma_rust2::XzReader::new_mem_limit(whole, true, XZ_MEMORY_KIB))),
            Some(Magic::Zstd) => {
                let decoder = zstd::stream::read::Decoder::with_buffer(whole);
                (Some("zstd"), Box::new(decoder.map_err(|error| TraceError::io(&name, "read", error))?))
            }
            Some(Magic::Refused(what, remedy)) => {
                return Err(TraceError::Compressed {
                    path: name,
                    format: "input",
                    byte: 0,
                    problem: format!("this is {what}, not text"),
                    remedy: remedy.into(),
                });
            }
        };
        Ok(Stream { name, inner, format, delivered: 0, consumed, length })
    }

    /// The first decompressed bytes of a file, at most `most` of them, for guessing what it is.
    pub(super) fn head(path: &Path, most: usize) -> Result<Vec<u8>, TraceError> {
        let mut stream = Input::Path(path.to_owned()).stream()?;
        let mut head = vec![0; most];
        let mut filled = 0;
        while filled < most {
            match stream.read(&mut head[filled..])? {
                0 => break,
                read => filled += read,
            }
        }
        head.truncate(filled);
        Ok(head)
    }

    fn raw(self) -> io::Result<(Box<dyn Read + Send>, Option<u64>)> {
        match self {
            Input::Path(path) => {
                let file = File::open(path)?;
                let metadata = file.metadata()?;
                if metadata.is_dir() {
                    return Err(io::ErrorKind::IsADirectory.into());
                }
                // A pipe or a device has no length.
                let length = metadata.is_file().then_some(metadata.len());
                Ok((Box::new(file), length))
            }
            Input::Stdin => Ok((Box::new(io::stdin()), None)),
            Input::Bytes(bytes) => {
                let length = bytes.len() as u64;
                Ok((Box::new(bytes.reader()), Some(length)))
            }
        }
    }
}

impl Stream {
    /// The next bytes; 0 is the end.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, TraceError> {
        loop {
            match self.inner.read(buffer) {
                Ok(read) => {
                    self.delivered += read as u64;
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.explain(error)),
            }
        }
    }

    /// The rest, if it is at most `most` bytes.
    pub(super) fn read_all(&mut self, most: u64, remedy: &'static str) -> Result<Vec<u8>, TraceError> {
        let mut bytes = Vec::new();
        let mut piece = vec![0; READ_BYTES];
        loop {
            match self.read(&mut piece)? {
                0 => return Ok(bytes),
                read => bytes.extend_from_slice(&piece[..read]),
            }
            if bytes.len() as u64 > most {
                return Err(TraceError::Compressed {
                    path: self.name.clone(),
                    format: self.format.unwrap_or("plain"),
                    byte: self.delivered,
                    problem: format!("more than {most} bytes, which this format would have to hold in memory"),
                    remedy: remedy.into(),
                });
            }
        }
    }

    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    /// The progress of a reader that has read these lines and skipped some of them.
    pub(super) fn progress(&self, lines: u64, skipped: u64) -> Progress {
        let bytes = self.consumed.load(Ordering::Relaxed);
        Progress { lines, skipped, bytes, bytes_total: self.length, ..Progress::default() }
    }

    /// With an error number, the system refused; without one, the bytes are at fault.
    fn explain(&self, error: io::Error) -> TraceError {
        let format = match self.format {
            Some(format) if error.raw_os_error().is_none() => format,
            _ => return TraceError::io(&self.name, "read", error),
        };
        let (problem, remedy) = match error.kind() {
            io::ErrorKind::UnexpectedEof => (
                "truncated: the compressed data stop in the middle".to_owned(),
                "copy or record the file again; it is not whole",
            ),
            _ => {
                (format!("corrupt: {error}"), "copy or record the file again, or check it with the tool that packed it")
            }
        };
        TraceError::Compressed { path: self.name.clone(), format, byte: self.delivered, problem, remedy: remedy.into() }
    }
}

/// The first bytes, as many as the longest magic, or fewer at the end of a short input.
fn head(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let longest = MAGICS.iter().map(|(magic, _)| magic.len()).max().unwrap_or(0);
    let mut head = Vec::with_capacity(longest);
    input.take(longest as u64).read_to_end(&mut head)?;
    Ok(head)
}

struct Counted {
    inner: Box<dyn Read + Send>,
    consumed: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.consumed.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}
