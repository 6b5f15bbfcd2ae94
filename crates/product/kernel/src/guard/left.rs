//! What killed guards have left, by their records.

use std::fs::File;
use std::path::Path;

use coldframe_proc::Tree;
use rustix::fs::{flock, FlockOperation};

use crate::guard::record::{changes, END};
use crate::guard::undo::{left, Left};

/// What killed guards with records in this folder have left, the last change first. Records of which nothing is left
/// are removed.
pub fn left_behind(tree: &Tree, folder: &Path) -> Vec<Left> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == END));
    paths.sort();
    let mut leftovers = Vec::new();
    for path in paths {
        let Ok(file) = File::open(&path) else { continue };
        // Its guard lives, or is new and has changed nothing.
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        let changes = changes(&file);
        let left: Vec<_> = changes.iter().rev().filter_map(|change| left(change, tree)).collect();
        if left.is_empty() && !changes.is_empty() {
            let _ = std::fs::remove_file(&path);
        }
        leftovers.extend(left);
    }
    leftovers
}
