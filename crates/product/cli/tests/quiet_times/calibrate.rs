//! This machine as a device: calibrate, keep, show and renew.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use coldframe_toolbox::programs::stderr;
use serde_json::Value;

/// A user with a private cache folder and a private folder for temporary files.
struct User {
    home: tempfile::TempDir,
}

impl User {
    fn new() -> User {
        let home = tempfile::tempdir().expect("a temporary folder");
        for folder in ["tmp", "var"] {
            std::fs::create_dir(home.path().join(folder)).expect("a folder");
        }
        User { home }
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new("env");
        // Where root keeps the sheet then is not this machine's.
        let instead = r#"mount --bind "$HOME/var" /var/cache && exec "$@""#;
        if rustix::process::geteuid().is_root() {
            command = Command::new("unshare");
            command.args(["-m", "sh", "-c", instead, "sh"]);
        }
        command
            .arg(coldframe_toolbox::program_of(args))
            .args(args)
            .env("NO_COLOR", "1")
            .env_remove("XDG_CACHE_HOME")
            .env("HOME", self.home.path());
        command.env("TMPDIR", self.home.path().join("tmp")).env("COLUMNS", "240").output().expect("the command runs")
    }

    fn good(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).expect("text")
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.good(args)).unwrap_or_else(|e| panic!("{args:?}: {e}"))
    }

    fn sheet(&self) -> PathBuf {
        self.home.path().join(".cache/coldframe/here.toml")
    }
}

fn chess() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/traces/chess.parquet").display().to_string()
}

/// All numbers of a table, by name and part.
fn numbers(table: &Value) -> Vec<(String, u64)> {
    let entries = table.as_object().expect("a table").iter();
    let parts = entries.flat_map(|(name, entry)| {
        let parts = entry.as_object().expect("parts").iter();
        parts.map(move |(part, ps)| (format!("{name}.{part}"), ps.as_u64().expect("picoseconds")))
    });
    parts.collect()
}

#[test]
fn a_machine_is_measured_kept_shown_and_measured_again_when_it_is_another() {
    let user = User::new();
    let first = user.json(&["doctor", "--calibrate", "--short", "--format", "json"]);
    let (live, disk) = (numbers(&first["live_ps"]), numbers(&first["disk_ps"]));
    // The kernel's swap too, if some is on.
    assert!((12 * 3..=15 * 3).contains(&live.len()) && disk.len() >= 4 * 4, "{live:?} {disk:?}");
    assert!(live.iter().chain(&disk).all(|(_, ps)| *ps > 0), "{live:?} {disk:?}");
    for (name, cost) in first["live_ps"].as_object().unwrap() {
        let of = |part: &str| cost[part].as_u64().unwrap();
        assert!(of("low") <= of("mean") && of("mean") <= of("high"), "{name}: {cost}");
    }
    assert_eq!(first["sheet_file"], user.sheet().display().to_string());

    // The sheet was kept: the same numbers, and the same file.
    assert_eq!(user.json(&["doctor", "--calibrate", "--show", "--short", "--format", "json"]), first);
    let text = std::fs::read_to_string(user.sheet()).unwrap();
    let table = user.good(&["doctor", "--calibrate", "--show", "--short"]);
    assert!(table.lines().count() <= 24, "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80 || line.starts_with("measured on")), "{table}");

    // The machine is a device like any other.
    let shown = user.good(&["devices", "here"]);
    assert!(shown.contains("live.zero_fill") && shown.contains("by `coldframe doctor --calibrate`"), "{shown}");
    let trace = chess();
    let asked =
        ["--device", "here", "--policy", "fifo", "--handler", "parallel", "--read-ahead", "0", "--max-ram", "1MiB"];
    let advice = user.json(&[&["advise", &trace, "--format", "json"][..], &asked].concat());
    assert_eq!(advice["best"]["config"]["device"], "here");

    // Another kernel counts as another machine.
    let kernel = first["machine"]["kernel"].as_str().unwrap();
    assert!(text.contains(kernel));
    std::fs::write(user.sheet(), text.replace(kernel, "0.99")).unwrap();
    let renewed = user.json(&["doctor", "--calibrate", "--show", "--short", "--format", "json"]);
    assert_eq!(renewed["machine"], first["machine"]);
    assert_ne!(renewed["live_ps"], first["live_ps"], "measured, not kept");
    assert!(std::fs::read_to_string(user.sheet()).unwrap().contains(kernel));

    // A file that is not a sheet is also replaced by a new calibration. If a verb names it, it is refused.
    std::fs::write(user.sheet(), "no sheet").unwrap();
    let refused = user.run(&["devices", "here"]);
    assert!(!refused.status.success() && stderr(&refused).contains("here.toml"), "{}", stderr(&refused));
    user.good(&["doctor", "--calibrate", "--show", "--short"]);
    user.good(&["devices", "here"]);
}

#[test]
fn without_a_sheet_the_remedy_is_said() {
    let user = User::new();
    for args in [vec!["devices", "here"], vec!["advise", &chess(), "--device", "here", "--max-slowdown", "5%"]] {
        let output = user.run(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains("run `coldframe doctor --calibrate`"), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn a_folder_that_cannot_hold_the_swap_file_is_refused_by_name() {
    let user = User::new();
    let file = user.home.path().join("file");
    std::fs::write(&file, "x").unwrap();
    for path in ["/nowhere/at/all", &file.display().to_string(), "/proc"] {
        let output = user.run(&["doctor", "--calibrate", "--short", "--backing", path]);
        assert_eq!(output.status.code(), Some(5), "{path}: {}", stderr(&output));
        assert!(stderr(&output).contains(path), "{}", stderr(&output));
    }
    assert!(!user.sheet().exists());
}

#[test]
fn without_a_cache_folder_the_sheet_lies_in_the_systems_or_among_temporary_files() {
    let user = User::new();
    std::fs::write(user.home.path().join(".cache"), "a file in its place").unwrap();
    let measured = user.json(&["doctor", "--calibrate", "--short", "--format", "json"]);
    let kept = measured["sheet_file"].as_str().expect("a path");
    if rustix::process::geteuid().is_root() {
        assert_eq!(kept, "/var/cache/coldframe/here.toml");
    } else {
        assert!(kept.contains("/tmp/coldframe-") && Path::new(kept).is_file(), "{kept}");
    }
    user.good(&["devices", "here"]);
}
