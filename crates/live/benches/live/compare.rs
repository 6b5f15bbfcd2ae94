//! Runs whole strings of references through every peer at equal RAM, in rounds. In each round, each peer runs once.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::peers::{umap_library, Figures, Job, Peer};
use crate::places::{Cgroup, Swap, Zram};
use crate::workload::{Workload, WORKLOADS};
use crate::{Bound, Targets};

/// 256 MiB of memory in 64 MiB of RAM.
const PAGES: usize = 65_536;
const FRAMES: usize = 16_384;
/// A run that takes longer is stopped and counts as failed.
const PATIENCE: Duration = Duration::from_secs(180);

type Runs = BTreeMap<&'static str, Vec<Figures>>;

/// A device that is as fast as RAM: software cost dominates.
pub fn on_ram(folder: &Path, targets: &mut Targets) {
    println!("\nRAM-SPEED DEVICE (zram)");
    let (block, swap) = match (Zram::new(2 * PAGES * 4096), Zram::new(2 * PAGES * 4096)) {
        (Ok(block), Ok(swap)) => (block, swap),
        (Err(why), _) | (_, Err(why)) => return println!("not run: {why}"),
    };
    let swap_on = Swap::on(&swap.path());
    let place = Place { backing: &block.path(), swap: swap_on.as_ref().err(), measured: 400_000 };
    for workload in WORKLOADS {
        for threads in [1, 2] {
            let runs = place.rounds(workload, threads);
            ram_targets(&runs, workload, threads, targets);
        }
    }
    drop(swap_on);
    let _ = folder;
}

/// A file of the disk: the device dominates.
pub fn on_disk(folder: &Path, targets: &mut Targets) {
    println!("\nDISK ({})", folder.display());
    let swap_on = Swap::file(folder, 2 * PAGES * 4096);
    let place = Place { backing: folder, swap: swap_on.as_ref().err(), measured: 150_000 };
    for workload in WORKLOADS {
        for threads in [1, 2] {
            let runs = place.rounds(workload, threads);
            disk_targets(&runs, workload, threads, targets);
        }
    }
}

struct Place<'a> {
    backing: &'a Path,
    /// Why kernel swap is not available.
    swap: Option<&'a String>,
    measured: usize,
}

impl Place<'_> {
    fn peers(&self) -> Vec<(Peer, Result<(), String>)> {
        let umap = umap_library().map(drop).ok_or("UMAP_PREFIX does not name a folder with lib/libumap.so".to_string());
        let swap = self.swap.map_or(Ok(()), |why| Err(why.clone()));
        vec![(Peer::Coldframe, Ok(())), (Peer::KernelSwap, swap), (Peer::MmapRandom, Ok(())), (Peer::Umap, umap)]
    }

    fn rounds(&self, workload: Workload, threads: usize) -> Runs {
        let rounds: usize = std::env::var("BENCH_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(1);
        let mut runs = Runs::new();
        println!("\n{}, {threads} thread{}", workload.name(), if threads == 1 { "" } else { "s" });
        println!(
            "{:<24}{:>12}{:>10}{:>10}{:>10}{:>12}",
            "", "accesses/s", "p50 us", "p99 us", "p99.9 us", "loads/access"
        );
        for round in 0..rounds {
            for (peer, there) in self.peers() {
                match there.and_then(|()| self.turn(peer, workload, threads)) {
                    Ok(figures) => {
                        line(peer, &figures);
                        runs.entry(peer.name()).or_default().push(figures);
                    }
                    Err(why) if round == 0 => println!("{:<24} not run: {why}", peer.name()),
                    Err(_) => {}
                }
            }
        }
        runs
    }

    fn turn(&self, peer: Peer, workload: Workload, threads: usize) -> Result<Figures, String> {
        // Nearly every access of these two is a fault.
        let measured = match workload {
            Workload::Uniform | Workload::Sequential => self.measured / 3,
            Workload::Zipf | Workload::Mixed => self.measured,
        };
        let contained = matches!(peer, Peer::KernelSwap | Peer::MmapRandom);
        let cgroup = if contained { Some(Cgroup::new(FRAMES)?) } else { None };
        let job = Job {
            peer,
            workload,
            threads,
            pages: PAGES,
            frames: FRAMES,
            warm: measured,
            measured,
            backing: self.backing.to_path_buf(),
            cgroup: cgroup.as_ref().map(|c| c.0.clone()),
        };
        in_a_process(&job)
    }
}

fn in_a_process(job: &Job) -> Result<Figures, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let text = serde_json::to_string(job).expect("plain data");
    let mut command = Command::new(program);
    let mut child = command.args(["peer", &text]).stdout(Stdio::piped()).spawn().map_err(|e| e.to_string())?;
    let started = Instant::now();
    while child.try_wait().map_err(|e| e.to_string())?.is_none() {
        if started.elapsed() > PATIENCE {
            let _ = child.kill();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    let stderr = String::from_utf8_lossy(&output.stdout);
    let line = stderr.lines().find(|line| line.starts_with('{'));
    let line = line.ok_or_else(|| format!("it ended with {} after {:?}", output.status, started.elapsed()))?;
    serde_json::from_str(line).map_err(|e| e.to_string())
}

fn line(peer: Peer, f: &Figures) {
    let loads = f.loads_per_access.map_or("-".to_string(), |loads| format!("{loads:.4}"));
    println!(
        "{:<24}{:>12.0}{:>10.1}{:>10.1}{:>10.1}{loads:>12}",
        peer.name(),
        f.accesses_per_second,
        f.fault_p50_us,
        f.fault_p99_us,
        f.fault_p999_us
    );
}

/// The median, over the rounds, of the ratio of one peer's figure to another's in the same round.
fn ratio(runs: &Runs, ours: Peer, theirs: Peer, figure: impl Fn(&Figures) -> Option<f64>) -> Option<f64> {
    let (ours, theirs) = (runs.get(ours.name())?, runs.get(theirs.name())?);
    let mut ratios: Vec<f64> = ours.iter().zip(theirs).filter_map(|(a, b)| Some(figure(a)? / figure(b)?)).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied()
}

const SPEED: fn(&Figures) -> Option<f64> = |f| Some(f.accesses_per_second);
const TAIL: fn(&Figures) -> Option<f64> = |f| Some(f.fault_p999_us);
const LOADS: fn(&Figures) -> Option<f64> = |f| f.loads_per_access;

fn note(targets: &mut Targets, what: String, value: Option<f64>, bound: Bound) {
    if let Some(value) = value {
        targets.note(what, value, bound);
    }
}

fn ram_targets(runs: &Runs, workload: Workload, threads: usize, targets: &mut Targets) {
    let of = |other: Peer, figure| ratio(runs, Peer::Coldframe, other, figure);
    let name = |what: &str| format!("RAM-speed, {}, {threads} thr.: {what}", workload.name());
    if workload == Workload::Zipf {
        let (umap, swap) = if threads == 1 { (4.0, 1.0) } else { (6.0, 1.2) };
        note(targets, name("accesses/s, UMap"), of(Peer::Umap, SPEED), Bound::AtLeast(umap));
        note(targets, name("accesses/s, kernel swap"), of(Peer::KernelSwap, SPEED), Bound::AtLeast(swap));
        note(targets, name("p99.9 of a fault, kernel"), of(Peer::KernelSwap, TAIL), Bound::AtMost(0.25));
    }
    if workload == Workload::Mixed && threads == 2 {
        note(targets, name("accesses/s, kernel swap"), of(Peer::KernelSwap, SPEED), Bound::AtLeast(1.2));
    }
    if threads == 1 {
        note(targets, name("page loads, kernel swap"), of(Peer::KernelSwap, LOADS), Bound::AtMost(1.05));
    }
}

fn disk_targets(runs: &Runs, workload: Workload, threads: usize, targets: &mut Targets) {
    if workload != Workload::Zipf || threads != 1 {
        return;
    }
    let name = |what: &str| format!("disk, {}, 1 thr.: {what}", workload.name());
    let of = |other: Peer| ratio(runs, Peer::Coldframe, other, SPEED);
    note(targets, name("accesses/s, UMap"), of(Peer::Umap), Bound::AtLeast(1.7));
    note(targets, name("accesses/s, kernel swap"), of(Peer::KernelSwap), Bound::AtLeast(1.1));
}
