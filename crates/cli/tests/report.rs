//! `report`: the page's numbers are the JSON's, it renders in a browser without a word on the console, and bad input is refused.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn coldframe(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_coldframe")).args(args).env("NO_COLOR", "1").output().expect("the command runs")
}

fn done(args: &[&str]) -> Vec<u8> {
    let output = coldframe(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

struct Page {
    folder: tempfile::TempDir,
    runs: Value,
    advice: Value,
}

impl Page {
    fn new() -> Page {
        let folder = tempfile::tempdir().unwrap();
        let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces/bzip2.parquet").display().to_string();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let runs = done(&["sim", &trace, "--policy", "clock,opt", "--ram", "10%,30%,100%", "--format", "json"]);
        let advice =
            done(&["advise", &trace, "--policy", "clock", "--handler", "parallel", "--no-cache", "--format", "json"]);
        std::fs::write(at("runs.json"), &runs).unwrap();
        std::fs::write(at("advice.json"), &advice).unwrap();
        done(&["report", &at("advice.json"), &at("runs.json"), "--trace", &trace, "-o", &at("report.html")]);
        let json = |bytes: &[u8]| serde_json::from_slice(bytes).unwrap();
        Page { runs: json(&runs), advice: json(&advice), folder }
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("report.html")).unwrap()
    }

    /// That the text, as written or as a browser has it, shows the JSON's numbers.
    fn agrees(&self, text: &str) {
        assert!(text.contains(&format!("data-ram=\"{}\"", self.advice["best"]["ram_bytes"])));
        for (i, run) in self.runs.as_array().unwrap().iter().enumerate() {
            let row = format!("data-run=\"{i}\" data-faults=\"{}\"", run["counts"]["true_faults"]);
            assert!(text.contains(&row), "{row}");
        }
    }
}

#[test]
fn the_page_is_one_small_file_without_network_with_the_numbers_of_its_json() {
    let page = Page::new();
    let text = page.text();
    page.agrees(&text);
    assert!(text.len() < 2_000_000, "{}", text.len());
    for word in ["https://", "src=", "@import", "url("] {
        assert!(!text.contains(word), "{word}");
    }
    assert_eq!(text.matches("http://").count(), text.matches("http://www.w3.org/2000/svg").count());
    let data = text.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!((&data["runs"], &data["advice"][0]), (&page.runs, &page.advice));
}

#[test]
fn a_browser_renders_the_page_and_has_nothing_to_say() {
    if Command::new("chromium").arg("--version").output().is_err() {
        assert!(std::env::var_os("COLDFRAME_REQUIRE_TOOLS").is_none(), "chromium is missing");
        eprintln!("skipped: chromium is missing; on Debian: apt-get install chromium");
        return;
    }
    let page = Page::new();
    let url = format!("file://{}", page.folder.path().join("report.html").display());
    let profile = format!("--user-data-dir={}", page.folder.path().join("profile").display());
    let args = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", &profile, "--dump-dom", &url];
    let output = Command::new("chromium").args(args).output().unwrap();
    let (dom, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let console: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert_eq!(console, Vec::<&str>::new());
    // The script sets it as its last act.
    assert!(dom.contains("data-ready=\"yes\""), "{said}");
    page.agrees(&dom);
    assert!(dom.matches("<circle").count() > 20);
}

#[test]
fn what_is_no_result_of_this_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("in.json").display().to_string();
    let out = folder.path().join("out.html").display().to_string();
    for (text, said) in [
        ("{", "no JSON"),
        ("{\"schema_version\": 99, \"counts\": {}}", "schema version 99"),
        ("{\"counts\": {}}", "no result"),
        ("{\"schema_version\": 1, \"kind\": \"other\"}", "kind"),
    ] {
        std::fs::write(&file, text).unwrap();
        let output = coldframe(&["report", &file, "-o", &out]);
        assert_eq!(output.status.code(), Some(3), "{text}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(said), "{text}");
    }
    assert_eq!(coldframe(&["report", &out]).status.code(), Some(5));
}

/// A recorder: QEMU with our plugin beside the program, or, where there is no QEMU, valgrind.
fn can_record() -> bool {
    let plugin = Path::new(env!("CARGO_BIN_EXE_coldframe")).with_file_name("libcoldframe_plugin.so");
    let runs = |name: &str| Command::new(name).arg("--version").output().is_ok();
    if runs("qemu-x86_64") {
        plugin.exists()
    } else {
        runs("valgrind")
    }
}

#[test]
fn one_command_records_advises_and_reports() {
    if !can_record() {
        assert!(std::env::var_os("COLDFRAME_REQUIRE_TOOLS").is_none(), "qemu-x86_64 and valgrind are missing");
        eprintln!("skipped: no recorder; on Debian: apt-get install qemu-user, then cargo build -p coldframe-plugin");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_coldframe"));
    let output = command.args(["--", "true"]).current_dir(folder.path()).env("XDG_CACHE_HOME", folder.path());
    let output = output.output().unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}{errors}");
    assert!(said.contains("of RAM do instead of"), "{said}");
    let at = |name: &str| std::fs::read_to_string(folder.path().join("true.coldframe").join(name)).unwrap();
    assert!(at("config.toml").contains("frames = ") && at("report.html").contains("id=\"answer\""));
    assert!(folder.path().join("true.coldframe/trace.parquet").exists());
}
