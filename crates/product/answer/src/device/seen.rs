//! What was watched of a device: what `--save` writes and `--from` reads.

use std::path::Path;

use coldframe_proc::Tree;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::device::counts::{Disk, MachineMemory, Traffic, Zram};
use crate::error::AnswerError;
use crate::machine::killers::present;
use crate::predict::bits::look::{Look, Stretch};
use crate::predict::bits::page_sample::PageSample;

/// Version of the form of [`Seen`].
const SEEN_VERSION: u32 = 1;

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
    pub memory: MachineMemory,
    /// Short times between a clearing and a look, in order.
    pub windows: Vec<Look>,
    /// Long ones.
    pub stretches: Vec<Stretch>,
    /// Who had the memory at the end of the last long one, most unused first.
    pub owners: Vec<Owner>,
    /// How pages of it compress.
    pub pages: PageSample,
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
    /// The system, as it calls itself.
    #[serde(default)]
    pub system: String,
    /// The programs that kill when memory runs out that this machine has.
    #[serde(default)]
    pub killers: Vec<String>,
    /// What a page costs that comes back from the disk: least, mean and most, in microseconds; null: not measured.
    pub disk_us: Option<[f64; 3]>,
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
    /// What the group of a unit is charged, with files and the kernel's own; 0: not known.
    #[serde(default)]
    pub charged_bytes: u64,
    /// The part of the time that it had a processor, of one; null: not seen.
    #[serde(default)]
    pub busy: Option<f64>,
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
        self.killers = present(tree);
        let release = tree.text("/etc/os-release");
        let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
        self.system = name.unwrap_or_default().trim_matches('"').into();
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
            windows: vec![Look { seconds: 1.0, referenced_bytes: 7, file_bytes: 8, ..Look::default() }],
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
