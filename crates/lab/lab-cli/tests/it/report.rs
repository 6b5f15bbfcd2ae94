//! Pages and the main answer as a user gets them: the page of a board has the numbers of its JSON, and a browser
//! renders it without a console message; one command records, advises and shows.

use std::path::Path;
use std::process::Command;

use coldframe_toolbox::command::{command, json, shipped, Folder};
use coldframe_toolbox::{browse, program, skip};
use serde_json::Value;

#[test]
fn the_page_of_a_board_has_the_numbers_of_its_json_and_a_browser_has_nothing_to_say() {
    let (folder, trace) = (Folder::new(), shipped("bzip2.parquet"));
    let page = folder.path("report.html");
    let advise = format!("advise {trace} --policy clock --handler parallel --export {}", page.display());
    let advice = json(&advise);
    let text = std::fs::read_to_string(&page).unwrap();
    let shows = |text: &str| {
        assert!(text.contains(&format!("data-ram=\"{}\"", advice["best"]["ram_bytes"])));
        assert!(text.contains("<h2>Why: which memory") && text.contains("<h2>How sure"));
    };
    shows(&text);
    assert!(text.len() < 1_000_000, "{}", text.len());
    // The licence comment of the vendored script contains its home address; there is no other address.
    assert_eq!(text.matches("/*! https://github.com/leeoniya/uPlot (v").count(), 1);
    let offline = text.replace("/*! https://github.com/leeoniya/uPlot (v", "");
    for word in ["https://", "src=", "@import", "url("] {
        assert!(!offline.contains(word), "{word}");
    }
    let data = text.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
    let data: Value = serde_json::from_str(data).unwrap();
    let mut expected = advice.clone();
    expected.as_object_mut().unwrap().remove("run");
    assert_eq!(data["advice"], expected);
    let Some((dom, console)) = browse(&folder.path(""), "report.html") else { return };
    assert_eq!(console, Vec::<String>::new());
    // The script sets this attribute last.
    assert!(dom.contains("data-ready=\"yes\""), "{dom}");
    shows(&dom);
}

/// A page that shows the report in frames as wide as a phone and a desktop, and selects two points as a reader would.
const AROUND: &str = r##"<!doctype html><html><body><script>
const report = REPORT;
for (const width of [390, 1280]) {
  const frame = document.createElement("iframe");
  frame.width = width; frame.height = 800; frame.srcdoc = report;
  frame.onload = () => {
    const root = frame.contentDocument.documentElement, body = document.documentElement.dataset;
    body["w" + width] = root.scrollWidth <= width ? "fits" : "is " + root.scrollWidth;
    const click = (path) => frame.contentDocument.querySelector(`[data-at="${path}"]`)
      .dispatchEvent(new frame.contentWindow.MouseEvent("click", { bubbles: true }));
    const rows = () => [...frame.contentDocument.querySelectorAll("#compared tr")].map((row) => row.textContent);
    click("/advice/best");
    body["one" + width] = rows().length;
    click("/advice/next_smaller");
    body["ram" + width] = rows().find((row) => row.startsWith("ram_bytes"));
    body["chosen" + width] = frame.contentDocument.getElementById("chosen").hidden ? "hidden" : "seen";
  };
  document.body.appendChild(frame);
}
</script></body></html>"##;

#[test]
fn it_fits_a_phone_and_two_points_can_be_compared() {
    let (folder, trace) = (Folder::new(), shipped("bzip2.parquet"));
    let page = folder.path("report.html");
    let advice = json(&format!("advise {trace} --policy clock --export {}", page.display()));
    let report = serde_json::to_string(&std::fs::read_to_string(page).unwrap()).unwrap().replace("</", "<\\/");
    folder.write("around.html", AROUND.replace("REPORT", &report));
    let Some((dom, console)) = browse(&folder.path(""), "around.html") else { return };
    assert_eq!(console, Vec::<String>::new());
    let [best, less] = ["best", "next_smaller"].map(|one| advice[one]["ram_bytes"].to_string());
    assert_ne!(best, less);
    for width in [390, 1280] {
        for (name, value) in [("w", "fits"), ("ram", &format!("ram_bytes{best}{less}")), ("chosen", "seen")] {
            let attribute = format!("data-{name}{width}=\"{value}\"");
            assert!(dom.contains(&attribute), "{attribute} in {}", &dom[..dom.len().min(600)]);
        }
        assert!(!dom.contains(&format!("data-one{width}=\"0\"")));
    }
}

#[test]
fn one_command_records_advises_and_reports() {
    let folder = Folder::new();
    let numbers: String = (0..100_000).map(|i| format!("{}\n", i * 7919 % 100_003)).collect();
    folder.write("numbers", numbers);
    let run = |line: &str| {
        let output =
            command(line).current_dir(folder.path("")).env("XDG_CACHE_HOME", folder.path("")).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, message, errors) = run("--max-slowdown 5000% -- sort numbers -o sorted");
    if code == Some(4) {
        return skip(&format!("this machine cannot page: {errors}"));
    }
    assert_eq!((code, message.as_str()), (Some(0), ""), "the answer is on stderr: {errors}");
    // As root it is measured in memory groups, else estimated.
    assert!(errors.contains("sort takes ") && errors.contains("coldframe/report.html"), "{errors}");
    assert!(errors.lines().count() <= 24 && errors.lines().all(|line| line.chars().count() <= 80), "{errors}");
    let at = |name: &str| std::fs::read_to_string(folder.path("sort.coldframe").join(name)).unwrap();
    assert!(at("report.html").contains("id=\"answer\""));
    let advice: Value = serde_json::from_str(&at("advice.json")).unwrap();
    assert_eq!(advice["program"].as_str(), Some("sort"));
    let sizes = if advice["kind"] == "limit" { &advice["runs"] } else { &advice["curve"] };
    assert!(sizes.as_array().is_some_and(|sizes| sizes.len() >= 3), "{advice}");
    // `run` takes the recommended size.
    let recommended = advice["limit"]["recommended_bytes"].as_u64().or(advice["ram_bytes"].as_u64());
    let ram = recommended.unwrap() / 1024;
    let (code, message, errors) = run(&format!("-q run --ram {ram}KiB -- sort numbers"));
    assert_eq!((code, message.lines().count()), (Some(0), 100_000), "{errors}");
    let trace = "sort.coldframe/trace.parquet";
    let (code, message, errors) = run(&format!("--trace {trace} --max-slowdown 5000% --format json"));
    let predicted: Value = serde_json::from_str(&message).unwrap_or_default();
    assert_eq!((code, predicted["program"].as_str()), (Some(0), Some("sort")), "{message}{errors}");
    assert!(predicted["needed_bytes"].as_u64() > Some(1 << 20), "{message}");
    for options in ["", "--device NAND01GW3B2B", "--min-life 5y"] {
        let (code, message, errors) = run(&format!("advise {trace} {options}"));
        assert_eq!((code, message.as_str()), (Some(2), ""), "a recording of this machine is not about a board");
        assert!(errors.contains(&format!("coldframe --trace {trace}")), "{errors}");
    }
    let (code, _, errors) = run("-- true");
    let words = errors.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(code == Some(0) && (words.contains("true takes ") || words.contains("nothing to save")), "{errors}");
    let (code, message, errors) = run("--format json -- sh -c 'echo words; exit 3'");
    let failed: Value = serde_json::from_str(&message).unwrap_or_default();
    assert!(code == Some(3) && errors.contains("words"), "{message}{errors}");
    assert_eq!(failed["exit"].as_i64(), Some(3), "{message}");
    let (code, _, errors) = run("--once");
    assert!(code == Some(2) && errors.contains("a program is missing"), "{errors}");
}

/// The shipped demo with this build, in a private folder.
#[test]
fn the_demo_runs_to_its_end_and_says_what_it_cannot_do() {
    let folder = Folder::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut command = Command::new("sh");
    command.arg("scripts/demo.sh").arg(program("coldframe")).arg(folder.path("")).current_dir(&root);
    let output =
        command.env("XDG_CACHE_HOME", folder.path("")).env("NO_COLOR", "1").env("COLUMNS", "240").output().unwrap();
    let (message, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{message}{errors}");
    let ran = message.contains("The output is that of the plain run");
    assert!(ran || message.contains("Our pager cannot run it"), "{message}{errors}");
    // Measured in memory groups, or estimated.
    assert!(
        message.contains(" without a limit\n") || message.contains("is estimated, not measured"),
        "{message}{errors}"
    );
    assert!(message.lines().all(|line| line.chars().count() <= 80), "{message}");
    assert!(
        message.lines().any(|line| line.starts_with("$ coldframe run --by kernel ") && line.contains("KiB --")),
        "{message}"
    );
}
