//! # coldframe-toolbox: tools that tests need from outside
//!
//! A test that needs a tool calls [`have`], and returns if the tool is missing. The test is then skipped, with a
//! message that names the tool's Debian package. With `COLDFRAME_REQUIRE_TOOLS=1`, a missing tool is a failure: use
//! this where a skipped test would go unnoticed.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Makes sure that the program `coldframe-papers`, which `coldframe` starts from its own folder, is there and not older
/// than its sources: cargo builds programs for the tests of their own crate only.
///
/// # Panics
/// If it does not build.
pub fn papers() {
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let sources = ["core", "device", "journal", "trace", "sim", "experiment", "show", "study"]
        .map(|name| newest(&crates.join(name)));
    let built = std::fs::metadata(target.join("debug/coldframe-papers")).and_then(|file| file.modified());
    if built.is_ok_and(|built| sources.iter().all(|source| *source < built)) {
        return;
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "-p", "coldframe-figures", "--target-dir"]).arg(target);
    assert!(cargo.current_dir(crates).status().unwrap().success(), "coldframe-papers does not build");
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
