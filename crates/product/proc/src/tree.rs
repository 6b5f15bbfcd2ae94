//! The kernel's files, below one folder: `/`, or a folder of a test. And what they say about the machine as a whole.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::error::ProcError;
use crate::process::Process;
use crate::text::{field, numbers_in, printable, text, unescaped};

/// The folder that holds `proc`, `sys` and `dev`.
#[derive(Debug, Clone)]
pub struct Tree(PathBuf);

/// A line of `/proc/swaps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwapArea {
    /// Its device or file.
    pub path: PathBuf,
    /// Bytes.
    pub size: u64,
    /// Bytes in use.
    pub used: u64,
    /// The kernel fills the area of the highest priority first.
    pub priority: i64,
}

impl SwapArea {
    /// Whether it is compressed RAM.
    pub fn is_zram(&self) -> bool {
        self.zram().is_some()
    }

    /// The name of the device of compressed RAM, as `zram0`; `None`: it is none.
    pub fn zram(&self) -> Option<&str> {
        let path = self.path.to_str().filter(|path| path.starts_with("/dev/zram"))?;
        path.strip_prefix("/dev/")
    }

    /// Its path, as it can be shown.
    pub fn name(&self) -> String {
        printable(&self.path.to_string_lossy())
    }
}

/// A line of `/proc/self/mounts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where it is mounted, as a path of the machine.
    pub folder: String,
    /// The file system.
    pub kind: String,
    /// Its options.
    pub options: Vec<String>,
}

impl Tree {
    /// This machine.
    pub fn machine() -> Tree {
        Tree("/".into())
    }

    /// A made tree.
    pub fn new(root: impl Into<PathBuf>) -> Tree {
        Tree(root.into())
    }

    /// Where a path of the machine is.
    pub fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        self.0.join(absolute.as_ref().strip_prefix("/").unwrap_or(absolute.as_ref()))
    }

    /// The text of a file; empty if it cannot be read.
    pub fn text(&self, absolute: impl AsRef<Path>) -> String {
        text(&self.path(absolute))
    }

    /// A process by its number, whether it is there or not.
    pub fn process(&self, pid: u32) -> Process {
        Process::new(pid, self.path(format!("/proc/{pid}")))
    }

    /// This process, also where its own number is not the one in `/proc`.
    pub fn own_process(&self) -> Process {
        Process::new(std::process::id(), self.path("/proc/self"))
    }

    /// The numbers of all processes.
    pub fn processes(&self) -> Vec<u32> {
        numbers_in(&self.path("/proc"))
    }

    /// The process that a number or the name of its program stands for. Its descendants may have the same name.
    pub fn named(&self, name: &str) -> Result<u32, ProcError> {
        if let Ok(pid) = name.parse() {
            return Ok(pid);
        }
        let is = |pid: &u32| {
            let program = self.process(*pid).name();
            // The kernel keeps 15 bytes of a name.
            *pid != std::process::id() && program.len() == name.len().min(15) && name.starts_with(&program)
        };
        let mut pids: Vec<u32> = self.processes().into_iter().filter(is).collect();
        for pid in pids.clone() {
            let descendants = self.process(pid).with_descendants();
            pids.retain(|other| *other == pid || !descendants.contains(other));
        }
        let line = |pid: &u32| format!("{pid} ({})", printable(&self.process(*pid).command_line().join(" ")));
        match pids[..] {
            [pid] => Ok(pid),
            [] => Err(ProcError::Unnamed(name.into())),
            _ => Err(ProcError::Several(name.into(), pids.iter().map(line).collect::<Vec<_>>().join(", "))),
        }
    }

    /// Bytes of a field of `/proc/meminfo`; zero if it is not there.
    pub fn meminfo(&self, name: &str) -> u64 {
        field(&self.text("/proc/meminfo"), name).unwrap_or(0)
    }

    /// The sum of these counters of `/proc/vmstat`; a kernel that has none of them counts zero.
    pub fn vmstat(&self, names: &[&str]) -> u64 {
        let counters = self.text("/proc/vmstat");
        names.iter().filter_map(|name| field(&counters, name)).sum()
    }

    /// The swap that is on.
    pub fn swap_areas(&self) -> Vec<SwapArea> {
        swap_areas(&std::fs::read(self.path("/proc/swaps")).unwrap_or_default())
    }

    /// What is mounted for this process.
    pub fn mounts(&self) -> Vec<Mount> {
        mounts(&self.text("/proc/self/mounts"))
    }

    /// Whether zswap compresses pages on their way to swap.
    pub fn zswap(&self) -> bool {
        self.text("/sys/module/zswap/parameters/enabled") == "Y"
    }

    /// The kernel's release, as `6.12.9`.
    pub fn kernel_release(&self) -> String {
        self.text("/proc/sys/kernel/osrelease")
    }

    /// The model of the processors as the kernel knows it: x86 has its name, ARM its numbers.
    pub fn processor(&self) -> String {
        processor(&self.text("/proc/cpuinfo"))
    }

    /// The mean number of threads that ran or waited for a processor or a disk in the last minute; 0 if the kernel does
    /// not report it.
    pub fn load(&self) -> f64 {
        self.text("/proc/loadavg").split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
    }

    /// Seconds of work of all processors since the machine started; `None`: the kernel does not report it.
    pub fn busy_seconds(&self) -> Option<f64> {
        busy_seconds(&self.text("/proc/stat"))
    }
}

/// `NAME TYPE SIZE USED PRIORITY`, in KiB, after a line of heads.
fn swap_areas(text: &[u8]) -> Vec<SwapArea> {
    let area = |line: &[u8]| {
        let words: Vec<_> = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
        let number = |column: usize| std::str::from_utf8(words.get(column)?).ok()?.parse::<i64>().ok();
        let bytes = |column| Some(u64::try_from(number(column)?).ok()? * 1024);
        let path = OsString::from_vec(unescaped(words.first()?)).into();
        Some(SwapArea { path, size: bytes(2)?, used: bytes(3)?, priority: number(4).unwrap_or(0) })
    };
    text.split(|byte| *byte == b'\n').skip(1).filter_map(area).collect()
}

/// `DEVICE FOLDER TYPE OPTION,OPTION 0 0`.
fn mounts(text: &str) -> Vec<Mount> {
    let mount = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let (folder, kind, options) = (words.next()?, words.next()?, words.next()?);
        let options = options.split(',').map(String::from).collect();
        Some(Mount { folder: folder.into(), kind: kind.into(), options })
    };
    text.lines().filter_map(mount).collect()
}

fn processor(cpuinfo: &str) -> String {
    let value = |key: &str| {
        let pair = |line: &str| line.split_once(':').map(|(k, v)| (k.trim().to_string(), v.trim().to_string()));
        cpuinfo.lines().filter_map(pair).find(|(k, v)| k == key && !v.is_empty()).map(|(_, v)| v)
    };
    let numbers = || Some(format!("{} {}", value("CPU implementer")?, value("CPU part")?));
    let named = value("model name").or_else(|| value("Processor")).or_else(|| value("cpu model"));
    named.or_else(numbers).unwrap_or_else(|| std::env::consts::ARCH.into())
}

/// The first line of `/proc/stat`, in ticks of a hundredth (`proc_stat(5)`): without idle and iowait, and without
/// guests, which are part of `user`, too.
fn busy_seconds(stat: &str) -> Option<f64> {
    let ticks: Vec<f64> = stat.lines().next()?.split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect();
    Some(ticks.iter().enumerate().filter(|(i, _)| matches!(i, 0..=2 | 5..=7)).map(|(_, n)| n / 100.0).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_areas_have_sizes_and_priorities_and_a_short_line_is_none() {
        let text = "Filename Type Size Used Priority\n/dev/vda2 partition 1000 8 -2\n/dev/zram0 partition 20 4 \
                    100\nnonsense\n";
        let all = swap_areas(text.as_bytes());
        let area = SwapArea { path: "/dev/vda2".into(), size: 1000 << 10, used: 8 << 10, priority: -2 };
        assert_eq!((&all[0], all.len()), (&area, 2));
        assert!(all[1].is_zram() && !area.is_zram());
        assert_eq!(swap_areas(b""), []);
        // A tab, a space, a newline, a backslash, and a byte that is no UTF-8.
        let named = swap_areas(b"Filename\n/a\\011b\\040c\\012d\\134e\xff file 20 4 -2\n").remove(0);
        assert_eq!(named.path, PathBuf::from(OsString::from_vec(b"/a\tb c\nd\\e\xff".to_vec())));
        assert_eq!(named.name(), "/a?b c?d\\e\u{fffd}");
    }

    #[test]
    fn mounts_have_a_folder_a_kind_and_options() {
        let all = mounts("cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\nshort line\n");
        assert_eq!((all.len(), all[0].folder.as_str(), all[0].kind.as_str()), (1, "/sys/fs/cgroup", "cgroup2"));
        assert_eq!(all[0].options, ["rw", "nsdelegate"]);
    }

    #[test]
    fn a_processor_has_a_name_or_numbers_or_at_least_an_architecture() {
        let x86 = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) @ 2.10GHz\nflags\t\t: fpu vme\n";
        assert_eq!(processor(x86), "Intel(R) Xeon(R) @ 2.10GHz");
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(processor(arm), "0x41 0xd0c");
        assert_eq!(processor(""), std::env::consts::ARCH);
    }

    #[test]
    fn processors_that_are_idle_or_wait_for_disks_do_no_work() {
        assert_eq!(
            busy_seconds("cpu  100 20 30 9999 888 7 6 5 77 66\ncpu0 1\n")
                .map(|seconds| (seconds * 100.0).round() / 100.0),
            Some(1.68)
        );
        assert_eq!(busy_seconds(""), None);
        assert!(Tree::machine().busy_seconds().unwrap() > 0.0 && !Tree::machine().kernel_release().is_empty());
    }
}
