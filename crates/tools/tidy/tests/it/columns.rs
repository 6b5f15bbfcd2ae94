//! The width of a line, that of a comment too.

use coldframe_tidy::exceptions::{counts, differences};
use coldframe_tidy::{crates, files, home, root, shown, text};

/// The most characters of a line. rustfmt holds it for code only, and not where a string is longer.
const COLUMNS_MAX: usize = 120;

/// Crates with longer lines, tests included, and the number of these.
#[rustfmt::skip]
const EXCEPTIONS: &[(&str, usize)] = &[
];

#[test]
fn no_line_has_more_than_120_columns() {
    let places =
        crates().into_iter().map(|name| (home(&name), name)).chain([(root().join("board"), "board".to_owned())]);
    let mut found = counts([]);
    for (folder, name) in places {
        for path in files(&folder, "rs") {
            let long = long_lines(&text(&path));
            long.iter().for_each(|line| println!("{}:{line}", shown(&path)));
            *found.entry(name.clone()).or_default() += long.len();
        }
    }
    found.retain(|_, count| *count > 0);
    let wrong = differences(&found, EXCEPTIONS);
    assert!(wrong.is_empty(), "lines of more than {COLUMNS_MAX} columns:\n{}", wrong.join("\n"));
}

#[test]
fn columns_are_characters_and_not_bytes() {
    assert_eq!(long_lines(&format!("{}\n{}\n", "µ".repeat(120), "u".repeat(121))), [2]);
}

/// The numbers of the lines that are longer, from 1.
fn long_lines(text: &str) -> Vec<usize> {
    (1..).zip(text.lines()).filter(|(_, line)| line.chars().count() > COLUMNS_MAX).map(|(number, _)| number).collect()
}
