//! `coldframe run`: runs an unmodified program in the RAM that the user gives it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use coldframe_answer::child::Signals;
use coldframe_answer::configured::Configured;
use coldframe_answer::pager::Pager;
use coldframe_answer::program::default_backing;
use coldframe_answer::run::{run as run_program, Order};
use coldframe_live::{Options, FRAMES_MIN, PAGE, READ_AHEAD, READ_AHEAD_MAX};
use coldframe_sheet::quantity;

use crate::failure::Failure;
use crate::output;
use coldframe_terminal::listener::Terminal;

/// Run an unmodified program in the RAM you give it; the rest of its heap is in a swap file.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe run --ram 64MiB -- redis-server --save ''
  coldframe run --ram 256MiB --backing /mnt/flash --stats run.json -- python3 script.py
  coldframe -- prog; coldframe run -c prog.coldframe/config.toml -- prog
  coldframe run --by kernel --swap zram --ram 64MiB -- ./static-program

--ram is for what can leave: the program's heap and its large private anonymous mappings. Its code, stacks and files \
are not counted; they need memory on top of --ram. Statistics are printed on stderr when the program has ended.

--by pager: our pager has the rest in a swap file of its own. Each process that the program starts has a budget of its \
own. --by kernel: the program and all that it starts share one memory cgroup, and the kernel decides what leaves, to \
the swap of this machine or to what --swap makes. Any program can be run so: static, setuid, musl, Go. The limit of the \
cgroup is --ram and what was measured beside the heap, less the RAM that zram or zswap takes, so that --ram means the \
same. Files read into the cache count in --ram, and leave first. As root, or with cgroup v2 in a session of systemd. \
--by auto, the default: our pager if it can, else the kernel, with a note.

`coldframe-lab run` has more options of our pager: policies, handlers, swap areas, slow memory, journals.

Exit codes: the program's own; 128 + n if signal n ended it; 125 if the pager had to stop it; 126 and 127 as in \
shells; 2 usage; 4 the program cannot be paged on this machine (see `coldframe doctor`); 5 the swap file cannot be \
used.")]
pub struct Args {
    /// RAM for the program's heap and anonymous mappings: a size.
    #[arg(long, required_unless_present = "config")]
    ram: Option<String>,
    /// Configuration file, as `coldframe -- PROGRAM` and `coldframe-lab advise` write it: RAM, policy, handler and read-ahead. Flags come first.
    #[arg(short, value_name = "CONFIG.toml")]
    config: Option<PathBuf>,
    /// Who pages: our pager, the kernel (a memory cgroup and its swap), or the first of them that can.
    #[arg(long, value_parser = ["auto", "pager", "kernel"], default_value = "auto")]
    by: String,
    /// Swap that the kernel uses, made now and taken away at the end (root): zram, a new file, or a new file
    /// behind zswap [default: the swap that is on].
    #[arg(long, value_name = "zram|FILE|zswap:FILE")]
    swap: Option<String>,
    /// Folder (or block device, whose content is lost) for the swap file [default: the folder for temporary files, or /var/tmp
    /// if that is in RAM].
    #[arg(long)]
    backing: Option<PathBuf>,
    /// Largest size of the swap file; with --swap, the size of the swap that is made [default there: the machine's RAM, 8GiB and
    /// half of the disk's free room, whichever is least].
    #[arg(long, value_name = "SIZE")]
    swap_size: Option<String>,
    /// Largest size of the program's paged memory.
    #[arg(long, default_value = "2046GiB")]
    max_memory: String,
    /// Most pages that are read ahead of a sequential stream, 0 to 31 [default: 16].
    #[arg(long, value_name = "N")]
    read_ahead: Option<u32>,
    /// Encrypt and authenticate the pages in the swap file, with a key that is only in memory.
    #[arg(long)]
    encrypt: bool,
    /// Write the statistics as JSON to this file.
    #[arg(long)]
    stats: Option<PathBuf>,
    /// How to print the statistics on stderr.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

impl Args {
    /// An option that only our pager knows.
    fn pager_only(&self) -> Option<&'static str> {
        let given = [
            (self.backing.is_some(), "--backing"),
            (self.swap_size.is_some() && self.swap.is_none(), "--swap-size"),
            (self.read_ahead.is_some(), "--read-ahead"),
            (self.encrypt, "--encrypt"),
        ];
        given.into_iter().find_map(|(given, name)| given.then_some(name))
    }

    fn options(&self) -> Result<Options, Failure> {
        let bytes = |option: &str, text: &str| {
            quantity::bytes(text).map(|b| b.0).map_err(|e| Failure::usage(format!("{option}: {e}")))
        };
        let configured = self.config.as_deref().map(Configured::read).transpose()?;
        let file_read_ahead = configured.as_ref().map(Configured::read_ahead);
        let configured = configured.unwrap_or_default();
        let Some(ram) = self.ram.as_ref().or(configured.ram.as_ref()) else {
            return Err(Failure::usage("--ram: the configuration says no RAM; give --ram SIZE"));
        };
        let mut options = Options::new(bytes("--ram", ram)?);
        if options.ram < (FRAMES_MIN * PAGE) as u64 {
            let least = FRAMES_MIN * PAGE / 1024;
            return Err(Failure::usage(format!("--ram: {ram} is too little; give at least {least}KiB")));
        }
        let backing = self.backing.clone().unwrap_or_else(default_backing);
        options.backing = std::path::absolute(&backing).unwrap_or(backing);
        options.backing_max = self.swap_size.as_deref().map(|text| bytes("--swap-size", text)).transpose()?;
        options.max_memory = bytes("--max-memory", &self.max_memory)?;
        options.read_ahead = self.read_ahead.or(file_read_ahead).unwrap_or(READ_AHEAD);
        if options.read_ahead > READ_AHEAD_MAX {
            return Err(Failure::usage(format!("--read-ahead: give 0 to {READ_AHEAD_MAX} pages")));
        }
        options.encrypt = self.encrypt;
        options.policy = configured.policy;
        options.handler = configured.handler.unwrap_or(options.handler);
        Ok(options)
    }
}

pub fn run(args: Args, quiet: bool) -> Result<ExitCode, Failure> {
    let signals = Signals::catch()?;
    let order = Order {
        by: Pager::parse(&args.by).unwrap_or(Pager::Auto),
        swap: args.swap.as_deref(),
        pager_only: args.pager_only(),
        ..Order::new(&args.command, args.options()?, &signals)
    };
    let run = run_program(&order, &Terminal::new(quiet))?;
    if let Some(path) = &args.stats {
        output::file(path, &output::json(&run))?;
    }
    let words = coldframe_show::run::words(&run);
    match (quiet || words.is_empty(), args.format.as_str()) {
        (true, _) => {}
        (false, "json") => eprint!("{}", output::json(&run)),
        (false, _) => output::tell(&words),
    }
    Ok(ExitCode::from(run.program().status))
}
