//! What a recording notes of a program's memory: [`span`] is the managed memory and the calls about it, [`entries`] the
//! file into which a live pager records which page entered its window.

#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod entries;
pub mod span;
