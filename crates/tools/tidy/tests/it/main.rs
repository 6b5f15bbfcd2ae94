//! The house rules, as one test program.

mod columns;
mod floors;
mod folders;
mod imports;
mod lines;
mod names;
mod packages;
mod paths;
mod tree;
mod types;
