//! Converts a store to another tool's trace, so that results can be checked with a second tool.
//!
//! A request is each whole page of an access, in the order of the trace. A row of several references is written as
//! many times.
//!
//! **To add a format**: a `fn` that takes a [`Job`], and one line in [`EXPORTS`].

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use coldframe_store::block::Block;
use coldframe_store::error::TraceError;
use coldframe_store::reference::Reference;
use coldframe_store::store::{Reader, Wanted};

mod oracle;
mod swap;

/// A format that traces can be written in.
#[derive(Clone, Copy, Debug)]
pub struct Export {
    pub name: &'static str,
    pub summary: &'static str,
    write: fn(&mut Job<'_>) -> Result<(), TraceError>,
}

/// All formats, in the order in which help lists them.
pub const EXPORTS: &[Export] = &[
    Export {
        name: "oracleGeneral",
        summary:
            "libCacheSim, 24-byte records: page numbers, whole seconds, next access filled in; loses kinds and sizes",
        write: oracle::write,
    },
    Export {
        name: "swap",
        summary:
            "swap trace, for sim --system lobi: a block trace's requests as pages of a swap area; refuses other traces",
        write: swap::write,
    },
];

struct Job<'a> {
    reader: Reader,
    out: BufWriter<File>,
    path: &'a Path,
    page: u64,
    written: u64,
}

/// Writes the trace `from` to `to` in the format of this name, in pages of `page` bytes. Returns the number of
/// requests.
///
/// # Errors
/// As [`Reader`]; [`TraceError::Usage`] for an unknown format, or a page that is not a power of two or is smaller
/// than the trace's own; [`TraceError::Io`] if `to` cannot be written. `to` is then unchanged.
pub fn export(from: &Path, format: &str, to: &Path, page: u64) -> Result<u64, TraceError> {
    let export = EXPORTS.iter().find(|export| export.name == format).ok_or_else(|| TraceError::Usage {
        what: format!("format `{format}`"),
        problem: "it cannot be written".into(),
        remedy: format!("the formats are {}", EXPORTS.iter().map(|e| e.name).collect::<Vec<_>>().join(", ")).into(),
    })?;
    crate::import::refuse_same_file(Some(from), to)?;
    let reader = Reader::open(from)?;
    admit_page(page, reader.provenance().page_size)?;
    let partial = partial(to);
    let file = File::create(&partial).map_err(|error| TraceError::io(&partial, "create", error))?;
    let mut job = Job { reader, out: BufWriter::new(file), path: to, page, written: 0 };
    let done = (export.write)(&mut job).and_then(|()| job.finish(&partial));
    if done.is_err() {
        // The incomplete file is useless; the error to report is the first one.
        let _ = fs::remove_file(&partial);
    }
    done
}

fn partial(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

fn admit_page(page: u64, own: Option<u64>) -> Result<(), TraceError> {
    let error = |problem: String, remedy: &'static str| {
        Err(TraceError::Usage { what: format!("page of {page} bytes"), problem, remedy: remedy.into() })
    };
    match own {
        _ if !page.is_power_of_two() || !(512..=1 << 30).contains(&page) => error(
            "not a power of two from 512 bytes to 1 GiB".into(),
            "give the page size of the machine to compare with",
        ),
        Some(own) if page < own => {
            error(format!("the trace is reduced to pages of {own} bytes"), "give a page that is not smaller")
        }
        _ => Ok(()),
    }
}

impl Job<'_> {
    /// Calls `f` for every row, as often as the row counts.
    fn rows(
        &mut self,
        each: &mut dyn FnMut(&mut BufWriter<File>, Reference) -> io::Result<u64>,
    ) -> Result<(), TraceError> {
        let mut block = Block::new();
        while self.reader.read(&mut block, Wanted::ALL)? > 0 {
            for row in block.iter() {
                for _ in 0..row.count {
                    let written =
                        each(&mut self.out, row).map_err(|error| TraceError::io(self.path, "write", error))?;
                    self.written += written;
                }
            }
        }
        Ok(())
    }

    fn finish(mut self, partial: &Path) -> Result<u64, TraceError> {
        let done = self.out.flush().and_then(|()| self.out.get_ref().sync_all());
        done.and_then(|()| fs::rename(partial, self.path))
            .map_err(|error| TraceError::io(self.path, "write", error))?;
        Ok(self.written)
    }
}
