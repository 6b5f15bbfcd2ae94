//! Who imports whom: FLOORS, the manifests and ARCHITECTURE.md say the same.

use coldframe_tidy::tokens::tokens;
use coldframe_tidy::{crates, crates_of, dependencies, files, home, root, text};

/// What each crate imports from this repository, in the order of ARCHITECTURE.md's tables. A crate that is not listed
/// fails the test: add it to a floor.
const FLOORS: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("proc", &[]),
    ("journal", &["core"]),
    ("recording", &["core"]),
    ("sheet", &["core"]),
    ("store", &["recording"]),
    ("lane", &["core", "sheet", "journal"]),
    ("live", &["core", "journal", "recording"]),
    ("kernel", &["proc"]),
    ("preload", &["proc", "recording", "live"]),
    ("capi", &["live"]),
    ("answer", &["core", "sheet", "recording", "proc", "store", "lane", "live", "kernel"]),
    ("show", &["core", "sheet", "store", "answer"]),
    ("terminal", &["store", "answer", "show"]),
    ("cli", &["answer", "live", "sheet", "show", "store", "terminal"]),
    // The laboratory.
    ("formats", &["store"]),
    ("drivers", &["core", "journal", "store", "formats", "lane"]),
    ("record", &["proc", "store", "answer"]),
    ("qemu-plugin", &[]),
    ("experiment", &["core", "sheet", "store", "formats", "lane", "drivers"]),
    ("search", &["core", "sheet", "recording", "store", "lane", "drivers", "experiment"]),
    ("plots", &["core", "sheet", "store", "formats", "lane", "drivers", "experiment", "search", "answer", "show"]),
    ("figures", &["core", "sheet", "journal", "store", "formats", "lane", "drivers", "experiment", "show", "plots"]),
    (
        "lab-cli",
        &[
            "core",
            "sheet",
            "journal",
            "store",
            "formats",
            "live",
            "drivers",
            "record",
            "experiment",
            "search",
            "answer",
            "show",
            "terminal",
            "plots",
            "figures",
        ],
    ),
    ("py", &["core", "sheet", "store", "experiment", "search", "plots"]),
    // Tools.
    ("soak", &["core", "live", "proc"]),
    ("model", &[]),
    ("fuzz", &["core", "sheet", "journal", "store", "formats", "experiment"]),
    ("tidy", &[]),
    ("toolbox", &[]),
];

#[test]
fn a_crate_imports_what_its_floor_allows_and_all_of_it() {
    for name in crates() {
        let (_, allowed) = FLOORS
            .iter()
            .find(|(known, _)| *known == name)
            .unwrap_or_else(|| panic!("{name} has no floor; add it to FLOORS and to ARCHITECTURE.md"));
        let found = dependencies(&name);
        let found: Vec<_> = found.iter().filter_map(|dependency| dependency.strip_prefix("coldframe-")).collect();
        let more = found.iter().find(|room| !allowed.contains(room));
        assert_eq!(more, None, "{name} may not import this");
        let fewer = allowed.iter().find(|room| !found.contains(room));
        assert_eq!(fewer, None, "{name} does not import this; take it from FLOORS and from ARCHITECTURE.md");
    }
}

#[test]
fn the_sources_of_a_crate_use_each_of_its_dependencies() {
    let mut unused = Vec::new();
    for name in crates() {
        let sources: Vec<String> = files(&home(&name).join("src"), "rs").iter().map(|path| text(path)).collect();
        let is_used = |word: &str| sources.iter().any(|text| tokens(text).iter().any(|token| token.is(word)));
        let found = dependencies(&name).into_iter().filter(|dependency| !is_used(&dependency.replace('-', "_")));
        unused.extend(found.map(|dependency| format!("{name}: {dependency}")));
    }
    assert!(unused.is_empty(), "take these from the manifest: {unused:#?}");
}

/// Rows of ARCHITECTURE.md's tables of rooms say the same as [`FLOORS`], and imports go down.
#[test]
fn architecture_has_a_row_for_each_crate_with_its_imports_and_all_are_on_lower_floors() {
    let rows = rows(&text(&root().join("ARCHITECTURE.md")));
    let floor = |room: &str| rows.iter().find(|(known, ..)| known == room).and_then(|(_, floor, _)| *floor);
    for (name, allowed) in FLOORS {
        let row = rows.iter().find(|(known, ..)| known == name);
        let (_, own_floor, imports) = row.unwrap_or_else(|| panic!("ARCHITECTURE.md has no row for `{name}`"));
        assert_eq!(imports, allowed, "ARCHITECTURE.md's row of `{name}` and FLOORS differ");
        // Tools are on no floor: they may import every room.
        for room in imports.iter().filter(|_| own_floor.is_some()) {
            assert!(floor(room) < *own_floor, "`{name}` imports `{room}`, which is on no lower floor");
        }
    }
}

/// The rooms of a table: name, floor if it has one, and the rooms that it may import.
fn rows(page: &str) -> Vec<(String, Option<usize>, Vec<String>)> {
    let mut rows = Vec::new();
    for line in page.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, floor, names, _, imports, ..] = cells[..] else { continue };
        let imports = imports.split(", ").filter(|room| !["", "nothing"].contains(room)).map(String::from).collect();
        let imports: Vec<String> = imports;
        rows.extend(
            names.split('`').skip(1).step_by(2).map(|name| (name.to_owned(), floor.parse().ok(), imports.clone())),
        );
    }
    rows
}

#[test]
fn a_row_of_a_table_names_one_room_or_several() {
    let head = "| floor | room | holds | may import |\n|---|---|---|---|\n";
    let page = format!("{head}| 1 | `a` | x, y | b, c | |\n| - | `d`, `e` | | nothing | |");
    let row =
        |name: &str, floor, imports: &[&str]| (name.to_owned(), floor, imports.iter().map(|i| i.to_string()).collect());
    assert_eq!(rows(&page), [row("a", Some(1), &["b", "c"]), row("d", None, &[]), row("e", None, &[])]);
}

#[test]
fn the_product_imports_no_room_of_the_laboratory() {
    let (product, laboratory) = (crates_of("product"), crates_of("lab"));
    for (name, allowed) in FLOORS.iter().filter(|(name, _)| product.iter().any(|room| room == name)) {
        let found = allowed.iter().find(|room| laboratory.iter().any(|other| other == *room));
        assert_eq!(found, None, "crates/{name} is of the product and may not import a room of the laboratory");
    }
}
