//! Runs the live pager under random settings, next to a shadow copy of everything that is written. No byte may be lost
//! or wrong, and nothing may hang.
//!
//! A seed stands for a [`setting::Setting`]: policy, RAM, regions, threads, device, forks, and how faults are handled
//! and waited for. Each setting runs in its own process ([`watch`]). The process exits with 0 if every word was what
//! its writer wrote last. A failure is printed with its seed. The seed fixes the setting, but not the interleaving of
//! the threads.
//!
//! ```text
//!   shared   each thread has 16 words in each page, which only it writes; all threads read all words  area.rs
//!   own      a region of each thread: whole pages, discard, pin, prefetch, drop, replace              own.rs
//!   forks    a child checks what it sees, writes its own pages, and forks again                       forks.rs
//! ```

pub mod area;
pub mod forks;
pub mod own;
pub mod run;
pub mod setting;
pub mod watch;
mod wrong;

pub use wrong::{wrong, WRONG};
