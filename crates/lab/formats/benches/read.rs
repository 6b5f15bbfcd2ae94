//! How fast traces are read and written, compared with a floor in the same run: the same rows are copied from memory to
//! memory, or the bytes of a text are read and their lines counted.
//!
//! Prints one line for each measurement: millions of rows per second (median of interleaved rounds), and the ratio to
//! the floor. The rows are those of a shipped recording, again and again. The files are in the temporary folder, so
//! after the first round they come from the page cache. Absolute numbers mean little on a shared machine; the ratios
//! are from one run.

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use coldframe_formats::{open, parse_spec};
use coldframe_store::{Block, Columns, Fidelity, Provenance, Reader, Reference, Wanted, Writer};

/// Four row groups.
const ROWS: usize = 4 << 20;
const ROUNDS: usize = 5;

/// The rows of a program that was recorded exactly.
fn exact() -> Vec<Block> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/traces/cjpeg.parquet");
    let (mut reader, mut block, mut rows) = (Reader::open(&path).expect("a shipped trace"), Block::new(), Vec::new());
    while reader.read(&mut block, Wanted::ACCESS).expect("a shipped trace") > 0 {
        rows.extend(block.iter());
    }
    let rows: Vec<Reference> = rows.into_iter().cycle().take(ROWS).collect();
    rows.chunks(64 * 1024).map(|rows| rows.iter().copied().collect()).collect()
}

fn write(path: &Path, blocks: &[Block]) {
    let mut writer = Writer::create(path, Columns::default()).expect("the temporary folder");
    blocks.iter().for_each(|block| writer.write(block).expect("room for it"));
    writer.finish(Provenance::new("benches/read.rs", Fidelity::ExactReferences)).expect("room for it");
}

fn read(path: &Path, wanted: Wanted) {
    let (mut reader, mut block, mut rows) = (Reader::open(path).expect("it was written"), Block::new(), 0);
    while reader.read(&mut block, wanted).expect("it was written") > 0 {
        rows += block.len();
        black_box(&block);
    }
    assert_eq!(rows, ROWS);
}

/// The same columns, already decoded, are copied to one block's worth of memory.
fn copy(blocks: &[Block]) {
    let (mut address, mut size, mut kind) = (Vec::new(), Vec::new(), Vec::new());
    for block in blocks {
        address.clear();
        size.clear();
        kind.clear();
        address.extend_from_slice(block.address());
        size.extend_from_slice(block.size());
        kind.extend_from_slice(block.kind());
        black_box((&address, &size, &kind));
    }
}

/// A text of Valgrind's Lackey, a line a row.
fn lackey(blocks: &[Block]) -> String {
    let mut text = String::new();
    for row in blocks.iter().flat_map(|block| block.iter()) {
        let mark = ["I ", " L", " S"][row.kind as usize];
        writeln!(text, "{mark} {:08x},{}", row.address, row.size).expect("memory");
    }
    text
}

fn read_text(path: &Path) {
    let spec = parse_spec(&format!("lackey:{}", path.display())).expect("our own text");
    let (mut reader, mut block) = (open(&spec).expect("it was written"), Block::new());
    while reader.read(&mut block).expect("it was written") > 0 {
        black_box(&block);
    }
    assert_eq!(reader.progress().lines, ROWS as u64);
}

fn count_lines(path: &Path) {
    let bytes = std::fs::read(path).expect("it was written");
    assert_eq!(memchr::memchr_iter(b'\n', &bytes).count(), ROWS);
}

/// Rows under one floor, the first of them: a name and its work.
type Work<'a> = (&'static str, Box<dyn FnMut() + 'a>);

fn measure(mut works: Vec<Work<'_>>) {
    let mut seconds = vec![Vec::new(); works.len()];
    for _ in 0..ROUNDS {
        for ((_, work), seconds) in works.iter_mut().zip(&mut seconds) {
            let began = Instant::now();
            work();
            seconds.push(began.elapsed().as_secs_f64());
        }
    }
    seconds.iter_mut().for_each(|seconds| seconds.sort_by(f64::total_cmp));
    let medians: Vec<f64> = seconds.iter().map(|seconds| seconds[ROUNDS / 2]).collect();
    for ((name, _), median) in works.iter().zip(&medians) {
        println!("{name:40} {:8.1} M rows/s {:7.3} of the floor", ROWS as f64 / 1e6 / median, medians[0] / median);
    }
}

fn main() {
    let (folder, blocks) = (tempfile::tempdir().expect("a temporary folder"), exact());
    let [parquet, written, text] = ["read", "written", "text"].map(|name| folder.path().join(name));
    write(&parquet, &blocks);
    std::fs::write(&text, lackey(&blocks)).expect("room for it");
    measure(vec![
        ("floor: copy address, size, kind", Box::new(|| copy(&blocks))),
        ("Parquet, address", Box::new(|| read(&parquet, Wanted::ADDRESS))),
        ("Parquet, address, size, kind", Box::new(|| read(&parquet, Wanted::ACCESS))),
        ("Parquet, written", Box::new(|| write(&written, &blocks))),
    ]);
    measure(vec![
        ("floor: read the file and count its lines", Box::new(|| count_lines(&text))),
        ("Lackey's text", Box::new(|| read_text(&text))),
    ]);
}
