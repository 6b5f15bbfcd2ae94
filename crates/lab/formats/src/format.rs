//! Traces of other tools: which formats there are, and how one is opened.
//!
//! A trace is named `FORMAT:PATH`, with `-` for standard input. The format of a bare path is guessed from its contents.
//! Only formats with a distinctive mark are guessed, and only if exactly one fits. Columns of numbers are never
//! guessed, since a wrong guess would give a wrong result. Compression is recognised by content (see `input.rs`).
//!
//! **To add a format**: one file in `format/` with a `pub const FORMAT: Format` and its reader, and one line in
//! [`FORMATS`]. For a text format, the reader is a `Parse` (see `text.rs`) of one line. Every byte of the input must
//! become a row, a counted skip that the format's rules demand, or an error; no byte is dropped silently.

use std::path::{Path, PathBuf};

use bytes::Bytes;

use coldframe_store::block::{Block, Columns};
use coldframe_store::error::TraceError;
use coldframe_store::fidelity::Fidelity;
use coldframe_store::provenance::Task;

mod blkparse;
mod csv;
mod damon;
mod declared;
mod din;
mod fields;
mod fio;
mod input;
mod lackey;
mod lines;
mod msr;
mod options;
mod oracle_general;
mod records;
pub mod swap;
mod tasks;
mod text;
mod time;
mod vscsi;

pub use input::Input;
pub use options::{Column, Options, Role};

/// All formats, in the order in which help lists them.
pub const FORMATS: &[Format] = &[
    lackey::FORMAT, //
    din::FORMAT,
    damon::FORMAT,
    blkparse::FORMAT,
    oracle_general::FORMAT,
    msr::FORMAT,
    vscsi::FORMAT,
    fio::FORMAT,
    csv::FORMAT,
    csv::BLOCKS,
    csv::TSV,
    csv::BLANKS,
];

/// Opens an input as a format, with what the user declares about it.
pub type Open = fn(Input, &Options) -> Result<Box<dyn RowReader>, TraceError>;

#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// The name before the colon.
    pub name: &'static str,
    /// What it is and who writes it, in a line.
    pub summary: &'static str,
    /// A specification as a user would type it, with the command that records such a trace where there is one.
    pub example: &'static str,
    pub fidelity: Fidelity,
    /// The lines or records that its rules say to skip.
    pub skips: &'static str,
    /// The declarations of [`Options`] that it accepts, by their names on the command line.
    pub takes: &'static [&'static str],
    /// Whether the first decompressed bytes can only be this format; `None` if they cannot tell.
    pub guess: Option<fn(&[u8]) -> bool>,
    pub open: Open,
}

/// Reads rows from another tool's trace, in order, once.
pub trait RowReader: Send {
    /// Replaces the contents of `block` by the next rows, at most [`Block::capacity`] of them, and returns their
    /// number; 0 is the end. Columns that the format does not have hold their defaults; without times, the time
    /// column is empty.
    ///
    /// # Errors
    /// Any fault of the input. Earlier rows that were not yet returned are lost, and the reader cannot be used any
    /// more.
    fn read(&mut self, block: &mut Block) -> Result<usize, TraceError>;

    fn columns(&self) -> Columns {
        Columns::default()
    }

    fn progress(&self) -> Progress;

    /// What it has learned so far, apart from rows.
    fn facts(&self) -> Facts;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// References stored; 0 of a reader alone.
    pub references: u64,
    /// Lines (of a binary format, records) read, skipped ones included.
    pub lines: u64,
    pub skipped: u64,
    /// Of these, left out because they break the format, as [`Options::skip_bad`] allows.
    pub bad: u64,
    /// Bytes of the (compressed) input read.
    pub bytes: u64,
    /// Bytes of the (compressed) input; `None` for a pipe.
    pub bytes_total: Option<u64>,
}

/// What a source says of itself, apart from its rows.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub command: Option<String>,
    /// The source's own clock at time 0, in nanoseconds, once the first row is read.
    pub started: Option<u64>,
    /// Bytes of the page that the source reduced its references to.
    pub page_size: Option<u64>,
    /// The tasks that have names or address spaces of their own.
    pub tasks: Vec<Task>,
    /// Notes for readers of results about how this format was read.
    pub notes: Vec<String>,
    /// The first line that breaks the format, as a message.
    pub first_bad: Option<String>,
}

/// A trace named by the user.
#[derive(Clone, Debug)]
pub struct Spec {
    pub format: &'static Format,
    /// Its file; `None` is standard input.
    pub path: Option<PathBuf>,
    /// What the user declares about it.
    pub options: Options,
    pub guessed: bool,
}

/// Reads `FORMAT:PATH` or `FORMAT:-`.
///
/// # Errors
/// [`TraceError::Usage`] if the format is unknown (with the nearest known name) or the path is missing.
pub fn parse_spec(text: &str) -> Result<Spec, TraceError> {
    let error = |problem: String, remedy: String| TraceError::Usage {
        what: format!("trace `{text}`"),
        problem,
        remedy: remedy.into(),
    };
    let Some((name, path)) = text.split_once(':').filter(|_| !Path::new(text).exists()) else {
        return guess(Path::new(text), error);
    };
    let Some(format) = FORMATS.iter().find(|format| format.name == name) else {
        let remedy = match nearest(name) {
            _ if name == "swap" => SWAP.to_owned(),
            Some(nearest) => format!("did you mean `{nearest}`? The formats are {}", names()),
            None => format!("the formats are {}", names()),
        };
        return Err(error(format!("unknown format `{name}`"), remedy));
    };
    match path {
        "" => Err(error("no path".into(), format!("write {name}:PATH, or {name}:- for standard input"))),
        "-" => Ok(Spec::new(format, None)),
        path => Ok(Spec::new(format, Some(path.into()))),
    }
}

impl Spec {
    fn new(format: &'static Format, path: Option<PathBuf>) -> Spec {
        Spec { format, path, options: Options::default(), guessed: false }
    }
}

const SWAP: &str = "name it as it is, to coldframe-lab trace info or coldframe-lab sim --system lobi";

const GUESS_BYTES: usize = 16 * 1024;

/// The format of a bare path, if its contents leave no choice.
fn guess(path: &Path, error: impl Fn(String, String) -> TraceError) -> Result<Spec, TraceError> {
    if !path.is_file() {
        return Err(error("no format".into(), format!("write FORMAT:PATH with FORMAT one of {}", names())));
    }
    let head = Input::head(path, GUESS_BYTES)?;
    let fits: Vec<&Format> = FORMATS.iter().filter(|format| format.guess.is_some_and(|fits| fits(&head))).collect();
    match fits[..] {
        [] if swap::looks_like(&head) => {
            Err(error("a swap trace, which has no references to import".into(), SWAP.into()))
        }
        [format] => Ok(Spec { guessed: true, ..Spec::new(format, Some(path.to_owned())) }),
        [] => Err(error(
            "no format, and the contents do not tell one".into(),
            format!("write FORMAT:PATH with FORMAT one of {}", names()),
        )),
        _ => {
            let names: Vec<_> = fits.iter().map(|format| format.name).collect();
            let names = names.join(" or ");
            Err(error("no format, and more than one fits".into(), format!("write FORMAT:PATH with FORMAT {names}")))
        }
    }
}

fn names() -> String {
    FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(", ")
}

/// The known format that is most similar to `name`, if any is (at least half of the letters in place).
fn nearest(name: &str) -> Option<&'static str> {
    let likeness = |format: &&Format| strsim::normalized_damerau_levenshtein(&name.to_lowercase(), format.name);
    let best = FORMATS.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(&best) >= 0.5).then_some(best.name)
}

/// Opens a trace named by the user.
///
/// # Errors
/// [`TraceError::Io`] if it cannot be opened; any fault that the format finds at its beginning.
pub fn open(spec: &Spec) -> Result<Box<dyn RowReader>, TraceError> {
    spec.options.admit(spec.format)?;
    let input = match &spec.path {
        Some(path) => Input::Path(path.clone()),
        None => Input::Stdin,
    };
    (spec.format.open)(input, &spec.options)
}

/// Reads `data` as format `name` to its end. For fuzzing: any result is fine, except a panic.
#[doc(hidden)]
pub fn fuzz_read(name: &str, data: &[u8]) -> Result<u64, TraceError> {
    /// A few compressed bytes may mean terabytes of text, which is valid and would take for ever.
    const ROWS_MAX: u64 = 4 << 20;
    let spec = parse_spec(&format!("{name}:fuzz"))?;
    let mut reader = (spec.format.open)(Input::Bytes(Bytes::copy_from_slice(data)), &fuzz_options(spec.format))?;
    let mut block = Block::with_capacity(1000);
    let mut rows = 0;
    while rows < ROWS_MAX {
        match reader.read(&mut block)? {
            0 => break,
            read => rows += read as u64,
        }
    }
    Ok(rows)
}

/// Declarations of all that the format takes.
fn fuzz_options(format: &Format) -> Options {
    let mut options = Options::default();
    let declare = |options: &mut Options| -> Result<(), TraceError> {
        if format.takes.contains(&options::COLUMNS) {
            options.declare_columns("address=1,size=2,kind=3,task=4,time=5")?;
        }
        if format.takes.contains(&options::UNIT_ADDRESS) {
            options.declare_units("address=512B")?;
        }
        if format.takes.contains(&options::UNIT_SIZE) {
            options.declare_units("size=1B")?;
        }
        if format.takes.contains(&options::UNIT_TIME) {
            options.declare_units("time=ns")?;
        }
        if format.takes.contains(&options::KINDS) {
            options.declare_kinds("0=fetch,1=read,2=write")?;
        }
        Ok(())
    };
    // These declarations are complete; a failure would only make the reader refuse.
    let _ = declare(&mut options);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_specification_is_a_format_and_a_path() {
        let spec = parse_spec("lackey:a:b.gz").unwrap();
        assert_eq!((spec.format.name, spec.path.unwrap().to_str().unwrap()), ("lackey", "a:b.gz"));
        assert!(parse_spec("din:-").unwrap().path.is_none());
    }

    #[test]
    fn a_bad_specification_is_told_what_to_write() {
        for (text, remedy) in [
            ("lakcey:a", "did you mean `lackey`?"),
            ("DIN:a", "did you mean `din`?"),
            ("quux:a", "the formats are lackey, din"),
            ("swap:a.csv", "coldframe-lab sim --system lobi"),
            ("a.txt", "write FORMAT:PATH"),
            ("", "write FORMAT:PATH"),
            ("din:", "din:- for standard input"),
            (":a", "the formats are"),
        ] {
            let error = parse_spec(text).unwrap_err();
            assert_eq!(error.code(), 2, "{text}");
            assert!(error.to_string().contains(remedy), "{text}: {error}");
        }
    }

    #[test]
    fn names_are_unique_and_examples_parse() {
        for (index, format) in FORMATS.iter().enumerate() {
            assert!(FORMATS[..index].iter().all(|other| other.name != format.name));
            let spec = format.example.split_whitespace().next().unwrap();
            assert_eq!(parse_spec(spec).unwrap().format.name, format.name);
        }
    }
}
