//! The house rules, as one test program.

mod imports;
mod lines;
mod packages;
mod paths;
mod tree;
