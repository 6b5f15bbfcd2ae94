//! What to run, and how; and what became of the program.

use std::process::Command;
use std::time::{Duration, Instant};

use coldframe_kernel::Group;
use coldframe_live::Options;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::AnswerError;
use crate::run::child::{code, Care, Child, Ended, Why};
use crate::run::pager::Pager;
use crate::run::program::Executable;
use crate::run::signals::Signals;

/// Done every few milliseconds while a program runs in a group: with the group, and the program's number.
pub type GroupLook<'a> = dyn Fn(&Group, u32) + Sync + 'a;

/// As RAM: the group that the program runs in has no limit.
pub const NO_LIMIT: u64 = u64::MAX;

/// Sets a command's standard streams.
pub type Redirect<'a> = dyn Fn(&mut Command) -> Result<(), AnswerError> + 'a;

/// What to run, and how.
pub struct Order<'a> {
    /// The program and its arguments.
    pub command: &'a Executable,
    /// Who pages it.
    pub by: Pager,
    /// The swap that is made for it, if the kernel pages it.
    pub swap: Option<&'a str>,
    /// An option that only our pager knows.
    pub pager_only: Option<&'static str>,
    /// Its RAM, and how our pager pages it.
    pub options: Options,
    /// Whether processors are kept awake while faults come fast.
    pub awake: bool,
    /// Signals to coldframe: passed on, or the end of the program.
    pub signals: &'a Signals,
    /// Whether signals are passed on.
    pub pass_on: bool,
    /// The program is ended after this time.
    pub patience: Option<Duration>,
    /// How long it may take then, after SIGTERM.
    pub grace: Duration,
    /// Where its standard streams are; `None`: as those of coldframe.
    pub streams: Option<&'a Redirect<'a>>,
    /// Who looks at its group while it runs, if the kernel pages it.
    pub group_look: Option<&'a GroupLook<'a>>,
}

impl<'a> Order<'a> {
    /// The program in that many bytes of RAM, as `coldframe run` runs it.
    pub fn new(command: &'a Executable, options: Options, signals: &'a Signals) -> Order<'a> {
        Order {
            command,
            by: Pager::Auto,
            swap: None,
            pager_only: None,
            options,
            awake: true,
            signals,
            pass_on: true,
            patience: None,
            grace: GRACE,
            streams: None,
            group_look: None,
        }
    }

    pub(crate) fn start(&self, mut process: Command) -> Result<Child, AnswerError> {
        if let Some(streams) = self.streams {
            streams(&mut process)?;
        }
        Child::start(process, &self.command[0])
    }

    pub(crate) fn care(&self) -> Care<'a> {
        let deadline = self.patience.and_then(|patience| Instant::now().checked_add(patience));
        Care { deadline, pass_on: self.pass_on, grace: self.grace, ..Care::passing_on(self.signals) }
    }
}

/// How long a program that took too long may take to end: what it was swapping needs time.
const GRACE: Duration = Duration::from_secs(10);

/// What became of the program.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Program {
    /// Its exit code, as a shell reports it.
    pub status: u8,
    /// Its run time.
    pub seconds: f64,
    /// Why coldframe has ended it.
    #[serde(skip)]
    pub why: Option<Why>,
}

impl Program {
    pub(crate) fn ended(ended: Ended, began: Instant) -> Program {
        let seconds = ended.ended_at.duration_since(began).as_secs_f64();
        Program { status: code(ended.status), seconds, why: ended.why }
    }
}
