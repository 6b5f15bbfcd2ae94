//! `generate phone` and `sim --system drswap` as a user sees them.

use std::process::{Command, Output};

use coldframe_toolbox::program_of;
use serde_json::Value;

fn coldframe(args: &[&str]) -> Output {
    Command::new(program_of(args))
        .args(args)
        .env("NO_COLOR", "1")
        .env("COLUMNS", "240")
        .output()
        .expect("the command runs")
}

fn json(args: &[&str]) -> Value {
    let output = coldframe(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{args:?}: {e}"))
}

fn in_folder(dir: &tempfile::TempDir, name: &str) -> String {
    dir.path().join(name).display().to_string()
}

/// Our value in a row of `coldframe-lab papers drswap`. A test of the study compares this snapshot with the output.
fn papers_row(name: &str) -> f64 {
    let rows = include_str!("../../figures/tests/snapshots/papers__drswap.snap");
    let row = rows.lines().find(|line| line.contains(&format!("| \"{name}\" |"))).expect("there is such a row");
    row.split(" | ").nth(3).and_then(|value| value.parse().ok()).expect("the fourth column is ours")
}

/// Two applications of half a megabyte and one service; the rest as shipped.
const SMALL: &str = "[categories]\npair = [0.5, 0.5]\n";

fn small_phone() -> String {
    let shipped = String::from_utf8(coldframe(&["generate", "phone", "--parameters"]).stdout).expect("text");
    let head = shipped.split("[categories]").next().expect("there is a head");
    assert!(head.contains("count = 8"));
    head.replace("count = 8", "count = 1") + SMALL
}

#[test]
fn a_generated_phone_is_an_ordinary_trace_and_its_seed_decides() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (phone, a, b, c) = (
        in_folder(&dir, "p.toml"),
        in_folder(&dir, "a.parquet"),
        in_folder(&dir, "b.parquet"),
        in_folder(&dir, "c.parquet"),
    );
    std::fs::write(&phone, small_phone()).expect("a file");
    let make = |to: &str, seed: &str| {
        json(&[
            "generate",
            "phone",
            "--workload",
            &phone,
            "--category",
            "pair",
            "--seed",
            seed,
            "-o",
            to,
            "--format",
            "json",
        ])
    };
    let made = make(&a, "7");
    assert_eq!((&made["tasks"], &made["seed"]), (&3.into(), &7.into()));
    make(&b, "7");
    make(&c, "8");
    let info = |path: &str| json(&["trace", "info", path, "--format", "json"]);
    assert_eq!(info(&a)["references"], made["references"]);
    let bytes = |path: &str| std::fs::read(path).expect("a trace");
    assert!(bytes(&a) == bytes(&b) && bytes(&a) != bytes(&c));
}

#[test]
fn a_generated_category_gives_the_papers_table_its_numbers() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let trace = in_folder(&dir, "gaming.parquet");
    json(&["generate", "phone", "--category", "gaming", "-o", &trace, "--format", "json"]);
    let ram = shipped_ram();
    let args =
        ["sim", &trace, "--system", "drswap", "--ram", &ram, "--swap-device", "nvm,nvm-dr", "--swap-size", "128MiB"];
    let runs = json(&[&args[..], &["--format", "json"]].concat());
    for (run, name) in [(0, "disabled"), (1, "enabled")] {
        let name = format!("128 MB, gaming: direct read {name}");
        assert_eq!(runs[run]["counts"]["swap_ins"].as_f64(), Some(papers_row(&name)), "{name}");
    }
    let energy = &runs[1]["foreground"]["energy_pj"];
    let terms: i64 = energy["terms"].as_object().unwrap().values().map(|v| v.as_i64().unwrap()).sum();
    assert_eq!(Some(terms), energy["total"].as_i64());
    assert!(runs[0]["counts"]["direct_reads"].is_null(), "zeros are left out");
    assert_eq!(runs[1]["foreground"]["switches"].as_array().map(Vec::len), Some(15), "five applications, three rounds");
}

#[test]
fn recorded_programs_are_switched_and_direct_read_saves_swap_ins() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (mix, phone) = (in_folder(&dir, "five.parquet"), in_folder(&dir, "p.toml"));
    let traces = ["sqlite", "shop", "game", "cjpeg", "djpeg"]
        .map(|name| format!("{}/../../data/traces/{name}.parquet", env!("CARGO_MANIFEST_DIR")));
    let mut args = vec!["trace", "mix", "--rounds", "3", "--visit", "60s", "-o", &mix, "--format", "json"];
    traces.iter().for_each(|trace| args.extend(["--task", trace]));
    assert_eq!(json(&args)["programs"], 5);
    // This phone leaves no RAM to pages of files when the area is full.
    let shipped = String::from_utf8(coldframe(&["generate", "phone", "--parameters"]).stdout).expect("text");
    std::fs::write(&phone, shipped.replace("files_min_mb = 16", "files_min_mb = 0")).expect("a file");
    let set = format!("swap.phone={phone}");
    let run = json(&[
        "sim",
        &mix,
        "--system",
        "drswap",
        "--ram",
        "30%",
        "--swap-size",
        "100%",
        "--swap-device",
        "nvm,nvm-dr",
        "--set",
        &set,
        "--format",
        "json",
    ]);
    let runs = run.as_array().expect("two runs");
    for run in runs {
        assert_eq!(run["foreground"]["switches"].as_array().map(Vec::len), Some(15), "five programs, three rounds");
    }
    let [disabled, enabled] = [0, 1].map(|run: usize| runs[run]["counts"]["swap_ins"].as_u64().expect("a number"));
    assert!(0 < enabled && enabled < disabled, "{enabled} with direct read, {disabled} without");
}

fn shipped_ram() -> String {
    let shipped = String::from_utf8(coldframe(&["generate", "phone", "--parameters"]).stdout).expect("text");
    let line = shipped.lines().find(|line| line.starts_with("ram_mb")).expect("the file says so");
    let digits: String = line.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    format!("{digits}MB")
}

#[test]
fn what_cannot_be_is_refused_with_field_and_remedy() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (phone, trace) = (in_folder(&dir, "p.toml"), in_folder(&dir, "t.parquet"));
    std::fs::write(&phone, small_phone()).expect("a file");
    json(&["generate", "phone", "--workload", &phone, "--category", "pair", "-o", &trace, "--format", "json"]);
    let broken = in_folder(&dir, "broken.toml");
    std::fs::write(&broken, small_phone().replace("seed = ", "sed = ")).expect("a file");
    let sheet = in_folder(&dir, "sheet.toml");
    let pcm = include_str!("../../../data/sheets/lpddr2-pcm.toml");
    std::fs::write(&sheet, pcm.replace("\"156.0mW\"", "\"-156.0mW\"")).expect("a file");
    let large = in_folder(&dir, "large.toml");
    std::fs::write(&large, "# Larger than its device.\n[swap]\nsize = \"2GiB\"\n").expect("a file");
    let unknown = in_folder(&dir, "unknown.toml");
    std::fs::write(&unknown, pcm.replace("act =", "porosity =")).expect("a file");
    let sim = |more: &[&str]| coldframe(&[&["sim", &trace, "--system", "drswap", "--ram", "1MiB"], more].concat());
    for (output, code, message) in [
        (sim(&["--swap-size", "2GiB"]), 2, "swap.size"),
        (sim(&["--swap-device", "tape"]), 2, "swap.backing"),
        (sim(&["-c", &large]), 2, "large.toml: line 3: setting `swap.size`"),
        (sim(&["--device", &sheet]), 2, "sheet.toml, line 18: field `power.act`"),
        (sim(&["--device", &unknown]), 2, "line 18"),
        (sim(&["--device", &unknown]), 2, "unknown field `porosity`"),
        (sim(&["--device", "STT-MRAM", "--swap-size", "129MiB"]), 2, "128MiB of STT-MRAM"),
        (sim(&["--set", "swap.reads_max=often"]), 2, "swap.reads_max"),
        (sim(&["--format", "csv"]), 2, "csv"),
        (coldframe(&["sim", &trace, "--ram", "1MiB", "--set", "swap.backing=tape"]), 2, "swap.backing"),
        (coldframe(&["generate", "phone", "--category", "chess", "-o", &trace]), 2, "browser"),
        (coldframe(&["generate", "phone", "--workload", &broken, "-o", &trace]), 2, "broken.toml"),
        (coldframe(&["generate", "phone", "--workload", "/nowhere.toml", "-o", &trace]), 5, "/nowhere.toml"),
    ] {
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(message), "`{message}` is not in: {error}");
        assert_eq!(output.status.code(), Some(code), "{error}");
    }
}
