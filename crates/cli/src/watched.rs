//! The answer from referenced bits, where this machine's pager cannot record the program: for any user, for static
//! programs, Go, musl, a virtual machine of Java. `coldframe -- PROGRAM` and `coldframe attach` ask for it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use coldframe_answer::{of_bits, Answer, AskedOfBits, Price, Question};
use coldframe_costs::{page_read, swap_costs, swap_is_compressed, Sample, SwapCosts};
use coldframe_kernel::SwapKind;
use coldframe_live::FRAMES_MIN;
use coldframe_proc::{Progress, Watch, Watched, PAGE};
use coldframe_sheet::quantity::human_size;
use coldframe_sheet::sheet::machine::Spread;
use coldframe_show::export::Exported;
use coldframe_show::html::{Html, Page};
use coldframe_show::machine_answer::words;
use rustix::process::{kill_process, Pid, Signal};
use rustix::thread::disable_transparent_huge_pages;

use crate::export::export_here;
use crate::failure::Failure;
use crate::here_sheet;
use crate::output;
use crate::progress::Line;
use crate::recording_end::{Signals, GRACE};
use crate::run::default_backing;

impl From<coldframe_proc::ProcError> for Failure {
    fn from(error: coldframe_proc::ProcError) -> Failure {
        Failure::Other { message: error.to_string(), code: error.code() }
    }
}

/// Runs the program, watches it, prints the answer and writes it into the folder. `why`: why it is not recorded.
///
/// # Errors
/// It cannot be started or watched, or does not use enough memory.
pub fn run(
    command: &[OsString],
    folder: &Path,
    why: &str,
    exports: &[PathBuf],
    quiet: bool,
) -> Result<ExitCode, Failure> {
    let answer = of(command, why, Question::SLOWDOWN, quiet)?;
    let report = write(folder, &answer)?;
    export_here(exports, &answer, &Exported::here(&answer, None))?;
    output::write(None, &said(&answer, (!quiet).then_some(report.as_path())))?;
    Ok(code(&answer))
}

/// Runs the program and watches it.
///
/// # Errors
/// As [`run`].
pub fn of(command: &[OsString], why: &str, slowdown: f64, quiet: bool) -> Result<Answer, Failure> {
    let prices = prices()?;
    let signals = Signals::catch()?;
    let mut child = start(command)?;
    let watch = Watch::of(child.id(), true);
    let mut ending = Ending { since: None, status: None };
    let watched = match watch {
        Ok(watch) => {
            let mut line = Line::new(quiet);
            watch.run(&mut |progress| {
                show(&mut line, progress, None);
                ending.goes_on(&mut child, &signals)
            })
        }
        // A program that has ended by now has nothing to show.
        Err(_) if matches!(child.try_wait(), Ok(Some(_))) => Watched::default(),
        Err(error) => {
            let _ = child.wait();
            return Err(error.into());
        }
    };
    while ending.goes_on(&mut child, &signals) {
        std::thread::sleep(LOOK);
    }
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let asked = AskedOfBits {
        command: shlex::try_join(words.iter().map(AsRef::as_ref)).unwrap_or_else(|_| words.join(" ")),
        process: None,
        exit: ending.status.and_then(|status| status.code()),
        prices,
        why: why.into(),
        slowdown,
    };
    let mut answer = answer(&watched, &asked)?;
    if ending.since.is_some() {
        answer.notes.push("ended by a signal: this is about what it did until then".into());
    }
    Ok(answer)
}

/// How often the program's end is checked.
const LOOK: Duration = Duration::from_millis(5);

/// The program's end, by itself or after a signal to coldframe.
struct Ending {
    since: Option<Instant>,
    status: Option<ExitStatus>,
}

impl Ending {
    /// Whether the program still runs. After a signal it is asked to end, then made to.
    fn goes_on(&mut self, child: &mut Child, signals: &Signals) -> bool {
        if self.status.is_none() {
            self.status = child.try_wait().ok().flatten();
        }
        let send = |signal| Pid::from_raw(child.id() as i32).map(|pid| kill_process(pid, signal));
        match self.since {
            None if signals.came() => {
                self.since = Some(Instant::now());
                send(Signal::TERM);
            }
            Some(since) if since.elapsed() > GRACE => _ = send(Signal::KILL),
            _ => {}
        }
        self.status.is_none()
    }
}

/// Starts it without huge pages, which have one bit for 2 MiB.
fn start(command: &[OsString]) -> Result<Child, Failure> {
    // A kernel without huge pages refuses, and needs no setting. Children inherit it.
    let huge = disable_transparent_huge_pages(true);
    let child = coldframe_proc::start(Command::new(&command[0]).args(&command[1..]));
    if huge.is_ok() {
        let _ = disable_transparent_huge_pages(false);
    }
    child.map_err(|e| Failure::Other { message: format!("{}: {e}", command[0].to_string_lossy()), code: 126 })
}

/// Shows how far it is.
pub fn show(line: &mut Line, progress: Progress, all: Option<Duration>) {
    let heap = human_size(progress.heap_bytes);
    let seconds = progress.elapsed.as_secs();
    line.show(seconds, all.map(|all| all.as_secs()), &format!("watching: {seconds} s, {heap} of heap"));
}

/// The answer.
///
/// # Errors
/// It was not seen at work, or has too little memory.
pub fn answer(watched: &Watched, asked: &AskedOfBits) -> Result<Answer, Failure> {
    let heap = watched.peak_pages as u64 * PAGE;
    let least = FRAMES_MIN as u64 * PAGE;
    if heap <= least {
        let (heap, least) = (human_size(heap), human_size(least));
        let message = format!("its heap takes {heap}, and no --ram is less than {least}: there is nothing to save");
        return Err(Failure::Other { message, code: 1 });
    }
    if watched.covered == 0.0 {
        let heap = human_size(heap);
        let message = format!("too little was seen of its work to say what it needs of its heap of {heap}; watch it for longer, or when it has work to do");
        return Err(Failure::Other { message, code: 1 });
    }
    Ok(of_bits(watched, asked))
}

/// The answer in words; `report`: its page.
pub fn said(answer: &Answer, report: Option<&Path>) -> String {
    let notes: String = answer.notes.iter().map(|note| format!("Note: {note}.\n")).collect();
    words(answer, None, report, &notes)
}

/// The exit code of an answer: 1 without a recommended size.
pub fn code(answer: &Answer) -> ExitCode {
    ExitCode::from(u8::from(answer.ram_bytes.is_none()))
}

/// Writes the files to keep, and returns the page.
fn write(folder: &Path, answer: &Answer) -> Result<PathBuf, Failure> {
    let json = output::json(&answer.json());
    output::write(Some(&folder.join("advice.json")), &json)?;
    let page = Page::of(answer);
    let report = folder.join("report.html");
    output::write(Some(&report), &page.html()?)?;
    Ok(report)
}

/// The prices of a page from the kernel's swap, at least one: without those of [`swaps`] it is that of the disk.
///
/// # Errors
/// There is no folder to measure the disk.
pub fn prices() -> Result<Vec<Price>, Failure> {
    let (backing, known) = (default_backing(), swaps());
    if !known.is_empty() {
        return Ok(known);
    }
    let Sample { low, mean, high } = page_read(&backing)?;
    let fault = Spread { low, mean, high };
    let source = format!("4 KiB read from the disk of {}, measured now", backing.display());
    let make = swap_is_compressed().is_none().then(|| "FILE".to_string());
    Ok(vec![Price { fault, ahead: fault, pack: None, kind: "disk".into(), compressed: false, make, source }])
}

/// The prices of a page from the swap that is on: as this machine is known, or measured now. If none is on, those of each
/// swap that `coldframe calibrate --swap` has measured.
pub fn swaps() -> Vec<Price> {
    let (sheet, on) = (here_sheet::known(&default_backing()), swap_is_compressed());
    let cost = |key: &'static str| sheet.as_ref().and_then(|sheet| sheet.cost(key).ok());
    let price = |compressed, fault, ahead, pack: Option<coldframe_core::Ps>, when: &str| {
        let zram = SwapKind::Zram.to_string();
        let (kind, new) = if compressed { (zram.clone(), zram) } else { ("disk".into(), "FILE".into()) };
        let source = format!("the kernel's swap on {kind}, {when}");
        Price { fault, ahead, pack, kind, compressed, make: on.is_none().then_some(new), source }
    };
    let kept = |compressed: bool| {
        let [fault, ahead] = match compressed {
            true => [cost("live.zram_fault")?; 2],
            false => [cost("live.swap_fault")?, cost("live.swap_ahead")?],
        };
        let pack = cost("live.zram_pack").map(|pack| pack.mean);
        Some(price(compressed, fault, ahead, pack, "from `coldframe calibrate`"))
    };
    let now = || {
        let SwapCosts { compressed, fault, ahead, pack } = swap_costs()?;
        let [fault, ahead] = [fault, ahead].map(|Sample { low, mean, high }| Spread { low, mean, high });
        Some(price(compressed, fault, ahead, Some(pack.mean), "measured now"))
    };
    match on {
        Some(compressed) => kept(compressed).or_else(now).into_iter().collect(),
        None => [true, false].into_iter().filter_map(kept).collect(),
    }
}
