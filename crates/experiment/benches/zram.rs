//! The time to compress and decompress a page of 4 KiB, and the compressed size: pages of live programs, with lz4 and
//! with zstd's first level.
//!
//! `make bench-zram` prints the figures of this machine, in the form of those in `systems/zram.rs`.

use std::io::Read;
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

const PAGE: usize = 4096;
const PAGES_MAX: usize = 8192;

/// A program that has built something up and waits.
const PROGRAMS: [(&str, &[&str]); 3] = [
    ("python3", &["-c", "d = {i: str(i * 7919) for i in range(150000)}; print('x', flush=True); input()"]),
    ("perl", &["-e", "$| = 1; my %d = map { $_ => \"value $_\" } 1..100000; print \"x\\n\"; <STDIN>"]),
    ("awk", &["BEGIN { for (i = 0; i < 200000; i++) d[i] = \"row \" i; print \"x\"; fflush(); getline < \"-\" }"]),
];

fn started(name: &str, args: &[&str]) -> Option<Child> {
    let mut child = Command::new(name).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    child.stdout.as_mut()?.read_exact(&mut [0; 1]).ok()?;
    Some(child)
}

/// Pages of the program's writable private memory that are not all zeros.
fn pages(child: &Child) -> Vec<Vec<u8>> {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", child.id())).unwrap_or_default();
    let Ok(memory) = std::fs::File::open(format!("/proc/{}/mem", child.id())) else { return Vec::new() };
    let mut pages = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" rw-p ")) {
        let Some((from, to)) = line.split(' ').next().and_then(|range| range.split_once('-')) else { continue };
        let (Ok(from), Ok(to)) = (u64::from_str_radix(from, 16), u64::from_str_radix(to, 16)) else { continue };
        for at in (from..to).step_by(PAGE) {
            let mut page = vec![0; PAGE];
            if pages.len() < PAGES_MAX && memory.read_exact_at(&mut page, at).is_ok() && page.iter().any(|b| *b != 0) {
                pages.push(page);
            }
        }
    }
    pages
}

/// Microseconds a page each way, and how many times smaller all pages become.
fn measured(
    pages: &[Vec<u8>],
    compress: &mut dyn FnMut(&[u8]) -> Vec<u8>,
    decompress: &mut dyn FnMut(&[u8]) -> Vec<u8>,
) -> (f64, f64, f64) {
    let each = |began: Instant| began.elapsed().as_secs_f64() * 1e6 / pages.len() as f64;
    let began = Instant::now();
    let packed: Vec<Vec<u8>> = pages.iter().map(|page| compress(page)).collect();
    let there = each(began);
    let began = Instant::now();
    let whole: Vec<Vec<u8>> = packed.iter().map(|page| decompress(page)).collect();
    let back = each(began);
    assert!(whole == pages, "a page came back as another");
    // A page that does not become smaller is stored uncompressed, as zram does.
    let bytes: usize = packed.iter().map(|page| page.len().min(PAGE)).sum();
    (there, back, (pages.len() * PAGE) as f64 / bytes as f64)
}

fn main() {
    println!(
        "{:10} {:>7}  {:>24}  {:>24}",
        "program", "pages", "lz4: there, back, ratio", "zstd 1: there, back, ratio"
    );
    for (name, args) in PROGRAMS {
        let Some(mut child) = started(name, args) else {
            println!("{name:10} is not installed");
            continue;
        };
        let pages = pages(&child);
        drop((child.kill(), child.wait()));
        if pages.is_empty() {
            println!("{name:10} its memory cannot be read here");
            continue;
        }
        let lz4 = measured(&pages, &mut lz4_flex::compress, &mut |packed| {
            lz4_flex::decompress(packed, PAGE).expect("our own bytes")
        });
        let mut packer = zstd::bulk::Compressor::new(1).expect("level 1");
        let mut unpacker = zstd::bulk::Decompressor::new().expect("no dictionary");
        let zstd = measured(&pages, &mut |page| packer.compress(page).expect("room"), &mut |packed| {
            unpacker.decompress(packed, PAGE).expect("our own bytes")
        });
        let show = |(there, back, ratio)| format!("{there:.2} us, {back:.2} us, {ratio:.2}");
        println!("{name:10} {:>7}  {:>24}  {:>24}", pages.len(), show(lz4), show(zstd));
    }
}
