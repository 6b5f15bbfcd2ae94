//! Zip archives whose members are pieces of one stream, in the order of the archive's directory.
//!
//! ```text
//! [local header, name, extra, data] ...   [directory entry: method, sizes, place of the local header, name] ...   [end record]
//! ```
//! This reads only what a trace archive needs: stored and deflated members, the 64-bit extension, no encryption, one
//! disk. Sizes in the archive are not trusted; they only limit what is read, so a small archive cannot ask for much
//! memory.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Take};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use flate2::read::DeflateDecoder;

use super::le;

/// The pieces of an archive as one stream.
pub(super) struct Members {
    file: File,
    /// Packed bytes of the members begun, for progress.
    consumed: Arc<AtomicU64>,
    members: std::vec::IntoIter<Member>,
    open: Option<Box<dyn Read + Send>>,
}

/// A member, as the directory tells it.
#[derive(Clone, Copy)]
struct Member {
    deflated: bool,
    packed: u64,
    header: u64,
}

const END: &[u8] = b"PK\x05\x06";
const END_LENGTH: usize = 22;
/// The end record may be followed by a comment of 64 KiB.
const TAIL: u64 = 65_535 + END_LENGTH as u64;
const LOCATOR: &[u8] = b"PK\x06\x07";
const LOCATOR_LENGTH: usize = 20;
const ENTRY: &[u8] = b"PK\x01\x02";
const ENTRY_LENGTH: usize = 46;
const LOCAL: &[u8] = b"PK\x03\x04";
const LOCAL_LENGTH: usize = 30;
/// Most bytes of a directory: some 200,000 members.
const DIRECTORY_MAX: u64 = 16 << 20;

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("zip archive: {what}"))
}

impl Members {
    /// Opens the archive and reads its directory.
    pub(super) fn open(path: &Path, consumed: Arc<AtomicU64>) -> io::Result<Members> {
        let mut file = File::open(path)?;
        let members = directory(&mut file)?;
        Ok(Members { file, consumed, members: members.into_iter(), open: None })
    }

    fn next_member(&mut self) -> io::Result<bool> {
        let Some(member) = self.members.next() else { return Ok(false) };
        self.consumed.fetch_add(member.packed, Ordering::Relaxed);
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(member.header))?;
        let mut header = [0; LOCAL_LENGTH];
        file.read_exact(&mut header)?;
        if !header.starts_with(LOCAL) {
            return Err(bad("a member is not where the directory says"));
        }
        file.seek(SeekFrom::Current((le::<2>(&header, 26) + le::<2>(&header, 28)) as i64))?;
        let packed: Take<BufReader<File>> = BufReader::new(file).take(member.packed);
        self.open = Some(if member.deflated { Box::new(DeflateDecoder::new(packed)) } else { Box::new(packed) });
        Ok(true)
    }
}

impl Read for Members {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(member) = &mut self.open {
                match member.read(buffer)? {
                    0 if !buffer.is_empty() => self.open = None,
                    read => return Ok(read),
                }
            }
            if !self.next_member()? {
                return Ok(0);
            }
        }
    }
}

fn directory(file: &mut File) -> io::Result<Vec<Member>> {
    let length = file.seek(SeekFrom::End(0))?;
    let tail_length = length.min(TAIL);
    let tail = read_at(file, length - tail_length, tail_length)?;
    let end = memchr::memmem::rfind(&tail, END).filter(|at| tail.len() - at >= END_LENGTH);
    let end = end.ok_or_else(|| bad("its directory is missing, so the file is cut off"))?;
    let (mut size, mut place) = (le::<4>(&tail, end + 12), le::<4>(&tail, end + 16));
    if let Some(locator) = end.checked_sub(LOCATOR_LENGTH).filter(|at| tail[*at..].starts_with(LOCATOR)) {
        let record = read_at(file, le::<8>(&tail, locator + 8), 56)?;
        (size, place) = (le::<8>(&record, 40), le::<8>(&record, 48));
    }
    if size > DIRECTORY_MAX || place.checked_add(size).is_none_or(|end| end > length) {
        return Err(bad("its directory cannot be where the archive says"));
    }
    entries(&read_at(file, place, size)?)
}

fn read_at(file: &mut File, place: u64, length: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(place))?;
    let mut bytes = vec![0; length as usize];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn entries(mut directory: &[u8]) -> io::Result<Vec<Member>> {
    let mut members = Vec::new();
    while !directory.is_empty() {
        if directory.len() < ENTRY_LENGTH || !directory.starts_with(ENTRY) {
            return Err(bad("its directory is damaged"));
        }
        let part = |at| le::<2>(directory, at) as usize;
        let (name, extra, comment) = (part(28), part(30), part(32));
        let end = ENTRY_LENGTH + name + extra + comment;
        let extra = directory.get(ENTRY_LENGTH + name..ENTRY_LENGTH + name + extra);
        let (Some(extra), true) = (extra, directory.len() >= end) else { return Err(bad("its directory is damaged")) };
        members.extend(member(directory, extra)?);
        directory = &directory[end..];
    }
    Ok(members)
}

/// One entry; `None` for an empty member, such as a folder.
fn member(entry: &[u8], extra: &[u8]) -> io::Result<Option<Member>> {
    const WIDE: u64 = u32::MAX as u64;
    if le::<2>(entry, 8) & 1 != 0 {
        return Err(bad("a member is encrypted"));
    }
    let deflated = match le::<2>(entry, 10) {
        0 => false,
        8 => true,
        other => return Err(bad(&format!("a member is packed with method {other}; only deflate is read"))),
    };
    let (mut packed, plain, mut header) = (le::<4>(entry, 20), le::<4>(entry, 24), le::<4>(entry, 42));
    // The 64-bit extension holds, in this order, those of the three that did not fit.
    let mut wide = wide_values(extra).into_iter();
    let mut take = |value: &mut u64| -> io::Result<()> {
        if *value == WIDE {
            *value = wide.next().ok_or_else(|| bad("a 64-bit size is missing"))?;
        }
        Ok(())
    };
    take(&mut { plain })?;
    take(&mut packed)?;
    take(&mut header)?;
    Ok((packed > 0).then_some(Member { deflated, packed, header }))
}

fn wide_values(mut extra: &[u8]) -> Vec<u64> {
    while extra.len() >= 4 {
        let (id, length) = (le::<2>(extra, 0), le::<2>(extra, 2) as usize);
        let Some(data) = extra.get(4..4 + length) else { break };
        if id == 1 {
            return data.chunks_exact(8).map(|value| le::<8>(value, 0)).collect();
        }
        extra = &extra[4 + length..];
    }
    Vec::new()
}
