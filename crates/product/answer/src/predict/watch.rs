//! Watches a program that our pager cannot record, or a process that runs already, by the referenced bits of its pages:
//! for any user, for static programs, Go, musl, a virtual machine of Java.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use coldframe_proc::{printable, Process, Tree, PAGE};
use coldframe_sheet::quantity::human_size;
use rustix::thread::disable_transparent_huge_pages;

use crate::error::AnswerError;
use crate::listener::Listener;
use crate::machine::prices::prices;
use crate::nothing::Nothing;
use crate::predict::bits::program::{Bits, ProgramWatch, Watching};
use crate::predict::bits::touched::Touched;
use crate::predict::common::program as program_of;
use crate::predict::question::Limits;
use crate::predict::since_start::SinceStart;
use crate::predict::watched::{BitsQuestion, Watched};
use crate::run::child::{code, Care, Child, Ended, Why};
use crate::run::halt;
use crate::run::program::{line, plain};
use crate::run::signals::Signals;
use crate::run::streams::Streams;

/// Memory besides the heap that makes a process worth an answer: more than a small program's code.
const WORTH: u64 = 8 << 20;
/// How often the program's end is checked.
const LOOK: Duration = Duration::from_millis(5);

/// A program that was watched until its end.
pub struct Observed {
    command: String,
    bits: Bits,
    /// How it ended.
    pub ended: Ended,
}

/// Runs the program and watches it. `streams`: those of further runs, if there will be some.
pub fn program(
    command: &[OsString],
    limits: &Limits,
    streams: Option<&Streams>,
    listener: &dyn Listener,
) -> Result<Observed, AnswerError> {
    let signals = Signals::catch()?;
    let deadline = limits.time.and_then(|time| Instant::now().checked_add(time));
    let (mut child, care) = (start(command, streams)?, Care { deadline, ..Care::that_ends(&signals) });
    let process = child.id();
    let look = || streams.iter().for_each(|streams| streams.look(process));
    let bits = match ProgramWatch::new(process, true) {
        Ok(watch) => watch.run(&mut |progress| {
            look();
            match streams.is_some_and(Streams::is_interactive) {
                true => listener.finish(),
                false => show(listener, progress, None),
            }
            child.look(&care)
        }),
        // A program that has ended by now has nothing to show.
        Err(_) if !child.look(&care) => Bits::default(),
        Err(error) => {
            let _ = child.wait(&care);
            return Err(error.into());
        }
    };
    while child.look(&care) {
        look();
        std::thread::sleep(LOOK);
    }
    listener.finish();
    Ok(Observed { command: line(command), bits, ended: child.wait(&care)? })
}

impl Observed {
    /// Its exit code as a shell reports it; 0: coldframe ended it.
    pub fn shell_code(&self) -> u8 {
        self.ended.why.map_or(code(self.ended.status), |_| 0)
    }

    /// Which memory it touched when.
    pub fn touched(&self) -> Option<Touched> {
        self.bits.touched.map(self.bits.seconds)
    }

    /// How long it took.
    pub fn seconds(&self) -> f64 {
        self.bits.seconds
    }

    /// The answer about it. `why`: why it was not recorded; `seconds`: the stand-alone time, if it was measured.
    pub fn answer(&self, why: &str, limits: &Limits, seconds: Option<f64>) -> Result<Watched, AnswerError> {
        // What coldframe has ended has not failed.
        let exit = self.ended.why.map_or(self.ended.status.code(), |_| Some(0));
        let (command, prices) = (self.command.clone(), prices()?);
        let (why, limits) = (why.into(), *limits);
        let question = BitsQuestion { command, process: None, exit, prices, why, limits, seconds };
        let mut answer = answer(&self.bits, &question).map_err(|error| match error {
            AnswerError::Nothing(nothing) => Nothing { ended_early: self.ended.why.is_some(), ..nothing }.into(),
            error => error,
        })?;
        if let Some(why) = self.ended.why {
            let when = if why == Why::Deadline { "after --for" } else { "at a signal" };
            answer.common.notes.push(format!("coldframe ended it {when}: this is about what it did until then"));
        }
        Ok(answer)
    }
}

/// Watches a process that runs, by its number or name, until the time is up or a signal comes.
pub fn process(name: &str, limits: &Limits, listener: &dyn Listener) -> Result<Watched, AnswerError> {
    let tree = Tree::machine();
    let process = tree.named(name)?;
    let before = SinceStart::of(&tree, process, 0);
    let watch = ProgramWatch::new(process, false)?;
    let command = command_of(process);
    let signals = Signals::catch()?;
    let bits = watch.run(&mut |progress| {
        show(listener, progress, limits.time);
        limits.time.is_none_or(|time| progress.elapsed < time) && !signals.came()
    });
    listener.finish();
    let has = bits.peak_pages as u64 * PAGE + bits.rest_bytes;
    let before = SinceStart { processes_bytes: before.processes_bytes + has, ..before };
    let since_start = Some(before.or(SinceStart::of(&tree, process, has)));
    let (process, why) = (Some(process), String::new());
    let (prices, limits) = (prices()?, *limits);
    let question = BitsQuestion { command, process, exit: Some(0), prices, why, limits, seconds: None };
    Ok(Watched { since_start, ..answer(&bits, &question)? })
}

/// Starts it without huge pages, which have one bit for 2 MiB.
fn start(command: &[OsString], streams: Option<&Streams>) -> Result<Child, AnswerError> {
    let mut process = plain(command);
    streams.map_or(Ok(()), |streams| streams.shown_once(&mut process))?;
    // A kernel without huge pages refuses, and needs no setting. Children inherit it.
    let huge = disable_transparent_huge_pages(true);
    let child = halt::start(&mut process);
    if huge.is_ok() {
        let _ = disable_transparent_huge_pages(false);
    }
    child.map(Child::adopt).map_err(|e| AnswerError::new(126, format!("{}: {e}", command[0].to_string_lossy())))
}

/// Shows how far it is.
fn show(listener: &dyn Listener, progress: Watching, all: Option<Duration>) {
    let heap = human_size(progress.heap_bytes);
    let seconds = progress.elapsed.as_secs();
    listener.progress(seconds, all.map(|all| all.as_secs()), &format!("watching it: {heap} of heap"));
}

fn answer(bits: &Bits, question: &BitsQuestion) -> Result<Watched, AnswerError> {
    let heap = bits.peak_pages as u64 * PAGE;
    // A process may have all of its memory in shared memory and files.
    let worth = question.process.is_some() && bits.rest_bytes >= WORTH;
    if !worth {
        Nothing::refuse(program_of(Some(&question.command)), question.exit, heap)?;
    }
    if bits.covered == 0.0 {
        let heap = human_size(heap);
        let message = format!(
            "too little was seen of its work to say what it needs of its heap of {heap}; watch it \
                               for longer, or when it has work to do"
        );
        let failed = question.exit.filter(|code| *code != 0);
        return Err(AnswerError::new(failed.unwrap_or(1) as u8, message));
    }
    Ok(Watched::of(bits, question))
}

/// The command line of a process, as a shell reads it.
fn command_of(pid: u32) -> String {
    printable(&line(&Process::of(pid).command_line()))
}
