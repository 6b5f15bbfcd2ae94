//! How little RAM this device can live with: what all its processes referenced, what could leave, and what a zram of
//! which size, or swap on its flash, costs in less RAM.
//!
//! ```text
//!   smaps of all processes, cleared bits (device_watch) ─┐
//!   pages at random places, compressed (device_pages) ───┼─► Seen ─ device_answer ─► Device: words, JSON, lines to paste
//!   vmstat, diskstats, pressure, mm_stat (device_counts) ┘     └── --save, --from: on another machine
//! ```
//! Watching changes nothing but the referenced bits, which the kernel reads, too, when it looks for pages to push out.

use std::path::{Path, PathBuf};
use std::time::Duration;

use coldframe_proc::Tree;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::device_answer::{Device, Life, Plan, Size, Swap};
use crate::device_counts::{Disk, Memory, Traffic, Zram};
use crate::device_pages::Pages;
pub use crate::device_trial::{trial, Trial};
use crate::device_watch::watch;
use crate::error::AnswerError;
use crate::listener::Listener;

/// Version of the form of [`Seen`].
const SEEN_VERSION: u32 = 1;

/// What to watch, and where it is kept.
pub struct Order {
    /// How long.
    pub time: Duration,
    /// A window for working sets; `None`: a thirtieth of the time, from 1 s to a minute.
    pub every: Option<Duration>,
    /// A file that has all that was watched so far, at any time.
    pub save: Option<PathBuf>,
    /// Whether watching goes on with what that file has.
    pub resume: bool,
}

/// What was watched of a device.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Seen {
    /// Version of this object's form.
    pub seen_version: u32,
    /// The kernel's release.
    pub kernel: String,
    /// The processors' model.
    pub processor: String,
    /// Seconds that were watched.
    pub seconds: f64,
    /// Processor time that watching took.
    pub own_seconds: f64,
    /// Times that all page tables were read.
    pub reads: u64,
    /// The most processes.
    pub processes: u64,
    /// The machine's memory when it was fullest.
    pub memory: Memory,
    /// Short times between a clearing and a look, in order.
    pub windows: Vec<Window>,
    /// Long ones.
    pub stretches: Vec<Stretch>,
    /// Who had the memory at the end of the last long one, most unused first.
    pub owners: Vec<Owner>,
    /// How pages of it compress.
    pub pages: Pages,
    /// What moved meanwhile.
    pub traffic: Traffic,
    /// The swap that was on: names and bytes, and those in use.
    pub swaps: Vec<(String, u64, u64)>,
    /// Compressed RAM that was on.
    pub zrams: Vec<Zram>,
    /// The disks.
    pub disks: Vec<Disk>,
    /// Whether the kernel has zram.
    pub zram: bool,
    /// What a page costs that comes back from the disk: least, mean and most, in microseconds; null: not measured.
    pub disk_us: Option<[f64; 3]>,
}

/// What was referenced in a window.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// From the clearing to the look.
    pub seconds: f64,
    /// Bytes of the programs' own memory.
    pub own_bytes: u64,
    /// Bytes of files that are mapped.
    pub file_bytes: u64,
}

/// A long time after a clearing.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Stretch {
    /// The programs' own memory, in RAM and swap.
    pub own_bytes: u64,
    /// In order of time.
    pub looks: Vec<Look>,
}

/// What was referenced since the clearing.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Look {
    /// That, and for how long.
    #[serde(flatten)]
    pub window: Window,
    /// Of the programs' own, bytes that were there before: they would have had to come back.
    pub again_bytes: u64,
}

/// Processes that stand for one thing: those of a unit, or of the same name.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Owner {
    /// The systemd unit, or the name of the program.
    pub name: String,
    /// Whether it is a unit.
    pub unit: bool,
    /// One of its processes.
    pub process: u32,
    /// Processes.
    pub processes: u64,
    /// Its own memory, in RAM and swap.
    pub own_bytes: u64,
    /// Of that, not referenced in the last long stretch.
    pub cold_bytes: u64,
}

/// Watches this machine. Ctrl-C ends it with what is known by then.
///
/// # Errors
/// Not root, a container, a kernel without referenced bits, or a file that cannot be written or read.
pub fn look(order: &Order, listener: &dyn Listener) -> Result<Seen, AnswerError> {
    let tree = Tree::machine();
    possible(&tree)?;
    let before = match (&order.save, order.resume) {
        (Some(path), true) if path.exists() => read(path)?,
        (None, true) => return Err(AnswerError::usage("--resume goes on with the file of --save; give --save FILE")),
        _ => Seen::default(),
    };
    watch(&tree, order, before, listener)
}

/// The number of the first namespace of processes (`PROC_PID_INIT_INO` of include/linux/proc_ns.h).
const FIRST: &str = "pid:[4026531836]";

/// Whether all processes of a machine can be seen here.
fn possible(tree: &Tree) -> Result<(), AnswerError> {
    let lacks = |message: &str| Err(AnswerError::new(4, message));
    let own = tree.own_process();
    if std::fs::read_link(own.file("ns/pid")).is_ok_and(|space| space.as_os_str() != FIRST) {
        return lacks(
            "this is a container: only its own processes can be seen here, beside the whole machine's RAM; run it on the \
             machine, or ask about one program: coldframe --pid N",
        );
    }
    if !rustix::process::geteuid().is_root() {
        return lacks("only root may read the page tables of all processes: sudo coldframe device");
    }
    if std::fs::write(own.file("clear_refs"), "1").is_err()
        || !own.smaps().is_ok_and(|text| text.contains("Referenced:"))
    {
        return lacks("this kernel has no referenced bits for programs; it needs CONFIG_PROC_PAGE_MONITOR");
    }
    Ok(())
}

/// Reads what `--save` wrote.
///
/// # Errors
/// The file cannot be read, or is not such a file: the message has the place.
pub fn read(path: &Path) -> Result<Seen, AnswerError> {
    let named = |what: String| AnswerError::new(3, format!("{}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| named(e.to_string()))?;
    let remedy = "give a file that `coldframe device --save FILE` wrote";
    let seen: Seen = serde_json::from_str(&text).map_err(|e| named(format!("{e}; {remedy}")))?;
    match seen.seen_version {
        SEEN_VERSION => Ok(seen),
        other => Err(named(format!("seen_version {other}, and this coldframe reads {SEEN_VERSION}; {remedy}"))),
    }
}

impl Seen {
    /// Writes it, whole or not at all.
    pub(crate) fn write(&self, path: &Path) -> Result<(), AnswerError> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let text = serde_json::to_string(self).expect("it has only numbers and words");
        let done = tempfile::NamedTempFile::new_in(folder).and_then(|file| {
            std::fs::write(file.path(), text)?;
            file.persist(path).map_err(|e| e.error)
        });
        done.map(drop).map_err(|e| AnswerError::new(5, format!("{}: {e}", path.display())))
    }

    /// Begins, or goes on.
    pub(crate) fn begin(&mut self, tree: &Tree) {
        (self.seen_version, self.kernel, self.processor) = (SEEN_VERSION, tree.kernel_release(), tree.processor());
        let module = tree.path(format!("/lib/modules/{}/kernel/drivers/block/zram", self.kernel));
        self.zram = module.is_dir() || tree.path("/sys/class/zram-control").is_dir();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_read_again_and_garbage_has_a_place_and_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let mut seen = Seen {
            seconds: 2.5,
            windows: vec![Window { seconds: 1.0, own_bytes: 7, file_bytes: 8 }],
            ..Seen::default()
        };
        seen.begin(&Tree::machine());
        seen.write(&path).unwrap();
        assert_eq!(read(&path).unwrap(), seen);
        for (text, words) in [("{", "line 1 column 1"), ("{}", "seen_version"), ("[", "--save")] {
            std::fs::write(&path, text).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("a.json") && error.contains("--save"), "{error}");
        }
        seen.seen_version = 9;
        seen.write(&path).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("seen_version 9"));
        assert!(seen.write(Path::new("/nowhere/at/all")).unwrap_err().to_string().contains("/nowhere/at/all"));
    }
}
