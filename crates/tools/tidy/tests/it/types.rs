//! Types and their methods: one name for one thing, and methods where their type is.
//!
//! `imports.rs` sees who imports whom. A method that an upper file writes for a type of a lower one would hide an
//! arrow from it: the lower file calls the method without an import.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use coldframe_tidy::exceptions::{counts, differences};
use coldframe_tidy::tokens::{tokens, without_tests};
use coldframe_tidy::types::{impls, types, Impl};
use coldframe_tidy::{crates, home, room, shown, sources, text};

/// Names that each file of a kind has: the arguments of a verb.
const ONE_A_FILE: &[(&str, &str)] = &[("cli", "Args"), ("lab-cli", "Args")];

/// Names of several types of one crate, with their number.
#[rustfmt::skip]
const NAMES_OF_SEVERAL: &[(&str, usize)] = &[
];

/// `impl` blocks that are neither in the file or folder of their type nor in that of their trait.
#[rustfmt::skip]
const ELSEWHERE: &[(&str, usize)] = &[
];

/// What a crate defines: for each type the files that define it, and its `impl` blocks.
#[derive(Default)]
struct Definitions {
    types: BTreeMap<String, Vec<PathBuf>>,
    impls: Vec<(PathBuf, Impl)>,
}

impl Definitions {
    fn add(&mut self, path: &Path, text: &str) {
        let code = without_tests(&tokens(text));
        for name in types(&code) {
            self.types.entry(name.text.to_owned()).or_default().push(path.to_owned());
        }
        self.impls.extend(impls(&code).into_iter().map(|block| (path.to_owned(), block)));
    }

    /// Blocks for a type of this crate that are elsewhere.
    fn elsewhere(&self) -> impl Iterator<Item = &(PathBuf, Impl)> {
        let in_room =
            |path: &PathBuf, name: &String| Some(self.types.get(name)?.iter().any(|home| is_in_room(path, home)));
        self.impls.iter().filter(move |(path, block)| {
            let of_trait = block.of_trait.as_ref().and_then(|name| in_room(path, name));
            in_room(path, &block.name) == Some(false) && of_trait != Some(true)
        })
    }
}

#[test]
fn a_name_of_a_type_is_unique_in_its_crate() {
    let mut found = counts([]);
    for (name, definitions) in definitions() {
        for (of, homes) in definitions.types.iter().filter(|(_, homes)| homes.len() > 1) {
            if !ONE_A_FILE.contains(&(&name, of)) {
                println!("{name} {of}: {}", homes.iter().map(|home| shown(home)).collect::<Vec<_>>().join(" "));
                found.insert(format!("{name} {of}"), homes.len());
            }
        }
    }
    let wrong = differences(&found, NAMES_OF_SEVERAL);
    assert!(wrong.is_empty(), "these names have several types of one crate:\n{}", wrong.join("\n"));
}

#[test]
fn methods_are_in_the_file_or_folder_of_their_type_or_of_their_trait() {
    let mut found = counts([]);
    for (name, definitions) in definitions() {
        for (path, block) in definitions.elsewhere() {
            println!("{}:{}: impl {}", shown(path), block.line, block.name);
            *found.entry(format!("{name} {}", block.name)).or_default() += 1;
        }
    }
    let wrong = differences(&found, ELSEWHERE);
    assert!(wrong.is_empty(), "these types have methods elsewhere:\n{}", wrong.join("\n"));
}

#[test]
fn a_type_is_at_home_in_its_file_and_in_the_folder_of_the_same_name() {
    let elsewhere = |files: &[(&str, &str)]| {
        let mut definitions = Definitions::default();
        files.iter().for_each(|(path, text)| definitions.add(Path::new(path), text));
        definitions.elsewhere().map(|(path, block)| format!("{} {}", path.display(), block.name)).collect::<Vec<_>>()
    };
    assert_eq!(
        elsewhere(&[("src/a.rs", "struct A;"), ("src/a/b.rs", "impl A {}"), ("src/c.rs", "impl A {}")]),
        ["src/c.rs A"]
    );
    assert_eq!(elsewhere(&[("src/a/mod.rs", "struct A;"), ("src/a/b.rs", "impl<T: Fn(u8)> super::A<T> {}")]), [""; 0]);
    assert_eq!(elsewhere(&[("src/lib.rs", "struct A;"), ("src/b.rs", "impl A {}")]), ["src/b.rs A"]);
    assert_eq!(elsewhere(&[("src/a.rs", "struct A;"), ("src/ab.rs", "impl A {}")]), ["src/ab.rs A"]);
    let of_trait = [("src/a.rs", "struct A<T>;"), ("src/t.rs", "trait T {} impl<'a> T for &'a mut A<u8> {}")];
    assert_eq!(elsewhere(&of_trait), [""; 0]);
    assert_eq!(
        elsewhere(&[("src/a.rs", "struct A;"), ("src/b.rs", "impl Display for A {} impl T for u8 {}")]),
        ["src/b.rs A"]
    );
}

#[test]
fn private_types_and_aliases_are_types_and_associated_ones_are_not() {
    let names = |text: &str| types(&tokens(text)).iter().map(|name| name.text.to_owned()).collect::<Vec<_>>();
    assert_eq!(
        names("pub struct A<T>(T); enum B {} trait C { type D; fn f() { struct E; } } type F = u8;"),
        ["A", "B", "C", "E", "F"]
    );
    assert_eq!(
        names("unsafe impl<T> C for A<T> { type D = u8; } fn f() -> impl C { type G = u8; } macro!(struct $x;)"),
        ["G"]
    );
}

fn definitions() -> Vec<(String, Definitions)> {
    let of = |name: String| {
        let mut definitions = Definitions::default();
        for path in sources(&home(&name).join("src")) {
            definitions.add(&path, &text(&path));
        }
        (name, definitions)
    };
    crates().into_iter().map(of).collect()
}

/// Whether a file is in the room of another: the same file, or in the folder of its name. `lib.rs` has no folder.
fn is_in_room(path: &Path, home: &Path) -> bool {
    let is_root = ["lib.rs", "main.rs"].iter().any(|name| home.ends_with(name));
    path == home || !is_root && path.with_extension("").starts_with(room(home))
}
