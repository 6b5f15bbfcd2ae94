//! Tables keep their numbers at 80 columns, and files have the form that their names ask for.

use std::path::Path;

use coldframe_toolbox::command::{command, done, error, json, refused, run, shipped, Folder};

/// The last words of a row, which every narrow table must have as well: its numbers.
fn at(columns: &str, line: &str) -> String {
    let output = command(line).env("COLUMNS", columns).output().unwrap();
    assert!(output.status.success(), "{line}: {}", error(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn numbers(text: &str) -> Vec<String> {
    let rows = text.lines().filter(|line| line.starts_with(' ') && !line.contains('─'));
    let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let mut all: Vec<String> =
        rows.flat_map(|row| row.split("  ").map(str::trim).filter(is_number)).map(String::from).collect();
    all.sort();
    all
}

#[test]
fn every_table_has_all_its_numbers_at_80_columns() {
    let folder = Folder::new();
    let (trace, swap) = (folder.at("t.parquet"), shipped("swap-desktop.csv.zst"));
    done(&format!("trace cut {} -o {trace} --rows 30000 --compress 1", shipped("sqlite.parquet")));
    let mix = folder.at("mix.parquet");
    done(&format!("trace mix --task {trace}*2 --slice 9000 -o {mix}"));
    let lines = [
        "devices".to_string(),
        format!("sim {trace} --policy clock,pa-clock:budget=13,opt --ram 25%,50%"),
        format!("sim {mix} --scheduler cfs --prefetch off,75 --ram 40%"),
        format!("sim {mix} --scheduler cfs --prefetch 75 --ram 40%"),
        format!("sim {mix} --system drswap --ram 400KiB --swap-device nvm,nvm-dr --swap-size 1MiB"),
        format!("sim {swap} --blocks 1024 --collector greedy"),
        format!("advise {trace} --policy clock --handler parallel"),
        format!("trace info {trace}"),
        format!("papers --on {trace}"),
    ];
    for line in &lines {
        let (narrow, wide) = (at("80", line), at("400", line));
        let (narrow_numbers, wide_numbers) = (numbers(&narrow), numbers(&wide));
        let lost: Vec<_> = wide_numbers.iter().filter(|number| !narrow_numbers.contains(number)).collect();
        assert!(lost.is_empty() && !narrow.contains("Not shown"), "{line}: {lost:?}\n{narrow}\n{wide}");
        let drawn = narrow.lines().filter(|line| line.contains('─') || line.starts_with(' '));
        let longest = drawn.map(|line| line.chars().count()).max();
        assert!(longest <= Some(80), "{line}: {longest:?}\n{narrow}");
    }
}

#[test]
fn a_file_has_the_form_of_its_name_or_is_not_written() {
    let folder = Folder::new();
    let trace = folder.at("t.parquet");
    done(&format!("trace cut {} -o {trace} --rows 3000 --compress 1", shipped("sqlite.parquet")));
    let paper = format!("papers --on {trace}");
    for line in [format!("trace heatmap {trace}"), format!("sim {trace} --ram 25%,50%"), paper] {
        for (name, begin) in [("p.svg", &b"<svg"[..]), ("p.png", b"\x89PNG\r\n\x1a\n")] {
            let path = folder.path(name);
            let output = run(&format!("{line} -o {}", path.display()));
            if name.ends_with("png") && output.status.code() == Some(4) {
                // No font on this machine.
                assert!(error(&output).contains(".svg") && !path.exists(), "{line}: {}", error(&output));
                continue;
            }
            assert!(output.status.success(), "{line}: {}", error(&output));
            assert!(std::fs::read(&path).unwrap().starts_with(begin), "{line} -o {name}");
            std::fs::remove_file(&path).unwrap();
        }
    }
    let disk = folder.write("d.csv", "0.1,W,4096,512\n");
    let import = "--columns time=1,kind=2,address=3,size=4 --unit time=s,address=1B,size=1B";
    for (line, name) in [
        (format!("trace heatmap {trace}"), "map.jpg"),
        (format!("trace heatmap {trace}"), "map"),
        (format!("sim {trace} --ram 25%"), "r.pdf"),
        (format!("sim {trace} --ram 25% --format json"), "r.csv"),
        (format!("papers --on {trace}"), "p.gif"),
        (format!("trace cut {trace} --rows 9"), "part.csv"),
        (format!("trace mix --task {trace} --slice 9"), "mix.json"),
        (format!("trace merge {trace}"), "two.svg"),
        (format!("trace import csv:{disk} {import}"), "d.txt"),
        (format!("trace convert {trace} --to oracleGeneral"), "t.csv"),
        (format!("trace convert {trace} --to swap"), "t.csv.zst"),
        (format!("advise {trace}"), "config.json"),
        ("record --level exact".to_string(), "r.csv"),
    ] {
        let path = folder.at(name);
        let line = match line.starts_with("record") {
            true => format!("lab {line} -o {path} -- true"),
            false => format!("{line} -o {path}"),
        };
        refused(&line, 2, &["-o"]);
        assert!(!Path::new(&path).exists(), "{line}");
    }
}

#[test]
fn a_sample_of_the_pages_estimates_the_misses_of_all_within_its_error() {
    let folder = Folder::new();
    // Zipf-like keys over 20,000 objects.
    let mut seed = 1u64;
    let mut next = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as f64 / f64::from(1u32 << 31)
    };
    let lines: String = (0..120_000u64).map(|i| format!("{i},{},get\n", (20_000.0 * next().powi(3)) as u64)).collect();
    let (keys, trace) = (folder.write("keys.csv", lines), folder.at("keys.parquet"));
    let columns = "--columns time=1,address=2,kind=3 --unit time=s,address=4KiB,size=4KiB --number-objects";
    done(&format!("trace import csv:{keys} -o {trace} {columns}"));
    for policy in ["clock", "lru", "sieve", "opt"] {
        let line = format!("sim {trace} --policy {policy} --frames 2000");
        let whole = json(&line)["counts"]["true_faults"].as_f64().unwrap();
        let sampled = json(&format!("{line} --sample 20%"));
        let count = |name: &str| sampled["counts"][name].as_f64().unwrap();
        let (low, high) = (count("true_faults_min"), count("true_faults_max"));
        // The range has the number with 95 % for each, and is no wider than a sample of so many pages allows.
        assert!(low <= whole && whole <= high, "{policy}: {low} to {high}, {whole} in truth");
        assert!(high - low < 0.2 * whole, "{policy}: {low} to {high}");
        assert_eq!(count("references"), 120_000.0);
        assert!(sampled.get("time_ps").is_none() && sampled["notes"][0].as_str().unwrap().contains("SHARDS"));
    }
    let text = done(&format!("sim {trace} --policy clock --frames 2000 --sample 0.2"));
    assert!(text.contains('±') && text.contains("SHARDS"), "{text}");
    refused(&format!("sim {trace} --frames 2000 --sample 0.1%"), 2, &["limit.sample", "1.60%"]);
    refused(&format!("sim {trace} --frames 20 --sample 50%"), 2, &["limit.sample", "leave it out"]);
    refused(&format!("sim {trace} --frames 2000 --sample 5x"), 2, &["limit.sample", "1%"]);
    refused(&format!("sim {trace} --frames 2000 --sample 10% --set machine.read_ahead=8"), 2, &["limit.sample"]);
}
