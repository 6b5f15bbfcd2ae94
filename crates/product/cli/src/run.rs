//! `coldframe run`: runs an unmodified program in the RAM that the user gives it.

use std::path::PathBuf;
use std::process::ExitCode;

use coldframe_answer::run::paged::{run as run_program, Order};
use coldframe_answer::run::pager::Pager;
use coldframe_answer::run::program::Executable;
use coldframe_answer::run::signals::Signals;
use coldframe_live::{Options, READ_AHEAD, READ_AHEAD_MAX};

use crate::failure::Failure;
use crate::flags::{ram_size, size, Backing, Form, Program};
use crate::output;
use coldframe_terminal::listener::Terminal;
use coldframe_terminal::verb::Verb;

/// Run a program in the RAM you give it; the rest is in a swap file.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe run --ram 64MiB -- redis-server --save ''
  coldframe run --ram 256MiB --backing /mnt/flash --stats run.json -- python3 script.py
  coldframe run --by kernel --swap zram --ram 64MiB -- ./static-program

--ram is all RAM that the program and what it starts take: heap, code, stacks, mapped files, tables. What can leave is \
the heap and large private anonymous mappings; if the rest alone takes more than --ram, the heap has its least, and a \
note says so. Statistics are printed on stderr when the program has ended.

--by pager: our pager has the rest in a swap file of its own. What is not paged is measured while the program runs, \
and its paged memory has what is left of --ram: a process that faults gets free frames, then frames of processes that \
fault less; each keeps at least 512KiB. With --each, each process has --ram for its paged memory alone. --by kernel: \
the program and all that it starts share one memory cgroup, and the kernel decides what leaves, to the swap of this \
machine or to what --swap makes. Any program can be run so: static, setuid, musl, Go. The limit of the cgroup is \
--ram, less the RAM that zram or zswap takes; data that hardly compresses goes to a disk. Files read into the cache \
count in --ram, and leave first. With --swap none, nothing leaves but files, as in most containers: the kernel kills a \
program that needs more. As root, or with cgroup v2 in a session of \
systemd. --by auto, the default: our pager if it can, else the kernel, with a note.

`coldframe-lab run` has more options of our pager: policies, handlers, swap areas, slow memory, journals.

Exit codes: the program's own; 128 + n if signal n ended it; 125 if the pager had to stop it; 126 and 127 as in \
shells; 2 usage; 4 the program cannot be paged on this machine (see `coldframe doctor`); 5 the swap file cannot be \
used.")]
pub struct Args {
    /// RAM for all memory of the program and what it starts: a size.
    #[arg(long, value_name = "SIZE", value_parser = ram_size)]
    ram: u64,
    /// Each process has --ram for its paged memory. Otherwise the program and all that it starts have it together.
    #[arg(long)]
    each: bool,
    /// Who pages: our pager, the kernel (a memory cgroup and its swap), or the first of them that can.
    #[arg(long, value_parser = ["auto", "pager", "kernel"], default_value = "auto")]
    by: String,
    /// Swap that the kernel uses: none; or made now and taken away at the end (root): zram, a new file, or a new file
    /// behind zswap [default: the swap that is on].
    #[arg(long, value_name = "none|zram|FILE|zswap:FILE")]
    swap: Option<String>,
    #[command(flatten)]
    backing: Backing,
    /// Largest size of the swap file; with --swap, the size of the swap that is made [default there: the machine's RAM,
    /// 8GiB and half of the disk's free room, whichever is least].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    swap_size: Option<u64>,
    /// Largest size of the program's paged memory.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "2046GiB")]
    max_memory: u64,
    /// Most pages that are read ahead of a sequential stream, 0 to 31 [default: 16].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=i64::from(READ_AHEAD_MAX)))]
    read_ahead: Option<u32>,
    /// Encrypt and authenticate the pages in the swap file, with a key that is only in memory.
    #[arg(long)]
    encrypt: bool,
    /// Let processors sleep while a page comes. Otherwise they are kept awake while faults come fast, where we may.
    #[arg(long)]
    no_awake: bool,
    /// Write the statistics as JSON to this file.
    #[arg(long)]
    stats: Option<PathBuf>,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    program: Program,
}

impl Args {
    /// An option that only our pager knows.
    fn pager_only(&self) -> Option<&'static str> {
        let given = [
            (self.backing.backing.is_some(), "--backing"),
            (self.swap_size.is_some() && self.swap.is_none(), "--swap-size"),
            (self.read_ahead.is_some(), "--read-ahead"),
            (self.encrypt, "--encrypt"),
            (self.no_awake, "--no-awake"),
            (self.each, "--each"),
        ];
        given.into_iter().find_map(|(given, name)| given.then_some(name))
    }

    fn options(&self) -> Options {
        let backing = self.backing.folder();
        Options {
            backing: std::path::absolute(&backing).unwrap_or(backing),
            backing_max: self.swap_size,
            max_memory: self.max_memory,
            read_ahead: self.read_ahead.unwrap_or(READ_AHEAD),
            encrypt: self.encrypt,
            one_budget: !self.each,
            in_all: true,
            ..Options::new(self.ram)
        }
    }
}

impl Verb<Failure> for Args {
    fn run(self, quiet: bool) -> Result<ExitCode, Failure> {
        let (signals, program) = (Signals::catch()?, Executable::find(&self.program.words)?);
        let order = Order {
            by: Pager::parse(&self.by).unwrap_or(Pager::Auto),
            swap: self.swap.as_deref(),
            pager_only: self.pager_only(),
            awake: !self.no_awake,
            ..Order::new(&program, self.options(), &signals)
        };
        let run = run_program(&order, &Terminal::new(quiet))?;
        if let Some(path) = &self.stats {
            output::file(path, &output::json(&run))?;
        }
        let words = coldframe_show::run::words(&run);
        match (quiet || words.is_empty(), self.form.is_json()) {
            (true, _) => output::tell(&coldframe_show::run::killed(&run)),
            (false, true) => eprint!("{}", output::json(&run)),
            (false, false) => output::tell(&words),
        }
        Ok(ExitCode::from(run.program().status))
    }
}
