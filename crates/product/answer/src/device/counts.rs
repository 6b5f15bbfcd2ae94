//! What the kernel counts of a device: its memory, what moved, its disks, and compressed RAM.

use std::fs::File;

use coldframe_kernel::machine_stall;
use coldframe_proc::{text, Tree, PAGE};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::device::nvme::nvme_used_percent;

/// Bytes of a sector in the kernel's counts (Documentation/block/stat.rst).
const SECTOR: u64 = 512;

/// Where the machine's RAM was (`/proc/meminfo`), in bytes.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MachineMemory {
    /// All RAM that the kernel has.
    pub total_bytes: u64,
    /// Free.
    pub free_bytes: u64,
    /// The programs' own memory.
    pub own_bytes: u64,
    /// Files in RAM, mapped or not, without shared memory.
    pub file_bytes: u64,
    /// Mapped files and shared memory.
    pub mapped_bytes: u64,
    /// Shared memory and tmpfs.
    pub shared_bytes: u64,
    /// What the kernel can give back of its own.
    pub reclaimable_bytes: u64,
    /// The kernel's, and all else: what is left over.
    pub kernel_bytes: u64,
    /// Compressed RAM.
    pub compressed_bytes: u64,
    /// Bytes that the kernel keeps free.
    pub reserve_bytes: u64,
    /// Huge pages among the programs' own.
    pub huge_bytes: u64,
}

impl MachineMemory {
    /// Now.
    pub(crate) fn now(tree: &Tree) -> MachineMemory {
        let field = |name| tree.meminfo(name);
        let shared = field("Shmem");
        let (total, free, private) = (field("MemTotal"), field("MemFree"), field("AnonPages"));
        let file = (field("Cached") + field("Buffers") + field("SwapCached")).saturating_sub(shared);
        let (reclaimable, compressed) =
            (field("SReclaimable"), zrams(tree).iter().map(|zram| zram.ram_bytes).sum::<u64>() + field("Zswap"));
        let known = free + private + file + shared + reclaimable + compressed;
        let watermark = tree.text("/proc/sys/vm/min_free_kbytes").parse::<u64>().unwrap_or(0) * 1024;
        MachineMemory {
            total_bytes: total,
            free_bytes: free,
            own_bytes: private,
            file_bytes: file,
            mapped_bytes: field("Mapped"),
            shared_bytes: shared,
            reclaimable_bytes: reclaimable,
            kernel_bytes: total.saturating_sub(known),
            compressed_bytes: compressed,
            // The high watermark, to which the kernel frees, is one and a half times the lowest (mm/page_alloc.c).
            reserve_bytes: watermark * 3 / 2,
            huge_bytes: field("AnonHugePages"),
        }
    }
}

/// Compressed RAM that is on (`mm_stat`, Documentation/admin-guide/blockdev/zram.rst).
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Zram {
    /// As `zram0`.
    pub name: String,
    /// Its algorithm.
    pub algorithm: String,
    /// Bytes of pages in it.
    pub data_bytes: u64,
    /// RAM that it takes.
    pub ram_bytes: u64,
}

/// All compressed devices that have data.
pub(crate) fn zrams(tree: &Tree) -> Vec<Zram> {
    let zram = |name: &str| {
        let name = name.to_string();
        let folder = format!("/sys/block/{name}");
        let stat = tree.text(format!("{folder}/mm_stat"));
        let number = |word| stat.split_whitespace().nth(word).and_then(|text| text.parse().ok()).unwrap_or(0);
        let algorithms = tree.text(format!("{folder}/comp_algorithm"));
        // The one in use is in brackets.
        let algorithm = algorithms.split(['[', ']']).nth(1).unwrap_or(&algorithms).to_string();
        Zram { name, algorithm, data_bytes: number(0), ram_bytes: number(2) }
    };
    tree.swap_areas().iter().filter_map(|area| area.zram()).map(zram).collect()
}

/// A disk.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Disk {
    /// As `mmcblk0`.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// Bytes read meanwhile.
    pub read_bytes: u64,
    /// Bytes written meanwhile.
    pub written_bytes: u64,
    /// The part of its life that its own counter calls used, in percent: from and to (of an eMMC its EXT_CSD, JEDEC
    /// JESD84-B51, section 7.4.29: one value for each tenth; of an NVMe drive its health log); null: it has no such
    /// counter here.
    pub used_percent: Option<[u64; 2]>,
}

/// All disks, with their counts since the machine's start.
pub(crate) fn disks(tree: &Tree) -> Vec<Disk> {
    let folder = std::fs::read_dir(tree.path("/sys/block")).into_iter().flatten().flatten();
    let names = folder.filter_map(|entry| entry.file_name().into_string().ok());
    let disk = |name: String| {
        let folder = format!("/sys/block/{name}");
        let stat = tree.text(format!("{folder}/stat"));
        let number = |word| stat.split_whitespace().nth(word).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        // Disks on other disks have no device below them.
        tree.path(format!("{folder}/device")).exists().then(|| Disk {
            size_bytes: tree.text(format!("{folder}/size")).parse::<u64>().unwrap_or(0) * SECTOR,
            read_bytes: number(2) * SECTOR,
            written_bytes: number(6) * SECTOR,
            used_percent: life_used(&text(&tree.path(format!("{folder}/device/life_time"))))
                .or_else(|| nvme(tree, &name)),
            name,
        })
    };
    let mut disks: Vec<Disk> = names.filter_map(disk).filter(|disk| disk.size_bytes > 0).collect();
    disks.sort_by(|a, b| a.name.cmp(&b.name));
    disks
}

fn nvme(tree: &Tree, name: &str) -> Option<[u64; 2]> {
    let drive = name.starts_with("nvme").then(|| File::open(tree.path(format!("/dev/{name}"))))?.ok()?;
    nvme_used_percent(&drive).map(|percent| [percent.into(); 2])
}

/// `0x01 0x02`: of both kinds of memory, the more worn one.
fn life_used(text: &str) -> Option<[u64; 2]> {
    let value = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
    let tenth = text.split_whitespace().filter_map(value).filter(|value| (1..=11).contains(value)).max()?;
    Some([10 * (tenth - 1), (10 * tenth).min(100)])
}

/// What moved in a time.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Pages that came back from swap.
    pub swapped_in: u64,
    /// Pages that went there.
    pub swapped_out: u64,
    /// Faults that waited for a disk or swap.
    pub major_faults: u64,
    /// Pages of files that were needed again soon after they had left.
    pub file_refaults: u64,
    /// Processes that the kernel killed for lack of memory.
    pub killed: u64,
    /// Microseconds in which some process waited for memory; null: this kernel does not count that.
    pub waited_us: Option<u64>,
}

impl Traffic {
    /// Since the machine's start.
    pub(crate) fn now(tree: &Tree) -> Traffic {
        let count = |name| tree.vmstat(&[name]);
        Traffic {
            swapped_in: count("pswpin"),
            swapped_out: count("pswpout"),
            major_faults: count("pgmajfault"),
            file_refaults: count("workingset_refault_file"),
            killed: count("oom_kill"),
            waited_us: machine_stall(tree).map(|stall| stall.some.as_micros() as u64),
        }
    }

    /// From the counts at a start to those at an end.
    pub(crate) fn since(self, start: Traffic) -> Traffic {
        self.with(start, u64::saturating_sub)
    }

    /// Both times together.
    pub(crate) fn and(self, more: Traffic) -> Traffic {
        self.with(more, |a, b| a + b)
    }

    fn with(self, other: Traffic, join: fn(u64, u64) -> u64) -> Traffic {
        Traffic {
            swapped_in: join(self.swapped_in, other.swapped_in),
            swapped_out: join(self.swapped_out, other.swapped_out),
            major_faults: join(self.major_faults, other.major_faults),
            file_refaults: join(self.file_refaults, other.file_refaults),
            killed: join(self.killed, other.killed),
            waited_us: self.waited_us.map(|us| join(us, other.waited_us.unwrap_or(0))),
        }
    }

    /// Bytes that went to swap.
    pub fn out_bytes(self) -> u64 {
        self.swapped_out * PAGE
    }
}

/// The disks' counts from a start to an end, and what was known before.
pub(crate) fn moved(start: &[Disk], end: Vec<Disk>, before: &[Disk]) -> Vec<Disk> {
    let find = |disks: &[Disk], name: &str| disks.iter().find(|disk| disk.name == name).cloned().unwrap_or_default();
    let moved = |disk: Disk| {
        let (start, before) = (find(start, &disk.name), find(before, &disk.name));
        Disk {
            read_bytes: before.read_bytes + disk.read_bytes.saturating_sub(start.read_bytes),
            written_bytes: before.written_bytes + disk.written_bytes.saturating_sub(start.written_bytes),
            ..disk
        }
    };
    end.into_iter().map(moved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with these files.
    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let tree = Tree::new(folder.path());
        (folder, tree)
    }

    #[test]
    fn memory_is_what_meminfo_says_and_the_rest_is_the_kernels() {
        let text =
            "MemTotal: 1000 kB\nMemFree: 100 kB\nAnonPages: 400 kB\nCached: 250 kB\nBuffers: 10 kB\nSwapCached: 0 kB\n\
                    Shmem: 50 kB\nMapped: 90 kB\nSReclaimable: 40 kB\nAnonHugePages: 0 kB\n";
        let (_folder, tree) = tree(&[("proc/meminfo", text), ("proc/sys/vm/min_free_kbytes", "8\n")]);
        let memory = MachineMemory::now(&tree);
        // 1000 - 100 - 400 - (250 + 10 - 50) - 50 - 40.
        assert_eq!((memory.file_bytes, memory.kernel_bytes, memory.reserve_bytes), (210 << 10, 200 << 10, 12 << 10));
    }

    #[test]
    fn a_disk_counts_sectors_and_an_emmc_its_life_and_disks_on_disks_do_not_count() {
        let stat = "1 2 16 4 5 6 32 8\n";
        let files = [
            ("sys/block/mmcblk0/stat", stat),
            ("sys/block/mmcblk0/size", "1000\n"),
            ("sys/block/mmcblk0/device/life_time", "0x01 0x03\n"),
            ("sys/block/dm-0/stat", stat),
            ("sys/block/dm-0/size", "1000\n"),
        ];
        let (_folder, tree) = tree(&files);
        let start = disks(&tree);
        assert_eq!((start.len(), start[0].written_bytes, start[0].used_percent), (1, 32 * 512, Some([20, 30])));
        let end = vec![Disk { written_bytes: 40 * 512, ..start[0].clone() }];
        let before = [Disk { written_bytes: 100, ..start[0].clone() }];
        assert_eq!(moved(&start, end, &before)[0].written_bytes, 100 + 8 * 512);
        assert_eq!((life_used("0x00 0x00"), life_used("0x0b"), life_used("")), (None, Some([100, 100]), None));
    }

    #[test]
    fn zram_has_its_algorithm_in_brackets_and_traffic_is_a_difference() {
        let files = [
            ("proc/swaps", "Filename Type RamSize Used Priority\n/dev/zram0 partition 100 8 100\n"),
            ("sys/block/zram0/mm_stat", "8192 2000 4096 0 4096 0 0 0\n"),
            ("sys/block/zram0/comp_algorithm", "lzo lzo-rle [zstd]\n"),
            ("proc/vmstat", "pswpin 5\npswpout 7\npgmajfault 9\n"),
        ];
        let (_folder, tree) = tree(&files);
        let zram = Zram { name: "zram0".into(), algorithm: "zstd".into(), data_bytes: 8192, ram_bytes: 4096 };
        assert_eq!(zrams(&tree), [zram]);
        let now = Traffic::now(&tree);
        let since = now.since(Traffic { swapped_out: 3, ..Traffic::default() });
        assert_eq!((since.swapped_out, since.out_bytes(), since.waited_us), (4, 4 * PAGE, None));
        assert_eq!(since.and(since).major_faults, 18);
    }
}
