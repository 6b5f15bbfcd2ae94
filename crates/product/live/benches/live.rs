//! `make bench-live`: single faults of the live pager, as ratios to floors of the same run: the kernel's anonymous
//! zero-fill fault, and a plain direct read of one page from the same folder. Each target is printed with its measured
//! value. BENCH_DIR: a folder on the disk (default /var/tmp).

use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

use coldframe_live::{Options, Pager, Region, Wait, PAGE};

const RAM: usize = 32 << 20;
const REGION: usize = 128 << 20;
/// A longer access counts as a fault.
const FAULT_NS: u64 = 1500;

/// The bound of a target.
enum Bound {
    /// The ratio may not be greater.
    AtMost(f64),
    /// The ratio may not be smaller.
    AtLeast(f64),
}

/// Prints a target and its measured value.
fn note(what: &str, value: f64, bound: Bound) {
    let (sign, target, reached) = match bound {
        Bound::AtMost(most) => ("<=", most, value <= most),
        Bound::AtLeast(least) => (">=", least, value >= least),
    };
    println!("{what:<64} {value:>8.3}   {sign} {target:<6} {}", if reached { "reached" } else { "NOT REACHED" });
}

fn median(mut times: Vec<u64>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2] as f64 / 1e3
}

fn timed(f: impl FnOnce()) -> u64 {
    let start = Instant::now();
    f();
    start.elapsed().as_nanos() as u64
}

/// Microseconds of a zero-fill fault.
fn zero_fill() -> f64 {
    // SAFETY: new memory of our own.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let start = libc::mmap(std::ptr::null_mut(), RAM, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        libc::madvise(start, RAM, libc::MADV_NOHUGEPAGE);
        let touch = |page: usize| timed(|| start.cast::<u8>().add(page * PAGE).write_volatile(1));
        let times = (0..RAM / PAGE).map(touch).collect();
        libc::munmap(start, RAM);
        median(times)
    }
}

#[repr(align(4096))]
struct Buffer([u8; 128 << 10]);

struct Device {
    read: f64,
    write: f64,
    log_write_per_page: f64,
}

fn device(folder: &Path, random: &mut fastrand::Rng) -> Device {
    use std::os::unix::fs::FileExt;
    let path = folder.join("floor");
    let mut options = std::fs::OpenOptions::new();
    let file =
        options.read(true).write(true).create(true).truncate(true).custom_flags(libc::O_DIRECT).open(&path).unwrap();
    let mut buffer = Box::new(Buffer([7; 128 << 10]));
    let long = |i: usize| timed(|| file.write_all_at(&buffer.0, (i * buffer.0.len()) as u64).unwrap());
    let log_writes = median((0..REGION / (128 << 10)).map(long).collect());
    let mut place = || (random.usize(..REGION / PAGE) * PAGE) as u64;
    let write = median((0..500).map(|_| timed(|| file.write_all_at(&buffer.0[..PAGE], place()).unwrap())).collect());
    let mut reads = Vec::new();
    for _ in 0..3000 {
        let at = place();
        reads.push(timed(|| file.read_exact_at(&mut buffer.0[..PAGE], at).unwrap()));
    }
    std::fs::remove_file(path).unwrap();
    Device { read: median(reads), write, log_write_per_page: log_writes / 32.0 }
}

fn pager(folder: &Path, policy: &str, wait: Wait) -> (Pager, Region) {
    let policy = Some(policy.to_string());
    let options = Options { backing: folder.into(), max_memory: 1 << 30, policy, wait, ..Options::new(RAM as u64) };
    let pager = Pager::start(options).unwrap();
    let mut region = pager.anonymous(REGION).unwrap();
    let bytes = region.as_mut_slice();
    for page in 0..REGION / PAGE {
        bytes[page * PAGE..][..8].copy_from_slice(&(page as u64 + 1).to_le_bytes());
    }
    (pager, region)
}

fn touch(region: &Region, page: usize) -> u64 {
    // SAFETY: a word of the region.
    let (value, took) = unsafe {
        let start = Instant::now();
        let value = region.as_ptr().add(page * PAGE).cast::<u64>().read_volatile();
        (value, start.elapsed().as_nanos() as u64)
    };
    assert_eq!(value, page as u64 + 1, "a wrong byte");
    took
}

/// Microseconds of a fault on a page that must be read, median.
fn demand(region: &Region, random: &mut fastrand::Rng) -> f64 {
    let times = (0..30_000).map(|_| touch(region, random.usize(..REGION / PAGE))).filter(|ns| *ns > FAULT_NS);
    median(times.collect())
}

/// Prefetches and touches 32 scattered pages; the time as a ratio to 32 demand faults.
fn list(region: &Region, random: &mut fastrand::Rng) -> f64 {
    let mut ratio = Vec::new();
    for _ in 0..40 {
        let pages: Vec<usize> = (0..64).map(|_| random.usize(..REGION / PAGE)).collect();
        let one_by_one: u64 = pages[..32].iter().map(|page| touch(region, *page)).sum();
        let ranges: Vec<_> = pages[32..].iter().map(|page| page * PAGE..page * PAGE + 1).collect();
        let together = timed(|| {
            region.will_need(&ranges).unwrap();
            pages[32..].iter().for_each(|page| _ = touch(region, *page));
        });
        ratio.push((1e6 * together as f64 / one_by_one as f64) as u64);
    }
    median(ratio) / 1e3
}

/// Microseconds of a false fault, median. Touches are random; those that the pager counts as false faults are used.
fn false_fault(folder: &Path, policy: &str, random: &mut fastrand::Rng) -> f64 {
    let (pager, region) = pager(folder, policy, Wait::Read);
    let mut measured = pager.stats().false_faults;
    let mut times = Vec::new();
    for _ in 0..60_000 {
        let took = touch(&region, random.usize(..REGION / PAGE / 2));
        let now = pager.stats().false_faults;
        if now > measured {
            times.push(took);
        }
        measured = now;
    }
    assert!(!times.is_empty(), "no false fault was made");
    median(times)
}

/// The floors, and the cost of a fault above them for each way to wait.
fn main() {
    // `cargo test --benches` only checks that the benchmark builds.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let folder = std::env::var_os("BENCH_DIR").unwrap_or_else(|| "/var/tmp".into());
    let folder = tempfile::tempdir_in(folder).expect("BENCH_DIR is a folder that can be written to");
    let (folder, mut random) = (folder.path(), fastrand::Rng::with_seed(42));
    println!("load average {}", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    println!("region {} MiB in {} MiB", REGION >> 20, RAM >> 20);
    let zero = zero_fill();
    let floor = device(folder, &mut random);
    println!("zero-fill fault {zero:.2} us, direct read {:.1} us, direct write {:.1} us", floor.read, floor.write);
    println!("{:>73}   target", "measured");
    for (name, wait) in [("read", Wait::Read), ("brief", Wait::Brief)] {
        let (pager, region) = pager(folder, "multi-queue", wait);
        let fault = (demand(&region, &mut random) - floor.read) / zero;
        note(&format!("--wait {name}: fault less device read, zero-fill faults"), fault, Bound::AtMost(3.5));
        let stats = pager.stats();
        if stats.evict_ns > 0 {
            let hidden = 1.0 - stats.evict_exposed_ns.min(stats.evict_ns) as f64 / stats.evict_ns as f64;
            note(&format!("--wait {name}: search and eviction hidden, share"), hidden, Bound::AtLeast(0.95));
        }
        if wait == Wait::Brief {
            note("list of 32 wishes / 32 demand faults", list(&region, &mut random), Bound::AtMost(0.35));
        }
    }
    let log_write = floor.log_write_per_page / floor.write;
    note("log swap-out: device time a page / a 4 KiB write", log_write, Bound::AtMost(0.1));
    for policy in ["fifo-sc:valid=50%", "pa-fifo-sc:valid=50%"] {
        let ratio = false_fault(folder, policy, &mut random) / zero;
        note(&format!("{policy}: false fault, zero-fill faults"), ratio, Bound::AtMost(3.3));
    }
}
