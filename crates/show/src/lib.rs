//! # coldframe-show: what a person sees
//!
//! - [`text`] puts words into lines that fit the page.
//! - [`table`] and [`plot`] draw any table and plot as text.
//! - [`machine_answer`] is the answer for this machine in words.
//! - [`verdict_answer`] is the yes or no of `check -- PROGRAM`.
//! - [`html`] is a page with any of these, and [`export`] an answer as a file of another form.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod export;
pub mod html;
pub mod machine_answer;
pub mod plot;
pub mod table;
pub mod text;
pub mod verdict_answer;
