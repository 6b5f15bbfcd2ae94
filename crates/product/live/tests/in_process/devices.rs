//! A device that fails in every way that can be simulated. The program is stopped with a reason, waits, or continues.
//! It never reads a wrong byte, and never hangs.

use std::path::Path;
use std::process::Command;

use crate::common::in_child;
use coldframe_live::{Inject, Options, Pager, Region, Wait, PAGE};

const RAM: u64 = 1 << 20;
const PAGES: usize = 1024;

/// How a program ends.
#[derive(Clone, Copy, Debug)]
enum End {
    /// All bytes are as written. Its stderr contains this text.
    Good(&'static str),
    /// It is stopped with exit code 125 and this reason.
    Stopped(&'static str),
}

fn cases() -> Vec<(Inject, End)> {
    let none = Inject { seed: 7, ..Inject::default() };
    use End::{Good, Stopped};
    vec![
        (Inject { read_error: 1, ..none }, Stopped("Input/output error")),
        (Inject { read_error: 300, ..none }, Good("")),
        (Inject { read_short: 1, ..none }, Stopped("Input/output error")),
        (Inject { read_short: 2, ..none }, Good("")),
        (Inject { read_flip: 1, ..none }, Stopped("checksum differs")),
        (Inject { again: 1, ..none }, Stopped("temporarily unavailable")),
        (Inject { again: 2, ..none }, Good("")),
        (Inject { write_error: 1, ..none }, Stopped("writing 131072 bytes at")),
        (Inject { write_error: 300, ..none }, Good("")),
        (Inject { write_short: 1, ..none }, Stopped("Input/output error")),
        (Inject { write_short: 2, ..none }, Good("")),
        (Inject { write_full: 3, ..none }, Good("no space left for the swap file; the program waits")),
        (Inject { slow_us: 100, ..none }, Good("")),
    ]
}

/// The value of every word of a page, with the round that wrote it.
fn value(page: usize, round: u64) -> u64 {
    (page as u64 + 1) << 16 | round
}

fn write(region: &mut Region, page: usize, round: u64) {
    let bytes = &mut region.as_mut_slice()[page * PAGE..(page + 1) * PAGE];
    bytes.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&value(page, round).to_le_bytes()));
}

fn is_right(region: &Region, page: usize, round: u64) -> bool {
    let bytes = &region.as_slice()[page * PAGE..(page + 1) * PAGE];
    bytes.chunks_exact(8).all(|word| word == value(page, round).to_le_bytes())
}

/// In each round the program reads and writes all pages.
fn program(inject: Inject) {
    let options = Options { inject: Some(inject), wait: Wait::Read, max_memory: 1 << 28, ..Options::new(RAM) };
    let pager = Pager::start(options).unwrap();
    let mut region = pager.anonymous(PAGES * PAGE).unwrap();
    for round in 1..=3 {
        for page in 0..PAGES {
            assert!(round == 1 || is_right(&region, page, round - 1), "page {page} in round {round}");
            write(&mut region, page, round);
        }
    }
}

#[test]
fn a_failing_device_never_gives_wrong_bytes_and_never_hangs() {
    for (inject, end) in cases() {
        let (status, stderr) = in_child(|| program(inject));
        let is_right = match end {
            End::Good(words) => status == 0 && stderr.contains(words),
            End::Stopped(why) => status == 125 && stderr.contains(why) && stderr.contains("the program is stopped"),
        };
        assert!(is_right && !stderr.contains("panicked"), "{inject:?}: {end:?} was to be, but {status}: {stderr}");
    }
}

/// A loop device over a file, while the value exists; `None`: only root may make one, and not everywhere.
struct Loop(String);

impl Loop {
    fn over(file: &Path) -> Option<Loop> {
        let made = Command::new("losetup").args(["--find", "--show"]).arg(file).output().ok()?;
        let name = String::from_utf8_lossy(&made.stdout).trim().to_string();
        (made.status.success() && Path::new(&name).exists()).then_some(Loop(name))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

/// A block device is opened exclusively: the measurement at the start uses no second descriptor.
#[test]
fn a_block_device_takes_pages_and_gives_them_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("disk");
    std::fs::write(&file, vec![0; 64 << 20]).unwrap();
    let Some(disk) = Loop::over(&file) else {
        eprintln!("no loop device here");
        return;
    };
    let options = Options { backing: disk.0.clone().into(), ..Options::new(RAM) };
    let pager = Pager::start(options).unwrap();
    let mut region = pager.anonymous(PAGES * PAGE).unwrap();
    (0..PAGES).for_each(|page| write(&mut region, page, 1));
    assert!((0..PAGES).all(|page| is_right(&region, page, 1)));
    assert!(pager.stats().device_reads > 0, "four times the RAM");
}
