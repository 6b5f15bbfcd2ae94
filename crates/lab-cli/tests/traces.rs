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

/// LRU as a plain list, most recent last: misses and evictions of dirty pages.
fn slow_lru(frames: usize, string: &[(u64, Kind)]) -> (u64, u64) {
    let (mut stack, mut misses, mut dirty_left) = (Vec::<(u64, bool)>::new(), 0, 0);
    for &(page, kind) in string {
        let mut dirty = kind == Kind::Write;
        match stack.iter().position(|(other, _)| *other == page) {
            Some(at) => dirty |= stack.remove(at).1,
            None => {
                misses += 1;
                if stack.len() == frames {
                    dirty_left += u64::from(stack.remove(0).1);
                }
            }
        }
        stack.push((page, dirty));
    }
    (misses, dirty_left)
}

fn exact() -> Provenance {
    Provenance::new("test", Fidelity::ExactReferences)
}

#[test]
fn a_compacted_trace_keeps_lru_and_opt_at_every_size_from_its_own_on() {
    let folder = Folder::new();
    let frames: Vec<String> = (6..=40).map(|frames: usize| frames.to_string()).collect();
    let frames = frames.join(",");
    for seed in 1..=4 {
        let string = mixed(6000, 36, 0x9e37_79b9 * seed);
        let whole = write(&folder, "whole.parquet", exact(), string.iter().copied());
        let small = folder.at("small.parquet");
        let done = json(&format!("trace reduce {whole} -o {small} --above 24KiB"));
        let rows = done["summary"]["rows"].as_u64().unwrap();
        assert!(rows < 3000 && rows > 36, "{rows} rows of 6000");
        assert_eq!(done["reduction"]["method"]["compaction"]["pages"], 6);
        let results =
            |trace: &str| json(&format!("sim {trace} --policy lru,opt --frames {frames}")).as_array().unwrap().clone();
        for (full, less) in results(&whole).iter().zip(&results(&small)) {
            let (full, less) = (&full["counts"], &less["counts"]);
            for key in ["true_faults", "cold_faults", "references", "evictions"] {
                assert_eq!(full[key], less[key], "{key}, seed {seed}: {full} {less}");
            }
        }
        for (at, result) in results(&small).iter().take(35).enumerate() {
            let (misses, dirty) = slow_lru(at + 6, &string);
            assert_eq!(
                (&result["counts"]["true_faults"], &result["counts"]["dirty_evictions"]),
                (&misses.into(), &dirty.into())
            );
        }
        // Pages of twice the size: the same list with halved page numbers.
        let large: Vec<_> = string.iter().map(|(page, kind)| (page / 2, *kind)).collect();
        let result = json(&format!("sim {small} --policy lru --page 8KiB --frames 6"));
        assert_eq!(result["counts"]["true_faults"], slow_lru(6, &large).0);
    }
}

#[test]
fn a_sample_of_pages_estimates_lru_within_its_own_errors() {
    let folder = Folder::new();
    let mut off = Vec::new();
    for seed in 1..=3 {
        let string = mixed(60_000, 4000, 0x5851_f42d * seed);
        let whole = write(&folder, "whole.parquet", exact(), string.iter().copied());
        let small = folder.at("small.parquet");
        for keep in ["--sample 25%", "--sample-pages 900"] {
            let done = json(&format!("trace reduce {whole} -o {small} {keep}"));
            assert!(done["summary"]["rows"].as_u64().unwrap() < 30_000, "{done}");
            for frames in ["300", "1000", "2500"] {
                let misses = slow_lru(frames.parse().unwrap(), &string).0 as f64;
                let result = json(&format!("sim {small} --policy lru --frames {frames}"));
                let count = |key: &str| result["counts"][key].as_f64().unwrap();
                assert_eq!(count("references"), string.len() as f64);
                assert!(count("true_faults_error") < 0.2 * misses, "{result}");
                off.push((count("true_faults") - misses) / count("true_faults_error"));
            }
        }
    }
    // The error is estimated from eight parts, so it has an error itself: 3 in 10 values are beyond one error, and none
    // beyond four.
    assert!(off.iter().all(|z| z.abs() < 4.0), "{off:?}");
    assert!(off.iter().filter(|z| z.abs() < 1.5).count() * 2 > off.len(), "{off:?}");
}

#[test]
fn what_a_reduced_trace_cannot_give_is_refused_with_the_reason() {
    let folder = Folder::new();
    let string = mixed(4000, 300, 99).into_iter().enumerate();
    let fetches = string.map(|(i, (page, kind))| (page, if i % 7 == 0 { Kind::Fetch } else { kind }));
    let whole = write(&folder, "whole.parquet", exact(), fetches);
    let (compact, sample, out) = (folder.at("compact.parquet"), folder.at("sample.parquet"), folder.at("out.parquet"));
    json(&format!("trace reduce {whole} -o {compact} --above 64KiB"));
    json(&format!("trace reduce {whole} -o {sample} --sample 50%"));
    for (trace, more, words) in [
        (&compact, "--policy clock --ram 1MiB", &["clock", "compacted", "lru,opt"][..]),
        (&compact, "--policy arc --ram 1MiB", &["arc", "compacted"]),
        (&compact, "--policy lru --ram 60KiB", &["15 frames", "from 16 frames on"]),
        (&compact, "--policy lru --ram 1MiB --stream I", &["stream I"]),
        (&compact, "--policy lru --ram 1MiB --set limit.skip=5", &["limit.*", "cut the whole"]),
        (&compact, "--system swl --page 4KiB --ram 1MiB", &["every reference"]),
        (&sample, "--policy opt --ram 1MiB", &["opt needs the other pages"]),
        (&sample, "--policy clock --ram 1MiB", &["clock", "needs the other pages"]),
        (&sample, "--policy lru --frames 15", &["15 frames", "16 frames or more"]),
        (&sample, "--policy lru --page 8KiB --ram 1MiB", &["8192", "--page 4096"]),
    ] {
        refused(&format!("sim {trace} {more}"), 3, words);
    }
    for trace in [&compact, &sample] {
        refused(&format!("advise {trace}"), 3, &["lru", "record every reference"]);
        refused(&format!("trace cut {trace} -o {out} --rows 9"), 2, &["whole trace, then reduce"]);
        refused(&format!("trace merge {trace} {whole} -o {out}"), 2, &["whole trace, then reduce"]);
        refused(&format!("trace mix --task {trace} --slice 10 -o {out}"), 2, &["whole trace, then reduce"]);
        refused(&format!("trace convert {trace} --to oracleGeneral -o {out}"), 2, &["whole trace, then reduce"]);
        refused(&format!("trace reduce {trace} -o {out} --above 1MiB"), 2, &["lost references already"]);
    }
    for (wrong, code, words) in [
        ("--above 0", 2, &["4096 bytes"][..]),
        ("--above lots", 2, &["--above"]),
        ("--sample 0.00001%", 2, &["0.0001%"]),
        ("--sample 101%", 2, &["100%"]),
        ("--sample 0.5", 2, &["cannot be read"]),
        ("--sample-pages 0", 2, &["at least one page"]),
        ("--above 64KiB --page 3000", 2, &["power of two"]),
        ("--sample 0.0001%", 3, &["none of the trace's pages"]),
        ("", 2, &["--above", "--sample"]),
    ] {
        refused(&format!("trace reduce {whole} -o {out} {wrong}"), code, words);
    }
    refused(&format!("trace reduce {whole} -o {whole} --above 64KiB"), 2, &["it is the input"]);
    assert!(!std::path::Path::new(&out).exists());
}

#[test]
fn info_shows_what_a_reduced_trace_was_and_its_distances_scaled() {
    let folder = Folder::new();
    // A loop over 4000 pages: every reuse has distance 4000.
    let whole = write(&folder, "whole.parquet", exact(), (0..20_000).map(|at| (at % 4000, Kind::Read)));
    let (compact, sample) = (folder.at("compact.parquet"), folder.at("sample.parquet"));
    json(&format!("trace reduce {whole} -o {sample} --sample 20%"));
    let info = json(&format!("trace info {sample}"));
    assert_eq!((&info["fidelity"], &info["reduction"]["references"]), (&"hash-sampled".into(), &20_000.into()));
    let bins = info["reuse"]["bins"].as_array().unwrap();
    let within = |from: f64, to: f64| -> f64 {
        let inside = bins.iter().filter(|bin| (from..=to).contains(&bin["up_to_pages"].as_f64().unwrap()));
        inside.map(|bin| bin["references"].as_f64().unwrap()).sum()
    };
    assert!((within(3000.0, 8000.0) - 16_000.0).abs() < 2400.0, "{bins:?}");
    assert_eq!(info["reuse"]["first_references"], 4000);
    json(&format!("trace reduce {whole} -o {compact} --above 12000KiB"));
    let info = json(&format!("trace info {compact}"));
    let bins = info["reuse"]["bins"].as_array().unwrap();
    assert_eq!((&bins[0]["up_to_pages"], &bins[0]["references"]), (&3000.into(), &0.0.into()));
    assert_eq!((&bins[1]["up_to_pages"], &bins[1]["references"]), (&6000.into(), &16_000.0.into()));
    let text = done(&format!("trace info {compact}"));
    assert!(text.contains("reduced from  20 000 references to 4 000 pages"), "{text}");
}

#[test]
fn a_recording_through_a_window_gives_bounds_and_nothing_else() {
    let folder = Folder::new();
    let string = mixed(3000, 60, 7);
    let provenance = Provenance { page_size: Some(PAGE), window: Some(4), ..Provenance::new("test", Fidelity::Window) };
    let trace = write(&folder, "window.parquet", provenance, string.iter().copied());
    let misses = |frames| slow_lru(frames, &string).0;
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
    let faults = write(&folder, "faults.parquet", Provenance::new("test", Fidelity::Faults), rows());
    refused(&format!("sim {faults} --policy opt --ram 64KiB"), 3, &["faults only"]);
    for (trace, words) in [(&blocks, "block device"), (&sampled, "sample"), (&faults, "faults")] {
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
    let few = "--policy clock --handler parallel --program-time 1s --max-p99 1s --no-cache";
    let advice = json(&format!("advise {part} {few}"));
    assert!(advice["trace"]["caveat"].as_str().unwrap().contains(caveat), "{advice}");
    refused(&format!("trace cut {whole} -o {part} --from 1s"), 2, &["no times", "--skip and --rows"]);
    refused(&format!("trace cut {whole} -o {part} --until soon"), 2, &["--until"]);
}
