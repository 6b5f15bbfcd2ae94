//! The output of each verb fits 80 columns, and 120.

use std::path::Path;
use std::process::Command;

use coldframe_costs::doctor::{examine, Health};
use coldframe_toolbox::{command_of, verbs};

/// Commands, one per line; `$` is the folder of the shipped traces. Later commands use files of earlier ones.
const COMMANDS: &str = "\
trace import din:t.din -o t.parquet
trace info $/shop.parquet
trace info $/cjpeg.parquet
trace info $/swap-desktop.csv.zst
trace heatmap $/shop.parquet
trace cut $/shop.parquet -o part.parquet --rows 10000
trace reduce $/shop.parquet -o small.parquet --above 256KiB
generate phone --category browser -o phone.parquet
trace merge phone.parquet phone.parquet -o both.parquet
trace mix --task $/worker.parquet*2 --task $/memload.parquet --slice 10000 -o mix.parquet
trace convert $/shop.parquet --to oracleGeneral -o shop.bin
sim $/shop.parquet --policy clock,sieve,lru,opt --ram 10%,50%
sim $/shop.parquet --plot
sim $/worker.parquet --ram 50% --journal w.journal
replay w.journal
sim $/cjpeg.parquet --system ddb --ram 16KiB --handler sequential,delayed-dual-buffering
sim $/render.parquet --system swl --ram 64KiB --policy clock,pa-clock:budget=13
sim mix.parquet --system sap --ram 50% --prefetch off,75
sim mix.parquet --system sap --ram 50%
sim $/shop.parquet --ram 50% --swap-device zram-lz4,nvm --swap-size 50%
advise $/worker.parquet --device NAND01GW3B2B -o advised.toml
lab check $/worker.parquet --max-ram 512KiB --device NAND01GW3B2B
policies
devices
devices KFG1G16Q2M
doctor
teach
teach belady --all
papers ddb
";
/// Commands that need a machine that can page: programs in a terminal of this width.
const PAGED: &str = "\
record -o sort.parquet -- sort -o sorted n.txt
run --ram 1MiB -- sort -o sorted n.txt
check --max-ram 64MiB -- sort -o sorted n.txt
advise sort.parquet --device here
doctor --calibrate --short
";
/// Verbs that are not checked, and the reason.
const OTHERS: [(&str, &str); 7] = [
    ("compare", "it makes swap for the whole machine; tests/by_kernel.rs runs it, one test at a time"),
    ("squeeze", "it needs a group to squeeze; a test beside its words checks their width"),
    ("park", "it makes swap; tests/park.rs runs it, one test at a time"),
    ("resume", "it needs a parked program; tests/park.rs runs it"),
    ("completions", "a script for a shell"),
    ("man", "a page for man, which breaks its lines"),
    ("top", "a running program's, and its table is run's"),
];

fn coldframe(words: &[String], folder: &Path, columns: usize) -> (String, String) {
    let (program, own) = command_of(words);
    let mut command = Command::new(program);
    command.args(own).current_dir(folder).env("COLUMNS", columns.to_string()).env("NO_COLOR", "1");
    command.env("XDG_CACHE_HOME", folder);
    let output = command.output().unwrap();
    let text = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    (words.join(" "), text.concat())
}

/// The first line that is too wide.
fn wide((command, text): &(String, String), columns: usize) -> Option<String> {
    // A single word may be a path, which must not be broken.
    let line = text.lines().find(|line| line.chars().count() > columns && line.trim().contains(' '))?;
    Some(format!("coldframe {command}, {columns} columns:\n{line}\n"))
}

fn traces() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces").canonicalize().unwrap().display().to_string()
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(|word| word.replace('$', &traces())).collect()
}

/// The first line that is too wide in a terminal with this many columns.
fn too_wide(columns: usize) -> String {
    let folder = tempfile::tempdir().unwrap();
    let lines: String = (0..3000).map(|i| format!("{} {:x}\n", i % 3, i * 7919 % 100_000 * 64)).collect();
    std::fs::write(folder.path().join("t.din"), lines).unwrap();
    let numbers: String = (0..100_000u64).map(|i| format!("{}\n", i * 7919 % 100_003)).collect();
    std::fs::write(folder.path().join("n.txt"), numbers).unwrap();
    let pages = examine(folder.path()).iter().all(|found| found.health != Health::Missing);
    let paged = if pages { PAGED } else { "" };
    let mut found = String::new();
    for line in COMMANDS.lines().chain(paged.lines()) {
        let message = coldframe(&words(line), folder.path(), columns);
        assert!(!message.1.contains("error:"), "{}: {}", message.0, message.1);
        found.extend(wide(&message, columns));
    }
    found
}

#[test]
fn every_verb_fits_80_columns() {
    assert_eq!(too_wide(80), "");
}

#[test]
fn every_verb_fits_120_columns() {
    assert_eq!(too_wide(120), "");
}

#[test]
fn every_verb_is_tried() {
    let folder = tempfile::tempdir().unwrap();
    let (_, help) = coldframe(&["--help".into()], folder.path(), 80);
    for verb in verbs(&help) {
        let tried = COMMANDS.lines().chain(PAGED.lines()).any(|line| line.split(' ').next() == Some(&verb));
        assert!(tried || OTHERS.iter().any(|(other, _)| *other == verb), "{verb}: add a line above");
    }
}
