//! What a pager is made from. Plain data: the command line fills it in and hands it to the preload library as one line of JSON.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// The least RAM, in frames: a batch of victims, the pages of some instructions in flight, and some that stay.
pub const FRAMES_MIN: usize = 64;

/// The most pages of read-ahead: with the page of the fault they are half the loads that can be in flight.
pub const READ_AHEAD_MAX: u32 = crate::task::LOADS as u32 / 2 - 1;

/// Who handles a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Faults {
    /// The thread that faulted, in a SIGBUS handler: no other thread has to be woken, which halves the time of a fault that the log or
    /// an empty page answers. For programs that keep its conditions:
    ///
    /// - No thread touches a region while it has SIGBUS blocked: the kernel ends the process for that, and nobody can prevent it.
    /// - A handler of the program's own for SIGBUS is set before the first pager starts; what is not ours goes on to it. One that is set
    ///   later takes our faults away; the next call to the pager says so.
    /// - A system call on an absent page fails with EFAULT: `pin` it first.
    ///
    /// What stack a thread has does not matter. At most 64 faults are under way at a time, others wait.
    InThread,
    /// So many threads of the pager's own. Needs no rights. With rights (root, CAP_SYS_PTRACE, access to `/dev/userfaultfd`, or
    /// `vm.unprivileged_userfaultfd=1`) system calls on absent pages are served too; without, they fail with EFAULT, and `pin` helps.
    Handlers(usize),
}

/// How a thread waits for the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// Measured at the start: `Read` for a device about as fast as RAM and where there is no io_uring, else `Brief`.
    Auto,
    /// A plain synchronous read: the least work, nothing overlaps.
    Read,
    /// Poll the completion queue for about one device time, then sleep.
    Brief,
    /// Poll until it is there; costs a core.
    Poll,
    /// Sleep at once.
    Sleep,
}

/// Whether pages that leave stay in RAM, compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// No: they go to the backing.
    #[default]
    None,
    /// With lz4, in `ram`, as much of it as that pays. Not in a recording, and not beside a swap area.
    Lz4,
}

impl Tier {
    /// The variable of the environment that says what [`Options::new`] has: `lz4` or `none`. For tests, all of which can run with a tier: only a
    /// build with debug assertions reads it.
    pub const VARIABLE: &'static str = "COLDFRAME_TIER";

    /// By its name.
    pub fn parse(name: &str) -> Option<Tier> {
        [("none", Tier::None), ("lz4", Tier::Lz4)].into_iter().find(|(known, _)| *known == name).map(|(_, tier)| tier)
    }

    fn usual() -> Tier {
        let read = || std::env::var(Tier::VARIABLE).ok().and_then(|name| Tier::parse(&name));
        cfg!(debug_assertions).then(read).flatten().unwrap_or_default()
    }
}

/// What a pager is made from.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Options {
    /// RAM for all managed pages together, in bytes; rounded down to whole pages, at least [`FRAMES_MIN`] of them.
    pub ram: u64,
    /// As on the command line (`fifo`, `pa-clock:budget=13`); `None`: chosen for the device at the start. A `pa-clock` without
    /// budget and a `fifo-sc` or `pa-fifo-sc` without `valid` are filled in from what the calibration measures.
    pub policy: Option<String>,
    /// Name of the fault handler.
    pub handler: String,
    /// Managed address space in bytes. Costs nothing until it is used, then about 30 bytes a page. [`Options::MAX_MEMORY`] means as much
    /// as there can be: where this process may not have that many addresses, the half, and so on.
    pub max_memory: u64,
    /// Where the managed address space lies; `None`: wherever the kernel likes.
    pub base: Option<u64>,
    /// Folder for the swap file, which is unlinked when it is opened; or a block device, whose content is lost.
    pub backing: PathBuf,
    /// The most bytes the swap file may take; `None`: as many as the folder has.
    pub backing_max: Option<u64>,
    /// How to wait for the device.
    pub wait: Wait,
    /// A swap area of which the engine keeps the books; `None`: the pager places pages itself, in a log that fills holes and leaves
    /// unchanged pages where they are.
    pub swap: Option<crate::SwapArea>,
    /// Whether pages that leave stay in RAM, compressed.
    #[serde(default)]
    pub tier: Tier,
    /// Who handles a fault.
    pub faults: Faults,
    /// Keep pages encrypted and authenticated on the backing, with a key that lives only in memory.
    pub encrypt: bool,
    /// Where the journal goes; a folder: a file in it for each program that is started, `PID.N`.
    pub journal: Option<PathBuf>,
    /// The journal is for a recorder: it names the thread of each fault, and no page is mapped writable before it is written to, so that
    /// its dirty bits are exact. Costs a fault for each first write.
    pub observe: bool,
    /// Record the program, all of whose memory stays in RAM: `ram`, policy, read-ahead and device do not matter then.
    #[serde(default)]
    pub record: Option<crate::Recorder>,
    /// The most pages read ahead of a sequential stream, at most 31; 0: none.
    pub read_ahead: u32,
    /// Victims that leave together, at most 32; `None`: as many as a read of the device hides, fewer where RAM is small.
    pub evict_batch: Option<u32>,
    /// Before the program asks or says where threads may run, or makes one or a process, it calls [`crate::Pager::let_go`]: then the thread whose
    /// faults come fast stays on the processor of its handler from one to the next.
    #[serde(default)]
    pub lets_go: bool,
    /// A file descriptor (a memfd of at least `Stats::BYTES`) for the statistics; `None`: the pager makes its own.
    pub stats_fd: Option<i32>,
    /// Faults of the device to act out, for tests: see [`crate::Inject`].
    pub inject: Option<crate::Inject>,
}

impl Options {
    /// The most managed address space: what lies between [`crate::span::BASE`] and 2 TiB, since an engine counts less than 2^29 pages.
    pub const MAX_MEMORY: u64 = (2 << 40) - crate::span::BASE;

    /// The defaults, for so many bytes of RAM.
    pub fn new(ram: u64) -> Options {
        Options {
            ram,
            policy: None,
            handler: "parallel".to_string(),
            max_memory: 64 << 30,
            base: None,
            backing: std::env::temp_dir(),
            backing_max: None,
            wait: Wait::Auto,
            swap: None,
            tier: Tier::usual(),
            faults: Faults::Handlers(2),
            encrypt: false,
            journal: None,
            observe: false,
            record: None,
            read_ahead: 16,
            evict_batch: None,
            lets_go: false,
            stats_fd: None,
            inject: None,
        }
    }

    /// Threads that handle faults; none where the thread does that faulted.
    pub(crate) fn handlers(&self) -> usize {
        match self.faults {
            Faults::InThread => 0,
            Faults::Handlers(count) => count.max(1),
        }
    }

    /// As one line of text, for an environment variable.
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("plain data has a JSON form")
    }

    /// From the text of [`Options::encode`].
    ///
    /// # Errors
    /// Text that is not of that form.
    pub fn decode(text: &str) -> Result<Options, crate::LiveError> {
        serde_json::from_str(text)
            .map_err(|e| crate::LiveError::Setting { field: "options", reason: format!("cannot be read: {e}") })
    }
}
