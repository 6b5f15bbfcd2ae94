//! bzip2 recorded by QEMU and by lackey: the same references, where the two recorders agree.
//!
//! Why they must agree: both run the same instructions of the same files on the same input, so the program alone
//! decides what bzip2's and libbz2's own code fetches. Why other code may differ: files and areas have other addresses;
//! the C library chooses routines by the processor, and QEMU's processor is not the host's as valgrind shows it; the
//! loader and the library's start also depend on that processor, on the environment and on the auxiliary vector; and a
//! locked instruction is two references for lackey and one for us.
//!
//! What this test has found: lackey shows instructions that were jumped over, unless valgrind is prevented from looking
//! across jumps (`lackey.rs`); and QEMU 7.2 shows an x86 instruction over a page's end twice (the plugin's
//! `instruction.rs`).
//!
//! `cargo test -p coldframe-record --test compare -- --nocapture` prints the comparison.

mod common;

use std::collections::{BTreeMap, HashMap};

use coldframe_record::Via;
use coldframe_store::{Kind, Provenance, Reference};
use coldframe_toolbox::{have, BZIP2, QEMU, VALGRIND};
use common::{order, read, run};

/// The code whose references must agree.
const OWN: [&str; 2] = ["bzip2", "libbz2.so"];

/// An instruction of a module, at the module's own addresses, and its data accesses in `Steps::data`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Step {
    module: u8,
    offset: u64,
    size: u32,
}

#[derive(Default)]
struct Steps {
    steps: Vec<Step>,
    /// For each step, the end of its accesses in `data`.
    ends: Vec<usize>,
    data: Vec<Reference>,
    /// Instructions by file name.
    by_module: BTreeMap<String, u64>,
}

impl Steps {
    /// The instructions of the files that `wanted` names, with their data.
    fn of(rows: &[Reference], provenance: &Provenance, wanted: &[&str]) -> Steps {
        let base =
            |name: &str| provenance.mappings.iter().filter(|m| m.name == name).map(|m| m.start).min().unwrap_or(0);
        let code: Vec<(u64, u64, u64, &str)> = provenance
            .mappings
            .iter()
            .filter(|m| m.protection == "r-xp")
            .map(|m| (m.start, m.end, base(&m.name), m.name.rsplit('/').next().unwrap_or("")))
            .collect();
        let mut steps = Steps::default();
        let mut inside = false;
        for row in rows {
            if row.kind != Kind::Fetch {
                if inside {
                    steps.data.push(*row);
                    *steps.ends.last_mut().unwrap() = steps.data.len();
                }
                continue;
            }
            let found = code.iter().find(|(start, end, ..)| (*start..*end).contains(&row.address));
            let name = found.map_or("elsewhere", |(.., name)| name);
            match steps.by_module.get_mut(name) {
                Some(count) => *count += 1,
                None => drop(steps.by_module.insert(name.into(), 1)),
            }
            let module = wanted.iter().position(|w| name.starts_with(w));
            inside = module.is_some();
            if let (Some(module), Some((_, _, base, _))) = (module, found) {
                steps.steps.push(Step { module: module as u8, offset: row.address - base, size: row.size });
                steps.ends.push(steps.data.len());
            }
        }
        steps
    }

    fn data(&self, step: usize) -> &[Reference] {
        &self.data[if step == 0 { 0 } else { self.ends[step - 1] }..self.ends[step]]
    }
}

/// Pairs of equal steps, in order: walks both sequences and, where they part, looks for the nearest place where eight
/// steps agree again.
fn align(a: &[Step], b: &[Step]) -> (Pairs, Pairs) {
    const WINDOW: usize = 3000;
    let (mut i, mut j) = (0, 0);
    let (mut pairs, mut partings) = (Vec::new(), Vec::new());
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
            continue;
        }
        partings.push((i, j));
        let agree = |x: usize, y: usize| {
            a[x..].iter().zip(&b[y..]).take(8).filter(|(p, q)| p == q).count() >= 8.min(a.len() - x).min(b.len() - y)
        };
        let near = (1..2 * WINDOW).find_map(|d| {
            (0..=d).map(|x| (i + x, j + d - x)).find(|(x, y)| *x < a.len() && *y < b.len() && agree(*x, *y))
        });
        match near {
            Some(next) => (i, j) = next,
            None => break,
        }
    }
    (pairs, partings)
}

/// Places in the one recording and in the other.
type Pairs = Vec<(usize, usize)>;

struct Comparison {
    code: f64,
    data: f64,
    partings: usize,
}

type Recorded = (Vec<Reference>, Provenance);

/// Prints how far two recordings agree in the code of `wanted`.
fn compare((rows, provenance): &Recorded, other: &Recorded, wanted: &[&str]) -> Comparison {
    let (a, b) = (Steps::of(rows, provenance, wanted), Steps::of(&other.0, &other.1, wanted));
    let (pairs, partings) = align(&a.steps, &b.steps);
    // Data addresses: every 4 KiB of the one lies at one distance from its like in the other.
    let mut distance: HashMap<u64, u64> = HashMap::new();
    let mut elsewhere = std::collections::BTreeSet::new();
    let (mut same, mut all, mut form) = (0u64, 0u64, 0u64);
    for (i, j) in &pairs {
        let (da, db) = (a.data(*i), b.data(*j));
        all += da.len().max(db.len()) as u64;
        if da.len() != db.len() || da.iter().zip(db).any(|(x, y)| (x.kind, x.size) != (y.kind, y.size)) {
            continue;
        }
        form += da.len() as u64;
        for (x, y) in da.iter().zip(db) {
            let delta = x.address.wrapping_sub(y.address);
            if *distance.entry(x.address >> 12).or_insert(delta) == delta {
                same += 1;
            } else {
                elsewhere.insert((a.steps[*i].module, a.steps[*i].offset));
            }
        }
    }
    let distances: std::collections::BTreeSet<u64> = distance.values().copied().collect();
    let share = |part: u64, whole: u64| if whole == 0 { 1.0 } else { part as f64 / whole as f64 };
    let code = share(pairs.len() as u64, a.steps.len().max(b.steps.len()) as u64);
    println!(
        "  in {wanted:?}: {} of {} and {} fetches identical in order ({:.4} %), {} partings",
        pairs.len(),
        a.steps.len(),
        b.steps.len(),
        code * 100.0,
        partings.len()
    );
    println!(
        "  their data: {all} references, {form} of the same kind and size, {same} at the same place ({:.4} %), \
     by {} distances between the layouts",
        share(same, all) * 100.0,
        distances.len()
    );
    let names = |(module, offset): &(u8, u64)| format!("{}+{offset:x}", wanted[*module as usize]);
    let places: std::collections::BTreeSet<_> =
        partings.iter().filter_map(|(i, _)| a.steps.get(*i)).map(|s| (s.module, s.offset)).collect();
    println!("  they part at {:?}", places.iter().take(12).map(names).collect::<Vec<_>>());
    println!("  data elsewhere by {:?}", elsewhere.iter().take(12).map(names).collect::<Vec<_>>());
    Comparison { code, data: share(same, all), partings: partings.len() }
}

/// English-like text: words of a small vocabulary by a linear congruence.
fn text(bytes: usize) -> String {
    let words = [
        "page", "frame", "the", "fault", "of", "a", "swap", "clock", "and", "slot", "is", "dirty", "hand", "load",
        "evict", "to",
    ];
    let mut state = 1u32;
    let mut text = String::new();
    while text.len() < bytes {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push_str(words[(state >> 28) as usize]);
        text.push(if state >> 20 & 15 == 0 { '\n' } else { ' ' });
    }
    text
}

#[test]
fn bzip2_is_the_same_by_qemu_and_by_lackey() {
    if !have(&[QEMU, VALGRIND, BZIP2]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("input");
    std::fs::write(&input, text(6000)).unwrap();
    let input = input.to_str().unwrap();
    // By its whole path, for bzip2 walks over its own name, and valgrind calls it by that.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let bzip2 = std::env::split_paths(&path).map(|p| p.join("bzip2")).find(|p| p.is_file()).unwrap();
    let [qemu, lackey] = [Via::Qemu, Via::Valgrind].map(|via| {
        let out = dir.path().join("t.parquet");
        // bzip2 looks whether its output is already there.
        let _ = std::fs::remove_file(format!("{input}.bz2"));
        let mut order = order(&bzip2, &["-9", "-k", input], &out);
        order.via = via;
        assert!(run(&order).unwrap().status.success());
        read(&out)
    });
    println!("  {:28} {:>12} {:>12}", "instructions in", "qemu", "lackey");
    let (a, b) = (Steps::of(&qemu.0, &qemu.1, &OWN), Steps::of(&lackey.0, &lackey.1, &OWN));
    for name in a.by_module.keys().chain(b.by_module.keys().filter(|k| !a.by_module.contains_key(*k))) {
        let count = |steps: &Steps| steps.by_module.get(name).copied().unwrap_or(0);
        println!("  {name:28} {:>12} {:>12}", count(&a), count(&b));
    }
    let own = compare(&qemu, &lackey, &OWN);
    assert!(own.code == 1.0 && own.partings == 0, "bzip2's own instructions are the same, in the same order");
    // All but what `_init`, `_fini` and their like do on the stack: the loader calls them, from frames sized by the
    // processor's state.
    assert!(own.data > 0.9999, "and so are their data");
    // Here: strstr for another processor, getenv over valgrind's environment, thread start (rseq), exit handlers of
    // valgrind's own library.
    let library = compare(&qemu, &lackey, &["libc.so"]);
    assert!(library.code > 0.9, "most of the C library is the same too");
}
