//! # coldframe-tidy: the house rules, as tests
//!
//! | file in `tests/it` | it fails when |
//! |---|---|
//! | `floors.rs` | a crate imports what its floor does not allow, or does not use; ARCHITECTURE.md says otherwise |
//! | `tree.rs` | the core gets a dependency, `unsafe` or `std`; a file of a program computes |
//! | `imports.rs` | files of a crate import each other in a circle |
//! | `types.rs` | a type's methods are not in its file or folder; two types of a crate have one name |
//! | `folders.rs` | a folder has more than 20 source files; `lib.rs` has a function |
//! | `names.rs` | a crate has many names that say nothing |
//! | `lines.rs` | a crate has more lines of code than its row allows |
//! | `columns.rs` | a line has more than 120 columns |
//! | `packages.rs` | a test needs a Debian package that `.ci/run` does not install |
//! | `paths.rs` | a comment or document names a path that does not exist |
//!
//! What breaks a rule today is in a table in the test's file ([`exceptions`]). A table may only shrink: a row that
//! excuses more than there is fails, too. `cargo test -p coldframe-tidy -- --nocapture` prints counts and places.
#![forbid(unsafe_code)]

pub mod exceptions;
pub mod names;
mod source;
pub mod tokens;
mod tree;
pub mod types;

pub use source::{room, sources};
pub use tree::{code, crates, crates_of, dependencies, files, home, root, shown, text, PARTS};
