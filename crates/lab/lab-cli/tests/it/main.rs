//! The program `coldframe-lab`, as one test program.

mod advise;
mod board;
mod cli;
mod combined;
mod foreground;
mod help;
mod memory;
mod outside;
mod papers;
mod parity;
mod refusals;
mod report;
mod requests;
mod run;
mod tables;
mod traces;
mod window;
