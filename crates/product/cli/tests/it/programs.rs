//! Some of the real programs of `make programs` (scripts/programs.toml), plain and paged: output and exit code must be
//! equal.

use std::path::Path;
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

#[test]
fn a_handful_of_real_programs_does_the_same_in_less_ram() {
    if !have(&[("python3", "python3"), GCC]) {
        return;
    }
    if !Command::new("python3").args(["-c", "import tomllib"]).output().unwrap().status.success() {
        return skip("python3 is older than 3.11 and has no tomllib");
    }
    let here: Vec<&str> = HANDFUL.iter().filter(|(_, tool)| have(&[*tool])).map(|(name, _)| *name).collect();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scripts/programs.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(env!("CARGO_BIN_EXE_coldframe")).args(["--only", &here.join(",")]);
    let output = command.output().unwrap();
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{table}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(table.lines().filter(|line| line.contains(" equal ")).count(), here.len(), "{table}");
    eprintln!("{table}");
}
