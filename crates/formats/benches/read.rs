//! Measures how fast traces are read and written, compared with a floor: copying the same rows from memory to memory.
//!
//! `cargo bench -p coldframe-formats`. The data are made here: a program of loops over basic blocks, with accesses to
//! its stack, to arrays that it walks and to a heap, once exact and once reduced to 4 KiB pages. The files are in the
//! temporary directory, so after the first pass they are read from the page cache. The figures are rows per second on
//! one core, or text bytes per second; each is printed next to a floor of the same run.

use std::hint::black_box;
use std::io::{Read, Write};
use std::path::Path;

use coldframe_formats::{open, parse_spec, RowReader};
use coldframe_store::{Block, Columns, Fidelity, Kind, Provenance, Reader, Reference, Wanted, Writer};
use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion, Throughput};

/// Four row groups.
const ROWS: usize = 4 << 20;
const PAGE: u64 = 4096;

/// SplitMix64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// One instruction: its address and size, and where its data are, if it has any.
struct Instruction {
    address: u64,
    size: u32,
    data: Option<(Kind, Place)>,
}

enum Place {
    Stack(u64),
    /// Walks an array of this many KiB by 8 bytes a time.
    Array(u64),
    Heap,
}

/// 500 loops of 3 to 40 instructions; two in five instructions touch data.
fn program(random: &mut Random) -> Vec<Vec<Instruction>> {
    let mut address = 0x0040_0000;
    let mut instruction = |random: &mut Random| {
        let size = 2 + random.below(6) as u32;
        address += u64::from(size);
        let kind = if random.below(3) == 0 { Kind::Write } else { Kind::Read };
        let data = match random.below(10) {
            0..=1 => Some((kind, Place::Stack(random.below(32) * 8))),
            2 => Some((kind, Place::Array(16 << random.below(6)))),
            3 => Some((kind, Place::Heap)),
            _ => None,
        };
        Instruction { address: address - u64::from(size), size, data }
    };
    (0..500).map(|_| (0..3 + random.below(38)).map(|_| instruction(random)).collect()).collect()
}

/// The references of running that program: a skewed choice of loops, each for 1 to 64 rounds.
fn exact() -> Vec<Block> {
    let mut random = Random(1);
    let loops = program(&mut random);
    let mut rows = Vec::with_capacity(ROWS + 10_000);
    let mut walked = 0u64;
    while rows.len() < ROWS {
        let choice = random.below(500).min(random.below(500)).min(random.below(500));
        for _ in 0..1 + random.below(64) {
            for instruction in &loops[choice as usize] {
                rows.push(Reference::new(instruction.address, instruction.size, Kind::Fetch));
                let Some((kind, place)) = &instruction.data else { continue };
                walked += 8;
                let address = match place {
                    Place::Stack(offset) => 0x7fff_f000_0000 - choice * 64 + offset,
                    Place::Array(kib) => 0x1000_0000 * (1 + choice % 7) + walked % (kib << 10),
                    Place::Heap => 0x5555_0000_0000 + random.below(1 << 17) * 16,
                };
                rows.push(Reference::new(address, 8, *kind));
            }
        }
    }
    rows.truncate(ROWS);
    rows.chunks(64 * 1024).map(|rows| rows.iter().copied().collect()).collect()
}

fn reduced(exact: &[Block]) -> Vec<Block> {
    let page = |row: Reference| Reference { address: row.address / PAGE * PAGE, size: PAGE as u32, ..row };
    exact.iter().map(|block| block.iter().map(page).collect()).collect()
}

fn write(path: &Path, blocks: &[Block]) {
    let mut writer = Writer::create(path, Columns::default()).unwrap();
    blocks.iter().for_each(|block| writer.write(block).unwrap());
    writer.finish(Provenance::new("benches/read.rs", Fidelity::ExactReferences)).unwrap();
}

fn read(path: &Path, block: &mut Block, wanted: Wanted) -> u64 {
    let mut reader = Reader::open(path).unwrap();
    let mut rows = 0;
    while reader.read(block, wanted).unwrap() > 0 {
        rows += block.len() as u64;
        black_box(&*block);
    }
    rows
}

/// A lower bound for reading: the same columns, already decoded, are copied to one block's worth of memory.
fn copy(blocks: &[Block], address: &mut Vec<u64>, size: &mut Vec<u32>, kind: &mut Vec<u32>) {
    for block in blocks {
        address.clear();
        size.clear();
        kind.clear();
        address.extend_from_slice(block.address());
        size.extend_from_slice(block.size());
        kind.extend_from_slice(block.kind());
        black_box((&*address, &*size, &*kind));
    }
}

fn store(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    let exact = exact();
    let page = reduced(&exact);
    for (name, blocks) in [("exact", &exact), ("page", &page)] {
        let path = directory.path().join(name);
        write(&path, blocks);
        let mut group = criterion.benchmark_group(format!("parquet_read/{name}"));
        group.throughput(Throughput::Elements(ROWS as u64));
        let (mut address, mut size, mut kind) = Default::default();
        group.bench_function("floor: copy address, size, kind", |bench| {
            bench.iter(|| copy(blocks, &mut address, &mut size, &mut kind));
        });
        let mut block = Block::new();
        for (columns, wanted) in [("address", Wanted::ADDRESS), ("address, size, kind", Wanted::ACCESS)] {
            group.bench_function(columns, |bench| {
                bench.iter(|| assert_eq!(read(&path, &mut block, wanted), ROWS as u64))
            });
        }
        group.finish();

        let mut group = criterion.benchmark_group("parquet_write");
        group.throughput(Throughput::Elements(ROWS as u64)).sample_size(10);
        let path = directory.path().join("written");
        group.bench_function(BenchmarkId::from_parameter(name), |bench| bench.iter(|| write(&path, blocks)));
        group.finish();
    }
}

fn text(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    let exact = exact();
    for format in ["lackey", "din"] {
        let mut group = criterion.benchmark_group(format!("text_read/{format}"));
        group.sample_size(10);
        let path = directory.path().join(format);
        let mut text = Vec::new();
        for row in exact.iter().flat_map(|block| block.iter()) {
            match format {
                "lackey" => {
                    let mark = ["I ", " L", " S"][row.kind as usize];
                    writeln!(text, "{mark} {:08x},{}", row.address, row.size).unwrap();
                }
                _ => writeln!(text, "{} {:x}", [2, 0, 1][row.kind as usize], row.address).unwrap(),
            }
        }
        group.throughput(Throughput::Bytes(text.len() as u64));
        std::fs::write(&path, &text).unwrap();
        group.bench_function("floor: read the file and count its lines", |bench| {
            bench.iter(|| assert_eq!(lines(&path), ROWS));
        });
        let spec = parse_spec(&format!("{format}:{}", path.display())).unwrap();
        let mut block = Block::new();
        group.bench_function("reader", |bench| {
            bench.iter(|| {
                let mut reader: Box<dyn RowReader> = open(&spec).unwrap();
                while reader.read(&mut block).unwrap() > 0 {
                    black_box(&block);
                }
                assert_eq!(reader.progress().lines, ROWS as u64);
            });
        });
        group.finish();
    }
}

/// A lower bound for readers of text: the bytes are read piece by piece, and the ends of lines are found.
fn lines(path: &Path) -> usize {
    let mut file = std::fs::File::open(path).unwrap();
    let mut piece = vec![0; 256 << 10];
    let mut lines = 0;
    loop {
        match file.read(&mut piece).unwrap() {
            0 => return lines,
            read => lines += memchr::memchr_iter(b'\n', &piece[..read]).count(),
        }
    }
}

/// libCacheSim's records: 24 bytes each.
fn records(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("oracleGeneral");
    let mut bytes = Vec::with_capacity(ROWS * 24);
    for (at, row) in exact().iter().flat_map(|block| block.iter()).enumerate() {
        bytes.extend((at as u32).to_le_bytes());
        bytes.extend((row.address >> 12).to_le_bytes());
        bytes.extend(row.size.to_le_bytes());
        bytes.extend((-1i64).to_le_bytes());
    }
    std::fs::write(&path, bytes).unwrap();
    let mut spec = parse_spec(&format!("oracleGeneral:{}", path.display())).unwrap();
    spec.options.declare_units("address=4KiB").unwrap();
    let mut block = Block::new();
    let mut group = criterion.benchmark_group("record_read/oracleGeneral");
    group.throughput(Throughput::Elements(ROWS as u64)).sample_size(10);
    group.bench_function("floor: read the file", |bench| {
        let mut piece = vec![0; 256 << 10];
        bench.iter(|| {
            let mut file = std::fs::File::open(&path).unwrap();
            while file.read(&mut piece).unwrap() > 0 {
                black_box(&piece);
            }
        });
    });
    group.bench_function("reader", |bench| {
        bench.iter(|| {
            let mut reader: Box<dyn RowReader> = open(&spec).unwrap();
            while reader.read(&mut block).unwrap() > 0 {
                black_box(&block);
            }
            assert_eq!(reader.progress().lines, ROWS as u64);
        });
    });
    group.finish();
}

criterion_group!(benches, store, text, records);
criterion_main!(benches);
