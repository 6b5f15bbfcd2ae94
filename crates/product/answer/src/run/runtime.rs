//! Runtimes that size their heap by the limit that they see, or by a setting: what a smaller limit can be paired with.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::run::looks::group::GroupUse;

/// A setting of a runtime, which goes in by the environment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The variable.
    pub name: &'static str,
    /// Its value.
    pub value: String,
}

impl Setting {
    /// For a shell.
    pub fn words(&self) -> String {
        format!("{}={}", self.name, self.value)
    }

    /// The value behind what the user has set already.
    pub fn joined(&self) -> String {
        match std::env::var(self.name) {
            Ok(given) if !given.is_empty() && self.name.ends_with("_OPTIONS") => format!("{given} {}", self.value),
            _ => self.value.clone(),
        }
    }
}

/// A runtime.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runtime {
    /// Java's virtual machine.
    Jvm,
    /// Node's.
    V8,
    /// Go's, which sees no limit.
    Go,
    /// .NET's.
    DotNet,
}

/// The part of a smaller limit that Go's memory limit is: the rest is for what it does not count.
const GO: (f64, f64) = (0.65, 0.9);
/// A limit of which the program cannot leave less than this part has room that its heap does not use.
const USED: f64 = 0.75;
/// The least room for files beside what cannot leave.
const FILES: u64 = 8 << 20;
/// A smaller limit that is nearer is not worth a setting.
const WORTH: f64 = 0.9;
/// Where the JVM takes a half of the memory instead of a quarter (`MinRAMPercentage`, `MaxRAMPercentage`).
const SMALL: u64 = 250 << 20;

impl Runtime {
    /// The runtime of a program. `mapped`: files that it maps.
    pub fn find(binary: &Path, mapped: &BTreeSet<PathBuf>) -> Option<Runtime> {
        let has = |name: &str| mapped.iter().chain([&binary.to_path_buf()]).any(|file| file.ends_with(name));
        let libraries = [
            (["libjvm.so"].as_slice(), Runtime::Jvm),
            (&["libcoreclr.so"], Runtime::DotNet),
            (&["node", "nodejs", "libnode.so"], Runtime::V8),
        ];
        let found = libraries.into_iter().find(|(names, _)| names.iter().any(|name| has(name)));
        // The linker's note of a Go program (`debug/buildinfo` of Go's library).
        let go = || {
            let text = std::fs::read(binary).unwrap_or_default();
            text.windows(GO_NOTE.len()).any(|part| part == GO_NOTE).then_some(Runtime::Go)
        };
        found.map(|(_, runtime)| runtime).or_else(go)
    }

    /// A smaller limit, and the setting with which the program may do in it; `None`: its own rule does as well.
    /// `fast`: the least limit in which it is fast enough by itself; `used`: what its group had there.
    pub fn setting(self, fast: u64, used: &GroupUse) -> Option<(u64, Setting)> {
        let part = |bytes: u64, part: f64| (bytes as f64 * part) as u64;
        if self == Runtime::Go {
            let limit = part(fast, GO.0);
            return Some((limit, Setting { name: "GOMEMLIMIT", value: format!("{}MiB", part(limit, GO.1) >> 20) }));
        }
        // The heap that it gives itself in the limit that is enough.
        let heap = match self {
            Runtime::Jvm if fast < SMALL => fast / 2,
            Runtime::DotNet => part(fast, 0.75),
            _ => fast / 4,
        };
        let files = (used.peak_bytes.saturating_sub(used.fixed_bytes) / 2).max(FILES);
        let limit = used.fixed_bytes + files;
        let worth = used.fixed_bytes <= part(fast, USED) && limit < part(fast, WORTH);
        let mib = heap.div_ceil(1 << 20);
        let setting = match self {
            Runtime::Jvm => Setting { name: "JAVA_TOOL_OPTIONS", value: format!("-Xmx{mib}m") },
            Runtime::DotNet => Setting { name: "DOTNET_GCHeapHardLimit", value: format!("{:x}", mib << 20) },
            _ => Setting { name: "NODE_OPTIONS", value: format!("--max-old-space-size={mib}") },
        };
        worth.then_some((limit, setting))
    }
}

const GO_NOTE: &[u8] = b"\xff Go buildinf:";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_is_known_by_its_library_or_by_the_note_of_its_linker() {
        let mapped = BTreeSet::from([PathBuf::from("/usr/lib/jvm/lib/server/libjvm.so")]);
        assert_eq!(Runtime::find(Path::new("/usr/bin/java"), &mapped), Some(Runtime::Jvm));
        assert_eq!(Runtime::find(Path::new("/usr/bin/node"), &BTreeSet::new()), Some(Runtime::V8));
        let folder = tempfile::tempdir().unwrap();
        let (go, other) = (folder.path().join("server"), folder.path().join("other"));
        std::fs::write(&go, [b"\x7fELF ", GO_NOTE, b" x"].concat()).unwrap();
        std::fs::write(&other, b"\x7fELF Go").unwrap();
        assert_eq!(Runtime::find(&go, &BTreeSet::new()), Some(Runtime::Go));
        assert_eq!(Runtime::find(&other, &BTreeSet::new()), None);
    }

    #[test]
    fn a_setting_is_tried_where_the_heap_leaves_room_in_the_limit() {
        let mib = 1 << 20;
        let used = |fixed: u64, peak: u64| GroupUse {
            fixed_bytes: fixed * mib,
            peak_bytes: peak * mib,
            ..GroupUse::default()
        };
        let (limit, setting) = Runtime::Jvm.setting(400 * mib, &used(150, 190)).unwrap();
        assert_eq!((limit / mib, setting.words().as_str()), (170, "JAVA_TOOL_OPTIONS=-Xmx100m"));
        assert_eq!(Runtime::Jvm.setting(56 * mib, &used(50, 56)), None, "it uses all of the limit");
        let (limit, setting) = Runtime::Go.setting(100 * mib, &used(95, 100)).unwrap();
        assert_eq!((limit / mib, setting.value.as_str()), (65, "58MiB"));
    }
}
