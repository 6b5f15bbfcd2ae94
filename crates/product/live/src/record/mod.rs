//! What a run leaves in files: the recording of a program, with its window, and the journal of the engine. The work on
//! pages and the engine's machine write them. Nothing here changes a page.

pub mod journal;
pub mod recorder;
pub mod window;

use std::fs::File;
use std::path::Path;

/// A file of this program in a folder of journals. A process that starts one program after the other has several.
pub fn own_file(folder: &Path) -> std::io::Result<File> {
    let process = std::process::id();
    let mut number = 0;
    loop {
        match File::create_new(folder.join(format!("{process}.{number}"))) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
            other => return other,
        }
    }
}
