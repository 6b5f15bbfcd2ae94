//! Swap and groups on a made tree of files, as one test program.

mod held;
mod made;
mod squeezed;
