//! The recording of one process as its pager left it (`coldframe_recording::entries`): read by [`Recorded::read`], made
//! a trace of by [`crate::window::window`].

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use coldframe_recording::entries::{Record, Word, COMMAND, HEAD, MAGIC, RECORD, RECORDS};
use coldframe_recording::span::{Span, PAGE};

use crate::error::TraceError;
use crate::provenance::{Mapping, ProcessFacts};

/// The unit of `st_blocks` in bytes: stat(3type).
const BLOCK: u64 = 512;

/// The recording of one process by its pager.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub(crate) path: PathBuf,
    words: Vec<u64>,
    /// Its command line.
    pub command: String,
    pub(crate) records: Vec<Record>,
    cut_short: bool,
}

impl Recorded {
    /// Reads a file of [`coldframe_recording::entries`].
    ///
    /// # Errors
    /// It cannot be read, or is not a recording.
    pub fn read(path: &Path) -> Result<Recorded, TraceError> {
        let io = |source| {
            let (path, remedy) = (path.to_owned(), "check the path and its permissions".into());
            TraceError::Io { path, action: "read", source, remedy }
        };
        let damaged = |problem: String| {
            let remedy = "record the program again".into();
            TraceError::Damaged { path: path.to_owned(), row: 0, problem, remedy }
        };
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
        let (mut file, mut head, mut stored) = (fs::File::open(path).map_err(io)?, Vec::new(), Vec::new());
        file.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(io)?;
        if head.len() < HEAD {
            return Err(damaged("it is shorter than a recording's head".into()));
        }
        let words: Vec<u64> = head[..COMMAND.start].chunks_exact(8).map(word).collect();
        if words[Word::Magic as usize] != MAGIC {
            return Err(damaged("it does not begin as a recording of this version".into()));
        }
        let count = (words[Word::Records as usize] as usize).min(RECORDS);
        // The file has room for RECORDS, most of it never written.
        file.take((count * RECORD) as u64).read_to_end(&mut stored).map_err(io)?;
        let stored = stored.chunks_exact(RECORD);
        let records: Vec<_> = stored.filter_map(|b| Record::decode([word(&b[..8]), word(&b[8..])])).collect();
        let given = fs::metadata(path).map_or(u64::MAX, |file| file.blocks() * BLOCK);
        let cut_short = records.len() < count && given < (HEAD + count * RECORD) as u64;
        let command = head[COMMAND].split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let command: Vec<_> = command.filter(|word| !word.is_empty()).collect();
        Ok(Recorded { path: path.to_owned(), words, command: command.join(" "), records, cut_short })
    }

    /// Whether the file system had no room for its last records.
    pub fn is_cut_short(&self) -> bool {
        self.cut_short
    }

    /// A word of the head.
    pub fn word(&self, word: Word) -> u64 {
        self.words[word as usize]
    }

    /// The measurements of the process.
    pub fn facts(&self) -> ProcessFacts {
        ProcessFacts {
            command: self.command.clone(),
            process: self.word(Word::Process) as u32,
            managed_bytes: self.word(Word::Managed) * PAGE,
            not_paged_bytes: self.word(Word::NotPaged),
            zero_fills: self.word(Word::ZeroFills),
            entries: self.word(Word::Entries),
            seconds: self.word(Word::Ended).saturating_sub(self.word(Word::Started)) as f64 / 1e9,
            left_out: false,
        }
    }

    /// The mappings and blocks that are named after what made them: `by` has a name for an address in a program or
    /// library.
    pub fn mappings<'a>(&'a self, by: impl Fn(u64) -> Option<String> + 'a) -> impl Iterator<Item = Mapping> + 'a {
        self.records.iter().filter_map(move |record| match *record {
            Record::Mapping { page, pages, caller } => {
                let start = self.word(Word::Base) + u64::from(page) * PAGE;
                let end = start + u64::from(pages) * PAGE;
                by(caller).map(|name| Mapping { name, start, end, protection: "rw-p".into() })
            }
            _ => None,
        })
    }

    /// Nanoseconds of CLOCK_MONOTONIC at its end, as far as it is known.
    pub(crate) fn end(&self) -> u64 {
        match self.word(Word::Whole) {
            0 => self.word(Word::Ended).max(self.word(Word::Gone)),
            _ => self.word(Word::Ended),
        }
    }

    pub(crate) fn shift(&self) -> u32 {
        let shift = |record: &Record| if let Record::Window { shift, .. } = record { *shift } else { 0 };
        self.records.iter().map(shift).max().unwrap_or(0)
    }

    /// The longest window, in pages of the whole program.
    pub(crate) fn window(&self) -> u64 {
        let pages = |record: &Record| match record {
            Record::Window { pages, shift } => u64::from(*pages) << shift,
            _ => 0,
        };
        self.records.iter().map(pages).max().unwrap_or(0)
    }

    #[cfg(test)]
    pub(crate) fn of(given: &[(Word, u64)], records: Vec<Record>) -> Recorded {
        let mut words = vec![0; COMMAND.start / 8];
        given.iter().for_each(|(word, value)| words[*word as usize] = *value);
        Recorded { path: PathBuf::new(), words, command: String::new(), records, cut_short: false }
    }

    pub(crate) fn span(&self) -> Span {
        Span { start: self.word(Word::Base), len: self.word(Word::Pages) * PAGE }
    }
}
