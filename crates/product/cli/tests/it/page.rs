//! What a reader of the report sees in a browser: the answer, and a chart that shows the answer's numbers, at every
//! width and with the keyboard.

use std::path::Path;

use coldframe_answer::{Answer, MemoryOwner, Touched};
use coldframe_show::html::{Html, Page};
use coldframe_store::heat::Heat;
use coldframe_toolbox::browse;
use serde_json::{json, Value};

/// RAM in MiB, seconds, the range.
type Size = (u64, f64, Option<(f64, f64)>);
/// The last two sizes are too small for the recorder's window to give more than a lower bound.
const CURVE: [Size; 6] = [
    (64, 1.10, Some((1.05, 1.15))),
    (48, 1.12, Some((1.06, 1.2))),
    (32, 1.20, Some((1.1, 1.4))),
    (24, 2.00, Some((1.7, 2.6))),
    (16, 6.00, None),
    (8, 20.0, None),
];
const MIB: u64 = 1 << 20;

/// An answer about this machine, as `coldframe -- PROGRAM` stores it; all times are `scale` times as long.
fn advice(scale: f64) -> Value {
    let point = |(ram, seconds, span): &Size| {
        let seconds = scale * seconds;
        let (low, high) = (span.map_or(seconds, |span| scale * span.0), span.map(|span| scale * span.1));
        json!({
            "ram_bytes": ram * MIB, "seconds": seconds, "seconds_low": low, "seconds_high": high, "true_faults": 9000,
                "zero_fills": 8000,
            "device_reads": 1000 + ram, "read_ahead": 0, "memory_loads": 0, "false_faults": 0, "evictions": 2000,
                "dirty_evictions": 900
        })
    };
    json!({
        "schema_version": 1, "version": "0.1.0", "method": "recorder", "kind": "advice", "recorded_seconds": 1.2,
            "memory_use": null, "device": "here", "program": "sort", "command": "sort <numbers>",
        "trace": "trace.parquet", "program_seconds": scale, "not_paged_bytes": 4 * MIB, "managed_bytes": 60 * MIB,
            "needed_bytes": 64 * MIB,
        "ram_bytes": 32 * MIB, "slowdown_percent": 30.0, "curve": CURVE.iter().map(point).collect::<Vec<_>>(),
        "thrash_bytes": 24 * MIB, "covered_bytes": 20 * MIB, "policy": "multi-queue", "read_ahead": 16,
            "evict_batch": 24, "sampled": null,
        "window_pages": 4096, "entries": 5000, "processes": 1, "threads": 1, "exit": 0, "measured": "measured here",
        "how_sure": ["costs: measured here by `coldframe doctor --calibrate`"], "notes": [],
        "runs": [{ "by": "pager", "swap": null, "ram_bytes": 24 * MIB, "seconds": scale * 2.8, "more": false,
            "runs": [], "page_reads": 9100, "failed": null }]
    })
}

/// A page that shows the report in frames of all widths. It reads what is drawn and presses keys as a reader would.
/// Names from the report's script are looked up in its frame.
const AROUND: &str = r##"<!doctype html><html><body><script>
const report = REPORT, MIB = 2 ** 20;
for (const width of [400, 500, 900, 1600]) {
  const frame = document.createElement("iframe");
  frame.width = width; frame.height = 900; frame.srcdoc = report;
  frame.onload = () => {
    const page = frame.contentDocument, body = document.documentElement.dataset, inside = frame.contentWindow;
    const note = (name, value) => { body[name + width] = value; };
    for (const folded of page.querySelectorAll("details")) folded.open = true;
    note("wide", page.documentElement.scrollWidth <= width ? "fits" : "is " + page.documentElement.scrollWidth);
    // One part below the other; each has a height.
    const parts = [...page.querySelectorAll("main > *")].map((part) => part.getBoundingClientRect());
    const heights = parts.every((part) => part.height > 0), order = parts.every((part, i) => !i
        || part.top >= parts[i - 1].bottom - 0.5);
    note("parts", heights && order ? "in order" : JSON.stringify(parts));
    const figure = page.querySelector("figure"), { u } = inside.eval("plots").get(figure),
        canvas = figure.querySelector("canvas");
    note("figures", page.querySelectorAll("figure").length);
    note("canvas", canvas.getBoundingClientRect().right <= width && canvas.width > 0.8 * figure.clientWidth
        ? "fits" : canvas.width);
    const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
    const picture = copy.getContext("2d", { willReadFrequently: true });
    picture.drawImage(canvas, 0, 0);
    const pixel = (ram, seconds) => {
      const at = [u.valToPos(ram, "x", true), u.valToPos(seconds, "y", true)].map(Math.round);
      return [...picture.getImageData(...at, 1, 1).data].join();
    };
    // Pixels beside the curves and the grid: shaded below 24 MiB, not shaded above.
    note("zone", pixel(11 * MIB, 3.3)), note("paper", pixel(36 * MIB, 12.7));
    note("line", pixel(48 * MIB, 1.12)), note("measured", pixel(24 * MIB, 2.8));
    const press = (key) => figure.dispatchEvent(new inside.KeyboardEvent("keydown", { key, bubbles: true }));
    const read = () => figure.querySelector(".readout").textContent;
    // Texts of ticks, as wide as the page's own font draws them, and their places.
    const pen = document.createElement("canvas").getContext("2d"); pen.font = u.axes[0].font[0];
    const spans = (axis, along) => u.axes[axis]._values.map((text, i) => {
      const at = u.valToPos(u.axes[axis]._splits[i], along);
      const half = (along === "x" ? pen.measureText(text).width / inside.devicePixelRatio : 12) / 2;
      return [at - half, at + half];
    }).sort((a, b) => a[0] - b[0]);
    const overlap = (all) => all.some((span, i) => i && span[0] < all[i - 1][1]);
    note("overlap", overlap(spans(0, "x")) || overlap(spans(1, "y")));
    note("apart", inside.eval("apart")([1, 2, 3, 10], (v) => v, () => 4).join(" "));
    note("axes", u.axes.map((axis) => axis.label).join());
    note("ticks", u.axes[1]._values.map((text, i) => text + "=" + u.axes[1]._splits[i]).join());
    const map = page.querySelector("svg.map"), at = map.getBoundingClientRect(),
        below = page.querySelector(".heat").nextElementSibling;
    const point = (kind, x, y) => map.dispatchEvent(new inside.PointerEvent(kind, { clientX: at.left + x * at.width,
        clientY: at.top + y * at.height, bubbles: true }));
    point("pointermove", 0.9, 0.9); note("hover", below.textContent);
    point("pointerdown", 0.1, 0.9); point("pointermove", 0.9, 0.1); point("pointerup", 0.9, 0.1); point("pointermove",
        0.1, 0.1); note("marked", below.textContent);
    const cellsOf = (row) => [...row.cells].map((cell) => cell.textContent).join();
    note("table", [...page.querySelectorAll("#sizes tbody tr")].slice(2, 5).map(cellsOf).join("; "));
    note("copy", page.querySelectorAll("button.copy").length);
    press("Home"); note("first", read());
    press("ArrowRight"); press("ArrowRight"); note("third", read());
    press("Escape"); note("none", read());
    const button = [...page.querySelectorAll(".legend button")].find((one) => one.textContent === "measured");
    button.click(); press("End"); press("ArrowLeft"); press("ArrowLeft"); press("ArrowLeft"); note("hidden", read());
    note("pressed", button.getAttribute("aria-pressed"));
  };
  document.body.appendChild(frame);
}
</script></body></html>"##;

/// A folder, and the page of the answer, with a map of two rows and three columns.
fn report(scale: f64) -> (tempfile::TempDir, String) {
    let mut advice = advice(scale);
    advice["origin"] = "2026-11-27, host web-1".into();
    let answer: Answer = serde_json::from_value(advice).unwrap();
    let (mut page, addresses) = (Page::new(&answer), vec![0x1000, 0x2000]);
    let (reads, writes, working_set) = (vec![1, 0, 2, 0, 4, 0], vec![0, 8, 0, 0, 0, 16], vec![1, 1, 2]);
    let heat = Heat { reads, writes, rows: 2, columns: 3, addresses, working_set, ..Heat::default() };
    let names = ["libz.so.1", "sort"].map(String::from).to_vec();
    let owner =
        |(name, pages): (&str, u64)| MemoryOwner { name: name.into(), bytes: pages << 12, touches_percent: 50.0 };
    let owners = [("libz.so.1", 3), ("sort", 1)].map(owner).to_vec();
    page.add_map(Touched { heat, names, owners, bits: false, seconds: 5.02 });
    (tempfile::tempdir().unwrap(), page.html().unwrap())
}

/// A value that the surrounding page noted.
fn noted(dom: &str, name: &str) -> String {
    let start = dom.split(&format!(" data-{name}=\"")).nth(1);
    let start = start.unwrap_or_else(|| panic!("data-{name} in {}", &dom[..dom.len().min(900)]));
    start.split('"').next().unwrap().to_string()
}

/// Whether a pixel has this colour, up to the canvas's rounding.
fn near(pixel: &str, colour: [i32; 4]) -> bool {
    let found = pixel.split(',').map(|part| part.parse::<i32>().unwrap());
    found.zip(colour).all(|(found, wanted)| (found - wanted).abs() <= 8)
}

fn around(folder: &Path, report: &str) -> Option<String> {
    let report = serde_json::to_string(report).unwrap().replace("</", "<\\/");
    std::fs::write(folder.join("around.html"), AROUND.replace("REPORT", &report)).unwrap();
    let (dom, console) = browse(folder, "around.html")?;
    assert_eq!(console, Vec::<String>::new());
    Some(dom)
}

#[test]
fn the_answer_is_a_sentence_and_a_chart_at_every_width() {
    let (folder, text) = report(1.0);
    let sentence = "With 32 MiB of RAM instead of 64 MiB, sort takes 1.20 s instead of 1.00 s.";
    assert!(text.contains(&format!("<h1 id=\"answer\" data-ram=\"{}\">{sentence}</h1>", 32 * MIB)), "{text}");
    assert!(text.contains("<code class=\"copy\">coldframe run --ram 32MiB -- sort '&lt;numbers&gt;'</code>"));
    // What, when and where; and lines for services.
    assert!(text.contains("sort &lt;numbers&gt;; 2026-11-27, host web-1; coldframe 0.1.0"), "{text}");
    assert!(text.contains("MemoryHigh=32M"), "{text}");
    assert!(text.len() < 200_000, "{}", text.len());
    let Some(dom) = around(folder.path(), &text) else { return };
    for width in [400, 500, 900, 1600] {
        let of = |name: &str| noted(&dom, &format!("{name}{width}"));
        assert_eq!(
            [of("wide"), of("parts"), of("canvas"), of("figures")],
            ["fits", "in order", "fits", "1"],
            "{width}"
        );
        assert_eq!([of("overlap"), of("apart"), of("axes")], ["false", "1 10", "limit of RAM,run time"], "{width}");
        // Red, green, blue and opacity: the zone is tinted red, and the paper is bare.
        let (zone, paper) = (of("zone"), of("paper"));
        assert!(zone.starts_with("2") && zone != paper && paper == "0,0,0,0", "{width}: {zone} and {paper}");
        assert!(near(&of("line"), [27, 108, 168, 255]), "{width}: {}", of("line"));
        assert!(near(&of("measured"), [46, 147, 60, 255]), "{width}: {}", of("measured"));
    }
}

#[test]
fn the_arrow_keys_read_the_curve_and_the_legend_hides_a_line() {
    let (folder, text) = report(1.0);
    let Some(dom) = around(folder.path(), &text) else { return };
    for width in [400, 500, 900, 1600] {
        let of = |name: &str| noted(&dom, &format!("{name}{width}"));
        assert_eq!(of("first"), "8 MiB: 20.0 s (a lower bound), 20.00 times its own; 1 008 pages from disk");
        let third = "24 MiB: 2.00 s (1.70 to 2.60 s), 2.00 times its own; 1 024 pages from disk";
        assert_eq!(of("third"), format!("{third}\n24 MiB: measured 2.80 s"));
        assert_eq!([of("none"), of("hidden"), of("pressed")], ["", third, "false"]);
        assert_eq!(of("hover"), "66.7 % to 100 % of the touches, libz.so.1: 2 reads, 0 writes");
        assert_eq!(of("marked"), "0 % to 100 % of the touches, libz.so.1, sort: 7 reads, 24 writes");
        assert_eq!(
            of("table"),
            [
                "32 MiB,1.20 s,1.10 s,1.40 s,1.20,predicted,1 032",
                "24 MiB,2.80 s,-,-,2.80,measured, by our pager,9 100",
                "24 MiB,2.00 s,1.70 s,2.60 s,2.00,predicted,1 024",
            ]
            .join("; ")
        );
        // The run, and settings of docker, compose, Kubernetes and systemd.
        assert_eq!(of("copy"), "5");
    }
}

/// A tick says the time at which it stands: from 100 s on there are minutes, and hours.
#[test]
fn the_ticks_of_long_runs_are_right() {
    for (scale, ticks) in [(0.1, "500 ms"), (60.0, "2 min"), (100.0, "10 min"), (600.0, "1 h"), (20_000.0, "20 h")] {
        let (folder, text) = report(scale);
        let Some(dom) = around(folder.path(), &text) else { return };
        let shown = noted(&dom, "ticks900");
        let pairs: Vec<_> = shown.split(',').map(|pair| pair.split_once('=').unwrap()).collect();
        assert!(pairs.len() > 2 && pairs.iter().any(|(text, _)| *text == ticks), "{scale}: {shown}");
        for (text, place) in pairs {
            let (number, unit) = text.split_once(' ').unwrap();
            let seconds = match unit {
                "h" => 3600.0,
                "min" => 60.0,
                "s" => 1.0,
                "ms" => 1e-3,
                other => panic!("{other} in {shown}"),
            };
            let [label, place] = [number, place].map(|text| text.parse::<f64>().unwrap());
            assert!((label * seconds / place - 1.0).abs() < 0.01, "{scale}: {text} at {place} s");
        }
    }
}

/// Without a script, pictures and tables show the same numbers.
#[test]
fn the_page_says_the_same_without_a_script() {
    let (_folder, text) = report(1.0);
    let figure = text.split_once("<figure").unwrap().1.split_once("</figure>").unwrap().0;
    // Six predicted sizes, one joint of both lines, one measured size, the recommended one, and both ends of four
    // ranges.
    assert_eq!(figure.matches("<circle").count(), 6 + 1 + 1 + 1 + 2 * 4, "{figure}");
    assert!(figure.contains("below 24 MiB: thrashes") && figure.contains("advised: 32 MiB, 1.20 s"), "{figure}");
    assert!(text.contains("<div id=\"sizes\">"));
}

/// What a reader sees: the page without its scripts, styles and tags.
fn visible(page: &str) -> String {
    let mut text = page.to_string();
    for (start, end) in [("<script", "</script>"), ("<style", "</style>"), ("<", ">")] {
        let parts: Vec<&str> = text.split(start).collect();
        let after = parts[1..].iter().filter_map(|part| part.split_once(end)).map(|(_, rest)| rest);
        text = [parts[0]].into_iter().chain(after).collect();
    }
    text
}

#[test]
fn the_page_s_text_names_axes_owners_and_times() {
    let (_folder, page) = report(1.0);
    let text = visible(&page);
    for (has, what) in [
        ("run time, s", "the y axis of the picture"),
        ("limit of RAM, MiB; below 24 MiB: thrashes", "its x axis"),
        (
            "Upwards: memory by its owner. To the right: its touches in order, as recorded in 5.02 s; the \
          program alone takes 1.00 s.",
            "both axes of the map, and the recording's time",
        ),
        ("touched: 0", "the axis of the working set"),
        ("Who owns the memory", "the owners"),
        ("libz.so.1", "names of memory"),
        ("coldframe doctor --calibrate", "code without its backticks"),
    ] {
        assert!(text.contains(has), "{what}: {has}\n{text}");
    }
    assert!(!text.contains('`') && !text.contains("0x"), "{text}");
    let numbers = page.split("class=\"plot\">").nth(1).unwrap().split("</script>").next().unwrap();
    let numbers: Value = serde_json::from_str(numbers).unwrap();
    assert_eq!([&numbers["x"], &numbers["y"]], ["limit of RAM", "run time"]);
}

#[test]
fn measured_and_predicted_are_one_table_sorted_by_limit() {
    let (_folder, page) = report(1.0);
    let tables: Vec<&str> = page.split("<table>").skip(1).filter(|table| table.contains("<th>limit</th>")).collect();
    let [table] = tables[..] else { panic!("{} tables", tables.len()) };
    let table = table.split("</table>").next().unwrap();
    let column = |name: &str| -> Vec<&str> {
        let start = format!("<td data-of=\"{name}\">");
        let cells = table.split(&start).skip(1);
        cells.map(|cell| cell.split('<').next().unwrap()).collect()
    };
    let limits: Vec<u64> =
        column("limit").iter().map(|limit| limit.trim_end_matches(" MiB").parse().unwrap()).collect();
    assert_eq!(limits, [64, 48, 32, 24, 24, 16, 8]);
    let measured = "measured, by our pager";
    let how = [&["predicted"; 3][..], &[measured], &["predicted"; 3]].concat();
    assert_eq!(column("how"), how);
}
