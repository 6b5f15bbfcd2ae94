//! The answer about a program that takes so little memory that no size of RAM is less.

use std::fmt;

use coldframe_live::FRAMES_MIN;
use coldframe_recording::span::PAGE;
use coldframe_sheet::quantity::human_size;
use schemars::JsonSchema;
use serde::Serialize;

use crate::SCHEMA_VERSION;

/// There is nothing to save.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Nothing {
    /// Version of this object's form.
    pub schema_version: u32,
    /// Version of coldframe.
    pub version: String,
    /// `nothing-to-save`.
    pub kind: String,
    /// The program's name.
    pub program: String,
    /// The most heap that it has had.
    pub managed_bytes: u64,
    /// The least `--ram`.
    pub least_bytes: u64,
    /// Its exit code, if it has ended, as a shell reports it.
    pub exit: Option<i32>,
    /// coldframe ended it, after --for or at a signal: it may take more later.
    pub ended_early: bool,
}

impl Nothing {
    /// Refuses a heap that no size of RAM is less than. `program`: its name.
    ///
    /// # Errors
    /// The heap is that small.
    pub(crate) fn refuse(program: String, exit: Option<i32>, managed_bytes: u64) -> Result<(), Nothing> {
        let least_bytes = FRAMES_MIN as u64 * PAGE;
        if managed_bytes > least_bytes {
            return Ok(());
        }
        let (version, kind) = (env!("CARGO_PKG_VERSION").into(), "nothing-to-save".into());
        let schema_version = SCHEMA_VERSION;
        Err(Nothing { schema_version, version, kind, program, managed_bytes, least_bytes, exit, ended_early: false })
    }
}

impl std::error::Error for Nothing {}

impl fmt::Display for Nothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (heap, least) = (human_size(self.managed_bytes), human_size(self.least_bytes));
        let ended = match self.exit {
            Some(0) | None => String::new(),
            Some(code) => format!(" ended with exit code {code} and"),
        };
        let (name, early) =
            (&self.program, if self.ended_early { " coldframe ended it; it may take more later." } else { "" });
        write!(
            f,
            "{name}{ended} takes {heap} of heap, and no --ram is less than {least}: there is nothing to save.{early}"
        )
    }
}
