//! `make bench-live`: compares the live pager with its peers and its floors, in one run, as ratios.
//!
//! `micro` times single faults and compares them with an anonymous zero-fill fault and a direct read. `compare` drives
//! whole strings of references through coldframe, kernel swap, mmap and UMap at equal RAM. `redis` runs an unmodified
//! server. At the end, each target is printed with its measured value. Environment: BENCH_DIR (a folder on the disk;
//! default /var/tmp), BENCH_ROUNDS (default 1), UMAP_PREFIX (where UMap is installed), BENCH_ONLY (`micro`, `ram`,
//! `disk`, `redis`).

mod compare;
mod micro;
mod peers;
mod places;
mod redis;
mod workload;

use std::path::PathBuf;

/// The bound of a target.
pub enum Bound {
    /// The ratio may not be greater.
    AtMost(f64),
    /// The ratio may not be smaller.
    AtLeast(f64),
}

/// The targets and their measured values.
#[derive(Default)]
pub struct Targets(Vec<(String, f64, Bound)>);

impl Targets {
    /// Adds a target.
    pub fn note(&mut self, what: impl Into<String>, value: f64, bound: Bound) {
        self.0.push((what.into(), value, bound));
    }

    fn print(&self) {
        println!("\nTARGETS{:>67}", "measured   target");
        for (what, value, bound) in &self.0 {
            let (sign, target, reached) = match bound {
                Bound::AtMost(most) => ("<=", most, value <= most),
                Bound::AtLeast(least) => (">=", least, value >= least),
            };
            println!(
                "{what:<64} {value:>8.3}   {sign} {target:<6} {}",
                if reached { "reached" } else { "NOT REACHED" }
            );
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, role, job] = arguments.as_slice() {
        if role == "peer" {
            return peers::work(&serde_json::from_str(job).expect("a job of ours"));
        }
    }
    // `cargo test --benches` only checks that the benchmark builds.
    if arguments.iter().any(|a| a == "--test") {
        return;
    }
    let only = std::env::var("BENCH_ONLY").ok();
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only.split(',').any(|o| o == part));
    let folder = std::env::var_os("BENCH_DIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
    let folder = tempfile::tempdir_in(folder).expect("BENCH_DIR is a folder that can be written to");
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load average {}", load.trim());
    let mut targets = Targets::default();
    if wanted("micro") {
        micro::run(folder.path(), &mut targets);
    }
    if wanted("ram") {
        compare::on_ram(folder.path(), &mut targets);
    }
    if wanted("disk") {
        compare::on_disk(folder.path(), &mut targets);
    }
    if wanted("redis") {
        redis::run(folder.path(), &mut targets);
    }
    targets.print();
}
