//! `record --raw`: the recorder's own files in one, compressed, to be carried to another machine, where `import` makes
//! a trace of them. Nothing is computed where it is recorded.
//!
//! ```text
//!   lz4 frame of: "coldraw1" | length, JSON: command line, seconds, exit code | for each process: length, its file
//! ```
//! Lengths are 8 bytes, little-endian. A process's file is a head and its records (`coldframe_recording::entries`) in the
//! byte order of the machine that recorded it; the magic number of the head shows that the reader's is the same.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use coldframe_recording::entries::{HEAD, RECORD, RECORDS};
use coldframe_store::window::Recorded;
use lz4_flex::frame::{FrameDecoder, FrameEncoder};
use serde::{Deserialize, Serialize};

use crate::error::AnswerError;

/// The first bytes of the decompressed file.
const MAGIC: &[u8; 8] = b"coldraw1";
/// The first bytes of an lz4 frame.
const FRAME: [u8; 4] = 0x184d_2204u32.to_le_bytes();
/// The longest part: the whole file of a process.
const PART_MAX: u64 = (HEAD + RECORDS * RECORD) as u64;

/// What is known of the command as a whole.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Ran {
    /// Its words, as a shell reads them.
    pub command: String,
    /// How long the recorded run took.
    pub seconds: f64,
    /// Its exit code; `None`: a signal ended it.
    pub exit: Option<i32>,
}

fn failed(path: &Path, what: &str, error: impl std::fmt::Display) -> AnswerError {
    AnswerError::new(5, format!("{}: {what}: {error}", path.display()))
}

/// Writes the files of `folder`, one for each process. Returns the bytes of `out`.
///
/// # Errors
/// A file cannot be read or written.
pub fn write(folder: &Path, command: &str, seconds: f64, exit: Option<i32>, out: &Path) -> Result<u64, AnswerError> {
    let bad = |error: std::io::Error| failed(out, "cannot be written", error);
    let ran = serde_json::to_vec(&Ran { command: command.into(), seconds, exit }).expect("plain data has a JSON form");
    let mut to = FrameEncoder::new(std::fs::File::create(out).map_err(bad)?);
    to.write_all(MAGIC).map_err(bad)?;
    let mut part = |bytes: &[u8]| {
        to.write_all(&(bytes.len() as u64).to_le_bytes())?;
        to.write_all(bytes)
    };
    let mut parts = || -> std::io::Result<()> {
        part(&ran)?;
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(folder)?.map(|file| file.map(|file| file.path())).collect::<Result<_, _>>()?;
        files.sort();
        for file in files {
            let bytes = std::fs::read(file)?;
            // The rest of the file was reserved, and is zeros.
            let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1).max(HEAD);
            part(&bytes[..used.next_multiple_of(RECORD).min(bytes.len())])?;
        }
        Ok(())
    };
    parts().map_err(bad)?;
    let file = to.finish().map_err(|e| failed(out, "cannot be written", e))?;
    Ok(file.metadata().map_err(bad)?.len())
}

/// Whether the file is one of these.
pub fn is_raw(path: &Path) -> bool {
    let mut start = [0; 4];
    let Ok(mut file) = std::fs::File::open(path) else { return false };
    if file.read_exact(&mut start).is_err() || start != FRAME {
        return false;
    }
    let Ok(file) = std::fs::File::open(path) else { return false };
    let mut magic = [0; MAGIC.len()];
    FrameDecoder::new(file).read_exact(&mut magic).is_ok() && magic == *MAGIC
}

/// The command, and what its processes recorded.
///
/// # Errors
/// It cannot be read, is cut short or damaged, or was recorded on a machine of the other byte order.
pub fn read(path: &Path) -> Result<(Ran, Vec<Recorded>), AnswerError> {
    let damaged = |error: &dyn std::fmt::Display| {
        let again = "copy it again, or record again";
        AnswerError::new(3, format!("{}: is no whole raw recording: {error}; {again}", path.display()))
    };
    let file = std::fs::File::open(path).map_err(|e| failed(path, "cannot be read", e))?;
    let mut from = FrameDecoder::new(file);
    let mut magic = [0; MAGIC.len()];
    from.read_exact(&mut magic).map_err(|e| damaged(&e))?;
    let ran = part(&mut from).map_err(|e| damaged(&e))?.ok_or_else(|| damaged(&"it is empty"))?;
    let ran: Ran = serde_json::from_slice(&ran).map_err(|e| damaged(&e))?;
    let file = tempfile::NamedTempFile::new().map_err(|e| failed(path, "needs a temporary file", e))?;
    let mut processes = Vec::new();
    while let Some(bytes) = part(&mut from).map_err(|e| damaged(&e))? {
        std::fs::write(file.path(), bytes).map_err(|e| failed(file.path(), "cannot be written", e))?;
        processes.push(Recorded::read(file.path()).map_err(|e| damaged(&e))?);
    }
    Ok((ran, processes))
}

/// The next part; `None` at the end.
fn part(from: &mut impl Read) -> std::io::Result<Option<Vec<u8>>> {
    let mut length = Vec::new();
    from.by_ref().take(8).read_to_end(&mut length)?;
    let Ok(length) = length.try_into() else {
        return Ok(None);
    };
    let length = u64::from_le_bytes(length);
    let mut bytes = Vec::new();
    from.take(length.min(PART_MAX)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 == length {
        true => Ok(Some(bytes)),
        false => Err(std::io::ErrorKind::UnexpectedEof.into()),
    }
}
