//! Tests that measure programs: as a program of their own, only each other runs beside them (`make test`).

#[path = "../common/mod.rs"]
mod common;

mod attach;
mod calibrate;
mod check;
mod whole;
