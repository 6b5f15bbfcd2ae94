//! Names that say nothing, by crate.

use coldframe_tidy::names::{declared, empty_names, EMPTY};
use coldframe_tidy::tokens::{lines_of_code, tokens, without_tests, Token};
use coldframe_tidy::{crates, home, shown, sources, text};

/// The most empty names for 1,000 lines of code.
const LIMIT: usize = 10;

/// How far a row may be above what there is: lines come and go without names.
const SLACK: usize = 1;

/// Crates that have more of them, with their number for 1,000 lines, rounded up.
#[rustfmt::skip]
const EXCEPTIONS: &[(&str, usize)] = &[
    ("live", 11),
    ("plan", 17),
    ("preload", 23),
    ("recording", 16),
    ("drivers", 11),
    ("experiment", 17),
    ("figures", 33),
    ("plots", 29),
    ("py", 15),
    ("record", 11),
    ("search", 32),
    ("model", 16),
    ("soak", 11),
    ("toolbox", 18),
];

#[test]
fn a_crate_has_at_most_ten_empty_names_for_a_thousand_lines_of_code() {
    let mut wrong = Vec::new();
    for name in crates() {
        let (mut lines, mut places) = (0, Vec::new());
        for path in sources(&home(&name).join("src")) {
            let text = text(&path);
            let code = without_tests(&tokens(&text));
            lines += lines_of_code(&code);
            let place = |token: Token| format!("{}:{}: {}", shown(&path), token.line, token.text);
            places.extend(empty_names(&code).into_iter().map(place));
        }
        let found = (places.len() * 1000).div_ceil(lines);
        let excused = EXCEPTIONS.iter().find(|(known, _)| *known == name).map(|(_, limit)| *limit);
        println!("{name:12} {found:3} for 1,000 lines, {} in all", places.len());
        match excused {
            Some(_) if found <= LIMIT => wrong.push(format!("{name} has {found}: take it from the table")),
            Some(limit) if found + SLACK < limit => {
                wrong.push(format!("{name}: write {found} for {limit} in the table"))
            }
            _ if found > excused.unwrap_or(LIMIT) => {
                wrong.push(format!("{name} has {found} for 1,000 lines:\n{}", places.join("\n")));
            }
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "names out of {EMPTY:?} say nothing:\n{}", wrong.join("\n"));
}

#[test]
fn a_name_is_counted_where_it_is_declared_and_not_where_it_is_used() {
    let names = |text: &str| declared(&tokens(text)).iter().map(|name| name.text.to_owned()).collect::<Vec<_>>();
    assert_eq!(
        names("fn of<F: Fn(u8)>(&self, at: u8, (one, mut two): (u8, u8)) -> u8 { all(at.own) }"),
        ["of", "at", "one", "two"]
    );
    assert_eq!(names("let Some(at) = text.find(of) else { return all };"), ["at"]);
    assert_eq!(names("let Self { own: mine, all, .. } = self; let x: Vec<at> = y;"), ["mine", "all", "x"]);
    assert_eq!(names("for (at, of) in all {} impl A for B {}"), ["at", "of"]);
    assert_eq!(names("x.map(|at, &of: &u8| at | of); y.or_else(|| one)"), ["at", "of"]);
    assert_eq!(
        names("match all { Some(at) if at > own => at, A::B { of, at: left } => { one } None => own }"),
        ["at", "of", "left"]
    );
    assert_eq!(
        names("struct A { pub(crate) of: HashMap<u8, u8>, #[x(a = \"b\")] at: u8 } enum B { C { own: u8 }, D(u8) }"),
        ["of", "at", "own"]
    );
    assert_eq!(
        names("const OF: u8 = A { at: 1 }.at; static AT: u8 = 0; const fn all() {} x as *const u8"),
        ["OF", "AT", "all"]
    );
    let text = "const AT: u8 = 1; fn atom(most: u8, mostly: u8) {}";
    assert_eq!(empty_names(&tokens(text)).iter().map(|name| name.text).collect::<Vec<_>>(), ["AT", "most"]);
}
