//! Every Debian package that a test needs is installed by `.ci/run`, where no test may be skipped.

use std::collections::BTreeSet;

use coldframe_tidy::{code, files, root, text};

/// Whether a word can be the name of a package (Debian's policy, section 5.6.1).
fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && word.len() > 1
        && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c))
}

/// The parts of `text` between `from` and the next `to`.
fn parts<'a>(text: &'a str, from: &'a str, to: &'a str) -> impl Iterator<Item = &'a str> + 'a {
    text.match_indices(from).filter_map(move |(at, _)| text[at + from.len()..].split(to).next())
}

/// The packages in pairs `("command", "package")` of this part of a Rust file.
fn tools(part: &str) -> Vec<&str> {
    let pairs = part.split("\")").filter_map(|pair| pair.rsplit_once("\", \""));
    pairs.map(|(_, package)| package).filter(|package| is_name(package)).collect()
}

/// The package names at the start of a message, up to the first word that is not one.
fn named(message: &str) -> Vec<&str> {
    let words = message.split([' ', '"', '\'', '`', ';', ',', ')', '\n']);
    words.take_while(|word| is_name(word)).collect()
}

/// All packages that tests need: those in `have`, in a `Tool`, and in messages; each with the file that names it.
fn wanted() -> BTreeSet<(String, String)> {
    let mut packages_by_file = BTreeSet::new();
    let mut add = |file: &str, packages: Vec<&str>| {
        packages_by_file.extend(packages.into_iter().map(|package| (package.to_string(), file.to_string())));
    };
    let crates = root().join("crates");
    let tests = files(&crates, "rs").into_iter().filter(|path| {
        let path = path.strip_prefix(&crates).expect("below it").to_string_lossy();
        (path.contains("/tests/") || path.starts_with("tools/toolbox/")) && !path.starts_with("tools/tidy/")
    });
    for path in tests {
        let (file, text) = (path.display().to_string(), code(&path));
        parts(&text, "have(&[", "]) ").for_each(|part| add(&file, tools(part)));
        parts(&text, ": Tool = ", ";").for_each(|part| add(&file, tools(part)));
        for list in text.match_indices("const ").map(|(at, _)| &text[at..]) {
            let (head, body) = list.split_once(" = ").unwrap_or_default();
            if head.contains("Tool") && !head.contains('{') {
                add(&file, tools(body.split(';').next().unwrap_or_default()));
            }
        }
        parts(&text, "apt-get install ", "\n").for_each(|part| add(&file, named(part)));
    }
    let python = text(&root().join("scripts/python.sh"));
    parts(&python, "Debian's package ", "\n").for_each(|part| add("python.sh", named(part)));
    let board = text(&root().join("scripts/board.sh"));
    parts(&board, "\nstandard_library=\"", "\n").for_each(|part| add("board.sh", named(part)));
    parts(&board, " tools=\"", "\"")
        .flat_map(str::split_whitespace)
        .for_each(|tool| add("board.sh", tool.split(':').skip(1).collect()));
    packages_by_file
}

#[test]
fn what_a_test_names_as_missing_is_installed_where_nothing_may_be_skipped() {
    let run = text(&root().join(".ci/run"));
    let lists = parts(&run, "packages=\"", "\"");
    let installed: BTreeSet<&str> = lists.flat_map(str::split_whitespace).collect();
    let wanted = wanted();
    // One package for each way of naming: the search finds all of them.
    for known in
        ["g++", "qemu-user", "redis-tools", "datamash", "python3-numpy", "liburing2", "python3-venv", "rustc-web"]
    {
        assert!(wanted.iter().any(|(package, _)| package == known), "{known} is named by a test: {wanted:?}");
    }
    for (package, file) in &wanted {
        assert!(installed.contains(package.as_str()), "{file} names {package}, which .ci/run does not install");
    }
}
