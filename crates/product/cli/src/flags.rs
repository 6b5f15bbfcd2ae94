//! Flags that several verbs have: each has one meaning, one text, and one way to be read.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use coldframe_answer::run::program::default_backing;
use coldframe_live::{FRAMES_MIN, PAGE};
use coldframe_sheet::quantity::{self, QuantityError};
pub use coldframe_terminal::output::Form;

/// `--backing`.
#[derive(clap::Args)]
pub struct Backing {
    /// Folder (or block device, whose content is lost) for the swap file [default: the folder for temporary files, or
    /// /var/tmp if that is in RAM].
    #[arg(long, value_name = "FOLDER")]
    pub backing: Option<PathBuf>,
}

impl Backing {
    /// The folder that was given, or the default.
    pub fn folder(&self) -> PathBuf {
        self.backing.clone().unwrap_or_else(default_backing)
    }
}

/// The words after the options.
#[derive(clap::Args)]
pub struct Program {
    /// The program and its arguments.
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

/// Bytes, with their unit.
pub fn size(text: &str) -> Result<u64, QuantityError> {
    quantity::bytes_with_unit(text).map(|bytes| bytes.0)
}

/// A size, or a share of what a program takes: the text, which is read when that is known.
pub fn size_or_share(text: &str) -> Result<String, QuantityError> {
    if text.ends_with('%') { percent(text).map(drop) } else { size(text).map(drop) }.map(|()| text.into())
}

/// Bytes of RAM for a program.
pub fn ram_size(text: &str) -> Result<u64, String> {
    let least = FRAMES_MIN * PAGE;
    match size(text) {
        Ok(bytes) if bytes < least as u64 => Err(format!("{text} is too little; give at least {}KiB", least / 1024)),
        read => read.map_err(|error| error.to_string()),
    }
}

/// A time.
pub fn time(text: &str) -> Result<Duration, QuantityError> {
    quantity::duration(text)
}

/// A share in percent.
pub fn percent(text: &str) -> Result<f64, QuantityError> {
    quantity::percent(text)
}
