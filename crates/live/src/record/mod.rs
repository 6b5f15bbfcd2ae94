//! What a run leaves in files: the recording of a program, with its window, and the journal of the engine. The work on
//! pages and the engine's machine write them. Nothing here changes a page.

pub mod compressibility;
pub mod journal;
pub mod recorder;
pub mod window;
