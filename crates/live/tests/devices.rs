//! A device that fails in every way that can be simulated, under anonymous memory and under a file. The program is stopped with a reason, waits, or continues. It never reads a wrong
//! byte, never hangs, and never believes that a file is safe when it is not.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use coldframe_live::{Inject, Options, Pager, Region, Wait, PAGE};

const RAM: u64 = 1 << 20;
const PAGES: usize = 1024;
/// The variable that selects this process's case: its number and folder.
const CASE: &str = "COLDFRAME_DEVICE_CASE";

/// How a program may end.
#[derive(Clone, Copy, Debug)]
enum End {
    /// The program succeeds, and all bytes are as written. Its stderr contains this text.
    Good(&'static str),
    /// The program is stopped with exit code 125 and this reason.
    Stopped(&'static str),
    /// The loss of bytes of the file is reported: by an error of `flush`, or by stopping the program when it needs a
    /// lost page. Without a report, the file is right, as in every case.
    Told,
}

struct Case {
    inject: Inject,
    anonymous: End,
    file: End,
}

fn cases() -> Vec<Case> {
    const NONE: Inject = Inject {
        seed: 7,
        read_error: 0,
        read_short: 0,
        read_flip: 0,
        read_late: 0,
        again: 0,
        write_error: 0,
        write_full: 0,
        write_short: 0,
        slow_us: 0,
        pause: 0,
        compare_held: false,
        trust_frames: false,
    };
    let case = |inject, anonymous, file| Case { inject, anonymous, file };
    use End::{Good, Stopped, Told};
    vec![
        case(Inject { read_error: 1, ..NONE }, Stopped("Input/output error"), Stopped("Input/output error")),
        case(Inject { read_error: 300, ..NONE }, Good(""), Good("")),
        case(Inject { read_short: 1, ..NONE }, Stopped("Input/output error"), Stopped("Input/output error")),
        case(Inject { read_short: 2, ..NONE }, Good(""), Good("")),
        case(Inject { read_flip: 1, ..NONE }, Stopped("checksum differs"), Stopped("checksum differs")),
        case(Inject { again: 1, ..NONE }, Stopped("temporarily unavailable"), Stopped("temporarily unavailable")),
        case(Inject { again: 2, ..NONE }, Good(""), Good("")),
        case(Inject { write_error: 1, ..NONE }, Stopped("Input/output error"), Told),
        case(Inject { write_error: 300, ..NONE }, Good(""), Good("")),
        case(Inject { write_short: 1, ..NONE }, Stopped("Input/output error"), Told),
        case(Inject { write_short: 2, ..NONE }, Good(""), Good("")),
        // A page of a file is given up if its third write also fails; one page in 27 is.
        case(Inject { write_full: 3, ..NONE }, Good("no space left"), Told),
        case(Inject { write_full: 1, ..NONE }, Good("-"), Told),
        case(Inject { slow_us: 100, ..NONE }, Good(""), Good("")),
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

fn is_right(bytes: &[u8], page: usize, round: u64) -> bool {
    bytes.chunks_exact(8).all(|word| word == value(page, round).to_le_bytes())
}

const ROUNDS: u64 = 3;

/// The program: in each round it reads and writes all pages. It exits with 3 if a byte is wrong, and with 4 if `flush`
/// failed.
fn program(inject: Inject, file: Option<&Path>) {
    let options = Options { inject: Some(inject), wait: Wait::Read, max_memory: 1 << 28, ..Options::new(RAM) };
    let pager = Pager::start(options).unwrap();
    let mut region = match file {
        Some(path) => pager.file(path).unwrap(),
        None => pager.anonymous(PAGES * PAGE).unwrap(),
    };
    for round in 1..=ROUNDS {
        for page in 0..PAGES {
            if round > 1 && !is_right(&region.as_slice()[page * PAGE..(page + 1) * PAGE], page, round - 1) {
                std::process::exit(3);
            }
            write(&mut region, page, round);
        }
    }
    // Pages that could not be written stay dirty, so `flush` can be repeated.
    let refused = (0..4).map_while(|_| region.flush().err()).last();
    if let Some(error) = refused.filter(|_| region.flush().is_err()) {
        eprintln!("flush: {error}");
        std::process::exit(4);
    }
}

/// Not a test by itself: the process that `a_failing_device_never_gives_wrong_bytes_and_never_hangs` starts for each
/// case.
#[test]
fn the_program_of_a_case() {
    let Ok(case) = std::env::var(CASE) else { return };
    let mut words = case.splitn(2, ' ');
    let case: usize = words.next().unwrap().parse().unwrap();
    let path = words.next().filter(|path| !path.is_empty());
    // A hang is a failure: the signal ends the process.
    // SAFETY: no pointers.
    unsafe { libc::alarm(100) };
    program(cases()[case].inject, path.map(Path::new));
    std::process::exit(0);
}

/// How the process of a case ends, and its output.
fn run(case: usize, path: Option<&Path>) -> (Option<i32>, Option<i32>, String) {
    let path = path.map(|path| path.display().to_string()).unwrap_or_default();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "the_program_of_a_case", "--nocapture", "--test-threads=1"]);
    let output = command.env(CASE, format!("{case} {path}")).output().unwrap();
    (output.status.code(), output.status.signal(), last_words(&String::from_utf8_lossy(&output.stderr)))
}

/// The last lines; a device that always fails causes many messages.
fn last_words(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(4)..].join("\n")
}

fn judge(end: End, code: Option<i32>, said: &str) -> bool {
    match end {
        End::Good(words) => code == Some(0) && said.contains(words),
        End::Stopped(words) => code == Some(125) && said.contains(words) && said.contains("the program is stopped"),
        End::Told => match code {
            Some(0) => true,
            Some(4) => said.contains("flush: "),
            code => {
                code == Some(125) && said.contains("could not be written") && said.contains("the program is stopped")
            }
        },
    }
}

/// Whether the file is right after a program that was told that it is safe.
fn file_is_right(path: &Path) -> bool {
    let bytes = std::fs::read(path).unwrap();
    bytes.chunks(PAGE).enumerate().all(|(page, bytes)| is_right(bytes, page, ROUNDS))
}

#[test]
fn a_failing_device_never_gives_wrong_bytes_and_never_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("region");
    let mut bad = Vec::new();
    for (i, case) in cases().iter().enumerate() {
        for (path, end) in [(None, case.anonymous), (Some(path.as_path()), case.file)] {
            // A device that is full forever makes a program with anonymous memory wait forever, as intended.
            if matches!(end, End::Good("-")) {
                continue;
            }
            if let Some(path) = path {
                std::fs::write(path, vec![0u8; PAGES * PAGE]).unwrap();
            }
            let (code, signal, said) = run(i, path);
            let right = path.is_none_or(|path| code != Some(0) || file_is_right(path));
            if !judge(end, code, &said) || !right {
                bad.push(format!(
                    "{:?}, file: {}: {end:?} was to be, code {code:?}, signal {signal:?}, file right: {right}\n{said}",
                    case.inject,
                    path.is_some()
                ));
            }
        }
    }
    assert!(bad.is_empty(), "{} of {} cases:\n{}", bad.len(), 2 * cases().len(), bad.join("\n"));
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
    assert!((0..PAGES).all(|page| is_right(&region.as_slice()[page * PAGE..(page + 1) * PAGE], page, 1)));
    assert!(pager.stats().device_reads > 0, "four times the RAM");
}
