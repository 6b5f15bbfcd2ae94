//! Tests that measure programs: as a program of their own, so that only each other runs beside them.

#[path = "../common/mod.rs"]
mod common;

mod attach;
mod calibrate;
mod check;
mod whole;
