//! Tools, and tests that are skipped without them.

use std::path::PathBuf;

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
