//! A memory group: its limit, its processes, what it has counted. It is made by the guard (`crate::guard`).

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::files::{number, write};
use coldframe_proc::{field, text};

pub(crate) mod counters;
pub(crate) mod place;
pub(crate) mod pressure;
pub(crate) mod processes;
pub(crate) mod target;
pub(crate) mod version;

use counters::Counters;
use pressure::{stalled, Stall};
use version::Version;

/// What the processes of a group have done and waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Processor time of all of them.
    pub processor: Duration,
    /// Time in which all of them waited for memory, or all of them for a device: the longer one.
    pub stalled: Duration,
    /// Time in which one of them waited for a processor.
    pub waited: Duration,
}

/// A group.
#[derive(Debug, Clone)]
pub struct Group {
    version: Version,
    folder: PathBuf,
    pressure: PathBuf,
}

impl Group {
    /// A group that is there. `pressure`: the folder of the group that counts pressure, if it is another one.
    pub fn new(version: Version, folder: impl Into<PathBuf>, pressure: Option<PathBuf>) -> Group {
        let folder = folder.into();
        Group { version, pressure: pressure.unwrap_or_else(|| folder.clone()), folder }
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// A file of it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The files that a process writes its number into to be in the group.
    pub fn doors(&self) -> Vec<PathBuf> {
        let mut doors = vec![self.folder.join("cgroup.procs"), self.pressure.join("cgroup.procs")];
        doors.dedup();
        doors
    }

    /// Its processes, those of groups below it too.
    pub fn processes(&self) -> Vec<u32> {
        let mut processes = Vec::new();
        below(&self.folder, &mut |folder| {
            processes.extend(text(&folder.join("cgroup.procs")).lines().filter_map(|line| line.parse::<u32>().ok()));
        });
        processes
    }

    /// Sets the hard limit. The kernel pushes out what is above it, and refuses if it cannot.
    ///
    /// # Errors
    /// The kernel refuses: it could not push out enough, or this user may not write the file.
    pub fn limit(&self, bytes: u64) -> io::Result<()> {
        write(&self.file(self.version.limit_file()), bytes.to_string())
    }

    /// Sets the hard limit of a group whose data never leaves for swap, whatever the machine has. The groups below it
    /// are so, too.
    ///
    /// # Errors
    /// As for [`Group::limit`]; or this kernel has no such group, and the message names the file.
    pub fn limit_without_swap(&self, bytes: u64) -> io::Result<()> {
        self.limit(bytes)?;
        let set = |name: &str, value: u64| match write(&self.file(name), value.to_string()) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done.map_err(|e| io::Error::new(e.kind(), format!("{name}: {e}"))),
        };
        match self.version {
            // Reclaim for the sake of a group's limit leaves anonymous pages alone at zero (`get_scan_count`).
            Version::One => {
                set("memory.swappiness", 0)?;
                // Not every kernel counts RAM and swap together; where one does, its limit says the same once more.
                let _ = set("memory.memsw.limit_in_bytes", bytes);
                Ok(())
            }
            Version::Two => set("memory.swap.max", 0),
        }
    }

    /// The file that stops all of its processes at once, if it is there.
    pub(crate) fn freezer(&self) -> Option<PathBuf> {
        let file = self.pressure.join("cgroup.freeze");
        rustix::fs::access(&file, rustix::fs::Access::WRITE_OK).is_ok().then_some(file)
    }

    /// Bytes charged to it now.
    pub fn usage(&self) -> u64 {
        number(&self.file(self.version.usage_file())).unwrap_or(0)
    }

    /// Bytes of its data in swap now, for which the kernel need not sum its statistics up; `None`: not known.
    pub(crate) fn swapped(&self) -> Option<u64> {
        let number = |name| number(&self.file(name));
        match self.version {
            Version::One => number("memory.memsw.usage_in_bytes").map(|both| both.saturating_sub(self.usage())),
            Version::Two => number("memory.swap.current"),
        }
    }

    /// The most bytes charged to it so far; `None`: this kernel does not keep them.
    pub fn peak(&self) -> Option<u64> {
        number(&self.file(self.version.peak_file()))
    }

    /// What it has counted so far.
    pub fn counters(&self) -> Counters {
        Counters::read(self.version, &self.folder)
    }

    /// What its processes have done and waited for so far; `None`: this kernel does not count it for a group.
    pub fn work(&self) -> Option<Work> {
        let file = |name: &str| text(&self.pressure.join(name));
        let processor = Duration::from_micros(field(&file("cpu.stat"), "usage_usec")?);
        let [memory, device] = ["memory.pressure", "io.pressure"].map(|name| stalled(&file(name)).unwrap_or_default());
        let waited = stalled(&file("cpu.pressure"))?.some;
        Some(Work { processor, stalled: memory.full.max(device.full), waited })
    }

    /// Time that its processes have waited for memory so far; `None`: this kernel does not count it.
    pub fn stall(&self) -> Option<Stall> {
        stalled(&text(&self.pressure.join("memory.pressure")))
    }
}

/// This process, and what it starts from now on, is in these groups.
///
/// # Errors
/// The kernel refuses; the path is the file that did.
pub fn join(doors: &[PathBuf]) -> Result<(), (PathBuf, io::Error)> {
    doors.iter().try_for_each(|door| write(door, "0").map_err(|error| (door.clone(), error)))
}

/// A folder and those below it.
pub(crate) fn below(folder: &Path, each: &mut dyn FnMut(&Path)) {
    each(folder);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below(&entry.path(), each);
        }
    }
}
