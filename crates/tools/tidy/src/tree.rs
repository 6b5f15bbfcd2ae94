//! Where the crates, their files and their dependencies are.

use std::path::{Path, PathBuf};

/// The folders of `crates`: what people run, what studies it, and the tools that tests use, which may know everything.
pub const PARTS: [&str; 3] = ["product", "lab", "tools"];

/// The root of the repository.
///
/// # Panics
/// If this crate is not at its place in the repository.
pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3);
    root.expect("this crate is three folders below the root").to_owned()
}

/// A path from the root of the repository.
pub fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// All files below `dir` with this suffix, except those in `target` and `.git` folders.
pub fn files(dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let Ok(entries) = std::fs::read_dir(dir) else { return paths };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
            paths.extend(files(&path, suffix));
        } else if path.extension().is_some_and(|s| s == suffix) {
            paths.push(path);
        }
    }
    paths.sort();
    paths
}

/// The text of a file.
///
/// # Panics
/// If the file cannot be read as text.
pub fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The code of a Rust file, without comments and without modules of tests.
pub fn code(path: &Path) -> String {
    let text = text(path);
    let (mut code, mut rest) = (String::new(), text.as_str());
    while let Some((before, tests)) = rest.split_once("#[cfg(test)]\nmod ") {
        code += before;
        let inside = tests.find(['{', ';']).is_some_and(|at| tests[at..].starts_with('{'));
        let end = if inside { "\n}" } else { ";" };
        rest = tests.split_once(end).map_or("", |(_, after)| after);
    }
    code += rest;
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The dependencies of a crate: the names in its `[dependencies]`, without those of its tests.
pub fn dependencies(name: &str) -> Vec<String> {
    let path = home(name).join("Cargo.toml");
    let table: toml::Table = text(&path).parse().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    table.get("dependencies").and_then(|d| d.as_table()).map(|d| d.keys().cloned().collect()).unwrap_or_default()
}

/// The names of the crates in one of [`PARTS`].
///
/// # Panics
/// If the folder cannot be read.
pub fn crates_of(part: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root().join("crates").join(part)).expect("there are crates");
    let names = entries.flatten().filter(|e| e.path().join("Cargo.toml").is_file());
    let mut names: Vec<_> = names.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The names of all crates of the workspace.
pub fn crates() -> Vec<String> {
    PARTS.iter().flat_map(|part| crates_of(part)).collect()
}

/// The folder of a crate.
///
/// # Panics
/// If there is no crate of this name.
pub fn home(name: &str) -> PathBuf {
    let places = PARTS.iter().map(|part| root().join("crates").join(part).join(name));
    places.into_iter().find(|place| place.is_dir()).unwrap_or_else(|| panic!("no crate {name}"))
}
