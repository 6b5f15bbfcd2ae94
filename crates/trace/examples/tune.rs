use coldframe_trace::*;
use std::time::Instant;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let spec = parse_spec(&a[1]).unwrap();
    // parse speed
    let mut r = open(&spec).unwrap();
    let mut blocks = vec![];
    let t = Instant::now();
    loop { let mut b = Block::new(); if r.read(&mut b).unwrap() == 0 { break; } blocks.push(b); }
    let rows: usize = blocks.iter().map(|b| b.len()).sum();
    let s = t.elapsed().as_secs_f64();
    println!("parse {:.1} M lines/s", r.lines() as f64 / s / 1e6);
    let t = Instant::now();
    let mut r2 = open(&spec).unwrap();
    let mut b = Block::new();
    while r2.read(&mut b).unwrap() > 0 {}
    println!("parse reused {:.1} M lines/s", r2.lines() as f64 / t.elapsed().as_secs_f64() / 1e6);
    let shift: u64 = a.get(2).map_or(0, |s| s.parse().unwrap());
    if shift > 0 {
        for b in &mut blocks {
            *b = b.iter().map(|r| Reference { address: r.address >> shift << shift, size: 1 << shift, ..r }).collect();
        }
    }
    let t = Instant::now();
    let out = std::path::Path::new("/dev/shm/tune.parquet");
    let level = a.get(3).map_or(1, |s| s.parse().unwrap());
    let mut w = Writer::create_at_level(out, Columns::default(), level).unwrap();
    for b in &blocks { w.write(b).unwrap(); }
    let s = w.finish(Provenance::new("tune", Fidelity::ExactReferences)).unwrap();
    if a.len() > 4 { for _ in 0..10 { let mut w = Writer::create_at_level(out, Columns::default(), level).unwrap();
 let t = Instant::now(); for b in &blocks { w.write(b).unwrap(); } w.finish(Provenance::new("tune", Fidelity::ExactReferences)).unwrap(); println!("w {:.1}", rows as f64 / t.elapsed().as_secs_f64() / 1e6);} return; }
    println!("write {:.1} M rows/s, {} bytes, {:.3} bytes/row", rows as f64 / t.elapsed().as_secs_f64() / 1e6, s.bytes_written, s.bytes_written as f64 / rows as f64);
    for (name, wanted) in [("access", Wanted::ACCESS), ("address", Wanted::ADDRESS), ("kind", Wanted{kind:true,..Wanted::ADDRESS}), ("all", Wanted::ALL)] {
        let mut best = f64::MAX;
        for _ in 0..5 {
            let mut r = Reader::open(out).unwrap();
            let t = Instant::now();
            let mut n = 0;
            loop { let k = r.read(&mut b, wanted).unwrap(); if k == 0 { break; } n += k; }
            assert_eq!(n, rows);
            best = best.min(t.elapsed().as_secs_f64());
        }
        println!("read {name} {:.1} M rows/s", rows as f64 / best / 1e6);
    }
}
