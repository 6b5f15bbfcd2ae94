//! # coldframe-answer: the questions of `coldframe`, and their answers as data
//!
//! | question | asked of |
//! |---|---|
//! | How little RAM can this program live with? | [`bench::measure`] |
//! | Is it within this limit? | [`bench::check`] |
//! | Which way of paging is the fastest here? | [`bench::compare`] |
//! | What becomes of it in this much RAM? | [`run::paged`] |
//! | What does a recording, or a process that runs, need? | [`predict::machine`], [`predict::watch`] |
//! | What does paging cost on this machine? | [`machine`] |
//! | How much RAM and swap does this device need? | [`device`] |
//! | How little can a service have; who has how much; who has a turn? | [`service`] |
//!
//! A room imports only rooms below it: `bench`, `device` and `service` stand on `predict`, that on `machine`, that on
//! `run`. Nothing here prints: a [`Listener`] hears of the work.
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod bench;
pub mod device;
pub mod machine;
pub mod predict;
pub mod run;
pub mod service;

mod error;
mod listener;
pub mod nothing;

pub use bench::limit_answer::{LimitAnswer, LimitSizes};
pub use bench::need::Need;
pub use bench::verdict::Verdict;
pub use coldframe_recording::plan::Pager;
pub use error::{AnswerError, ProgramError};
pub use listener::{Listener, Silent};
pub use machine::asker::Asker;
pub use predict::bits::touched::{MemoryOwner, Touched};
pub use predict::common::{Common, Known, DEVICE};
pub use predict::curve::{Point, THRASHES};
pub use predict::kinds::{Answer, Method};
pub use predict::machine::answer;
pub use predict::memory_use::MemoryUse;
pub use predict::not_paged::{File, NotPaged};
pub use predict::price::Costs;
pub use predict::question::{pager, Limits, Question, Reading, UNNOTICED};
pub use predict::recorded::Recorded;
pub use predict::since_start::SinceStart;
pub use predict::swap::{SwapAnswer, Swapped};
pub use predict::watched::{SqueezeRange, Watched};
pub use run::looks::group::GroupUse;
pub use run::runs::{By, Run, Runs, NO_SWAP};

/// The version of the form of every JSON object of this crate.
pub const SCHEMA_VERSION: u32 = 1;
