//! The options of a pager. Plain data: the command line fills them in and passes them to the preload library as one
//! line of JSON.

use std::path::PathBuf;

use coldframe_recording::plan::SEGMENT;
pub use coldframe_recording::plan::{FRAMES_MIN, PAGE, READ_AHEAD, READ_AHEAD_MAX};
use serde::{Deserialize, Serialize};

/// How a thread waits for the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// Measured at the start: `Read` if the device is about as fast as RAM, or if there is no io_uring; otherwise
    /// `Brief`.
    Auto,
    /// A plain synchronous read: the least work, nothing overlaps.
    Read,
    /// Poll the completion queue for about one device time, then sleep.
    Brief,
}

/// How a program is recorded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Recorder {
    /// The folder for the files, one for each program and each forked child.
    pub folder: PathBuf,
    /// A window of exactly this many pages, with all pages sampled; `None`: both adapt to the program's speed.
    pub window: Option<usize>,
    /// Nanoseconds that entries may take in all before they are limited strictly. So a short program is recorded in
    /// more detail, at less than half its speed.
    #[serde(default)]
    pub patience: u64,
}

/// A swap area whose tables the engine keeps.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SwapArea {
    /// Its size in bytes. `None`: a quarter more than the managed memory, but at most [`SwapArea::MOST`] and three
    /// quarters of the swap file's limit. If the area has no room for a page, the page goes outside of the area in the
    /// swap file.
    pub bytes: Option<u64>,
    /// The rule that chooses the blocks to collect: a name of `coldframe_core::swap::collect`.
    pub collector: String,
    /// The most blocks that one collection takes, 1 to 4.
    pub victims: u32,
}

impl SwapArea {
    /// Bytes of an erase block: LOBI's 32 slots of 4 KiB.
    pub const BLOCK: u64 = (SEGMENT * PAGE) as u64;

    /// The default upper limit: the tables of a block take RAM.
    pub const MOST: u64 = 16 << 30;

    /// A collection starts below this many blocks of erased slots: the survivors of four victims, and an open block
    /// for each stream.
    pub const START: u32 = 6;
}

/// The options of a pager.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Options {
    /// RAM for all managed pages together, in bytes; rounded down to whole pages, at least [`FRAMES_MIN`] of them.
    pub ram: u64,
    /// `ram` is for all programs with the same statistics together: each has frames while it needs them. Only for
    /// [`crate::Pager::start_for_program`]; a recording, a swap area and slow memory are for one process each.
    #[serde(default)]
    pub one_budget: bool,
    /// `ram` is for all memory of the run, of which the managed pages have what the rest leaves. Who has made the
    /// statistics measures that ([`crate::StatsFile::set_beside`]); the pager does not read this.
    #[serde(default)]
    pub in_all: bool,
    /// As on the command line (`fifo`, `pa-clock:budget=13`); `None`: chosen for the device at the start. The
    /// calibration supplies a missing `budget` of `pa-clock`, and a missing `valid` of `fifo-sc` or `pa-fifo-sc`.
    pub policy: Option<String>,
    /// Name of the fault handler.
    pub handler: String,
    /// Managed address space in bytes. Unused space costs nothing; used space costs about 30 bytes a page.
    /// [`Options::MAX_MEMORY`] means as much as possible: if this process may not have that many addresses, half of
    /// it, and so on.
    pub max_memory: u64,
    /// The start of the managed address space; `None`: the kernel chooses.
    pub base: Option<u64>,
    /// Folder for the swap file, which is unlinked when it is opened; or a block device, whose content is lost.
    pub backing: PathBuf,
    /// Slow memory in place of a swap file, where pages are read in place: `node:N`, or a folder of a tmpfs.
    #[serde(default)]
    pub slow: Option<String>,
    /// The most bytes the swap file may take; `None`: as many as the folder has.
    pub backing_max: Option<u64>,
    /// How to wait for the device.
    pub wait: Wait,
    /// A swap area whose tables the engine keeps. `None`: the pager places pages itself, in a log that reuses free
    /// slots and leaves unchanged pages in place.
    pub swap: Option<crate::SwapArea>,
    /// Number of threads of the pager that handle faults, at least 1. They need no rights. With rights (root,
    /// CAP_SYS_PTRACE, access to `/dev/userfaultfd`, or `vm.unprivileged_userfaultfd=1`) they also serve system calls
    /// on absent pages. Without rights such calls fail with EFAULT; `pin` the range first.
    pub handlers: usize,
    /// Keep pages encrypted and authenticated on the backing, with a key that lives only in memory.
    pub encrypt: bool,
    /// The file for the journal. If it is a folder: a file `PID.N` in it for each program that is started.
    pub journal: Option<PathBuf>,
    /// Record the program, and keep all of its memory in RAM. `ram`, policy, read-ahead and device then have no effect.
    #[serde(default)]
    pub record: Option<crate::Recorder>,
    /// The most pages read ahead of a sequential stream, at most 31; 0: none.
    pub read_ahead: u32,
    /// A page that is touched for the first time brings untouched pages beside it (`core/src/fault/first_touch.rs`).
    #[serde(default)]
    pub first_touches_in_blocks: bool,
    /// Slots of the largest aligned block of the swap file from which a page is read with those that left together with
    /// it, if such pages come back together: a power of two, at most 32; 0: none.
    #[serde(default)]
    pub block: u32,
    /// Victims that are evicted together, at most 32; `None`: as many as a read of the device hides, fewer if RAM is
    /// small.
    pub evict_batch: Option<u32>,
    /// The descriptor of a [`crate::StatsFile`] for the statistics; `None`: the pager makes its own.
    pub stats_fd: Option<i32>,
    /// Failures of the device to inject, for tests: see [`crate::Inject`].
    pub inject: Option<crate::Inject>,
}

impl Options {
    /// The most managed address space: from [`coldframe_recording::span::BASE`] to 2 TiB, since an engine counts less
    /// than 2^29 pages.
    pub const MAX_MEMORY: u64 = (2 << 40) - coldframe_recording::span::BASE;

    /// The defaults, for `ram` bytes of RAM.
    pub fn new(ram: u64) -> Options {
        Options {
            ram,
            one_budget: false,
            in_all: false,
            policy: None,
            handler: coldframe_recording::plan::HANDLER.to_string(),
            max_memory: 64 << 30,
            base: None,
            backing: std::env::temp_dir(),
            slow: None,
            backing_max: None,
            wait: Wait::Auto,
            swap: None,
            handlers: 2,
            encrypt: false,
            journal: None,
            record: None,
            read_ahead: READ_AHEAD,
            first_touches_in_blocks: true,
            block: 0,
            evict_batch: None,
            stats_fd: None,
            inject: None,
        }
    }

    /// As one line of text, for an environment variable.
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("plain data has a JSON form")
    }

    /// From the text of [`Options::encode`].
    ///
    /// # Errors
    /// The text does not have that form.
    pub fn decode(text: &str) -> Result<Options, crate::LiveError> {
        serde_json::from_str(text).map_err(|e| crate::LiveError::setting("options", format!("cannot be read: {e}")))
    }
}
