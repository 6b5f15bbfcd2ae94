//! What the tests share: tools that may be missing, programs to compile, traces to read back.
#![allow(dead_code)] // each test binary uses its part

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use coldframe_record::{record, Outcome, RecordError, Recording};
use coldframe_trace::{Block, Provenance, Reader, Reference, Wanted};

pub const QEMU: (&str, &str) = ("qemu-x86_64", "qemu-user");
pub const VALGRIND: (&str, &str) = ("valgrind", "valgrind");
pub const CC: (&str, &str) = ("cc", "gcc");
pub const BZIP2: (&str, &str) = ("bzip2", "bzip2");

/// Whether all tools (name, Debian package) are here. If not, the test is skipped, aloud; or it fails, where
/// `COLDFRAME_REQUIRE_TOOLS=1` says that a skipped test would go unnoticed.
pub fn have(tools: &[(&str, &str)]) -> bool {
    let on_path = |name: &str| {
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).any(|p| p.join(name).is_file())
    };
    let missing: Vec<_> = tools.iter().filter(|(name, _)| !on_path(name)).collect();
    for (name, package) in &missing {
        eprintln!("skipped: {name} is missing; on Debian: apt-get install {package}");
    }
    let required = std::env::var("COLDFRAME_REQUIRE_TOOLS").is_ok_and(|v| v == "1");
    assert!(missing.is_empty() || !required, "COLDFRAME_REQUIRE_TOOLS=1 and tools are missing: {missing:?}");
    missing.is_empty()
}

/// The plugin, built here once: cargo does not build a cdylib for another package's tests.
pub fn plugin() -> PathBuf {
    static PLUGIN: OnceLock<PathBuf> = OnceLock::new();
    PLUGIN
        .get_or_init(|| {
            // .../target/debug/deps/this-test
            let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned();
            let status = Command::new(env!("CARGO"))
                .args(["build", "--release", "--quiet", "-p", "coldframe-plugin", "--target-dir"])
                .arg(&target)
                .current_dir(env!("CARGO_MANIFEST_DIR"))
                .status();
            assert!(status.unwrap().success(), "the plugin does not build");
            target.join("release").join(coldframe_record::PLUGIN)
        })
        .clone()
}

/// Compiles assembly (`.s`) or C (`.c`) to `dir/name`.
pub fn compile(dir: &Path, name: &str, suffix: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (source_file, program) = (dir.join(format!("{name}.{suffix}")), dir.join(name));
    std::fs::write(&source_file, source).unwrap();
    let status = Command::new("cc").args(flags).arg(&source_file).arg("-o").arg(&program).status().unwrap();
    assert!(status.success(), "cc failed on {name}");
    program
}

pub fn order(program: &Path, args: &[&str], out: &Path) -> Recording {
    let mut order = Recording::new(program, args.iter().map(Into::into).collect(), out);
    order.plugin = Some(plugin());
    order
}

pub fn run(order: &Recording) -> Result<Outcome, RecordError> {
    record(order, &mut |_| {})
}

pub fn read(path: &Path) -> (Vec<Reference>, Provenance) {
    let mut reader = Reader::open(path).unwrap();
    let mut block = Block::new();
    let mut rows = Vec::new();
    while reader.read(&mut block, Wanted::ALL).unwrap() > 0 {
        rows.extend(block.iter());
    }
    let provenance = reader.provenance().clone();
    (rows, provenance)
}
