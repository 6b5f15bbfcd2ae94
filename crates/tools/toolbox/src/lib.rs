//! # coldframe-toolbox: tools that tests need from outside
//!
//! A test that needs a tool calls [`have`], and returns if the tool is missing. The test is then skipped, with a
//! message that names the tool's Debian package. With `COLDFRAME_REQUIRE_TOOLS=1`, a missing tool is a failure: use
//! this where a skipped test would go unnoticed.
#![forbid(unsafe_code)]

pub mod command;
pub mod documents;
pub mod programs;
pub mod schemas;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A program's name and the Debian package that brings it.
pub type Tool = (&'static str, &'static str);

/// GNU's C compiler.
pub const GCC: Tool = ("gcc", "gcc");
/// QEMU's user mode for this machine's programs.
pub const QEMU: Tool = ("qemu-x86_64", "qemu-user");
/// Valgrind.
pub const VALGRIND: Tool = ("valgrind", "valgrind");
/// bzip2.
pub const BZIP2: Tool = ("bzip2", "bzip2");
/// A browser without a window.
pub const CHROMIUM: Tool = ("chromium", "chromium");

/// Whether all tools are installed. If one is missing, this prints so, like [`skip`].
///
/// # Panics
/// As [`skip`].
pub fn have(tools: &[Tool]) -> bool {
    let places: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    let missing: Vec<_> = tools.iter().filter(|(name, _)| !places.iter().any(|p| p.join(name).is_file())).collect();
    for (name, package) in &missing {
        skip(&format!("{name} is missing; on Debian: apt-get install {package}"));
    }
    missing.is_empty()
}

/// Prints that a test is skipped, and why.
///
/// # Panics
/// With `COLDFRAME_REQUIRE_TOOLS=1`.
pub fn skip(why: &str) {
    eprintln!("skipped: {why}");
    let required = std::env::var("COLDFRAME_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
    assert!(!required, "COLDFRAME_REQUIRE_TOOLS=1 and {why}");
}

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

/// The program of a command, and its words. `lab` as the first word names the laboratory's program; else the first verb does.
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
    let others = ["tools", "capi", "py", "preload", "qemu-plugin"];
    let entries = |folder: &Path| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let linked = |entry: &std::fs::DirEntry| !others.contains(&entry.file_name().to_str().unwrap_or_default());
    let folders = entries(crates).filter(linked).flat_map(|folder| entries(&folder.path()));
    let mut sources = folders.filter(linked);
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

/// The document of a folder's page in a headless browser, after its scripts have run, and the messages of the
/// console; `None` without a browser.
///
/// # Panics
/// As [`skip`], and if the browser does not start.
pub fn browse(folder: &Path, page: &str) -> Option<(String, Vec<String>)> {
    if !have(&[CHROMIUM]) {
        return None;
    }
    let url = format!("file://{}", folder.join(page).display());
    let profile = format!("--user-data-dir={}", folder.join("profile").display());
    let args = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", &profile, "--dump-dom", &url];
    let output = Command::new(CHROMIUM.0).args(args).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let console = stderr.lines().filter(|line| line.contains("CONSOLE")).map(Into::into).collect();
    Some((String::from_utf8_lossy(&output.stdout).into_owned(), console))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_the_path_is_there_and_what_is_not_is_missed() {
        assert!(have(&[("sh", "dash")]));
        let required = std::env::var("COLDFRAME_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
        let answer = std::panic::catch_unwind(|| have(&[("no-such-tool-anywhere", "nothing")]));
        assert_eq!(answer.ok(), (!required).then_some(false));
    }
}
