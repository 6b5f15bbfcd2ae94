//! Helpers for the tests: tools that may be missing, programs to compile, traces to read back.

pub mod runs;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use coldframe_record::{record, Outcome, RecordError, Recording};
use coldframe_store::{Block, Kind, Provenance, Reader, Reference, Wanted};
use coldframe_toolbox::{have, shared_library, Tool};
use tempfile::TempDir;

pub const CC: Tool = ("cc", "gcc");

/// The plugin, built here once.
pub fn plugin() -> PathBuf {
    static PLUGIN: OnceLock<PathBuf> = OnceLock::new();
    PLUGIN.get_or_init(|| shared_library("coldframe-qemu-plugin", coldframe_record::PLUGIN)).clone()
}

/// Compiles assembly (`.s`) or C (`.c`) to `dir/name`.
pub fn compile(dir: &Path, name: &str, suffix: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (source_file, program) = (dir.join(format!("{name}.{suffix}")), dir.join(name));
    std::fs::write(&source_file, source).unwrap();
    let status = Command::new("cc").args(flags).arg(&source_file).arg("-o").arg(&program).status().unwrap();
    assert!(status.success(), "cc failed on {name}");
    program
}

/// A folder and the trace to write in it, if these tools are here.
pub fn ready(tools: &[Tool]) -> Option<(TempDir, PathBuf)> {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.parquet");
    have(tools).then_some((dir, out))
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

/// Stores of 2 bytes into the program's own data: the first writable mapping.
pub fn own_halves(rows: &[Reference], provenance: &Provenance, task: u32) -> Vec<u64> {
    let data = provenance.mappings.iter().find(|m| m.protection == "rw-p").expect("the program's data");
    let own = rows.iter().filter(|r| {
        r.task == task && r.kind == Kind::Write && r.size == 2 && (data.start..data.end).contains(&r.address)
    });
    own.map(|r| r.address).collect()
}
