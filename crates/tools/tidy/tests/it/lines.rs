//! Lines of code by crate, against a table: code is a cost. Tests, comments and blank lines are free.

use coldframe_tidy::tokens::{lines_of_code, tokens, without_tests};
use coldframe_tidy::{crates, crates_of, home, sources, text, PARTS};

/// The most lines of code of each crate. Who needs more takes something away, or says in the commit why not.
#[rustfmt::skip]
const LIMITS: &[(&str, usize)] = &[
    ("answer", 12_890),
    ("capi", 240),
    ("cli", 1_300),
    ("core", 5_360),
    ("journal", 780),
    ("kernel", 2_690),
    ("lane", 1_560),
    ("live", 10_480),
    ("preload", 4_110),
    ("proc", 1_070),
    ("recording", 320),
    ("sheet", 1_300),
    ("show", 3_890),
    ("store", 2_310),
    ("terminal", 360),
    ("drivers", 3_340),
    ("experiment", 4_690),
    ("figures", 3_830),
    ("formats", 2_830),
    ("lab-cli", 1_950),
    ("plots", 1_290),
    ("py", 410),
    ("qemu-plugin", 730),
    ("record", 1_150),
    ("search", 1_540),
    ("fuzz", 230),
    ("model", 330),
    ("soak", 790),
    ("tidy", 530),
    ("toolbox", 400),
];

/// The most lines of code of the product and of the laboratory, and how many they may have until they are that few.
const SUMS: &[(&str, usize, usize)] = &[("product", 39_400, 48_580), ("lab", 20_000, 21_720)];

#[test]
fn each_crate_has_no_more_lines_of_code_than_its_row_and_each_part_no_more_than_its_sum() {
    let mut wrong = Vec::new();
    for name in crates() {
        let lines = code_lines(&name);
        match LIMITS.iter().find(|(known, _)| *known == name) {
            None => wrong.push(format!("{name} has {lines} lines of code and no row")),
            Some((_, limit)) if lines > *limit => {
                wrong.push(format!("{name} has {lines} lines of code, at most {limit}"))
            }
            Some((_, limit)) => println!("{name:12} {lines:6} of {limit}"),
        }
    }
    let gone = LIMITS.iter().filter(|(name, _)| !crates().iter().any(|known| known == name));
    wrong.extend(gone.map(|(name, _)| format!("{name} is no crate; take its row away")));
    for part in PARTS {
        let lines: usize = crates_of(part).iter().map(|name| code_lines(name)).sum();
        println!("{part:12} {lines:6} lines of code");
        let Some((_, asked, today)) = SUMS.iter().find(|(known, ..)| *known == part) else { continue };
        if lines > *asked.max(today) {
            wrong.push(format!("{part} has {lines} lines of code, at most {}", asked.max(today)));
        }
        if today > asked && lines <= *asked {
            wrong.push(format!("{part} has {lines} lines of code: write {asked} for {today}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn code_is_counted_without_comments_blank_lines_tests_and_naive_twins() {
    let count = |text: &str| lines_of_code(&without_tests(&tokens(text)));
    assert_eq!(count("//! Its contract.\n\n/// A sum.\nfn f() {\n    /* no\n code */\n    g(); // two\n}\n"), 3);
    assert_eq!(count("let text = \"one\n\n  two\";\n"), 2);
    assert_eq!(count("#[cfg(test)]\nmod tests {\n    fn f() {}\n}\nfn after() {}\n"), 1);
    assert_eq!(count("#[cfg(test)]\nmod claims;\nfn after() {}\n"), 1);
    assert_eq!(count("#[cfg(any(test, feature = \"fake\"))]\npub mod fake;\nfn after() {}\n"), 1);
    assert_eq!(count("struct A {\n    #[cfg(test)]\n    b: u8,\n    c: u8,\n}\n"), 3);
    assert_eq!(
        count("#[cfg(feature = \"naive\")]\npub mod naive {\n    fn f() {}\n}\n#[cfg(unix)]\nfn after() {}\n"),
        2
    );
}

fn code_lines(name: &str) -> usize {
    let lines = |path: &std::path::PathBuf| lines_of_code(&without_tests(&tokens(&text(path))));
    sources(&home(name).join("src")).iter().map(lines).sum()
}
