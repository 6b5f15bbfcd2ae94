//! Some of the real programs of `make programs` (scripts/programs.toml), plain and paged: output and exit code must be
//! equal. And the quick test suites of `make peers`.

use std::path::{Path, PathBuf};
use std::process::Command;

use coldframe_toolbox::{have, skip, Tool, GCC};

/// Small programs of different kinds: compressors, one with threads, a database, shells, a compiler's helper, Python
/// programs. Each row has the name in programs.toml, the command and its package.
const HANDFUL: [(&str, Tool); 10] = [
    ("bzip2", ("bzip2", "bzip2")),
    ("pigz", ("pigz", "pigz")),
    ("sqlite", ("sqlite3", "sqlite3")),
    ("dash", ("dash", "dash")),
    ("bash", ("bash", "bash")),
    ("datamash", ("datamash", "datamash")),
    ("m4", ("m4", "m4")),
    ("python-pool", ("python3", "python3")),
    ("numpy", ("/usr/lib/python3/dist-packages/numpy/version.py", "python3-numpy")),
    ("perl-fork", ("perl", "perl")),
];

/// A script that reads a TOML file; `None`: it cannot run here.
fn script(name: &str) -> Option<PathBuf> {
    if !have(&[("python3", "python3"), GCC]) {
        return None;
    }
    if !Command::new("python3").args(["-c", "import tomllib"]).output().unwrap().status.success() {
        skip("python3 is older than 3.11 and has no tomllib");
        return None;
    }
    Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scripts").join(name))
}

#[test]
fn a_handful_of_real_programs_does_the_same_in_less_ram() {
    let Some(script) = script("programs.py") else { return };
    let here: Vec<&str> = HANDFUL.iter().filter(|(_, tool)| have(&[*tool])).map(|(name, _)| *name).collect();
    let mut command = Command::new("python3");
    command.arg(script).arg(env!("CARGO_BIN_EXE_coldframe")).args(["--only", &here.join(",")]);
    let output = command.output().unwrap();
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{table}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(table.lines().filter(|line| line.contains(" equal ")).count(), here.len(), "{table}");
    eprintln!("{table}");
}

/// The quick suites of `make peers` (scripts/peers.toml). SQLite's source is downloaded, so it may be missing.
const SUITES: [(&str, Tool); 5] = [
    ("cpython-mmap", ("/usr/lib/python3.11/test/test_mmap.py", "libpython3.11-testsuite")),
    ("cpython-fork", ("/usr/lib/python3.11/test/test_fork1.py", "libpython3.11-testsuite")),
    ("cpython-pipes", ("/usr/lib/python3.11/test/test_subprocess.py", "libpython3.11-testsuite")),
    ("stress-ng", ("stress-ng", "stress-ng")),
    ("sqlite", ("/usr/include/sqlite3.h", "libsqlite3-dev")),
];

#[test]
fn the_test_suites_of_other_projects_have_the_same_results_in_less_ram() {
    let Some(script) = script("peers.py") else { return };
    let here: Vec<&str> = SUITES.iter().filter(|(_, tool)| have(&[*tool])).map(|(name, _)| *name).collect();
    if here.is_empty() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("python3");
    command.arg("-B").arg(script).arg(env!("CARGO_BIN_EXE_coldframe"));
    command.args(["--only", &here.join(",")]).arg("--folder").arg(folder.path());
    let output = command.output().unwrap();
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{table}\n{}", String::from_utf8_lossy(&output.stderr));
    for line in table.lines().filter(|line| line.contains(" skipped: ")) {
        assert!(line.starts_with("sqlite "), "{table}");
        eprintln!("{line}");
    }
    let fine = |line: &&str| [" equal ", " skipped: "].iter().any(|word| line.contains(word));
    assert_eq!(table.lines().filter(fine).count(), here.len(), "{table}");
    eprintln!("{table}");
}

#[test]
fn the_search_in_memory_groups_finds_what_a_program_needs() {
    if !have(&[("python3", "python3")]) {
        return;
    }
    if !rustix::process::geteuid().is_root() || !Path::new("/sys/fs/cgroup").is_dir() {
        return skip("memory groups need root");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scripts/limit.py");
    let mut command = Command::new("python3");
    command.arg("-B").arg(script).args(["--format", "json", "--", "python3", "-c", "len(b'x' * (48 << 20))"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let size = |name: &str| found[name].as_u64().unwrap();
    let sizes = ["lives_bytes", "fast_bytes", "peak_bytes"].map(size);
    assert!(48 << 20 <= sizes[0] && sizes[2] < 80 << 20, "{sizes:?}");
    assert!(sizes.is_sorted(), "{sizes:?}");
    let runs = found["runs"].as_array().unwrap();
    let small = runs.iter().filter(|run| run["limit_bytes"].as_u64().is_some_and(|limit| limit < 48 << 20));
    assert!(small.clone().count() > 0 && small.into_iter().all(|run| run["code"] != 0), "{runs:?}");
}
