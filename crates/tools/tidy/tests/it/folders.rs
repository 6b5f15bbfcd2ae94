//! Folders that `ls` can show, and doors that are no rooms.

use std::path::PathBuf;

use coldframe_tidy::exceptions::{counts, differences};
use coldframe_tidy::tokens::{tokens, without_tests};
use coldframe_tidy::types::functions;
use coldframe_tidy::{crates, files, home, root, shown, text};

/// The most source files directly in a folder.
const FILES_MAX: usize = 20;

/// Folders that have more.
#[rustfmt::skip]
const LARGE_FOLDERS: &[(&str, usize)] = &[
];

/// Functions, methods too, in `lib.rs`.
#[rustfmt::skip]
const FUNCTIONS_IN_LIB: &[(&str, usize)] = &[
];

#[test]
fn a_folder_has_at_most_twenty_source_files() {
    let folders = source_folders().into_iter().flat_map(|folder| files(&folder, "rs"));
    let mut found = counts(folders.map(|path| shown(path.parent().expect("a folder"))));
    assert!(found.len() > 50, "the folders are where they were");
    found.retain(|_, count| *count > FILES_MAX);
    let wrong = differences(&found, LARGE_FOLDERS);
    assert!(wrong.is_empty(), "at most {FILES_MAX} source files in a folder:\n{}", wrong.join("\n"));
}

/// A reader begins there: what the crate is, its modules, what it passes on. A macro may stand there, since the modules
/// after it need it.
#[test]
fn lib_rs_is_a_door_without_functions() {
    let mut found = counts([]);
    for path in source_folders().iter().map(|folder| folder.join("lib.rs")).filter(|path| path.is_file()) {
        let text = text(&path);
        let count = functions(&without_tests(&tokens(&text))).len();
        if count > 0 {
            found.insert(shown(&path), count);
        }
    }
    let wrong = differences(&found, FUNCTIONS_IN_LIB);
    assert!(wrong.is_empty(), "move these functions to a module:\n{}", wrong.join("\n"));
}

#[test]
fn functions_are_found_in_blocks_but_not_in_macros_and_types() {
    let names = |text: &str| functions(&tokens(text)).iter().map(|name| name.text.to_owned()).collect::<Vec<_>>();
    assert_eq!(
        names("pub fn a() { fn b() {} } impl C { const fn d() {} } extern \"C\" { fn e(); }"),
        ["a", "b", "d", "e"]
    );
    assert_eq!(names("pub use a::b; macro_rules! c { () => { fn d() {} } } type E = fn(u8) -> u8; // fn f()"), [""; 0]);
}

/// The `src` of each crate and of each program of the board.
fn source_folders() -> Vec<PathBuf> {
    let board = ["image", "programs", "reftrace"].map(|name| root().join("board").join(name).join("src"));
    crates().iter().map(|name| home(name).join("src")).chain(board).collect()
}
