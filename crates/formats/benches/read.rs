//! Measures how fast traces are read and written, compared with a floor: copying the same rows from memory to memory.
//!
//! `cargo bench -p coldframe-formats`. The rows are those of a shipped recording, again and again, once exact and once
//! reduced to 4 KiB pages. The files are in the temporary directory, so after the first pass they are read from the
//! page cache. The figures are rows per second on one core, or text bytes per second; each is printed next to a floor
//! of the same run.

use std::fmt::Write;
use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;

use coldframe_formats::{open, parse_spec, Spec};
use coldframe_store::{Block, Columns, Fidelity, Provenance, Reader, Reference, Wanted, Writer};
use criterion::measurement::WallTime;
use criterion::{criterion_group, criterion_main, BenchmarkGroup, BenchmarkId, Criterion, Throughput};

/// Four row groups.
const ROWS: usize = 4 << 20;
const PAGE: u64 = 4096;

/// The rows of a program that was recorded exactly.
fn exact() -> Vec<Block> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces/cjpeg.parquet");
    let (mut reader, mut block, mut rows) = (Reader::open(&path).unwrap(), Block::new(), Vec::new());
    while reader.read(&mut block, Wanted::ACCESS).unwrap() > 0 {
        rows.extend(block.iter());
    }
    let rows: Vec<Reference> = rows.into_iter().cycle().take(ROWS).collect();
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

/// A lower bound for readers: the bytes are read piece by piece, and `look` goes through them.
fn pieces(path: &Path, look: impl Fn(&[u8]) -> usize) -> usize {
    let mut file = File::open(path).unwrap();
    let (mut piece, mut sum) = (vec![0; 256 << 10], 0);
    loop {
        match file.read(&mut piece).unwrap() {
            0 => return sum,
            read => sum += look(black_box(&piece[..read])),
        }
    }
}

/// The format's reader over the whole file.
fn reader(group: &mut BenchmarkGroup<'_, WallTime>, spec: &Spec) {
    let mut block = Block::new();
    group.bench_function("reader", |bench| {
        bench.iter(|| {
            let mut reader = open(spec).unwrap();
            while reader.read(&mut block).unwrap() > 0 {
                black_box(&block);
            }
            assert_eq!(reader.progress().lines, ROWS as u64);
        });
    });
}

fn foreign(criterion: &mut Criterion) {
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    let exact = exact();
    let rows = || exact.iter().flat_map(|block| block.iter());
    let mut text = String::new();
    for row in rows() {
        let mark = ["I ", " L", " S"][row.kind as usize];
        writeln!(text, "{mark} {:08x},{}", row.address, row.size).unwrap();
    }
    std::fs::write(&path, &text).unwrap();
    let mut group = criterion.benchmark_group("text_read/lackey");
    group.sample_size(10).throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("floor: read the file and count its lines", |bench| {
        let lines = |piece: &[u8]| memchr::memchr_iter(b'\n', piece).count();
        bench.iter(|| assert_eq!(pieces(&path, lines), ROWS));
    });
    reader(&mut group, &parse_spec(&format!("lackey:{}", path.display())).unwrap());
    group.finish();
    // libCacheSim's records: 24 bytes each.
    let record = |(at, row): (usize, Reference)| {
        let (time, object) = ((at as u32).to_le_bytes(), (row.address >> 12).to_le_bytes());
        [&time[..], &object, &row.size.to_le_bytes(), &(-1i64).to_le_bytes()].concat()
    };
    std::fs::write(&path, rows().enumerate().flat_map(record).collect::<Vec<u8>>()).unwrap();
    let mut spec = parse_spec(&format!("oracleGeneral:{}", path.display())).unwrap();
    spec.options.declare_units("address=4KiB").unwrap();
    let mut group = criterion.benchmark_group("record_read/oracleGeneral");
    group.throughput(Throughput::Elements(ROWS as u64)).sample_size(10);
    group.bench_function("floor: read the file", |bench| bench.iter(|| pieces(&path, |_| 0)));
    reader(&mut group, &spec);
    group.finish();
}

criterion_group!(benches, store, foreign);
criterion_main!(benches);
