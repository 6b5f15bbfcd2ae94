//! The pages of a program that a stock kernel swaps. The program runs in its own memory cgroup, and its page tables
//! are read every few milliseconds.
//!
//! ```text
//! cgroup limit ── kernel swaps ──► /proc/PID/pagemap: this page is in slot 17 ── interval by interval ──► out, evict, fault, in, free
//! ```
//! A page table shows which page lies in which slot, without any tracepoint; no stock tracepoint has both. It does
//! not show the following, and the trace's first row says so: a page that leaves and comes back within one interval;
//! the order within an interval (pages are taken to come back before others leave, and to leave in the order of their
//! slots); pages that are read ahead; and whether a page in RAM still has its slot (a slot seen again for the same
//! page is taken as kept, so that the page left clean). The kernel's own counts are recorded for comparison.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::RecordError;
use crate::program;

/// An order to record.
#[derive(Debug, Clone)]
pub struct SwapOrder {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The search path for the program, as in `PATH`.
    pub search_path: OsString,
    /// The swap trace to write, as CSV.
    pub out: PathBuf,
    /// Bytes of RAM that the program and its children get.
    pub ram: u64,
    /// Time between two readings of the page tables.
    pub interval: Duration,
    /// Set by the caller to end the recording; the program is ended, too.
    pub stop: Arc<AtomicBool>,
    /// Runs the program alone once before, without input and output.
    pub overhead: bool,
}

/// The result.
#[derive(Debug, Clone)]
pub struct Swapped {
    /// Pages that left for a slot that was written.
    pub outs: u64,
    /// Pages that came back.
    pub ins: u64,
    /// Pages that left without a write.
    pub clean: u64,
    /// Pages that the kernel wrote to swap meanwhile, of all programs; the same for reads.
    pub kernel_outs: u64,
    /// Pages read from swap.
    pub kernel_ins: u64,
    /// Major faults of the cgroup, including those on files.
    pub major_faults: u64,
    /// Number of readings of the page tables.
    pub looks: u64,
    /// Seconds spent on these readings.
    pub looking: f64,
    /// The longest time between two readings.
    pub longest: Duration,
    /// Mappings too large to be read each time.
    pub too_large: usize,
    /// From the start to the program's end.
    pub seconds: f64,
    /// The program's run time alone, with all RAM, if that was asked for.
    pub native_seconds: Option<f64>,
    /// The program's status.
    pub status: ExitStatus,
}

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Larger mappings are not read: they are reserved rather than used, and take too long to read.
const MAPPING_MAX: u64 = 16 << 30;
/// Entries of a page table read at once.
const ENTRIES: usize = 1 << 15;
/// Slots that a swap trace can name.
const SLOT_MAX: u64 = (1 << 24) - 1;
/// Bits of an entry (Documentation/admin-guide/mm/pagemap.rst).
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;

/// Records what is swapped of a program.
///
/// # Errors
/// [`RecordError::Usage`] without a swap area or a memory cgroup, or without the right to make one; [`RecordError::Io`].
pub fn record_swap(order: &SwapOrder) -> Result<Swapped, RecordError> {
    one_area(&fs::read_to_string("/proc/swaps").unwrap_or_default())?;
    let target = program::resolve(&order.program, &order.args, &order.search_path)?;
    let native_seconds = if order.overhead { Some(crate::native(&target)?) } else { None };
    let group = Group::new(order.ram)?;
    let file = File::create(&order.out).map_err(RecordError::io(format!("create {}", order.out.display())))?;
    let mut watch = Watch::new(BufWriter::new(file), order)?;
    let before = kernel_counts();
    let mut child = Running(group.start(&target)?);
    let began = Instant::now();
    let (mut looks, mut looking, mut longest, mut last) = (0, 0.0, Duration::ZERO, began);
    let status = loop {
        if let Some(status) = child.0.try_wait().map_err(RecordError::io("wait for the program"))? {
            break status;
        }
        if order.stop.load(Ordering::Relaxed) {
            let _ = child.0.kill();
        }
        let look = Instant::now();
        longest = longest.max(look - last);
        last = look;
        watch.look(&group.members(), began.elapsed())?;
        looks += 1;
        looking += look.elapsed().as_secs_f64();
        std::thread::sleep(order.interval.saturating_sub(look.elapsed()));
    };
    let seconds = began.elapsed().as_secs_f64();
    watch.end(began.elapsed())?;
    let after = kernel_counts();
    Ok(Swapped {
        outs: watch.outs,
        ins: watch.ins,
        clean: watch.clean,
        kernel_outs: after.0 - before.0,
        kernel_ins: after.1 - before.1,
        major_faults: group.major_faults(),
        looks,
        looking,
        longest,
        too_large: watch.too_large,
        seconds,
        native_seconds,
        status,
    })
}

/// A swap trace has the slots of one area.
fn one_area(swaps: &str) -> Result<(), RecordError> {
    let usage = |found: &str, remedy: &str| RecordError::Usage {
        what: "the kernel's swap".into(),
        found: found.into(),
        remedy: remedy.into(),
    };
    match swaps.lines().count().saturating_sub(1) {
        0 => Err(usage(
            "no area is in use",
            "give it one, as root: modprobe zram; zramctl --size 1G /dev/zram0; mkswap /dev/zram0; swapon /dev/zram0",
        )),
        1 => Ok(()),
        _ => Err(usage("several areas are in use, whose slots have the same numbers", "swapoff all but one")),
    }
}

/// Pages written to swap and read from it since the machine started.
fn kernel_counts() -> (u64, u64) {
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    (count(&text, "pswpout"), count(&text, "pswpin"))
}

/// The number behind a name, 0 where there is none.
fn count(text: &str, name: &str) -> u64 {
    let number = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok();
    text.lines().find_map(number).unwrap_or(0)
}

/// The program, which is ended with the recording of it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, unless the recording failed.
        let _ = (self.0.kill(), self.0.wait());
    }
}

/// A memory cgroup of ours, version 1 or 2.
struct Group {
    path: PathBuf,
}

impl Group {
    fn new(ram: u64) -> Result<Group, RecordError> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let (root, limit) = hierarchy(&mounts).ok_or_else(|| RecordError::Usage {
            what: "the memory cgroup".into(),
            found: "this machine mounts none with a memory controller".into(),
            remedy: "mount one, as root: mount -t cgroup2 none /sys/fs/cgroup".into(),
        })?;
        let path = root.join(format!("coldframe-{}", std::process::id()));
        let refused = |error: std::io::Error| {
            RecordError::Usage {
            what: path.display().to_string(),
            found: format!("cannot be set up: {error}"),
            remedy: "record as root; under cgroup version 2 also enable the controller: echo +memory > cgroup.subtree_control".into(),
        }
        };
        fs::create_dir(&path).map_err(refused)?;
        let group = Group { path: path.clone() };
        fs::write(group.path.join(limit), ram.to_string()).map_err(refused)?;
        Ok(group)
    }

    /// Starts the program in the group: a shell enters it and becomes the program.
    fn start(&self, target: &program::Target) -> Result<Child, RecordError> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.path.join("cgroup.procs"));
        command.arg(&target.binary).args(target.arguments.iter().skip(1));
        command.spawn().map_err(RecordError::io("start the program"))
    }

    fn members(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    fn major_faults(&self) -> u64 {
        count(&fs::read_to_string(self.path.join("memory.stat")).unwrap_or_default(), "pgmajfault")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What the program has left running goes back to the root; an empty group can be removed.
        let root = self.path.parent().map(|root| root.join("cgroup.procs"));
        for (member, root) in self.members().iter().zip(root.iter().cycle()) {
            let _ = fs::write(root, member.to_string());
        }
        let _ = fs::remove_dir(&self.path);
    }
}

/// Where a memory controller is mounted, and the name of its limit.
fn hierarchy(mounts: &str) -> Option<(PathBuf, &'static str)> {
    mounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let (path, kind, options) = (PathBuf::from(fields.get(1)?), *fields.get(2)?, *fields.get(3)?);
        match kind {
            "cgroup" if options.split(',').any(|option| option == "memory") => Some((path, "memory.limit_in_bytes")),
            "cgroup2" => {
                let controllers = fs::read_to_string(path.join("cgroup.controllers")).unwrap_or_default();
                controllers.split_whitespace().any(|name| name == "memory").then_some((path, "memory.max"))
            }
            _ => None,
        }
    })
}

/// A page of a process.
type Page = (u32, u64);

/// What is known of the pages, and the trace.
struct Watch<W: Write> {
    out: W,
    /// Slots of the pages that are not in RAM.
    away: HashMap<Page, u64>,
    /// The last slots of pages that have come back.
    kept: HashMap<Page, u64>,
    /// Whose each slot is.
    owners: HashMap<u64, Page>,
    outs: u64,
    ins: u64,
    clean: u64,
    too_large: usize,
}

impl<W: Write> Watch<W> {
    fn new(mut out: W, order: &SwapOrder) -> Result<Watch<W>, RecordError> {
        let ms = order.interval.as_secs_f64() * 1e3;
        let text = format!(
            "ts_ns,op,slot,pid,vpn,flag\n0,mark,,,,fidelity: page tables read every {ms} ms: what left and came back between two looks is \
             not in it; order within one, reading ahead and the fate of slots of pages in RAM are not known\n"
        );
        out.write_all(text.as_bytes()).map_err(RecordError::io("write the trace"))?;
        let (away, kept, owners) = (HashMap::new(), HashMap::new(), HashMap::new());
        Ok(Watch { out, away, kept, owners, outs: 0, ins: 0, clean: 0, too_large: 0 })
    }

    /// Reads the page tables of these processes.
    fn look(&mut self, pids: &[u32], time: Duration) -> Result<(), RecordError> {
        let (mut now, mut back) = (HashMap::new(), Vec::new());
        self.too_large = 0;
        for pid in pids {
            self.read(*pid, &mut now, &mut back);
        }
        self.compare(now, back, time).map_err(RecordError::io("write the trace"))
    }

    /// What of a process is in swap, and what has come back. A process that has just ended has nothing.
    fn read(&mut self, pid: u32, now: &mut HashMap<Page, u64>, back: &mut Vec<Page>) {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let Ok(table) = File::open(format!("/proc/{pid}/pagemap")) else { return };
        for (start, end) in maps.lines().filter_map(writable) {
            if end - start > MAPPING_MAX {
                self.too_large += 1;
                continue;
            }
            entries(&table, start / PAGE, end / PAGE, &mut |number, entry| {
                let page = (pid, number);
                match slot(entry) {
                    Some(slot) if slot <= SLOT_MAX => drop(now.insert(page, slot)),
                    _ if entry & PRESENT != 0 && self.away.contains_key(&page) => back.push(page),
                    _ => {}
                }
            });
        }
    }

    fn compare(&mut self, now: HashMap<Page, u64>, back: Vec<Page>, time: Duration) -> std::io::Result<()> {
        let ns = time.as_nanos() as u64;
        for page in back {
            if let Some(slot) = self.away.remove(&page) {
                self.comes_back(ns, page, slot)?;
            }
        }
        let gone: Vec<Page> = self.away.keys().filter(|page| !now.contains_key(*page)).copied().collect();
        for page in gone {
            self.free(ns, page, "x")?;
        }
        let mut new: Vec<(Page, u64)> =
            now.into_iter().filter(|(page, slot)| self.away.get(page) != Some(slot)).collect();
        new.sort_by_key(|(page, slot)| (*slot, *page));
        new.into_iter().try_for_each(|(page, slot)| self.leaves(ns, page, slot))
    }

    fn comes_back(&mut self, ns: u64, page: Page, slot: u64) -> std::io::Result<()> {
        self.ins += 1;
        self.row(ns, "fault", slot, page, "M")?;
        self.row(ns, "in", slot, page, "d")?;
        self.kept.insert(page, slot);
        Ok(())
    }

    fn leaves(&mut self, ns: u64, page: Page, slot: u64) -> std::io::Result<()> {
        if let Some(before) = self.away.remove(&page) {
            self.comes_back(ns, page, before)?;
        }
        match self.owners.get(&slot).copied() {
            // After a fork, two processes have the page in one slot.
            Some(owner) if owner != page && self.away.contains_key(&owner) => return Ok(()),
            Some(owner) if owner != page => self.free(ns, owner, "")?,
            _ => {}
        }
        let same = self.kept.get(&page) == Some(&slot);
        if !same {
            self.free(ns, page, "")?;
            self.outs += 1;
            self.row(ns, "out", slot, page, "a")?;
        }
        self.clean += u64::from(same);
        self.row(ns, "evict", slot, page, if same { "c" } else { "w" })?;
        self.kept.remove(&page);
        self.owners.insert(slot, page);
        self.away.insert(page, slot);
        Ok(())
    }

    /// A page's slot, if it has one, is free.
    fn free(&mut self, ns: u64, page: Page, flag: &str) -> std::io::Result<()> {
        for slot in [self.away.remove(&page), self.kept.remove(&page)].into_iter().flatten() {
            self.owners.remove(&slot);
            self.row(ns, "free", slot, page, flag)?;
        }
        Ok(())
    }

    /// The program has ended: all its slots are free.
    fn end(&mut self, time: Duration) -> Result<(), RecordError> {
        let ns = time.as_nanos() as u64;
        let mut pages: Vec<Page> = self.away.keys().chain(self.kept.keys()).copied().collect();
        pages.sort_unstable();
        let done = pages.into_iter().try_for_each(|page| self.free(ns, page, "x"));
        done.and_then(|()| self.out.flush()).map_err(RecordError::io("write the trace"))
    }

    fn row(&mut self, ns: u64, op: &str, slot: u64, (pid, number): Page, flag: &str) -> std::io::Result<()> {
        writeln!(self.out, "{ns},{op},{slot},{pid},{number:x},{flag}")
    }
}

/// The slot of an entry of a page table: bits 5 to 54 of one that is swapped.
fn slot(entry: u64) -> Option<u64> {
    (entry & SWAPPED != 0 && entry & PRESENT == 0).then_some(entry >> 5 & ((1 << 50) - 1))
}

/// Calls `each` with the number and the entry of every page that has one.
fn entries(table: &File, first: u64, end: u64, each: &mut dyn FnMut(u64, u64)) {
    let mut bytes = vec![0u8; ENTRIES * 8];
    let mut at = first;
    while at < end {
        let wanted = ((end - at) as usize).min(ENTRIES);
        let read = table.read_at(&mut bytes[..wanted * 8], at * 8).unwrap_or(0) / 8;
        for (i, entry) in bytes[..read * 8].chunks_exact(8).enumerate() {
            let entry = entry.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
            if entry & (PRESENT | SWAPPED) != 0 {
                each(at + i as u64, entry);
            }
        }
        // Unmapped meanwhile: nothing more there.
        if read == 0 {
            return;
        }
        at += read as u64;
    }
}

/// The range of a line of /proc/PID/maps that can hold anonymous pages.
fn writable(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split(' ');
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let range = (number(start)?, number(end)?);
    words.next()?.contains("w").then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> Watch<Vec<u8>> {
        let (away, kept, owners) = (HashMap::new(), HashMap::new(), HashMap::new());
        Watch { out: Vec::new(), away, kept, owners, outs: 0, ins: 0, clean: 0, too_large: 0 }
    }

    #[test]
    fn what_two_looks_differ_in_is_what_happened_between() {
        let mut watch = watch();
        let page = |number| (7, number);
        let mut look = |ms, away: &[(u64, u64)], back: &[u64]| {
            let now = away.iter().map(|(number, slot)| (page(*number), *slot)).collect();
            watch.compare(now, back.iter().map(|number| page(*number)).collect(), Duration::from_millis(ms)).unwrap();
            String::from_utf8(std::mem::take(&mut watch.out)).unwrap()
        };
        assert_eq!(
            look(1, &[(0x20, 4), (0x10, 3)], &[]),
            "1000000,out,3,7,10,a\n1000000,evict,3,7,10,w\n1000000,out,4,7,20,a\n1000000,evict,4,7,20,w\n"
        );
        assert_eq!(look(2, &[(0x20, 4)], &[0x10]), "2000000,fault,3,7,10,M\n2000000,in,3,7,10,d\n");
        // One page leaves again to its old slot: it was not written. The other page comes back, leaves again, and has
        // another slot.
        assert_eq!(
            look(3, &[(0x10, 3), (0x20, 9)], &[]),
            "3000000,evict,3,7,10,c\n3000000,fault,4,7,20,M\n3000000,in,4,7,20,d\n3000000,free,4,7,20,\n3000000,out,9,7,20,a\n3000000,evict,9,7,20,w\n"
        );
        // A page that is unmapped; then its slot is another's.
        assert_eq!(look(4, &[(0x20, 9)], &[]), "4000000,free,3,7,10,x\n");
        assert_eq!(look(5, &[(0x20, 9), (0x30, 3)], &[]), "5000000,out,3,7,30,a\n5000000,evict,3,7,30,w\n");
        assert_eq!((watch.outs, watch.ins, watch.clean), (4, 2, 1));
        watch.end(Duration::from_millis(6)).unwrap();
        assert_eq!(String::from_utf8(watch.out).unwrap(), "6000000,free,9,7,20,x\n6000000,free,3,7,30,x\n");
    }

    #[test]
    fn what_stands_in_the_kernels_files_is_read() {
        assert_eq!(slot(SWAPPED | 17 << 5 | 3), Some(17));
        assert_eq!((slot(PRESENT | 17 << 5), slot(0)), (None, None));
        assert_eq!(writable("1000-3000 rw-p 0 00:00 0 [heap]"), Some((0x1000, 0x3000)));
        assert_eq!((writable("1000-3000 r-xp 0 00:00 0"), writable("rubbish")), (None, None));
        assert_eq!((count("pswpin 4\npswpout 7\n", "pswpout"), count("", "pswpin")), (7, 0));
        let v1 =
            "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n";
        assert_eq!(hierarchy(v1), Some(("/sys/fs/cgroup/memory".into(), "memory.limit_in_bytes")));
        assert_eq!(hierarchy("tmpfs /tmp tmpfs rw 0 0\n"), None);
        let header = "Filename\tType\tSize\tUsed\tPriority\n";
        assert!(one_area(header).unwrap_err().to_string().contains("swapon"));
        assert!(one_area(&format!("{header}/dev/zram0 partition 1 0 -2\n")).is_ok());
        assert!(one_area(&format!("{header}/a file 1 0 -2\n/b file 1 0 -3\n")).is_err());
    }
}
