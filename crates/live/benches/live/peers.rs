//! The peers. Each runs in its own process (this program, started again), so a memory cgroup can limit it and its
//! faults can be counted. It prints one line of JSON.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Barrier;

use coldframe_live::{Options, Pager, Region, PAGE};
use serde::{Deserialize, Serialize};

use crate::workload::{content, drive, Seen, Workload};

/// A way to page memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Peer {
    Coldframe,
    /// Anonymous memory in a memory cgroup, `vm.page-cluster` 0.
    KernelSwap,
    /// A shared file mapping with MADV_RANDOM in a memory cgroup.
    MmapRandom,
    Umap,
}

impl Peer {
    pub fn name(self) -> &'static str {
        match self {
            Peer::Coldframe => "coldframe",
            Peer::KernelSwap => "kernel swap",
            Peer::MmapRandom => "mmap, MADV_RANDOM",
            Peer::Umap => "UMap",
        }
    }
}

/// One run of a peer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    pub peer: Peer,
    pub workload: Workload,
    pub threads: usize,
    pub pages: usize,
    pub frames: usize,
    /// Accesses of each thread before the measurement, and during it.
    pub warm: usize,
    pub measured: usize,
    /// A folder or a block device.
    pub backing: PathBuf,
    /// The memory cgroup to join when the peer is ready.
    pub cgroup: Option<PathBuf>,
}

/// The results of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    pub accesses_per_second: f64,
    pub fault_p50_us: f64,
    pub fault_p99_us: f64,
    pub fault_p999_us: f64,
    /// Pages loaded from the device for each access; not observable for UMap.
    pub loads_per_access: Option<f64>,
}

/// The memory of a peer. Dropping `keep` may free it.
struct Memory {
    base: *mut u8,
    loads: Box<dyn Fn() -> Option<u64>>,
    #[allow(dead_code, reason = "holds the memory alive")]
    keep: Box<dyn std::any::Any>,
}

/// Runs in the process of the peer: does the job and prints the figures.
pub fn work(job: &Job) {
    let strings: Vec<Vec<u32>> =
        (0..job.threads).map(|t| job.workload.string(job.pages, job.warm + job.measured, t)).collect();
    let memory = match job.peer {
        Peer::Coldframe => coldframe(job),
        Peer::KernelSwap => anonymous(job),
        Peer::MmapRandom => mapped(job),
        Peer::Umap => umap(job),
    };
    let before = std::sync::atomic::AtomicU64::new(0);
    let (begun, base) = (Barrier::new(job.threads + 1), memory.base as usize);
    let measured: Vec<Seen> = std::thread::scope(|scope| {
        let threads: Vec<_> = strings
            .iter()
            .enumerate()
            .map(|(t, string)| {
                let begun = &begun;
                scope.spawn(move || {
                    let mut written = vec![0; job.pages];
                    // SAFETY: the region; each thread has its own word.
                    let run = |string: &[u32], written: &mut [u32]| unsafe {
                        drive(base as *mut u8, job.pages, string, t, written)
                    };
                    run(&string[..job.warm], &mut written);
                    begun.wait();
                    begun.wait();
                    run(&string[job.warm..], &mut written)
                })
            })
            .collect();
        begun.wait();
        before.store((memory.loads)().unwrap_or(0), std::sync::atomic::Ordering::Relaxed);
        begun.wait();
        threads.into_iter().map(|t| t.join().expect("a wrong byte")).collect()
    });
    let loads = (memory.loads)().map(|after| after - before.into_inner());
    println!("{}", serde_json::to_string(&figures(job, measured, loads)).expect("plain data"));
    // The end of a peer is not measured; UMap takes long to end.
    std::process::exit(0);
}

fn figures(job: &Job, measured: Vec<Seen>, loads: Option<u64>) -> Figures {
    let seconds = measured.iter().map(|s| s.seconds).fold(0.0, f64::max);
    let accesses = (job.measured * job.threads) as f64;
    let mut faults: Vec<u64> = measured.into_iter().flat_map(|s| s.faults).collect();
    faults.sort_unstable();
    let at = |q: f64| faults.get((faults.len() as f64 * q) as usize).map_or(0.0, |ns| *ns as f64 / 1e3);
    Figures {
        accesses_per_second: accesses / seconds,
        fault_p50_us: at(0.5),
        fault_p99_us: at(0.99),
        fault_p999_us: at(0.999),
        loads_per_access: loads.map(|loads| loads as f64 / accesses),
    }
}

fn join(job: &Job) {
    if let Some(cgroup) = &job.cgroup {
        std::fs::write(cgroup.join("cgroup.procs"), std::process::id().to_string()).expect("the cgroup takes us");
    }
}

/// Writes each page's content to memory.
///
/// # Safety
/// `base` must have this many pages.
unsafe fn fill(base: *mut u8, pages: usize) {
    for page in 0..pages {
        // SAFETY: the caller guarantees the memory.
        unsafe { base.add(page * PAGE).cast::<[u64; PAGE / 8]>().write_volatile(content(page)) };
    }
}

fn coldframe(job: &Job) -> Memory {
    let ram = (job.frames * PAGE) as u64;
    let options = Options { backing: job.backing.clone(), max_memory: 4 << 30, ..Options::new(ram) };
    let pager = Pager::start(options).expect("the pager starts");
    let region: Region = pager.anonymous(job.pages * PAGE).expect("address space");
    // SAFETY: the region has these pages.
    unsafe { fill(region.as_ptr(), job.pages) };
    let base = region.as_ptr();
    let loads = move || {
        let stats = pager.stats();
        Some(stats.device_fault.count + stats.memory_fault.count)
    };
    Memory { base, loads: Box::new(loads), keep: Box::new(region) }
}

/// Major faults of this process.
fn major_faults() -> Option<u64> {
    // SAFETY: zero is a value of the structure, which the kernel fills in.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        Some(usage.ru_majflt as u64)
    }
}

fn map(len: usize, flags: i32, fd: i32) -> *mut u8 {
    // SAFETY: a new mapping.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0) };
    assert_ne!(base, libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
    base.cast()
}

fn anonymous(job: &Job) -> Memory {
    join(job);
    let base = map(job.pages * PAGE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1);
    // SAFETY: the mapping has these pages.
    unsafe {
        libc::madvise(base.cast(), job.pages * PAGE, libc::MADV_NOHUGEPAGE);
        fill(base, job.pages);
    }
    Memory { base, loads: Box::new(major_faults), keep: Box::new(()) }
}

#[repr(align(4096))]
struct Aligned([u64; PAGE / 8]);

/// A file (or block device) with the content of all pages.
fn filled_file(job: &Job, flags: i32) -> File {
    let device = std::fs::metadata(&job.backing).is_ok_and(|m| m.file_type().is_block_device());
    let path = if device { job.backing.clone() } else { job.backing.join("pages") };
    let file =
        OpenOptions::new().read(true).write(true).create(!device).custom_flags(flags).open(path).expect("a file");
    for page in 0..job.pages {
        let bytes = Aligned(content(page)).0.map(u64::to_ne_bytes);
        let aligned = Box::new(Aligned(bytes.map(u64::from_ne_bytes)));
        // SAFETY: a page of plain data.
        let bytes = unsafe { std::slice::from_raw_parts(aligned.0.as_ptr().cast::<u8>(), PAGE) };
        file.write_all_at(bytes, (page * PAGE) as u64).expect("the file takes the pages");
    }
    file.sync_all().expect("the file is safe");
    file
}

fn mapped(job: &Job) -> Memory {
    let file = filled_file(job, 0);
    // A page in the page cache is charged to its first reader. So the pages are dropped, and loaded again within the
    // cgroup.
    // SAFETY: no pointers.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    join(job);
    let base = map(job.pages * PAGE, libc::MAP_SHARED, file.as_raw_fd());
    // SAFETY: the mapping.
    unsafe { libc::madvise(base.cast(), job.pages * PAGE, libc::MADV_RANDOM) };
    Memory { base, loads: Box::new(major_faults), keep: Box::new(file) }
}

type UmapCall = unsafe extern "C" fn(*mut libc::c_void, usize, i32, i32, i32, i64) -> *mut libc::c_void;

/// The library's path, if the environment names one.
pub fn umap_library() -> Option<PathBuf> {
    let path = Path::new(&std::env::var_os("UMAP_PREFIX")?).join("lib/libumap.so");
    path.exists().then_some(path)
}

fn umap(job: &Job) -> Memory {
    let file = filled_file(job, libc::O_DIRECT);
    // The library reads its settings at its first call.
    std::env::set_var("UMAP_PAGESIZE", PAGE.to_string());
    std::env::set_var("UMAP_BUFSIZE", job.frames.to_string());
    let path = std::ffi::CString::new(umap_library().expect("looked for before").as_os_str().as_encoded_bytes());
    // SAFETY: the library's function has this signature (umap.h).
    let base = unsafe {
        let library = libc::dlopen(path.expect("a path").as_ptr(), libc::RTLD_NOW);
        assert!(!library.is_null(), "libumap.so cannot be loaded");
        let call = std::mem::transmute::<*mut libc::c_void, UmapCall>(libc::dlsym(library, c"umap".as_ptr()));
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
        call(std::ptr::null_mut(), job.pages * PAGE, prot, flags, file.as_raw_fd(), 0)
    };
    assert_ne!(base, libc::MAP_FAILED, "umap failed");
    Memory { base: base.cast(), loads: Box::new(|| None), keep: Box::new(file) }
}
