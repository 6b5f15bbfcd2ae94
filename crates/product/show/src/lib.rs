//! # coldframe-show: what a person sees
//!
//! - [`text`] puts text into lines; [`table`] and [`plot`] draw any table and plot as text.
//! - [`machine_answer`] is the answer for this machine in words; [`recording`], [`run`], [`compared`],
//!   [`squeezed`], [`parked`], [`device`], [`doctor`], [`calibrated`], [`top`], [`group`] and [`verdict_answer`] are
//!   the other results of `answer`.
//! - [`paste`] makes every line to paste.
//! - [`html`] is a page with an answer, and [`export`] an answer as a file of another form.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod calibrated;
pub mod compared;
pub mod device;
pub mod doctor;
pub mod export;
pub mod group;
pub mod html;
pub mod limit_answer;
pub mod machine_answer;
pub mod parked;
pub mod paste;
pub mod plot;
pub mod recording;
pub mod run;
pub mod squeezed;
pub mod table;
pub mod text;
pub mod top;
pub mod verdict_answer;
