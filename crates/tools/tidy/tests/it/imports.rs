//! Imports within a crate go one way.
//!
//! A file and the folder of the same name are one room. Within a room, imports are free: a table may import its rows,
//! and a row the type of its table. Of the rooms in one folder, no two may import each other, directly or through
//! others. What a parent passes on belongs to the room that defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::successors;
use std::path::{Path as File, PathBuf};

use coldframe_tidy::{code, crates, home};

/// A module: its names, from the root of the crate.
type Path = Vec<String>;
type Edges = BTreeMap<Path, BTreeSet<Path>>;

/// No name is passed on as often as this.
const PASSED_ON_MAX: usize = 9;

#[test]
fn no_crate_has_a_circle_of_files() {
    let mut all = BTreeMap::new();
    for name in &crates() {
        for root in roots(&home(name).join("src")) {
            let mut modules = BTreeMap::new();
            load(&root, root.parent().expect("a folder"), Path::new(), &mut modules);
            assert!(name != "core" || modules.len() > 50, "the core's files are where they were");
            all.insert(root, circles(&edges(&modules, name != "core")));
        }
    }
    all.retain(|_, circles| !circles.is_empty());
    assert_eq!(all, BTreeMap::new(), "these files import each other in a circle");
}

#[test]
fn circles_are_found_through_folders_braces_and_names_passed_on() {
    let in_circles = |files: &[(&str, &str)]| {
        let split = |path: &str| path.split('/').filter(|name| !name.is_empty()).map(String::from).collect();
        let modules = files.iter().map(|(path, code)| (split(path), code.to_string())).collect();
        circles(&edges(&modules, true)).into_keys().map(|path| path.join("/")).collect::<Vec<_>>()
    };
    assert_eq!(in_circles(&[("a", "use crate::b::B;"), ("b", ""), ("b/c", "use super::B;")]), [""; 0]);
    assert_eq!(in_circles(&[("a", "use crate::b::B;"), ("b", "mod c;"), ("b/c", "use crate::a::A;")]), ["a", "b"]);
    assert_eq!(
        in_circles(&[("a", "use crate::{c, b::{B, D}};"), ("b", "fn f(_: crate::a::A) {}"), ("c", "")]),
        ["a", "b"]
    );
    let passed_on = [("p", "pub use x::{X, Z};"), ("p/x", "use super::y::Y;"), ("p/y", "use super::Z;")];
    assert_eq!(in_circles(&passed_on), ["p/x", "p/y"]);
    let twice =
        [("", "pub use crate::p::Z;"), ("p", "pub use x::Z;"), ("p/x", "use super::y::Y;"), ("p/y", "use crate::Z;")];
    assert_eq!(in_circles(&twice), ["p/x", "p/y"]);
    let by_root = [("", "mod a; mod b; pub use a::{A};"), ("a", "use super::b::B;"), ("b", "use crate::A;")];
    assert_eq!(in_circles(&by_root), ["a", "b"]);
}

/// The files that a library or a program begins with.
fn roots(src: &File) -> Vec<PathBuf> {
    let bins = std::fs::read_dir(src.join("bin")).into_iter().flatten().flatten().map(|entry| entry.path());
    let bins = bins.map(|bin| if bin.is_dir() { bin.join("main.rs") } else { bin });
    [src.join("lib.rs"), src.join("main.rs")].into_iter().chain(bins).filter(|root| root.is_file()).collect()
}

/// Reads a module and those that it declares. Their files are in `folder`, or where `#[path]` says.
fn load(file: &File, folder: &File, path: Path, modules: &mut BTreeMap<Path, String>) {
    let code = code(file);
    let mut place = None;
    for line in code.lines().map(str::trim) {
        if let Some(path) = line.strip_prefix("#[path = \"") {
            place = path.strip_suffix("\"]");
        }
        let declared = line.strip_suffix(';').and_then(|line| line.split_once("mod "));
        let Some((_, name)) = declared.filter(|(before, _)| before.is_empty() || before.starts_with("pub")) else {
            continue;
        };
        let (alone, inner) = (folder.join(format!("{name}.rs")), folder.join(name));
        let (file, inner) = match place.take().map(|place| file.with_file_name(place)) {
            Some(file) => (file.clone(), file.with_file_name("")),
            None if alone.is_file() => (alone, inner),
            None => (inner.join("mod.rs"), inner),
        };
        load(&file, &inner, [path.clone(), vec![name.to_owned()]].concat(), modules);
    }
    modules.entry(path).or_default().push_str(&code);
}

/// The imports between the rooms of one folder. Whether lib.rs may be on their way is up to `by_root`.
fn edges(modules: &BTreeMap<Path, String>, by_root: bool) -> Edges {
    let passed_on: BTreeMap<Path, Path> =
        modules.iter().flat_map(|(path, code)| passed_on(modules, path, code)).collect();
    let mut edges = Edges::new();
    for (from, code) in modules {
        for import in imports(modules, from, code, by_root) {
            let at_root = owner(modules, &import).is_empty();
            assert!(by_root || !at_root, "{} takes {} by way of lib.rs", from.join("/"), import.join("::"));
            let names = successors(Some(&import), |name| passed_on.get(*name));
            let to = owner(modules, names.take(PASSED_ON_MAX).last().expect("the name itself"));
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

/// Names that a module has from other modules: the name in this one, and the name in the other.
fn passed_on(modules: &BTreeMap<Path, String>, module: &Path, code: &str) -> Vec<(Path, Path)> {
    let names = code.match_indices("use ").flat_map(|(at, word)| names(&code[at + word.len()..]));
    let absolute = |name: Path| match name.first().map(String::as_str) {
        Some("crate") => name[1..].to_vec(),
        Some("self") => [module, &name[1..]].concat(),
        _ => [module.clone(), name].concat(),
    };
    let here = |path: &Path| path.last().map(|name| [module.clone(), vec![name.clone()]].concat());
    let pairs = names.map(absolute).filter_map(|path| Some((here(&path)?, path)));
    pairs
        .filter(|(here, path)| here != path && !modules.contains_key(here))
        .filter(|(_, path)| !owner(modules, path).is_empty() && owner(modules, path) != *module)
        .collect()
}

/// All names that a module imports from the root or from its parents.
fn imports(modules: &BTreeMap<Path, String>, module: &Path, code: &str, by_root: bool) -> Vec<Path> {
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
    from_root.chain(from_parents.filter(|path| by_root || !owner(modules, path).is_empty())).collect()
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
    let (mut depth, mut start, mut entries) = (0, 1, Vec::new());
    for (at, c) in text.char_indices() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if (c == ',' && depth == 1) || depth == 0 {
            entries.push(text[start..at].trim());
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    entries.retain(|entry| !entry.is_empty());
    entries
}
