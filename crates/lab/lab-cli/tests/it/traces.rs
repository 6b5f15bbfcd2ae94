//! Traces without all references, from the command line. Results that they can give equal those of the whole trace;
//! other requests are refused.

use coldframe_store::{Block, Columns, Fidelity, Kind, Provenance, Reference, Writer};
use coldframe_toolbox::command::{done, json, refused, Folder};

const PAGE: u64 = 4096;

fn write(folder: &Folder, name: &str, provenance: Provenance, rows: impl Iterator<Item = (u64, Kind)>) -> String {
    let path = folder.at(name);
    let mut writer = Writer::create(&path, Columns::default()).unwrap();
    let block: Block = rows.map(|(page, kind)| Reference::new(page * PAGE, 8, kind)).collect();
    writer.write(&block).unwrap();
    writer.finish(provenance).unwrap();
    path
}

/// A string with loops of several lengths and jumps, always the same. An xorshift (Marsaglia 2003) draws it, without
/// the code under test.
fn mixed(rows: usize, pages: u64, mut seed: u64) -> Vec<(u64, Kind)> {
    let mut next = move |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let mut string = Vec::new();
    while string.len() < rows {
        // Small numbers are drawn more often.
        let (first, length, rounds) = (next(pages) * next(pages) / pages, 1 + next(5), 1 + next(9));
        for at in 0..length * rounds {
            let kind = if next(5) == 0 { Kind::Write } else { Kind::Read };
            string.push(((first + at % length) % pages, kind));
        }
    }
    string
}

/// The misses of LRU, as a plain list with the most recent page last.
fn slow_lru(frames: usize, string: &[(u64, Kind)]) -> u64 {
    let (mut stack, mut misses) = (Vec::new(), 0);
    for &(page, _) in string {
        match stack.iter().position(|other| *other == page) {
            Some(at) => drop(stack.remove(at)),
            None => {
                misses += 1;
                if stack.len() == frames {
                    stack.remove(0);
                }
            }
        }
        stack.push(page);
    }
    misses
}

fn exact() -> Provenance {
    Provenance::new("test", Fidelity::ExactReferences)
}

#[test]
fn a_recording_through_a_window_gives_bounds_and_nothing_else() {
    let folder = Folder::new();
    let string = mixed(3000, 60, 7);
    let provenance = Provenance { page_size: Some(PAGE), window: Some(4), ..Provenance::new("test", Fidelity::Window) };
    let trace = write(&folder, "window.parquet", provenance, string.iter().copied());
    let misses = |frames| slow_lru(frames, &string);
    let lru = json(&format!("sim {trace} --policy lru --frames 10"));
    let counts = &lru["counts"];
    assert_eq!((&counts["true_faults_min"], &counts["true_faults_max"]), (&misses(14).into(), &misses(6).into()));
    assert!(counts.get("true_faults").is_none() && lru["trace"]["window_pages"] == 4);
    // OPT's count on the recording is the lower bound; its count with 4 fewer frames is the upper bound.
    let whole = write(&folder, "whole.parquet", exact(), string.iter().copied());
    let opt = |trace: &str, frames: &str| json(&format!("sim {trace} --policy opt --frames {frames}"));
    let counts = &opt(&trace, "10")["counts"];
    assert_eq!(counts["true_faults_min"], opt(&whole, "10")["counts"]["true_faults"]);
    assert_eq!(counts["true_faults_max"], opt(&whole, "6")["counts"]["true_faults"]);
    let text = done(&format!("sim {trace} --policy lru --frames 10"));
    let shown = |n: u64| if n >= 1000 { format!("{} {:03}", n / 1000, n % 1000) } else { n.to_string() };
    assert!(
        text.contains(&format!("{} to {}", shown(misses(14)), shown(misses(6)))) && text.contains("bounds"),
        "{text}"
    );
    let csv = done(&format!("sim {trace} --policy lru --frames 10 --format csv"));
    assert!(csv.lines().nth(1).unwrap().ends_with(&format!(",{},{}", misses(14), misses(6))), "{csv}");
    refused(&format!("sim {trace} --policy clock --frames 10"), 3, &["clock", "lru,opt"]);
    refused(&format!("sim {trace} --policy lru --frames 7"), 3, &["window of 4 pages", "below 32768 bytes"]);
    refused(&format!("advise {trace}"), 3, &["entries of pages into a window"]);
}

#[test]
fn a_block_trace_has_no_energy_and_a_sample_no_misses() {
    let folder = Folder::new();
    let rows = || mixed(500, 30, 5).into_iter();
    let blocks = write(&folder, "blocks.parquet", Provenance::new("test", Fidelity::BlockOnly), rows());
    refused(&format!("sim {blocks} --system ddb --ram 64KiB"), 3, &["block device", "energy"]);
    refused(&format!("sim {blocks} --set front_end.reference=10ns --ram 64KiB"), 3, &["block device", "time"]);
    let opt = json(&format!("sim {blocks} --policy opt --ram 64KiB"));
    assert!(opt.get("energy_pj").is_none() && opt["trace"]["fidelity"] == "block-only");
    let sampled = write(&folder, "sampled.parquet", Provenance::new("test", Fidelity::Sampled), rows());
    for policy in ["opt", "lru", "clock"] {
        refused(&format!("sim {sampled} --policy {policy} --ram 64KiB"), 3, &["sampled", "no policy's misses"]);
    }
    for (trace, words) in [(&blocks, "block device"), (&sampled, "sample")] {
        refused(&format!("advise {trace}"), 3, &[words]);
    }
}

#[test]
fn a_part_of_a_trace_says_so_in_each_result() {
    let folder = Folder::new();
    let rows = mixed(1000, 20, 3);
    let whole = write(&folder, "whole.parquet", exact(), rows.into_iter().take(1000));
    let part = folder.at("part.parquet");
    done(&format!("trace cut {whole} -o {part} --skip 200 --rows 300"));
    let result = json(&format!("sim {part} --page 4KiB --frames 8 --policy lru"));
    assert_eq!(result["trace"]["cuts"][0]["part"]["skip"], 200);
    assert_eq!(result["trace"]["cuts"][0]["of_rows"], 1000);
    assert!(result["trace"]["caveat"].as_str().unwrap().contains("300 rows after row 200, of 1000 rows"), "{result}");
    let caveat = "300 rows after row 200";
    for of_tasks in ["--system sap", "--system drswap --swap-size 1MiB"] {
        let result = json(&format!("sim {part} --frames 8 {of_tasks}"));
        assert!(result[0]["trace"]["caveat"].as_str().unwrap().contains(caveat), "{of_tasks}: {result}");
    }
    let few = "--policy clock --handler parallel --program-time 1s --max-p99 1s";
    let advice = json(&format!("advise {part} {few}"));
    assert!(advice["trace"]["caveat"].as_str().unwrap().contains(caveat), "{advice}");
    refused(&format!("trace cut {whole} -o {part} --from 1s"), 2, &["no times", "--skip and --rows"]);
    refused(&format!("trace cut {whole} -o {part} --until soon"), 2, &["--until"]);
}
