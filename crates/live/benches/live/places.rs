//! Parts of the machine that the kernel's peers need: zram devices, a swap file, a memory cgroup. Each is removed when
//! it is dropped. If the machine lacks one, the reason is printed.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use coldframe_live::PAGE;

/// A zram device: RAM that works as a disk.
pub struct Zram(usize);

impl Zram {
    pub fn new(bytes: usize) -> Result<Zram, String> {
        let lacks = |error: io::Error| format!("no zram: /sys/class/zram-control/hot_add: {error}");
        let number = std::fs::read_to_string("/sys/class/zram-control/hot_add").map_err(lacks)?;
        let zram = Zram(number.trim().parse().expect("a number"));
        let size = format!("/sys/block/zram{}/disksize", zram.0);
        std::fs::write(&size, bytes.to_string()).map_err(|e| format!("no zram: {size}: {e}"))?;
        Ok(zram)
    }

    pub fn path(&self) -> PathBuf {
        format!("/dev/zram{}", self.0).into()
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        for (file, value) in [
            (format!("/sys/block/zram{}/reset", self.0), "1"),
            ("/sys/class/zram-control/hot_remove".to_string(), &self.0.to_string()),
        ] {
            if let Err(error) = std::fs::write(&file, value) {
                eprintln!("{file}: {error}");
            }
        }
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output().map_err(|e| format!("{program}: {e}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    output.status.success().then_some(()).ok_or_else(|| format!("{program} {arguments:?}: {}", stderr.trim()))
}

/// A swap area in use, with the highest priority. Meanwhile the kernel reads one page at a time.
pub struct Swap {
    path: PathBuf,
    cluster: String,
    file: bool,
}

const CLUSTER: &str = "/proc/sys/vm/page-cluster";

impl Swap {
    /// On a block device.
    pub fn on(path: &Path) -> Result<Swap, String> {
        let text = path.to_str().expect("a path of ours");
        run("mkswap", &[text])?;
        run("swapon", &["-p", "32767", text])?;
        let swap = Swap {
            path: path.to_path_buf(),
            cluster: std::fs::read_to_string(CLUSTER).unwrap_or_default(),
            file: false,
        };
        std::fs::write(CLUSTER, "0").map_err(|e| format!("{CLUSTER}: {e}"))?;
        Ok(swap)
    }

    /// On a file in a folder.
    pub fn file(folder: &Path, bytes: usize) -> Result<Swap, String> {
        use std::os::unix::fs::OpenOptionsExt;
        let path = folder.join("swap");
        let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let mut file = file.map_err(|e| format!("{}: {e}", path.display()))?;
        let zeros = [0; 1 << 20];
        for _ in 0..bytes >> 20 {
            io::Write::write_all(&mut file, &zeros).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        file.sync_all().map_err(|e| e.to_string())?;
        let mut swap = Swap::on(&path)?;
        swap.file = true;
        Ok(swap)
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        if let Err(error) = run("swapoff", &[self.path.to_str().expect("a path of ours")]) {
            eprintln!("{error}");
        }
        let _ = std::fs::write(CLUSTER, self.cluster.trim());
        if self.file {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A memory cgroup with a limit.
pub struct Cgroup(pub PathBuf);

impl Cgroup {
    /// That many frames, and a sixteenth for page tables and what the kernel needs to reclaim.
    pub fn new(frames: usize) -> Result<Cgroup, String> {
        let bytes = (frames * PAGE / 16 * 17).to_string();
        let name = format!("coldframe-bench-{}", std::process::id());
        let places = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        for (root, limit) in places {
            let folder = Path::new(root).join(&name);
            if std::fs::create_dir(&folder).is_ok() {
                let cgroup = Cgroup(folder);
                if std::fs::write(cgroup.0.join(limit), &bytes).is_ok() {
                    return Ok(cgroup);
                }
            }
        }
        Err("no memory cgroup can be made (needs root)".to_string())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir(&self.0) {
            eprintln!("{}: {error}", self.0.display());
        }
    }
}
