//! The number of lines of Rust, in all and of the product, and its limit: code is a cost.
//!
//! Run it with `--nocapture` to see the numbers.

use std::path::Path;

use coldframe_tidy::{files, root, text};

/// The most lines of all Rust files, with tests, comments and blank lines.
const LIMIT: usize = 117_000;

#[test]
fn the_tree_has_no_more_lines_of_rust_than_its_limit() {
    let all: Vec<_> = ["crates", "board"].iter().flat_map(|folder| files(&root().join(folder), "rs")).collect();
    let lines: usize = all.iter().map(|path| text(path).lines().count()).sum();
    let product: usize = all.iter().filter(|path| is_product(path)).map(|path| code_lines(&text(path))).sum();
    println!(
        "{lines} lines of Rust, at most {LIMIT}; {product} of them are code of the product, without tests and comments"
    );
    assert!(lines <= LIMIT, "{lines} lines of Rust; take some away before you add more than {LIMIT}");
}

/// Whether a file is of a crate that belongs to the program `coldframe`, and no test or benchmark.
fn is_product(path: &Path) -> bool {
    let Ok(path) = path.strip_prefix(root().join("crates/product")) else { return false };
    let path = path.to_string_lossy();
    path.contains("/src/") && !path.ends_with("tests.rs") && !path.ends_with("naive.rs")
}

/// Lines of code before a file's tests. A policy's naive twin, which no program contains, is one.
fn code_lines(text: &str) -> usize {
    let is_test = |line: &str| line.starts_with("#[cfg(test)]") || line.ends_with("mod naive {");
    let code = text.lines().map(str::trim).take_while(|line| !is_test(line));
    code.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}
