//! What results say of their trace.

use coldframe_store::Cut;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The trace of a result, with notes for readers if it does not have every reference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trace {
    /// Path as given.
    pub path: String,
    /// Of the file.
    pub sha256: String,
    /// The fidelity of its rows; `None`: it is a swap trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fidelity: Option<String>,
    /// In the whole trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub references: Option<u64>,
    /// In the whole trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<u64>,
    /// Pages that it touches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<usize>,
    /// Pages of its recording window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_pages: Option<u64>,
    /// The cuts that made it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cuts: Vec<Cut>,
    /// A note on the trace, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caveat: Option<String>,
    /// Its recorder's notes on its limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}
