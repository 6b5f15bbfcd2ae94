//! # coldframe-terminal: what both programs do with a terminal
//!
//! - [`output`] writes results to stdout or a file, and words to stderr, in lines that fit.
//! - [`progress`] is a line that shows how far long work has come.
//! - [`listener`] shows the notes and the progress of `answer`.
//! - [`failure`] shows why a verb has failed.
//! - [`manual`] writes manual pages and completion scripts from the definition of a command line.
//! - [`suffix`] refuses names of files that ask for a form that is not written.
//! - [`verb`] makes parser and help from the table of a program's verbs.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod failure;
pub mod listener;
pub mod manual;
pub mod output;
pub mod progress;
pub mod suffix;
pub mod verb;
