//! The two kinds of an answer: from a recording, and from referenced bits.

use std::ops::Deref;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::predict::common::Common;
use crate::predict::recorded::Recorded;
use crate::predict::watched::Watched;

/// How a program's memory was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The pager's recorder: which page, in which order.
    #[default]
    Recorder,
    /// The referenced bits that the kernel shows: how many pages in which time.
    ReferencedBits,
}

/// The run time of a program by RAM on this machine, in the best way that the machine allows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "method", rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "a program makes one")]
pub enum Answer {
    /// From the pager's recorder.
    Recorder(Recorded),
    /// From the referenced bits that the kernel shows.
    ReferencedBits(Watched),
}

impl Answer {
    /// How the program's memory was measured.
    pub fn method(&self) -> Method {
        match self {
            Answer::Recorder(_) => Method::Recorder,
            Answer::ReferencedBits(_) => Method::ReferencedBits,
        }
    }

    /// What every answer has, to change it.
    pub fn common_mut(&mut self) -> &mut Common {
        match self {
            Answer::Recorder(answer) => &mut answer.common,
            Answer::ReferencedBits(answer) => &mut answer.common,
        }
    }

    /// The answer from a recording, if it is one.
    pub fn recorded(&self) -> Option<&Recorded> {
        match self {
            Answer::Recorder(answer) => Some(answer),
            Answer::ReferencedBits(_) => None,
        }
    }

    /// The answer from referenced bits, if it is one.
    pub fn watched(&self) -> Option<&Watched> {
        match self {
            Answer::Recorder(_) => None,
            Answer::ReferencedBits(answer) => Some(answer),
        }
    }
}

impl Deref for Answer {
    type Target = Common;

    fn deref(&self) -> &Common {
        match self {
            Answer::Recorder(answer) => &answer.common,
            Answer::ReferencedBits(answer) => &answer.common,
        }
    }
}
