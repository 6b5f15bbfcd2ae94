//! The faults of a real program, recorded by perf.

mod common;

use std::time::Duration;

use coldframe_record::{record_faults, RecordError, Subject};
use coldframe_store::{Block, Fidelity, Reader, Wanted};
use coldframe_toolbox::{have, Tool};

const PERF: Tool = ("perf", "linux-perf");

/// Touches 300 pages of a fresh mapping, in order.
const PROGRAM: &str = "
#include <sys/mman.h>
int main(void) {
    char *pages = mmap((void *)0x200000000, 300 * 4096, 3, 0x22 | 0x100000, -1, 0);
    madvise(pages, 300 * 4096, 15); /* no huge pages */
    for (int i = 0; i < 300; i++) pages[i * 4096] = 1;
    return pages == (void *)-1 ? 1 : 7;
}";

#[test]
fn every_first_touch_of_a_page_is_a_fault_in_the_trace_in_order() {
    if !have(&[PERF, common::CC]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = common::compile(folder.path(), "touch", "c", PROGRAM, &["-O1"]);
    let out = folder.path().join("t.parquet");
    let path = std::env::var_os("PATH").unwrap();
    let subject = Subject::Program(program.into(), Vec::new());
    let faults = record_faults(&subject, &out, &path, true).unwrap();
    assert_eq!(faults.status.code(), Some(7));
    assert!(faults.native_seconds.is_some());
    let mut reader = Reader::open(&out).unwrap();
    assert_eq!(reader.provenance().fidelity, Fidelity::Faults);
    let (mut block, mut pages) = (Block::new(), Vec::new());
    while reader.read(&mut block, Wanted::ALL).unwrap() > 0 {
        pages.extend(
            block
                .address()
                .iter()
                .map(|address| address / 4096)
                .filter(|page| page >> 8 == 0x2000 || page >> 8 == 0x2001),
        );
    }
    assert_eq!(pages, (0x20_0000..0x20_0000 + 300).collect::<Vec<u64>>());
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("perf")), "{left:?}");
}

#[test]
fn a_running_process_is_attached_to_and_one_without_faults_is_told() {
    if !have(&[PERF]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("t.parquet");
    let path = std::env::var_os("PATH").unwrap();
    let mut shell = std::process::Command::new("sh").args(["-c", "while :; do /bin/true; done"]).spawn().unwrap();
    let faults = record_faults(&Subject::Process(shell.id(), Duration::from_millis(700)), &out, &path, false);
    shell.kill().unwrap();
    shell.wait().unwrap();
    assert!(faults.unwrap().summary.references > 0);
    let mut sleep = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let none = record_faults(&Subject::Process(sleep.id(), Duration::from_millis(200)), &out, &path, false);
    sleep.kill().unwrap();
    sleep.wait().unwrap();
    assert!(none.unwrap_err().to_string().contains("there was none"));
}

#[test]
fn a_missing_perf_and_a_missing_process_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("t.parquet");
    let nobody = Subject::Process(u32::MAX, Duration::from_millis(10));
    let error = record_faults(&nobody, &out, &folder.path().into(), false).unwrap_err();
    assert!(matches!(error, RecordError::MissingTool { .. }) && error.to_string().contains("linux-perf"));
    if have(&[PERF]) {
        let path = std::env::var_os("PATH").unwrap();
        let error = record_faults(&nobody, &out, &path, false).unwrap_err();
        assert!(error.code() != 0 && !out.exists(), "{error}");
    }
}
