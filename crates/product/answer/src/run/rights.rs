//! Finds out by trials what this machine allows.

use std::io::ErrorKind;
use std::path::Path;

use coldframe_live::trials;
use coldframe_proc::Tree;
use schemars::JsonSchema;
use serde::Serialize;

/// The state of something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    /// As it should be.
    Good,
    /// It works, but not as well as it could.
    Warning,
    /// `coldframe run` cannot work without it.
    Missing,
    /// For your information.
    Note,
}

/// One thing that was examined.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Finding {
    /// Its name.
    pub name: &'static str,
    /// Its state.
    pub health: Health,
    /// What it is like.
    pub state: String,
    /// The remedy, in one line; empty if none is needed.
    pub remedy: String,
}

fn finding(name: &'static str, health: Health, state: impl Into<String>, remedy: &str) -> Finding {
    Finding { name, health, state: state.into(), remedy: if health == Health::Good { "" } else { remedy }.to_string() }
}

/// Examines everything but times; `backing` is the folder of the swap file.
pub fn examine(backing: &Path) -> Vec<Finding> {
    let mut findings = vec![kernel(), full_rights(), user_rights()];
    findings.extend(trials_of_pages());
    findings.extend([rings(), huge_pages()]);
    findings.extend(cgroup());
    findings.extend([swap(), folder(backing)]);
    findings
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_string())
}

fn kernel() -> Finding {
    let release = Tree::machine().kernel_release();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    finding("kernel", Health::Note, format!("Linux {release}, {cpus} CPUs"), "")
}

/// The finding about the right that everything needs.
pub const RIGHT: &str = "userfaultfd, faults of the kernel too";

/// What gives the right to page here, in one line. The default profiles of Docker and Podman refuse the system call
/// userfaultfd, and allow ioctl on its device.
fn right() -> &'static str {
    if Path::new("/dev/userfaultfd").exists() {
        "sudo coldframe doctor --setup (once; then log in again)"
    } else if ["/.dockerenv", "/run/.containerenv"].iter().any(|mark| Path::new(mark).exists()) {
        "start the container with --device /dev/userfaultfd; or add to its seccomp profile: {\"names\": \
         [\"userfaultfd\"], \"action\": \"SCMP_ACT_ALLOW\"}"
    } else {
        "sudo sysctl -w vm.unprivileged_userfaultfd=1, or root"
    }
}

fn full_rights() -> Finding {
    let sysctl = read("/proc/sys/vm/unprivileged_userfaultfd").unwrap_or_else(|| "unknown".to_string());
    reported(RIGHT, trials::reports_faults(true), &format!(" (vm.unprivileged_userfaultfd={sysctl})"))
}

fn user_rights() -> Finding {
    reported("userfaultfd, faults of the program", trials::reports_faults(false), "")
}

/// Whether faults are reported; a kernel that cannot is told from one that may not.
fn reported(name: &'static str, tried: std::io::Result<()>, setting: &str) -> Finding {
    let Err(error) = tried else { return finding(name, Health::Good, "allowed", "") };
    match error.kind() {
        ErrorKind::InvalidInput | ErrorKind::Unsupported => {
            let state = format!("this kernel cannot protect pages against writes ({error})");
            finding(name, Health::Missing, state, "Linux 6.1 or newer, on ARM 6.10, with CONFIG_USERFAULTFD")
        }
        _ => finding(name, Health::Missing, format!("{error}{setting}"), right()),
    }
}

/// Trials of the kernel that only have two outcomes.
fn trials_of_pages() -> [Finding; 3] {
    let trial = |name, works: bool, [good, bad]: [&str; 2], otherwise, remedy| {
        let health = if works { Health::Good } else { otherwise };
        finding(name, health, if works { good } else { bad }, remedy)
    };
    [
        trial(
            "pages move without copying",
            trials::moves_pages(),
            ["UFFDIO_MOVE is there", "no UFFDIO_MOVE"],
            Health::Warning,
            "Linux 6.8 or newer; until then a false fault copies",
        ),
        trial(
            "scattered pages leave with one flush",
            trials::drops_scattered(),
            ["process_madvise(MADV_DONTNEED) on oneself works", "process_madvise(MADV_DONTNEED) is refused"],
            Health::Warning,
            "Linux 6.13 or newer; until then each page costs a TLB flush of its own",
        ),
        trial(
            "pages are held in a pipe",
            trials::holds_in_pipe(),
            ["vmsplice works", "vmsplice is refused"],
            Health::Missing,
            "allow vmsplice (seccomp)",
        ),
    ]
}

fn rings() -> Finding {
    let disabled = read("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    match io_uring::IoUring::new(2) {
        Ok(_) => finding("io_uring", Health::Good, "allowed", ""),
        Err(error) => {
            let state = format!("{error} (kernel.io_uring_disabled={disabled})");
            finding(
                "io_uring",
                Health::Warning,
                state,
                "sudo sysctl -w kernel.io_uring_disabled=0; without it reads are plain and overlap with nothing",
            )
        }
    }
}

fn huge_pages() -> Finding {
    let setting = read("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_else(|| "unknown".to_string());
    finding("transparent huge pages", Health::Note, format!("{setting}; off for managed memory"), "")
}

fn cgroup() -> Option<Finding> {
    let v2 = read("/sys/fs/cgroup/memory.max").map(|max| format!("version 2, memory.max {max}"));
    let v1 = || read("/sys/fs/cgroup/memory/memory.limit_in_bytes").map(|max| format!("version 1, limit {max} bytes"));
    v2.or_else(v1).map(|state| finding("memory cgroup", Health::Note, state, ""))
}

fn swap() -> Finding {
    let count = Tree::machine().swap_areas().len();
    let state = if count == 0 { "none".to_string() } else { format!("{count} in use") };
    finding("kernel swap", Health::Note, format!("{state}; the pager does not need it"), "")
}

/// Bytes that a file system must have free.
const FREE_MIN: u64 = 64 << 20;

fn folder(path: &Path) -> Finding {
    let name = "swap file";
    if let Err(error) = trials::takes_swap_file(path) {
        return finding(name, Health::Missing, error.to_string(), "give a folder or block device with --backing");
    }
    let (kind, free) = file_system(path);
    let shown = path.display();
    if is_ram(path) {
        let remedy = "it lies in RAM: give a folder on a disk with --backing";
        return finding(name, Health::Warning, format!("{shown} is {kind}"), remedy);
    }
    if free < FREE_MIN {
        let state = format!("{shown}: {free} bytes free");
        return finding(name, Health::Warning, state, "make room, or --backing elsewhere");
    }
    finding(name, Health::Good, format!("{shown}: {kind}, {} MiB free", free >> 20), "")
}

/// How fast the swap file's folder is.
pub fn latency(path: &Path) -> Finding {
    match trials::measure(path) {
        Ok(m) => {
            let state = format!("a page of 4 KiB comes back in {:.1} us (median)", m.read_ns as f64 / 1e3);
            finding("measured", Health::Note, state, "")
        }
        Err(error) => {
            // An error of the pager ends with its remedy.
            let message = error.to_string();
            let (state, remedy) = message.rsplit_once("; ").unwrap_or((&message, "give another --backing"));
            finding("measured", Health::Missing, state, remedy)
        }
    }
}

/// Whether a folder lies in RAM.
pub fn is_ram(path: &Path) -> bool {
    matches!(file_system(path).0.as_str(), "tmpfs" | "ramfs")
}

/// Name of a path's file system, and the bytes free on it. The magic numbers are those of statfs(2).
pub fn file_system(path: &Path) -> (String, u64) {
    let Ok(status) = rustix::fs::statfs(path) else { return ("unknown".to_string(), 0) };
    #[allow(clippy::unnecessary_cast)]
    let name = match status.f_type as i64 {
        0xEF53 => "ext4".to_string(),
        0x0102_1994 => "tmpfs".to_string(),
        0x8584_58f6 => "ramfs".to_string(),
        0x9123_683E => "btrfs".to_string(),
        0x5846_5342 => "xfs".to_string(),
        0x794c_7630 => "overlayfs".to_string(),
        0xF2F5_2010 => "f2fs".to_string(),
        0x6969 => "nfs".to_string(),
        other => format!("file system {other:#x}"),
    };
    #[allow(clippy::unnecessary_cast)]
    (name, status.f_bavail as u64 * status.f_bsize as u64)
}
