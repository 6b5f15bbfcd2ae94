//! The files of a crate that become a program: without its tests and without naive twins.

use std::path::{Path, PathBuf};

use crate::tokens::{is_attribute_of_test, item, tokens, Token};
use crate::tree::{files, text};

/// The source files below a folder, except those that only a test or a naive twin declares as its module.
pub fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut paths = files(folder, "rs");
    let of_tests: Vec<PathBuf> = paths.iter().flat_map(|path| modules_of_tests(path, &text(path))).collect();
    paths.retain(|path| !of_tests.iter().any(|module| path.with_extension("").starts_with(module)));
    paths
}

/// The modules that a file declares for tests only, each as the path of its file without `.rs`.
fn modules_of_tests(path: &Path, text: &str) -> Vec<PathBuf> {
    let tokens = tokens(text);
    let folder = room(path);
    let declared = (0..tokens.len()).filter(|i| is_attribute_of_test(&tokens[*i..]));
    declared.filter_map(|i| declares_module(&tokens[i..])).map(|name| folder.join(name)).collect()
}

/// The name of the module, if a declaration `mod name;` follows the attributes.
fn declares_module<'a>(tokens: &[Token<'a>]) -> Option<&'a str> {
    let words = tokens[..item(tokens)].windows(3).find(|words| words[0].is("mod") && words[2].is(";"))?;
    Some(words[1].text)
}

/// The folder of a file's modules: that of its name; of `lib.rs`, `main.rs` and `mod.rs`, the folder in which they are.
pub fn room(path: &Path) -> PathBuf {
    match path.file_stem().and_then(|stem| stem.to_str()) {
        Some("lib" | "main" | "mod") | None => path.with_file_name("").components().collect(),
        Some(stem) => path.with_file_name(stem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_of_tests_is_found_beside_the_root_and_in_the_folder_of_another_file() {
        let modules = |path: &str, text: &str| modules_of_tests(Path::new(path), text);
        let text =
            "mod a;\n#[cfg(test)]\n#[allow(x)]\nmod b;\n#[cfg(test)]\nmod tests {}\n#[cfg(test)]\nuse c;\nmod d;";
        assert_eq!(modules("src/lib.rs", text), [Path::new("src/b")]);
        assert_eq!(modules("src/x/mod.rs", text), [Path::new("src/x/b")]);
        assert_eq!(modules("src/x.rs", text), [Path::new("src/x/b")]);
        assert_eq!(modules("src/x.rs", "#[cfg(feature = \"naive\")]\npub mod naive;"), [Path::new("src/x/naive")]);
    }
}
