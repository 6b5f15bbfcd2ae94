//! What killed guards have left, by their records.

use std::fs::File;
use std::path::Path;

use coldframe_proc::Tree;

use crate::guard::record::{changes, lives, records};
use crate::guard::undo::{left, Left};

/// What killed guards with records in this folder have left, the last change first. Records of which nothing is left
/// are removed.
pub fn left_behind(tree: &Tree, folder: &Path) -> Vec<Left> {
    let mut leftovers = Vec::new();
    for path in records(folder) {
        let Ok(file) = File::open(&path) else { continue };
        // It may be new, and have changed nothing.
        if lives(&file) {
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
