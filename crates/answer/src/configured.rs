//! `coldframe run -c config.toml`: the settings that an answer advises. Flags override the file. Settings of the
//! laboratory's simulator (prices, front end, device) in the same file are ignored.

use std::path::Path;

use coldframe_core::Bytes;
use coldframe_live::PAGE;
use coldframe_sheet::quantity::{self, show_bytes};
use serde::Deserialize;

use crate::error::AnswerError;

/// The settings of a configuration for a live run.
#[derive(Default, Deserialize)]
pub struct Configured {
    /// RAM, as `--ram` takes it.
    pub ram: Option<String>,
    /// RAM as a number of pages.
    frames: Option<u64>,
    /// Policy.
    pub policy: Option<String>,
    /// Handler.
    pub handler: Option<String>,
    /// Bytes of a page.
    page: Option<String>,
    #[serde(default)]
    machine: Machine,
    /// All other keys of the file.
    #[serde(flatten)]
    others: toml::Table,
}

/// Keys and tables of `coldframe-lab sim` that do not concern a live run.
const OF_THE_SIMULATOR: [&str; 10] =
    ["device", "fail", "front_end", "limit", "main_memory", "stream", "swap", "system", "tasks", "time"];

#[derive(Default, Deserialize)]
struct Machine {
    read_ahead: Option<u32>,
}

impl Configured {
    /// Most pages read ahead: none, if the file says nothing.
    pub fn read_ahead(&self) -> u32 {
        self.machine.read_ahead.unwrap_or(0)
    }

    /// Reads a configuration.
    ///
    /// # Errors
    /// It cannot be read, or it has a page size or RAM that a live run does not support.
    pub fn read(path: &Path) -> Result<Configured, AnswerError> {
        let name = path.display();
        let bad = |reason: String| AnswerError::usage(format!("{name}: {reason}"));
        let text = std::fs::read_to_string(path).map_err(|e| AnswerError::new(5, format!("{name}: {e}")))?;
        let mut file_settings: Configured = toml::from_str(&text).map_err(|e| bad(e.to_string().trim_end().into()))?;
        if let Some(key) = file_settings.others.keys().find(|key| !OF_THE_SIMULATOR.contains(&key.as_str())) {
            return Err(bad(format!(
                "`{key}` is no setting; a live run takes ram, policy, handler, machine.read_ahead"
            )));
        }
        if let Some(page) = &file_settings.page {
            let bytes = quantity::bytes(page).map_err(|e| bad(format!("page: {e}")))?;
            if bytes.0 != PAGE as u64 {
                let own = show_bytes(Bytes(PAGE as u64));
                return Err(bad(format!(
                    "page is {page}, but this machine's pages are {own}; advise for pages of {own}"
                )));
            }
        }
        if let Some(text) = file_settings.ram.as_ref().filter(|text| text.ends_with('%')) {
            let reason = format!("ram is {text} of a trace's footprint, which a live run has not; give --ram SIZE");
            return Err(bad(reason));
        }
        let pages = file_settings.frames.map(|frames| show_bytes(Bytes(frames * PAGE as u64)));
        file_settings.ram = file_settings.ram.or(pages);
        Ok(file_settings)
    }
}
