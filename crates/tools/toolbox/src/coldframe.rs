//! The two programs and the shared libraries, built for a test of another crate.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The program that has the first verb of these words: `coldframe-lab` for those of the laboratory, else `coldframe`.
///
/// # Panics
/// As [`program`].
pub fn program_of<S: AsRef<str>>(words: &[S]) -> PathBuf {
    static PRODUCT: OnceLock<PathBuf> = OnceLock::new();
    static LABORATORY: OnceLock<PathBuf> = OnceLock::new();
    let verb = words.iter().map(AsRef::as_ref).find(|word| !word.starts_with('-')).unwrap_or_default();
    match LABORATORY_VERBS.contains(&verb) {
        true => LABORATORY.get_or_init(|| program("coldframe-lab")).clone(),
        false => PRODUCT.get_or_init(|| program("coldframe")).clone(),
    }
}

const LABORATORY_VERBS: [&str; 10] =
    ["trace", "sim", "advise", "replay", "report", "papers", "teach", "generate", "devices", "policies"];

/// The program of a command, and its words. `lab` as the first word names the laboratory's program; else the first verb
/// does.
///
/// # Panics
/// As [`program`].
pub fn command_of(words: &[String]) -> (PathBuf, &[String]) {
    match words {
        [first, rest @ ..] if first == "lab" => (program_of(&["sim"]), rest),
        _ => (program_of(words), words),
    }
}

/// The verbs that a help lists, under one heading or several: lines of two blanks, a name and a sentence.
pub fn verbs(help: &str) -> Vec<String> {
    let verb = |line: &str| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        name.starts_with(|c: char| c.is_ascii_lowercase()).then(|| name.to_owned())
    };
    help.lines().take_while(|line| *line != "Examples:").filter_map(verb).filter(|verb| verb != "help").collect()
}

/// The program `coldframe` or `coldframe-lab`, built now if it is older than its sources: cargo builds programs for the
/// tests of their own crate only.
///
/// # Panics
/// If it does not build.
pub fn program(name: &str) -> PathBuf {
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let program = target.join("debug").join(name);
    let others = ["capi", "py", "preload", "qemu-plugin"];
    let parts = ["product", "lab"].map(|part| std::fs::read_dir(crates.join(part)).unwrap());
    let folders = parts.into_iter().flatten().map(|entry| entry.unwrap());
    let mut sources = folders.filter(|entry| !others.contains(&entry.file_name().to_str().unwrap_or_default()));
    let built = std::fs::metadata(&program).and_then(|file| file.modified());
    if built.is_ok_and(|built| sources.all(|folder| newest(&folder.path().join("src")) < built)) {
        return program;
    }
    let package = if name == "coldframe" { "coldframe-cli" } else { name };
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "-p", package, "--target-dir"]).arg(target);
    assert!(cargo.current_dir(crates).status().unwrap().success(), "{name} does not build");
    program
}

/// When a file of this folder was last written.
fn newest(folder: &Path) -> std::time::SystemTime {
    let of = |entry: std::fs::DirEntry| match entry.metadata().unwrap() {
        kind if kind.is_dir() => newest(&entry.path()),
        file => file.modified().unwrap(),
    };
    std::fs::read_dir(folder).unwrap().map(|entry| of(entry.unwrap())).max().unwrap_or(std::time::UNIX_EPOCH)
}

/// The shared library `file` of `package`, optimized. It is built now if it is out of date, since cargo does not
/// promise to build one for tests.
///
/// # Panics
/// If it does not build.
pub fn shared_library(package: &str, file: &str) -> PathBuf {
    // .../target/debug/deps/this-test
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned();
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "-p", package, "--target-dir"])
        .arg(&target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(status.unwrap().success(), "{package} does not build");
    target.join("release").join(file)
}
