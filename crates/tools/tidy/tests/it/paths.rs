//! Paths in backquotes exist: in documents and in comments.

use std::collections::BTreeSet;

use coldframe_tidy::{files, root, text};

/// Endings of files that the repository has; `.c` and `.h` are mostly files of Linux and QEMU.
const ENDINGS: [&str; 6] = [".rs", ".md", ".toml", ".py", ".sh", ".json"];

/// Beginnings of paths from the root.
const FOLDERS: [&str; 8] = ["crates/", "docs/", "data/", "scripts/", "board/", "examples/", ".github/", ".ci/"];

#[test]
fn a_path_in_backquotes_exists() {
    let known = known();
    assert!(known.len() > 500, "the files are where they were");
    let mut wrong = Vec::new();
    for ending in ["md", "rs", "py", "toml"] {
        for path in files(&root(), ending)
            .into_iter()
            .filter(|path| !path.components().any(|part| part.as_os_str() == "snapshots"))
        {
            let shown = path.strip_prefix(root()).expect("below the root").display().to_string();
            for (i, line) in text(&path).lines().enumerate() {
                let comment = match ending {
                    "md" => line,
                    "rs" => line.find("//").map_or("", |at| &line[at..]),
                    _ => line.find('#').map_or("", |at| &line[at..]),
                };
                for name in names(comment).iter().filter(|name| !known.iter().any(|path| ends(path, name))) {
                    wrong.push(format!("{shown}:{}: `{name}`", i + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "these paths do not exist:\n{}", wrong.join("\n"));
}

#[test]
fn names_are_found_in_backquotes_and_braces_are_expanded() {
    assert_eq!(
        names("see `core/src/{a,b}.rs` and `x.rs`, not `a b.rs` or `run.json`"),
        ["core/src/a.rs", "core/src/b.rs", "x.rs"]
    );
    assert!(ends("crates/product/core/src/a.rs", "core/src/a.rs") && !ends("crates/score/src/a.rs", "core/src/a.rs"));
}

/// Every file and folder of the repository, from its root.
fn known() -> BTreeSet<String> {
    let root = root();
    let all = ["crates", "docs", "data", "scripts", "board", "examples", "include", ".github", ".ci"];
    let mut known: BTreeSet<String> = all.iter().flat_map(|folder| below(&root.join(folder))).collect();
    known.extend(std::fs::read_dir(&root).expect("the root").flatten().map(|e| e.path().display().to_string()));
    let prefix = format!("{}/", root.display());
    known.into_iter().map(|path| path.strip_prefix(&prefix).unwrap_or(&path).to_string()).collect()
}

fn below(folder: &std::path::Path) -> Vec<String> {
    let mut paths = vec![folder.display().to_string()];
    for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        match path.is_dir() && !path.ends_with("target") {
            true => paths.extend(below(&path)),
            false => paths.push(path.display().to_string()),
        }
    }
    paths
}

/// The paths in backquotes of a line: a name with an ending of ours and a folder before it, a source file, or a path
/// from the root.
fn names(line: &str) -> Vec<String> {
    let quoted = line.split('`').skip(1).step_by(2);
    let plain = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || "/._-{},".contains(c));
    quoted.filter(plain).flat_map(expand).filter(|name| is_path(name)).collect()
}

fn is_path(name: &str) -> bool {
    let ours = ENDINGS.iter().any(|ending| name.ends_with(ending) && name.len() > ending.len());
    let placeholder = name.split(['/', '.']).any(|part| part == "VERB");
    let from_root = FOLDERS.iter().any(|folder| name.starts_with(folder));
    !placeholder && (from_root || ours && (name.ends_with(".rs") || name.contains('/')))
}

/// `a{b,c}d` is `abd` and `acd`.
fn expand(name: &str) -> Vec<String> {
    let (Some(open), Some(close)) = (name.find('{'), name.find('}')) else { return vec![name.to_string()] };
    name[open + 1..close]
        .split(',')
        .flat_map(|part| expand(&format!("{}{part}{}", &name[..open], &name[close + 1..])))
        .collect()
}

/// Whether a path of the repository is this name, or ends with the name.
fn ends(path: &str, name: &str) -> bool {
    let name = name.trim_end_matches('/');
    path == name || path.strip_suffix(name).is_some_and(|rest| rest.ends_with('/'))
}
