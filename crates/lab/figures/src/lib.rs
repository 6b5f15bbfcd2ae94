//! # coldframe-figures: the papers behind the systems
//!
//! A system in `coldframe-experiment` is what a user runs. What its paper prints, and how near we come, is here;
//! `coldframe-lab papers` shows it.
//!
//! - [`papers`]: printed figures and ours, each of them a row of [`figure`]. Each paper is a folder with its figures as
//!   data (`golden.toml`), the experiments that reproduce them, its claims as tests, and a README.
//!   [`mod@table`] shows them.
//! - [`kept`]: rows that were computed before.
//! - [`parts`]: the parts of all systems on a trace, alone and together.
//! - [`teach`]: lessons, reference by reference.
//! - [`workload`]: traces of applications on a phone, from a seed.
#![forbid(unsafe_code)]

mod ddb;
mod drswap;
pub mod figure;
mod golden;
pub mod kept;
mod lobi;
pub mod papers;
pub mod parts;
mod sap;
mod swl;
pub mod table;
pub mod teach;
pub mod workload;
