//! `coldframe run`: runs an unmodified program in the RAM that the user gives it.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use coldframe_costs::doctor::{examine, is_ram, Health};
use coldframe_experiment::ExperimentError;
use coldframe_live::{
    Chosen, Inject, Options, Snapshot, StatsFile, Wait, FRAMES_MIN, PAGE, READ_AHEAD, READ_AHEAD_MAX,
};
use coldframe_record::{interpreter, library_places, resolve, RecordError};
use coldframe_sheet::{quantity, sheet, Sheet};
use serde_json::Value;

use crate::area::AreaArgs;
use crate::disk::Counter;
use crate::failure::Failure;
use crate::priced::{Priced, Slow};
use crate::run_by::{choose, Asked, Pages};
use crate::run_kernel::{go, Ready};
use crate::running::{code, Running};
use crate::{bundle, configured, output, summary};

/// The library that holds the program's heap.
const PRELOAD: &str = "libcoldframe_preload.so";

/// Run an unmodified program in the RAM you give it; the rest of its heap is in a swap file.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe run --ram 64MiB -- redis-server --save ''
  coldframe run --ram 256MiB --backing /mnt/flash --stats run.json -- python3 script.py
  coldframe run --ram 8MiB --policy pa-clock --journal j -- sqlite3 db < queries.sql; coldframe-lab replay j
  coldframe advise prog.parquet -o config.toml; coldframe run -c config.toml -- prog
  coldframe run --by kernel --swap zram --ram 64MiB -- ./static-program
  coldframe run --ram 8MiB --system lobi --collector cost-benefit --swap-area 64MiB --journal j -- sort file; coldframe-lab replay j
  coldframe run --slow node:1 --ram 64MiB -- redis-server --save ''
  coldframe run --ram 4MiB --device LOBI-NAND --backing-max 128MiB -- python3 script.py

--ram is for what can leave: the program's heap and its large private anonymous mappings. Its code, stacks and files \
are not counted; they need memory on top of --ram. Statistics are printed on stderr when the program has ended.

--by pager: our pager has the rest in a swap file of its own. Each process that the program starts has a budget of its \
own. --by kernel: the program and all that it starts share one memory cgroup, and the kernel decides what leaves, to \
the swap of this machine or to what --swap makes. Any program can be run so: static, setuid, musl, Go. The limit of the \
cgroup is --ram and what was measured beside the heap, less the RAM that zram or zswap takes, so that --ram means the \
same. Files read into the cache count in --ram, and leave first. As root, or with cgroup v2 in a session of systemd. \
--by auto, the default: our pager if it can, else the kernel, with a note.

--device prices the bytes that the run moved: their time, energy and life on that flash. Life is cycles * area / rate \
of writing. The area is --backing-max or the sheet's capacity, and wears evenly, as with a log. If the sheet lacks a \
number, the statistics say so and do not guess.

--slow: pages that leave RAM go to slow memory and are read there as they lie; a write copies the page to RAM. With a \
sheet of such a memory, --device gives its energy by the copies and the time; reads in place are not seen. \
The kernel must not swap that memory out: it is locked, or the machine has no swap. A forked child gets a copy of all \
pages, in no budget, before its parent goes on. An io_uring and files with direct I/O (FUSE) are refused: the kernel \
writes past the page table there.

--system lobi lets the engine place each page in a log of erase blocks, collect the blocks and erase them, as \
`coldframe-lab sim --system lobi` does. The statistics then have programs, copies, erases and wear; the journal has all of \
these. --read-ahead still decides about read-ahead. A page that leaves RAM dirty is written even if its bytes have not \
changed, so no page is mapped writable before its first write.

Exit codes: the program's own; 128 + n if signal n ended it; 125 if the pager had to stop it; 126 and 127 as in \
shells; 2 usage; 4 the program cannot be paged on this machine (see `coldframe doctor`); 5 the swap file cannot be \
used.")]
pub struct Args {
    /// RAM for the program's heap and anonymous mappings: a size.
    #[arg(long, required_unless_present = "config")]
    ram: Option<String>,
    /// Configuration file, as `coldframe advise -o` writes it: RAM, policy, handler and read-ahead. Flags come first.
    #[arg(short, value_name = "CONFIG.toml")]
    config: Option<PathBuf>,
    /// Who pages: our pager, the kernel (a memory cgroup and its swap), or the first of them that can.
    #[arg(long, value_parser = ["auto", "pager", "kernel"], default_value = "auto")]
    by: String,
    /// Swap that the kernel uses, made now and taken away at the end (root): zram, a new file, or a new file
    /// behind zswap [default: the swap that is on].
    #[arg(long, value_name = "zram|FILE|zswap:FILE")]
    swap: Option<String>,
    /// Page replacement policy. Without `budget` and `valid`, pa-clock and fifo-sc adapt to the device.
    #[arg(long)]
    policy: Option<String>,
    /// Page fault handler [default: parallel].
    #[arg(long)]
    handler: Option<String>,
    /// Folder (or block device, whose content is lost) for the swap file [default: the folder for temporary files, or /var/tmp
    /// if that is in RAM].
    #[arg(long)]
    backing: Option<PathBuf>,
    /// Slow memory in place of a swap file, in which pages are read where they lie and copied to RAM only when they are written
    /// (DR.Swap): a NUMA node (CXL, persistent memory), or a folder of a tmpfs as a stand-in.
    #[arg(long, value_name = "node:N|PATH", conflicts_with_all = ["backing", "backing_max", "encrypt", "read_ahead", "wait", "system"])]
    slow: Option<String>,
    /// Largest size of the swap file; with --swap, the size of the swap that is made [default there: the machine's RAM, 8GiB and
    /// half of the disk's free room, whichever is least].
    #[arg(long)]
    backing_max: Option<String>,
    /// Largest size of the program's paged memory.
    #[arg(long, default_value = "2046GiB")]
    max_memory: String,
    /// How to wait for the device.
    #[arg(long, value_parser = ["auto", "read", "brief"], default_value = "auto")]
    wait: String,
    /// Number of threads that handle faults.
    #[arg(long, default_value_t = 2)]
    handlers: usize,
    /// Most pages that are read ahead of a sequential stream, 0 to 31; or block:N, also up to N pages (2, 4, 8, 16 or 32)
    /// that left together with the one that is read, if they come back together [default: 16].
    #[arg(long, value_name = "N|block:N")]
    read_ahead: Option<String>,
    /// Pages that are evicted together, 1 to 32 [default: as many as one read of the device hides].
    #[arg(long)]
    evict_batch: Option<u32>,
    /// Encrypt and authenticate the pages in the swap file, with a key that is only in memory.
    #[arg(long)]
    encrypt: bool,
    /// Write the engine's events and commands to this file; `coldframe-lab replay` checks it.
    #[arg(long)]
    journal: Option<PathBuf>,
    /// Write the statistics as JSON to this file.
    #[arg(long)]
    stats: Option<PathBuf>,
    /// Device that prices what the run moved: a shipped sheet's name, or the path of a sheet.
    #[arg(long, value_name = "SHEET")]
    device: Option<String>,
    #[command(flatten)]
    area: AreaArgs,
    /// How to print the statistics on stderr.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
    /// Faults of the device to act out, as JSON: for tests.
    #[arg(long, hide = true)]
    inject: Option<String>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

impl Args {
    /// An option that only our pager knows.
    fn pager_only(&self) -> Option<&'static str> {
        let given = [
            (self.policy.is_some(), "--policy"),
            (self.handler.is_some(), "--handler"),
            (self.backing.is_some(), "--backing"),
            (self.slow.is_some(), "--slow"),
            (self.backing_max.is_some() && self.swap.is_none(), "--backing-max"),
            (self.wait != "auto", "--wait"),
            (self.read_ahead.is_some(), "--read-ahead"),
            (self.evict_batch.is_some(), "--evict-batch"),
            (self.encrypt, "--encrypt"),
            (self.journal.is_some(), "--journal"),
            (self.device.is_some(), "--device"),
            (self.area.given(), "--system"),
            (self.inject.is_some(), "--inject"),
        ];
        given.into_iter().find_map(|(given, name)| given.then_some(name))
    }
}

/// The folder of temporary files, or one on a disk if that folder is in RAM.
pub fn default_backing() -> PathBuf {
    let usual = std::env::temp_dir();
    let disk = PathBuf::from("/var/tmp");
    if is_ram(&usual) && disk.is_dir() {
        disk
    } else {
        usual
    }
}

pub fn run(args: Args, quiet: bool) -> Result<ExitCode, Failure> {
    let options = options(&args)?;
    let binary = program(&args.command)?;
    let asked = Asked { by: &args.by, swap: args.swap.as_deref(), pager_only: args.pager_only() };
    let pager = || {
        manageable(&binary)?;
        find_preload()?;
        allowed(&options.backing)
    };
    match choose(&asked, pager)? {
        Pages::Pager => by_pager(args, options, quiet),
        Pages::Kernel(ready, why) => by_kernel(&args, &options, ready, why, quiet),
    }
}

fn by_kernel(
    args: &Args,
    options: &Options,
    ready: Ready,
    why: Option<Failure>,
    quiet: bool,
) -> Result<ExitCode, Failure> {
    if let Some(why) = why.filter(|_| !quiet) {
        output::tell(&format!("note: {why}. So the kernel pages it, as with --by kernel.\n"));
    }
    let done = go(ready, options.ram, options.backing_max, &args.command)?;
    let json = output::json(&done.summary.json());
    if let Some(path) = &args.stats {
        output::write(Some(path), &json)?;
    }
    match (quiet, args.format.as_str()) {
        (true, _) => {}
        (false, "json") => eprint!("{json}"),
        (false, _) => output::tell(&done.summary.table()),
    }
    Ok(ExitCode::from(done.code))
}

fn by_pager(args: Args, mut options: Options, quiet: bool) -> Result<ExitCode, Failure> {
    let preload = find_preload()?;
    if !quiet && is_ram(&options.backing) {
        output::tell(&format!(
            "warning: {} lies in RAM; give --backing a folder on a disk
",
            options.backing.display()
        ));
    }
    let sheet = args.device.as_deref().map(sheet::find).transpose().map_err(ExperimentError::from)?;
    let slow = options.slow.as_ref().and(sheet.as_ref());
    slow.map(Sheet::bus_memory).transpose().map_err(ExperimentError::from)?;
    let stats = StatsFile::create()?;
    options.stats_fd = Some(stats.fd());
    let preload = preloads(&preload);
    let disk = options.slow.is_none().then(|| Counter::of(&options.backing)).flatten();
    let started = Instant::now();
    let status = start(&args.command, &preload, &options)?.wait_with_signals(Some(stats.mail()))?;
    let took = started.elapsed();
    let disk = disk.and_then(|disk| disk.written());
    let stats = Some(stats).filter(StatsFile::started);
    let (chosen, stats) = (stats.as_ref().and_then(StatsFile::chosen), stats.map(|stats| stats.snapshot()));
    let (seconds, none) = (took.as_secs_f64(), Snapshot::default());
    let moved = stats.as_ref().unwrap_or(&none);
    let price = |sheet: &Sheet| match slow {
        Some(_) => Slow::new(sheet, moved, seconds).map(|slow| (slow.json(), slow.words())),
        None => Priced::new(sheet, moved, options.backing_max, seconds).map(|flash| (flash.json(), flash.words())),
    };
    let priced = sheet.as_ref().map(price).transpose().map_err(ExperimentError::from)?;
    show(&args, &options, &Ended { stats, chosen, priced, disk, status, took }, quiet)?;
    Ok(ExitCode::from(code(status)))
}

/// A finished run.
struct Ended {
    /// `None`: no pager has started.
    stats: Option<Snapshot>,
    chosen: Option<Chosen>,
    /// Bytes that the disk wrote meanwhile, by its own counter.
    disk: Option<u64>,
    /// As JSON and as text.
    priced: Option<(Value, String)>,
    status: ExitStatus,
    took: Duration,
}

fn show(args: &Args, options: &Options, ended: &Ended, quiet: bool) -> Result<(), Failure> {
    let stats = ended.stats.clone().unwrap_or_default();
    let mut report = summary::json(options, &stats, ended.chosen.as_ref(), code(ended.status), ended.took);
    report["device"]["disk_bytes_written"] = ended.disk.into();
    if let Some((priced, _)) = &ended.priced {
        report["priced"] = priced.clone();
    }
    if let Some(path) = &args.stats {
        output::write(Some(path), &output::json(&report))?;
    }
    if quiet || ended.stats.is_none() {
        return Ok(());
    }
    if args.format == "json" {
        eprint!("{}", output::json(&report));
        return Ok(());
    }
    if stats.resident_max == 0 {
        output::tell("note: no memory came to our pager; the program takes none, or starts another one that cannot be paged by it (--by kernel)\n");
    }
    output::tell(&summary::table(options, &stats, ended.chosen.as_ref(), ended.took));
    if let Some(bytes) = ended.disk.filter(|_| stats.device_bytes_written > 0) {
        let times = bytes as f64 / stats.device_bytes_written as f64;
        let mib = bytes as f64 / f64::from(1 << 20);
        output::tell(&format!("all writes to that disk meanwhile: {mib:.1} MiB, {times:.2} times the swap file's\n"));
    }
    if let Some((_, priced)) = &ended.priced {
        output::tell(priced);
    }
    Ok(())
}

/// A folder also for programs that change theirs.
fn slow_place(place: String) -> String {
    match place.starts_with("node:") {
        true => place,
        false => std::path::absolute(&place).map_or(place, |path| path.to_string_lossy().into_owned()),
    }
}

/// Pages ahead of a stream, and slots of a block.
fn read_ahead(text: &str) -> Result<(u32, u32), Failure> {
    let blocks = (1..=5).map(|i| 1 << i);
    let found = match text.split_once(':') {
        None => text.parse().ok().filter(|pages| *pages <= READ_AHEAD_MAX).map(|pages| (pages, 0)),
        Some(("block", slots)) => blocks.into_iter().find(|n: &u32| n.to_string() == slots).map(|n| (READ_AHEAD, n)),
        Some(_) => None,
    };
    let remedy = || Failure::usage(format!("--read-ahead: `{text}`; give 0 to {READ_AHEAD_MAX} pages, or block:8"));
    found.ok_or_else(remedy)
}

fn options(args: &Args) -> Result<Options, Failure> {
    let bytes = |option: &str, text: &str| {
        quantity::bytes(text).map(|b| b.0).map_err(|e| Failure::usage(format!("{option}: {e}")))
    };
    let configured = args.config.as_deref().map(configured::read).transpose()?.unwrap_or_default();
    let Some(ram_text) = args.ram.clone().or(configured.ram) else {
        return Err(Failure::usage("--ram: the configuration says no RAM; give --ram SIZE"));
    };
    let (read_ahead, block) = match args.read_ahead.as_deref() {
        None => (configured.read_ahead.unwrap_or(READ_AHEAD), 0),
        Some(text) => read_ahead(text)?,
    };
    let ram = bytes("--ram", &ram_text)?;
    if ram < (FRAMES_MIN * PAGE) as u64 {
        let least = FRAMES_MIN * PAGE / 1024;
        return Err(Failure::usage(format!("--ram: {ram_text} is too little; give at least {least}KiB")));
    }
    let batches = 1..=32.min((ram / PAGE as u64 / 2) as u32);
    if args.evict_batch.is_some_and(|batch| !batches.contains(&batch)) {
        return Err(Failure::usage(format!("--evict-batch: give {} to {} pages", batches.start(), batches.end())));
    }
    if args.handlers == 0 || args.handlers > 16 {
        return Err(Failure::usage("--handlers: give 1 to 16 threads"));
    }
    let backing = args.backing.clone().unwrap_or_else(default_backing);
    let inject = args.inject.as_deref().map(serde_json::from_str::<Inject>).transpose();
    let usual = Options::new(ram);
    Ok(Options {
        policy: args.policy.clone().or(configured.policy),
        handler: args.handler.clone().or(configured.handler).unwrap_or_else(|| "parallel".into()),
        backing: std::path::absolute(&backing).unwrap_or(backing),
        slow: args.slow.clone().map(slow_place),
        backing_max: args.backing_max.as_deref().map(|text| bytes("--backing-max", text)).transpose()?,
        max_memory: bytes("--max-memory", &args.max_memory)?,
        wait: match args.wait.as_str() {
            "read" => Wait::Read,
            "brief" => Wait::Brief,
            _ => Wait::Auto,
        },
        swap: args.area.area()?,
        handlers: args.handlers,
        encrypt: args.encrypt,
        read_ahead,
        block,
        evict_batch: args.evict_batch,
        journal: args.journal.clone().map(|path| std::path::absolute(&path).unwrap_or(path)),
        inject: inject.map_err(|e| Failure::usage(format!("--inject: {e}")))?,
        ..usual
    })
}

/// The binary that the kernel will load.
pub fn program(command: &[OsString]) -> Result<PathBuf, Failure> {
    let search = std::env::var_os("PATH").unwrap_or_default();
    let (program, arguments) = command.split_first().expect("clap requires one");
    match resolve(program, arguments, &search) {
        Ok(target) => Ok(target.binary),
        Err(error @ RecordError::NotFound(_)) => Err(Failure::Other { message: error.to_string(), code: 127 }),
        Err(error) => Err(Failure::Other { message: error.to_string(), code: 126 }),
    }
}

/// Programs that start another one in another root.
const ROOTS: [&str; 4] = ["chroot", "schroot", "bwrap", "systemd-nspawn"];

/// Whether the preload library can manage the program's heap.
pub fn manageable(binary: &Path) -> Result<(), Failure> {
    let refuse = |why: &str| {
        let message = format!("{} cannot be paged: {why}", binary.display());
        Err(Failure::Other { message, code: 4 })
    };
    let mode = std::fs::metadata(binary).map(|m| m.permissions().mode()).unwrap_or(0);
    if mode & 0o6000 != 0 {
        return refuse(
            "it is setuid or setgid, and the dynamic linker then ignores LD_PRELOAD; run a copy without that bit",
        );
    }
    if binary.file_name().and_then(OsStr::to_str).is_some_and(|name| ROOTS.contains(&name)) {
        return refuse("in the new root the program does not find our library; start coldframe in that root");
    }
    match interpreter(binary) {
        Err(error) => refuse(&format!("{error}")),
        Ok(None) => refuse("it is linked statically, so nothing can take its place of malloc; link it dynamically"),
        Ok(Some(linker)) if linker.to_string_lossy().contains("musl") => {
            refuse("it is linked with musl; only glibc's programs can be paged")
        }
        Ok(Some(linker)) if !linker.exists() => {
            refuse(&format!("it is for another machine: its dynamic linker {} is not here", linker.display()))
        }
        Ok(Some(_)) => Ok(()),
    }
}

/// The preload library.
pub fn find_preload() -> Result<PathBuf, Failure> {
    bundle::library(PRELOAD)?.ok_or_else(|| {
        let exe = std::env::current_exe().unwrap_or_default();
        let folder = exe.parent().unwrap_or(Path::new("."));
        let places: Vec<_> = library_places(folder, PRELOAD).iter().map(|p| p.display().to_string()).collect();
        let places = places.join(", ");
        let message =
            format!("{PRELOAD} not found in {places}; build it with `cargo build --release -p coldframe-preload`");
        Failure::Other { message, code: 4 }
    })
}

/// Reports what this machine lacks before the program starts.
pub fn allowed(backing: &Path) -> Result<(), Failure> {
    let Some(missing) = examine(backing).into_iter().find(|finding| finding.health == Health::Missing) else {
        return Ok(());
    };
    let message = format!("{}: {}; {}", missing.name, missing.found, missing.remedy);
    Err(Failure::Other { message, code: if missing.name == "swap file" { 5 } else { 4 } })
}

/// The libraries that the dynamic linker loads first: ours, then the user's own.
pub fn preloads(preload: &Path) -> OsString {
    let mut list = preload.as_os_str().to_os_string();
    if let Some(own) = std::env::var_os("LD_PRELOAD").filter(|own| !own.is_empty()) {
        list.push(OsStr::new(":"));
        list.push(own);
    }
    list
}

pub fn start(command: &[OsString], preload: &OsStr, options: &Options) -> Result<Running, Failure> {
    let mut process = Command::new(&command[0]);
    process.args(&command[1..]).arg0(&command[0]).env("LD_PRELOAD", preload).env("COLDFRAME_OPTIONS", options.encode());
    Running::start(process, &command[0])
}
