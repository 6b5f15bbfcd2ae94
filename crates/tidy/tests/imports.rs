//! Imports within the core go one way.
//!
//! A file and the folder of the same name are one room. Within a room, imports are free: a table may import its rows,
//! and a row the type of its table. Of the rooms in one folder, no two may import each other, directly or through
//! others.

use std::collections::{BTreeMap, BTreeSet};

use coldframe_tidy::{code, files, root};

/// A module: its names, from the root of the crate.
type Path = Vec<String>;
type Edges = BTreeMap<Path, BTreeSet<Path>>;

#[test]
fn the_core_has_no_circle_of_files() {
    let src = root().join("crates/core/src");
    let mut modules = BTreeMap::new();
    for file in files(&src, "rs").iter().filter(|file| !file.ends_with("src/lib.rs")) {
        let inner = file.strip_prefix(&src).expect("below src").with_extension("");
        modules.insert(inner.iter().map(|name| name.to_string_lossy().into_owned()).collect(), code(file));
    }
    assert!(modules.len() > 50, "the core's files are where they were");
    assert_eq!(circles(&edges(&modules)), Edges::new(), "these files import each other in a circle");
}

#[test]
fn circles_are_found_through_folders_braces_and_names_passed_on() {
    let found = |files: &[(&str, &str)]| {
        let split = |path: &str| path.split('/').map(String::from).collect();
        let modules = files.iter().map(|(path, code)| (split(path), code.to_string())).collect();
        circles(&edges(&modules)).into_keys().map(|path| path.join("/")).collect::<Vec<_>>()
    };
    assert_eq!(found(&[("a", "use crate::b::B;"), ("b", ""), ("b/c", "use super::B;")]), [""; 0]);
    assert_eq!(found(&[("a", "use crate::b::B;"), ("b", "mod c;"), ("b/c", "use crate::a::A;")]), ["a", "b"]);
    assert_eq!(found(&[("a", "use crate::{c, b::{B, D}};"), ("b", "fn f(_: crate::a::A) {}"), ("c", "")]), ["a", "b"]);
    let passed_on = [("p", "pub use x::{X, Z};"), ("p/x", "use super::y::Y;"), ("p/y", "use super::Z;")];
    assert_eq!(found(&passed_on), ["p/x", "p/y"]);
}

/// The imports between the rooms of one folder.
fn edges(modules: &BTreeMap<Path, String>) -> Edges {
    let passed_on: BTreeMap<Path, Path> =
        modules.iter().flat_map(|(path, code)| passed_on(modules, path, code)).collect();
    let mut edges = Edges::new();
    for (from, code) in modules {
        for import in imports(modules, from, code) {
            let to = owner(modules, passed_on.get(&import).unwrap_or(&import));
            assert!(!to.is_empty(), "{} takes {} by way of lib.rs", from.join("/"), import.join("::"));
            let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if common < from.len().min(to.len()) {
                edges.entry(from[..=common].to_vec()).or_default().insert(to[..=common].to_vec());
            }
        }
    }
    edges
}

/// The rooms that are part of a circle: rooms without imports, and rooms that no other room imports, are removed until
/// nothing changes.
fn circles(edges: &Edges) -> Edges {
    let mut left = edges.clone();
    loop {
        let before = left.len();
        let needed: BTreeSet<Path> = left.values().flatten().cloned().collect();
        left.retain(|from, _| needed.contains(from));
        let needs: BTreeSet<Path> = left.keys().cloned().collect();
        left.values_mut().for_each(|tos| tos.retain(|to| needs.contains(to)));
        left.retain(|_, tos| !tos.is_empty());
        if left.len() == before {
            return left;
        }
    }
}

/// The module that defines a name.
fn owner(modules: &BTreeMap<Path, String>, name: &[String]) -> Path {
    let len = (0..=name.len()).rev().find(|len| modules.contains_key(&name[..*len]));
    name[..len.unwrap_or(0)].to_vec()
}

/// Names that a parent re-exports from its children: the name in the parent, and the name in the child.
fn passed_on(modules: &BTreeMap<Path, String>, parent: &Path, code: &str) -> Vec<(Path, Path)> {
    let names = code.match_indices("use ").flat_map(|(at, word)| names(&code[at + word.len()..]));
    let children =
        names.map(|name| [parent.clone(), name].concat()).filter(|path| owner(modules, path).len() > parent.len());
    let here = |path: &Path| [parent.clone(), vec![path.last().expect("a name").clone()]].concat();
    children
        .map(|path| (here(&path), path))
        .filter(|(here, path)| here != path && !modules.contains_key(here))
        .collect()
}

/// All names that a module imports from the root or from its parents.
fn imports(modules: &BTreeMap<Path, String>, module: &Path, code: &str) -> Vec<Path> {
    let starts = |word: &'static str| {
        let whole = |at: &usize| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
        code.match_indices(word).map(|(at, _)| at).filter(whole)
    };
    let from_root = starts("crate::").flat_map(|at| names(&code[at + "crate::".len()..]));
    let from_parents = starts("super::").flat_map(|at| {
        let mut rest = &code[at..];
        let mut base = module.as_slice();
        while let Some(next) = rest.strip_prefix("super::") {
            (rest, base) = (next, &base[..base.len().saturating_sub(1)]);
        }
        names(rest).into_iter().map(move |name| [base, &name].concat())
    });
    // In a file at the top, `super` is lib.rs; in a module inside the file, `super` is the file itself.
    from_root.chain(from_parents.filter(|path| !owner(modules, path).is_empty())).collect()
}

/// Expands a path: `a::{b, c::D}` becomes `a::b` and `a::c::D`.
fn names(text: &str) -> Vec<Path> {
    let len = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let (first, rest) = text.split_at(len);
    let inner = match (first, rest.strip_prefix("::")) {
        ("", _) if text.starts_with('{') => return entries(text).into_iter().flat_map(names).collect(),
        ("", _) => return vec![Vec::new()],
        (_, Some(rest)) => names(rest),
        (_, None) => vec![Vec::new()],
    };
    inner.into_iter().map(|path| [vec![first.to_string()], path].concat()).collect()
}

/// The entries between braces, split at commas.
fn entries(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0, 1, Vec::new());
    for (at, c) in text.char_indices() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if (c == ',' && depth == 1) || depth == 0 {
            found.push(text[start..at].trim());
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    found.retain(|entry| !entry.is_empty());
    found
}
