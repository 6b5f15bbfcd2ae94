//! `report`: the page's numbers equal the JSON's, a browser renders it without a console message, and bad input is
//! refused.

use std::path::Path;
use std::process::Command;

use coldframe_toolbox::command::{command, done, error, json, run, shipped, Folder};
use coldframe_toolbox::{browse, program, skip};
use serde_json::Value;

struct Page {
    folder: Folder,
    runs: Value,
    advice: Value,
}

impl Page {
    fn new() -> Page {
        let (folder, trace) = (Folder::new(), shipped("bzip2.parquet"));
        let runs = json(&format!("sim {trace} --policy clock,opt --ram 10%,30%,100%"));
        let advice = json(&format!("advise {trace} --policy clock --handler parallel --no-cache"));
        let files = [("advice.json", &advice), ("runs.json", &runs)];
        let files = files.map(|(name, value)| folder.write(name, value.to_string())).join(" ");
        done(&format!("report {files} --trace {trace} -o {}", folder.at("report.html")));
        Page { runs, advice, folder }
    }

    /// The runs on the page: the given ones, then the recommended one.
    fn shown(&self) -> Vec<Value> {
        self.runs.as_array().unwrap().iter().cloned().chain([self.advice["run"].clone()]).collect()
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.folder.path("report.html")).unwrap()
    }

    /// Checks that the text, from the file or from a browser, shows the JSON's numbers.
    fn agrees(&self, text: &str) {
        assert!(text.contains(&format!("data-ram=\"{}\"", self.advice["best"]["ram_bytes"])));
        for (i, run) in self.shown().iter().enumerate() {
            let at = format!("data-at=\"/runs/{i}\"");
            let row = format!("{at} class=\"row\" data-faults=\"{}\"", run["counts"]["true_faults"]);
            assert!(text.contains(&row), "{row}");
            let latency = &run["fault_latency_ps"]["true"];
            let Some(strip) = text.split(&format!("<div class=\"strip\" {at}>")).nth(1) else {
                assert_eq!(run["config"]["policy"], "opt", "a run without a strip");
                continue;
            };
            for mark in ["p50", "p90", "p99", "p999", "max"] {
                let shown = strip.split(&format!("data-{mark}=\"")).nth(1).unwrap().split('"').next().unwrap();
                assert_eq!(shown, latency[mark].to_string(), "{mark} of run {i}");
            }
        }
    }
}

#[test]
fn runs_of_several_tasks_have_their_numbers_on_the_page() {
    let folder = Folder::new();
    let (bzip2, game, mix) = (shipped("bzip2.parquet"), shipped("game.parquet"), folder.at("mix.parquet"));
    done(&format!("trace mix --task {bzip2}*2 --task {game} --slice 20000 -o {mix}"));
    let sim = |how: &str, name: &str| {
        let value = json(&format!("sim {mix} --ram 25% {how}"));
        (folder.write(name, value.to_string()), value)
    };
    let (first, sap) = sim("--system sap --prefetch off,75", "sap.json");
    let (second, drswap) = sim("--system drswap --swap-size 64MiB --swap-device emmc,nvm-dr", "drswap.json");
    let page = folder.at("page.html");
    done(&format!("report {first} {second} --trace {mix} -o {page}"));
    let text = std::fs::read_to_string(page).unwrap();
    let shown = |kind: &str, values: Vec<&Value>| {
        for value in values {
            assert!(text.contains(&format!("data-{kind}=\"{value}\"")), "{kind} {value}");
        }
    };
    for (all, (kind, field)) in [(&sap, ("major", "major_faults")), (&drswap, ("swap-ins", "swap_ins"))] {
        let runs = all.as_array().unwrap();
        assert_eq!(runs.len(), 2);
        shown(kind, runs.iter().map(|run| &run["counts"][field]).collect());
    }
    for words in ["cfs, prefetch off", "cfs, prefetch 75", "emmc of 64MiB", "nvm-dr of 64MiB"] {
        assert!(text.contains(words), "{words}");
    }
    // The sections that need a string of references are absent.
    assert!(!text.contains("All runs") && !text.contains("Miss ratio by RAM"));
}

#[test]
fn the_page_is_one_small_file_without_network_with_the_numbers_of_its_json() {
    let page = Page::new();
    let text = page.text();
    page.agrees(&text);
    assert!(text.len() < 1_000_000, "{}", text.len());
    // The licence comment of the vendored script contains its home address; there is no other address.
    assert_eq!(text.matches("/*! https://github.com/leeoniya/uPlot (v").count(), 1);
    let text = text.replace("/*! https://github.com/leeoniya/uPlot (v", "");
    for word in ["https://", "src=", "@import", "url("] {
        assert!(!text.contains(word), "{word}");
    }
    assert_eq!(text.matches("http://").count(), text.matches("http://www.w3.org/2000/svg").count());
    let data = text.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["runs"], Value::Array(page.shown()));
    let mut advice = page.advice.clone();
    advice.as_object_mut().unwrap().remove("run");
    assert_eq!(data["advice"][0], advice);
}

#[test]
fn a_browser_renders_the_page_and_has_nothing_to_say() {
    let page = Page::new();
    let Some((dom, console)) = browse(&page.folder.path(""), "report.html") else { return };
    assert_eq!(console, Vec::<String>::new());
    // The script sets this attribute last.
    assert!(dom.contains("data-ready=\"yes\""), "{dom}");
    page.agrees(&dom);
    assert!(dom.matches("<circle").count() > 20);
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
    click("/runs/0");
    body["one" + width] = rows().length;
    click("/runs/1");
    body["faults" + width] = rows().find((row) => row.startsWith("counts.true_faults"));
    body["same" + width] = rows().filter((row) => row.startsWith("trace.")).length;
    body["chosen" + width] = frame.contentDocument.getElementById("chosen").hidden ? "hidden" : "seen";
  };
  document.body.appendChild(frame);
}
</script></body></html>"##;

#[test]
fn it_fits_a_phone_and_two_points_can_be_compared() {
    let page = Page::new();
    let report = serde_json::to_string(&page.text()).unwrap().replace("</", "<\\/");
    page.folder.write("around.html", AROUND.replace("REPORT", &report));
    let Some((dom, console)) = browse(&page.folder.path(""), "around.html") else { return };
    assert_eq!(console, Vec::<String>::new());
    let faults = |run: usize| page.runs[run]["counts"]["true_faults"].to_string();
    assert_ne!(faults(0), faults(1));
    for width in [390, 1280] {
        let has = |name: &str, value: &str| {
            let attribute = format!("data-{name}{width}=\"{value}\"");
            assert!(dom.contains(&attribute), "{attribute} in {}", &dom[..dom.len().min(600)]);
        };
        has("w", "fits");
        has("faults", &format!("counts.true_faults{}{}", faults(0), faults(1)));
        has("same", "0");
        has("chosen", "seen");
        assert!(!dom.contains(&format!("data-one{width}=\"0\"")));
    }
}

/// Each part of the page is drawn for results that have its data.
#[test]
fn stages_energy_wear_and_slots_are_drawn_where_the_results_have_them() {
    let folder = Folder::new();
    let [ddb, swap, page] = ["ddb.json", "swap.json", "report.html"].map(|name| folder.at(name));
    done(&format!("sim {} --system ddb --ram 16KiB -o {ddb}", shipped("fft.parquet")));
    let swaps = shipped("swap-desktop.csv.zst");
    done(&format!("sim {swaps} --system lobi --blocks 1024 --layout log,linux-ftl -o {swap}"));
    done(&format!("report {ddb} {swap} -o {page}"));
    let text = std::fs::read_to_string(page).unwrap();
    for heading in
        ["How long a true fault takes", "Where the time of a fault goes", "Energy of paging", "Wear", "Slots"]
    {
        assert!(text.contains(&format!("<h2>{heading}")), "{heading}");
    }
    let json = |path: &str| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    let (ddb, swap) = (json(&ddb), json(&swap));
    // The mean of a load: the time of all loads, divided by all faults.
    let of = |pointer: &str| ddb.pointer(pointer).and_then(Value::as_u64).unwrap();
    let faults = of("/counts/true_faults") + of("/counts/false_faults") + of("/counts/write_faults");
    let load = of("/time_ps/stages/load_stopover") as f64 / faults as f64 / 1e6;
    assert!(text.contains(&format!("LoadStopover {load:.2} us")), "{load}");
    // Each block of each area is a square, and the wear is its erases.
    for run in swap.as_array().unwrap() {
        let cells = run["wear_map"]["erases_max"].as_array().unwrap();
        assert_eq!(cells.iter().map(|cell| cell.as_u64().unwrap()).max(), run["wear"]["max"].as_u64());
        assert_eq!(run["wear_map"]["blocks_per_cell"].as_u64().unwrap() * cells.len() as u64, 1024);
        let owners = run["slots"]["owners"].as_array().unwrap();
        assert_eq!((owners.len(), run["slots"]["owner"].as_array().unwrap().len()), (7, 32));
    }
    assert_eq!(text.matches("<title>block ").count(), 2 * 256);
}

#[test]
fn what_is_no_result_of_this_version_is_refused() {
    let folder = Folder::new();
    let out = folder.at("out.html");
    let trace = std::fs::read(shipped("fft.parquet")).unwrap();
    let cases: [(&[u8], &str); 10] = [
        (b"", "is empty"),
        (b"{\"schema_version\": 1, \"counts\"", "ends in the middle"),
        (b"no result", "is no JSON"),
        (b"[]", "holds no result"),
        (&trace, "--trace"),
        (b"\xff\xfe\x00\x01", "is binary"),
        (b"{\"schema_version\": 99, \"version\": \"7.0\", \"counts\": {}}", "schema version 99 (of coldframe 7.0)"),
        (b"{\"counts\": {}}", "is no result"),
        (b"{\"schema_version\": 1, \"kind\": \"other\"}", "kind `other`"),
        (b"{\"schema_version\": 1, \"kind\": \"advice\"}", "lacks most of a result"),
    ];
    for (bytes, message) in cases {
        let file = folder.write("in.json", bytes);
        let output = run(&format!("report {file} -o {out}"));
        let errors = error(&output);
        assert_eq!(output.status.code(), Some(3), "{errors}");
        // The message gives the problem, the file and the remedy.
        assert!(errors.contains(message) && errors.contains(&file), "{message}: {errors}");
        assert!(errors.contains("--format json") || errors.contains("run it again"), "{errors}");
        assert!(!Path::new(&out).exists());
    }
    assert_eq!(run(&format!("report {out}")).status.code(), Some(5));
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
    assert_eq!(code, Some(0), "{message}{errors}");
    assert!(message.starts_with("sort takes ") && message.contains("Recommended: --ram "), "{message}");
    assert!(message.lines().count() <= 20 && message.lines().all(|line| line.chars().count() <= 80), "{message}");
    let at = |name: &str| std::fs::read_to_string(folder.path("sort.coldframe").join(name)).unwrap();
    assert!(at("report.html").contains("id=\"answer\""));
    let advice: Value = serde_json::from_str(&at("advice.json")).unwrap();
    assert_eq!((advice["device"].as_str(), advice["program"].as_str()), (Some("here"), Some("sort")));
    assert!(advice["curve"].as_array().is_some_and(|curve| curve.len() >= 5), "{advice}");
    // `run` accepts the recommended configuration.
    let config = at("config.toml");
    assert!(config.contains(&format!("ram = \"{}KiB\"", advice["ram_bytes"].as_u64().unwrap() / 1024)), "{config}");
    let (code, message, errors) = run("-q run -c sort.coldframe/config.toml -- sort numbers");
    assert_eq!((code, message.lines().count()), (Some(0), 100_000), "{errors}");
    // `report` can read the answer again.
    let (code, message, errors) = run("report sort.coldframe/advice.json -o again.html");
    assert_eq!(code, Some(0), "{message}{errors}");
    let (code, message, _) = run("advise sort.coldframe/trace.parquet --program-time 1s --min-life 5y");
    assert_eq!((code, message.as_str()), (Some(2), ""), "a life is for a board");
    let (code, message, _) = run("-- true");
    let words: Vec<_> = message.split_whitespace().collect();
    assert!(code == Some(0) && words.join(" ").contains("nothing to save"), "{message}");
    let (code, message, errors) = run("--format json -- sh -c 'echo words; exit 3'");
    assert!(code == Some(0) && message.is_empty() && errors.contains("words"), "{message}{errors}");
    assert!(errors.contains(" ended with exit code 3 and takes "), "{errors}");
    let (code, _, errors) = run("--once");
    assert!(code == Some(2) && errors.contains("a program is missing"), "{errors}");
}

/// The shipped demo with this build, in a private folder.
#[test]
fn the_demo_runs_to_its_end_and_says_what_it_cannot_do() {
    let folder = Folder::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new("sh");
    command.arg("scripts/demo.sh").arg(program("coldframe")).arg(folder.path("")).current_dir(&root);
    let output =
        command.env("XDG_CACHE_HOME", folder.path("")).env("NO_COLOR", "1").env("COLUMNS", "240").output().unwrap();
    let (message, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{message}{errors}");
    let ran = message.contains("The output is that of the plain run");
    assert!(ran || message.contains("Our pager cannot run it"), "{message}{errors}");
    // On a busy machine, the time may end before a run.
    let measured = message.contains(" measured ") || message.contains("no time was left");
    assert_eq!(ran, measured, "{message}{errors}");
    assert!(message.lines().all(|line| line.chars().count() <= 80), "{message}");
    assert!(
        message.lines().any(|line| line.starts_with("$ coldframe run --by kernel ") && line.contains("KiB --")),
        "{message}"
    );
}

#[test]
fn a_configuration_that_a_live_run_cannot_have_is_refused_by_its_field() {
    let folder = Folder::new();
    for (text, code, message) in [
        ("ram = \"50%\"", 2, "give --ram SIZE"),
        ("page = \"1KiB\"\nframes = 9", 2, "page is 1KiB"),
        ("policy = \"clock\"", 2, "says no RAM"),
        ("polcy = \"clock\"", 2, "polcy"),
    ] {
        let output = run(&format!("run -c {} -- true", folder.write("config.toml", text)));
        let errors = error(&output);
        assert_eq!(output.status.code(), Some(code), "{text}: {errors}");
        assert!(errors.contains(message), "{text}: {errors}");
    }
    assert_eq!(run("run -c /nowhere.toml -- true").status.code(), Some(5));
}
