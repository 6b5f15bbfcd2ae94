//! Rules of single crates and of their files.

use coldframe_tidy::exceptions::{counts, differences};
use coldframe_tidy::tokens::{tokens, without_tests};
use coldframe_tidy::{code, crates, dependencies, files, home, root, shown, sources, text};

/// Crates that call foreign code and so need `unsafe`; each block gives its reason. `capi` takes pointers from C.
const UNSAFE_ALLOWED: &[&str] =
    &["proc", "kernel", "answer", "qemu-plugin", "live", "preload", "capi", "model", "soak"];

#[test]
fn the_core_has_no_dependency_no_std_no_unsafe_no_atomics_no_float() {
    assert_eq!(dependencies("core"), Vec::<String>::new());
    let lib = text(&root().join("crates/product/core/src/lib.rs"));
    assert!(lib.contains("#![no_std]") && lib.contains("#![forbid(unsafe_code)]"));
    for path in files(&root().join("crates/product/core/src"), "rs") {
        let code = code(&path);
        for word in ["std::", "unsafe ", "Atomic", "sync::", "f32", "f64", "HashMap", "extern crate std"] {
            // `core::` and `alloc::` are fine; `std::` is not.
            let uses = code
                .match_indices(word)
                .any(|(at, _)| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
            assert!(!uses, "{} uses `{word}`", path.display());
        }
    }
}

/// Only a system's own file names the system, and the study of its paper. All other code uses the table of systems.
#[test]
fn systems_are_named_in_their_files_and_nowhere_else() {
    let systems = root().join("crates/lab/experiment/src/systems");
    let own = files(&systems, "rs").into_iter().filter(|path| text(path).contains("const SYSTEM: System"));
    let names: Vec<String> = own.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    assert!(names.len() >= 6 && names.iter().any(|name| name == "swl"), "{names:?}");
    let mut know = Vec::new();
    for path in files(&root().join("crates"), "rs") {
        let (shown, code) = (path.display().to_string(), code(&path));
        let figures = path.starts_with(root().join("crates/lab/figures"));
        // The kernel's own device has the name of the system that simulates it.
        let kernel = path.starts_with(root().join("crates/product/kernel"));
        let at_home = figures || kernel || path.starts_with(&systems) || shown.ends_with("experiment/src/systems.rs");
        if at_home || !shown.contains("/src/") || shown.ends_with("tests.rs") {
            continue;
        }
        let code = code.split("#[cfg(test)]").next().unwrap_or_default().to_string();
        let named = |name: &String| {
            let parts = [format!("{name}::"), format!("\"{name}\""), format!("systems::{name}")];
            parts.iter().any(|part| code.contains(part.as_str()))
        };
        if names.iter().any(named) {
            know.push(shown);
        }
    }
    assert!(know.is_empty(), "these files name a system: {know:#?}");
}

/// A policy, a verb: one file, and a row in the one table that all others read.
#[test]
fn a_policy_and_a_verb_are_one_file_and_one_row() {
    for (folder, is_one, table, row, others) in [
        (
            "product/core/src/policy",
            "const SPEC: PolicySpec",
            "product/core/src/policy.rs",
            "::SPEC",
            "product/core/src",
        ),
        ("product/cli/src", "impl Verb<Failure> for Args", "product/cli/src/main.rs", "Args>(", "product/cli/src"),
    ] {
        let crates = root().join("crates");
        let (folder, table) = (crates.join(folder), crates.join(table));
        let own: Vec<_> = files(&folder, "rs").into_iter().filter(|path| code(path).contains(is_one)).collect();
        assert!(own.len() >= 8, "{own:?}");
        for path in own {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let rows =
                code(&table).lines().filter(|line| line.contains(&format!("{name}::")) && line.contains(row)).count();
            assert!(rows >= 1, "{} has no row in {}", path.display(), table.display());
            for other in files(&crates.join(others), "rs").iter().filter(|other| **other != path && **other != table) {
                let names =
                    code(other).contains(&format!("crate::{name}::")) || code(other).contains(&format!("\"{name}\""));
                assert!(!names, "{} names {name}; ask the table", other.display());
            }
        }
    }
}

/// The compiler's lint makes a function that is unsafe mark its unsafe operations as others do, so that they are seen.
#[test]
fn unsafe_stays_where_it_is_allowed_and_says_why() {
    for name in crates() {
        each_unsafe_says_why(&home(&name), UNSAFE_ALLOWED.contains(&name.as_str()));
    }
    for name in ["image", "programs", "reftrace"] {
        each_unsafe_says_why(&root().join("board").join(name), true);
    }
}

fn each_unsafe_says_why(member: &std::path::Path, allowed: bool) {
    let manifest: toml::Table = text(&member.join("Cargo.toml")).parse().expect("a manifest is TOML");
    let lint = manifest.get("lints").and_then(|lints| lints.get("rust")?.get("unsafe_op_in_unsafe_fn")?.as_str());
    let sources = files(&member.join("src"), "rs");
    assert!(!sources.is_empty(), "{} has no sources", member.display());
    for path in sources {
        let text = text(&path);
        let lines: Vec<&str> = text.lines().collect();
        for (i, line) in lines.iter().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            let place = || format!("{}:{}", path.display(), i + 1);
            let function = line.contains("unsafe fn") || line.contains("unsafe extern");
            if function || line.contains("unsafe {") || line.contains("unsafe impl") {
                assert!(allowed, "{}: unsafe is not allowed in this crate", place());
            }
            assert!(!function || lint == Some("deny"), "{}: needs the lint unsafe_op_in_unsafe_fn = \"deny\"", place());
            let reason = lines[i.saturating_sub(6)..=i].iter().any(|l| l.contains("SAFETY") || l.contains("Safety"));
            let is_fine = reason || !(line.contains("unsafe {") || line.contains("unsafe impl"));
            assert!(is_fine, "{}: unsafe without `SAFETY:` and its reason", place());
        }
    }
}

/// What the board may import from this repository: the core unchanged, and the journal.
#[test]
fn the_board_imports_the_core_unchanged_and_the_journal() {
    let manifest = text(&root().join("board/image/Cargo.toml"));
    let manifest: toml::Table = manifest.parse().expect("board/image/Cargo.toml is TOML");
    let dependencies = manifest["dependencies"].as_table().expect("a table");
    assert_eq!(dependencies.keys().collect::<Vec<_>>(), ["coldframe-core", "coldframe-journal"]);
    assert_eq!(dependencies["coldframe-core"], toml::toml! { path = "../../crates/product/core" }.into());
}

/// Code on the path of a fault does not name the emulator: `quirks.rs` handles its peculiarities, and the two drivers
/// in `chip` know its devices.
#[test]
fn the_boards_way_of_a_fault_knows_no_emulator() {
    for name in ["fault", "machine", "device", "mmu", "space"] {
        let path = root().join(format!("board/image/src/{name}.rs"));
        assert!(!code(&path).to_lowercase().contains("qemu"), "{} names the emulator", path.display());
    }
}

/// What a file of a program may not contain, in tokens: it has its arguments, one call and one print, and a room below
/// computes, reads `/proc` and starts programs.
const NOT_IN_A_PROGRAM: [&str; 4] = ["as f64", "\"/proc", "process :: Command", "read_to_string"];

/// Files of a program that contain it today, and how often.
#[rustfmt::skip]
const DECIDING_FILES: &[(&str, usize)] = &[
];

#[test]
fn a_file_of_a_program_computes_nothing_reads_no_proc_and_starts_no_program() {
    let mut found = counts([]);
    for program in ["cli", "lab-cli"] {
        for path in sources(&home(program).join("src")) {
            let text = text(&path);
            let code: Vec<_> = without_tests(&tokens(&text)).iter().map(|token| token.text).collect();
            let count: usize = NOT_IN_A_PROGRAM.iter().map(|words| code.join(" ").matches(words).count()).sum();
            if count > 0 {
                found.insert(shown(&path), count);
            }
        }
    }
    let wrong = differences(&found, DECIDING_FILES);
    assert!(wrong.is_empty(), "a room below decides: no {NOT_IN_A_PROGRAM:?}\n{}", wrong.join("\n"));
}

#[test]
fn every_source_file_opens_with_what_it_is_for() {
    for path in files(&root().join("crates"), "rs").into_iter().chain(files(&root().join("board"), "rs")) {
        let text = text(&path);
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        assert!(first.starts_with("//!"), "{} does not say what it is for", path.display());
    }
}

#[test]
fn every_number_of_a_sheet_stands_on_a_line_with_its_source() {
    for path in files(&root().join("data/sheets"), "toml") {
        for (i, line) in text(&path).lines().enumerate() {
            if line.contains("value =") {
                assert!(line.contains("source = \""), "{}:{}: a number without source", path.display(), i + 1);
            }
        }
    }
}
