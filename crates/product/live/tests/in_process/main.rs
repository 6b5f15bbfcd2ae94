//! Tests that page in this process and count its faults: a program of their own, since each fork of another test would
//! copy their pages.

#[path = "../common/mod.rs"]
mod common;

mod devices;
mod lobi;
mod recorder;
mod region;
