//! The two kinds of an answer: from a recording, and from referenced bits.

use std::ops::Deref;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::predict::common::Common;
use crate::predict::measured::Measurements;
use crate::predict::recorded::Recorded;
use crate::predict::watched::Watched;
use crate::run::runs::{By, Runs};

/// Looks at a shorter run miss its peak.
const LOOKS_SECONDS: f64 = 0.1;

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

    /// The prediction after the program ran alone: without pages that were only read, and with the files that it
    /// mapped.
    pub(crate) fn after(mut self, plain: &Runs) -> Answer {
        if let Answer::Recorder(Recorded { common, .. }) = &mut self {
            // A program that takes less has its peak between two looks.
            if plain.seconds >= LOOKS_SECONDS {
                common.only_read(plain.peak_bytes());
            }
            let files = plain.runs.iter().map(|run| &run.files).find(|files| !files.is_empty());
            files.into_iter().for_each(|files| common.not_paged.get_or_insert_default().see(files));
        }
        self
    }

    /// The answer from its prediction and from measured runs.
    pub(crate) fn measured(self, measurements: Measurements) -> Answer {
        let by_kernel = measurements.less_ram.iter().any(|runs| runs.by == By::Kernel);
        match self {
            Answer::Recorder(answer) => Answer::Recorder(Recorded {
                common: answer.common.measured(measurements),
                kernel: answer.kernel.filter(|_| !by_kernel),
                ..answer
            }),
            Answer::ReferencedBits(answer) => {
                Answer::ReferencedBits(Watched { common: answer.common.measured(measurements), ..answer })
            }
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
