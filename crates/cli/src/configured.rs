//! `coldframe run -c config.toml`: runs a program with the settings that `advise` found. Flags override the file.
//! Settings that only a simulator uses (prices, front end, device) are ignored.

use std::path::Path;

use coldframe_core::Bytes;
use coldframe_experiment::{ExperimentError, Settings};
use coldframe_live::PAGE;
use coldframe_sheet::quantity::{self, show_bytes};

use crate::failure::Failure;

/// The settings of a configuration for a live run.
#[derive(Default)]
pub struct Configured {
    /// RAM, as `--ram` takes it.
    pub ram: Option<String>,
    /// Policy.
    pub policy: Option<String>,
    /// Handler.
    pub handler: Option<String>,
    /// Most pages read ahead.
    pub read_ahead: Option<u32>,
}

/// Reads a configuration.
///
/// # Errors
/// It cannot be read, or it has a page size or RAM that a live run does not support.
pub fn read(path: &Path) -> Result<Configured, Failure> {
    let name = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|e| ExperimentError::Io { path: name.clone(), reason: e.to_string() })?;
    let settings = Settings::read(Some((&name, &text)), &[])?;
    let bad = |reason: String| Failure::from(ExperimentError::Config { origin: name.clone(), reason });
    if let Some(page) = &settings.page {
        let bytes = quantity::bytes(page).map_err(|e| bad(format!("page: {e}")))?;
        if bytes.0 != PAGE as u64 {
            let own = show_bytes(Bytes(PAGE as u64));
            return Err(bad(format!("page is {page}, but this machine's pages are {own}; advise for pages of {own}")));
        }
    }
    let ram = match (settings.ram, settings.frames) {
        (Some(text), _) if text.ends_with('%') => {
            return Err(bad(format!("ram is {text} of a trace's footprint, which a live run has not; give --ram SIZE")))
        }
        (Some(text), _) => Some(text),
        (None, frames) => frames.map(|frames| show_bytes(Bytes(frames * PAGE as u64))),
    };
    let read_ahead = settings.machine.read_ahead.or(Some(0));
    Ok(Configured { ram, policy: settings.policy, handler: settings.handler, read_ahead })
}
