//! Results as one HTML page: no network, light and dark, printable. It shows the numbers of the JSON it was given, and holds that JSON.
//!
//! Pictures are SVG made here, and stay without a script; the script only lets two runs be compared. A run is of fixed size whatever its
//! trace, so the page's size is bounded by the number of runs.

use std::fmt::Write;

use coldframe_core::Ps;
use coldframe_device::quantity::show_bytes;
use coldframe_trace::heat::Heat;
use serde_json::{json, Value};

use crate::error::ReportError;
use crate::plot::{escape, Plot, Series, COLOURS};
use crate::result::SCHEMA_VERSION;
use crate::table::{human_count, human_time};

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/compare.js");
/// Most runs on a page, at about two thousand bytes each.
pub const RUNS_MAX: usize = 600;
/// Most bytes of a page.
pub const BYTES_MAX: usize = 2_000_000;

/// What a page is made of: results as `sim` and `advise` write them with `--format json`.
#[derive(Debug, Default)]
pub struct Page {
    advice: Vec<Value>,
    runs: Vec<Value>,
    heat: Option<Heat>,
}

impl Page {
    /// Adds a file's text.
    ///
    /// # Errors
    /// Not JSON, of another version, or not a result.
    pub fn add(&mut self, origin: &str, text: &str) -> Result<(), ReportError> {
        let bad = |reason: String| ReportError::Unfit { path: origin.into(), reason };
        let value: Value = serde_json::from_str(text)
            .map_err(|e| bad(format!("is no JSON: {e}; give what `sim` or `advise` wrote with --format json")))?;
        let all = match value {
            Value::Array(all) => all,
            one => vec![one],
        };
        for one in all {
            match one["schema_version"].as_u64() {
                Some(version) if version == u64::from(SCHEMA_VERSION) => {}
                Some(version) => {
                    return Err(bad(format!(
                        "is of schema version {version}, and this program reads {SCHEMA_VERSION}; run it again"
                    )))
                }
                None => return Err(bad("is no result; give what `sim` or `advise` wrote with --format json".into())),
            }
            match (one["kind"].as_str(), one["counts"].is_object()) {
                (Some("advice"), _) => self.advice.push(one),
                (None, true) => self.runs.push(one),
                _ => return Err(bad("is of a kind that a report does not show; give results of sim or advise".into())),
            }
        }
        match self.runs.len() {
            n if n > RUNS_MAX => Err(bad(format!("makes {n} runs, and a page holds {RUNS_MAX}; give fewer"))),
            _ => Ok(()),
        }
    }

    /// Adds the map of a trace, whose hash must be that of every result.
    ///
    /// # Errors
    /// A result is of another trace.
    pub fn add_heat(&mut self, path: &str, sha256: &str, heat: Heat) -> Result<(), ReportError> {
        let other = self.advice.iter().chain(&self.runs).any(|one| one["trace"]["sha256"].as_str() != Some(sha256));
        if other {
            let reason =
                "is not the trace that all results are of; leave out --trace, or report on one trace at a time";
            return Err(ReportError::Unfit { path: path.into(), reason: reason.into() });
        }
        self.heat = Some(heat);
        Ok(())
    }

    /// The page.
    ///
    /// # Errors
    /// It would be too large.
    pub fn html(&self) -> Result<String, ReportError> {
        let mut body = String::new();
        self.advice.iter().for_each(|advice| body += &answer(advice));
        if !self.runs.is_empty() {
            body += &self.curves();
            body += &stages(&self.runs);
            body += &energies(&self.runs);
            body += &wear(&self.runs);
            body += &runs(&self.runs);
        }
        body += &self.heat.as_ref().map(map).unwrap_or_default();
        body += &self.provenance();
        let data = json!({ "advice": self.advice, "runs": self.runs }).to_string().replace("</", "<\\/");
        let page = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>coldframe report</title>\n\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}</style></head>\n\
             <body>\n{body}<script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{SCRIPT}</script></body></html>\n"
        );
        match page.len() {
            n if n > BYTES_MAX => Err(ReportError::Unfit {
                path: "report".into(),
                reason: format!("would be {n} bytes, above {BYTES_MAX}; give fewer results"),
            }),
            _ => Ok(page),
        }
    }

    fn curves(&self) -> String {
        let us = |path: &'static str| move |r: &Value| r.pointer(path).and_then(Value::as_f64).map(|ps| ps / 1e6);
        let mut out = section("Miss ratio by RAM", &figure("true faults per reference", &self.runs, miss_ratio, true));
        for (title, path) in [
            ("Median latency of a true fault", "/fault_latency_ps/true/p50"),
            ("99th percentile of a true fault", "/fault_latency_ps/true/p99"),
            ("Longest true fault", "/fault_latency_ps/true/max"),
        ] {
            out += &section(title, &figure("us", &self.runs, us(path), false));
        }
        out
    }

    fn provenance(&self) -> String {
        let mut seen: Vec<String> = Vec::new();
        for one in self.advice.iter().chain(&self.runs) {
            let text = format!("coldframe {}\n{:#}", words(&one["version"]), one["trace"]);
            if !seen.contains(&text) {
                seen.push(text);
            }
        }
        let configs: String =
            self.advice.iter().filter(|a| a["met"] == true).map(|a| format!("{:#}\n", a["best"]["config"])).collect();
        let pre = |text: &str| format!("<pre>{}</pre>", escape(text));
        section("Configuration and provenance", &(seen.iter().map(|t| pre(t)).collect::<String>() + &pre(&configs)))
    }
}

fn section(title: &str, body: &str) -> String {
    format!("<section><h2>{}</h2><div class=\"wide\">{body}</div></section>\n", escape(title))
}

fn words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), Into::into)
}

fn time(value: &Value) -> String {
    value.as_u64().map_or_else(|| "-".into(), |ps| human_time(Ps(ps)))
}

fn size(value: &Value) -> String {
    value.as_u64().map_or_else(|| "-".into(), |n| show_bytes(coldframe_core::Bytes(n)))
}

fn count(value: &Value) -> String {
    value.as_u64().map_or_else(|| "-".into(), human_count)
}

fn range(value: &Value, scale: f64, unit: &str) -> String {
    let (Some(low), Some(high)) = (value["low"].as_f64(), value["high"].as_f64()) else { return "-".into() };
    format!("{:.3} to {:.3} {unit}", low * scale, high * scale)
}

/// A table: the first column is text, the others numbers.
fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let cells =
        |tag: &str, row: &[String]| row.iter().map(|c| format!("<{tag}>{}</{tag}>", escape(c))).collect::<String>();
    let headings: Vec<String> = headings.iter().map(ToString::to_string).collect();
    let body: String = rows.iter().map(|row| format!("<tr>{}</tr>", cells("td", row))).collect();
    format!("<table><thead><tr>{}</tr></thead><tbody>{body}</tbody></table>", cells("th", &headings))
}

fn answer(advice: &Value) -> String {
    let mut out = match advice["met"].as_bool() {
        Some(true) => format!(
            "<h1 id=\"answer\" data-ram=\"{}\">{} of RAM do instead of {}.</h1>",
            advice["best"]["ram_bytes"],
            size(&advice["best"]["ram_bytes"]),
            size(&advice["footprint_bytes"])
        ),
        _ => "<h1 id=\"answer\">No configuration meets the limits.</h1>".into(),
    };
    let path = escape(&words(&advice["trace"]["path"]));
    let _ = write!(
        out,
        "<p class=\"soft\">{path}, {} references, {}</p>",
        count(&advice["trace"]["references"]),
        words(&advice["trace"]["fidelity"])
    );
    let binds = advice["binds"].as_array().into_iter().flatten();
    binds.for_each(|bind| _ = write!(out, "<p>{}</p>", escape(&words(bind))));
    let candidates: Vec<&Value> =
        ["best", "next_smaller"].iter().map(|key| &advice[*key]).filter(|c| c.is_object()).collect();
    out += &table(
        &["", "RAM", "slowdown", "p99 of a fault", "energy", "life"],
        &candidates.iter().enumerate().map(|(i, c)| price(["advised", "less"][i.min(1)], c)).collect::<Vec<_>>(),
    );
    candidates.iter().skip(1).flat_map(|c| c["misses"].as_array()).flatten().for_each(|miss| {
        let _ = write!(out, "<p>With less: {}</p>", escape(&words(miss)));
    });
    out += &front(advice);
    let region = |r: &Value| {
        let share = format!("{:.0} %", 100.0 * r["share"].as_f64().unwrap_or(0.0));
        vec![words(&r["name"]), count(&r["faults"]), time(&r["time_ps"]), share]
    };
    let regions: Vec<_> = advice["regions"].as_array().into_iter().flatten().map(region).collect();
    out += &section("What costs most", &table(&["region", "faults", "time", "of all"], &regions));
    let bound = advice["search"]["opt_bound_bytes"].as_u64().filter(|b| *b > 0);
    let bound = bound.map(|b| {
        format!("With {} or less no policy whatever meets the slowdown (OPT).", show_bytes(coldframe_core::Bytes(b)))
    });
    let assumptions = advice["assumptions"].as_array().into_iter().flatten().map(words);
    let sure: String = bound.into_iter().chain(assumptions).map(|line| format!("<li>{}</li>", escape(&line))).collect();
    out + &section("How sure", &format!("<ul>{sure}</ul>"))
}

fn price(name: &str, c: &Value) -> Vec<String> {
    vec![
        name.into(),
        size(&c["ram_bytes"]),
        range(&c["slowdown_percent"], 1.0, "%"),
        time(&c["p99_ps"]),
        range(&c["energy_joules"], 1e3, "mJ"),
        range(&c["life_years"], 1.0, "years"),
    ]
}

fn front(advice: &Value) -> String {
    let point = |c: &Value| Some((c["ram_bytes"].as_f64()? / 1024.0, c["slowdown_percent"]["high"].as_f64()?));
    let front = advice["front"].as_array().into_iter().flatten().filter_map(point).collect();
    let mut series = vec![Series { name: "least slowdown".into(), points: front }];
    series.extend(point(&advice["best"]).map(|best| Series { name: "advised".into(), points: vec![best] }));
    section(
        "Slowdown by RAM, the best configuration of each size",
        &picture("% of the program's own time", series, true),
    )
}

fn picture(y: &str, series: Vec<Series>, log_y: bool) -> String {
    let plot = Plot { title: String::new(), x: "RAM, KiB".into(), y: y.into(), series, log_x: true, log_y };
    plot.svg().replace("fill=\"white\"", "class=\"paper\"").replace("stroke=\"#ddd\"", "class=\"grid\"")
}

fn name(run: &Value) -> String {
    format!("{}, {}", words(&run["config"]["policy"]), run["config"]["handler"].as_str().unwrap_or("oracle"))
}

fn ram(run: &Value) -> Option<u64> {
    let page = coldframe_device::quantity::bytes(run["config"]["page"].as_str()?).ok()?;
    Some(run["config"]["frames"].as_u64()? * page.0)
}

/// As [`crate::RunResult::miss_ratio`].
fn miss_ratio(run: &Value) -> Option<f64> {
    let counts = &run["counts"];
    let of = if counts["icache_lookups"].is_u64() { &run["trace"]["instructions"] } else { &counts["references"] };
    Some(counts["true_faults"].as_f64()? / of.as_f64()?.max(1.0))
}

fn figure(y: &str, runs: &[Value], value: impl Fn(&Value) -> Option<f64>, log_y: bool) -> String {
    let mut all: Vec<Series> = Vec::new();
    for run in runs {
        let (Some(x), Some(y)) = (ram(run), value(run)) else { continue };
        let (name, point) = (name(run), (x as f64 / 1024.0, y));
        match all.iter_mut().find(|s| s.name == name) {
            Some(series) => series.points.push(point),
            None => all.push(Series { name, points: vec![point] }),
        }
    }
    all.iter_mut().for_each(|s| s.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    picture(y, all, log_y)
}

/// One bar of parts with their sum, each part with its own colour and its number to hover over.
fn bar(parts: &[(String, f64, String)]) -> String {
    let all: f64 = parts.iter().map(|p| p.1).sum::<f64>().max(f64::MIN_POSITIVE);
    let part = |(i, (name, value, shown)): (usize, &(String, f64, String))| {
        let colour = COLOURS[i % COLOURS.len()];
        let share = 100.0 * value / all;
        format!("<i style=\"width:{share:.2}%;background:{colour}\" title=\"{}: {}\"></i>", escape(name), escape(shown))
    };
    format!("<div class=\"bar\">{}</div>", parts.iter().enumerate().map(part).collect::<String>())
}

/// Bars of the object at `path` of each run, without the parts that are sums.
fn bars(title: &str, runs: &[Value], path: &str, shown: fn(u64) -> String) -> String {
    let mut rows = String::new();
    let mut legend = String::new();
    for run in runs {
        let Some(object) = run.pointer(path).and_then(Value::as_object) else { continue };
        let own = object.iter().filter(|(key, _)| *key != "paging" && *key != "total");
        let parts: Vec<_> = own.filter_map(|(k, v)| Some((k.clone(), v.as_f64()?, shown(v.as_u64()?)))).collect();
        let sum: u64 = parts.iter().map(|p| p.1 as u64).sum();
        let key = |(i, part): (usize, &(String, f64, String))| {
            format!("<span style=\"color:{}\">\u{25a0}</span> {} ", COLOURS[i % COLOURS.len()], escape(&part.0))
        };
        legend = parts.iter().enumerate().map(key).collect();
        let size = ram(run).map_or_else(|| "-".into(), |b| show_bytes(coldframe_core::Bytes(b)));
        let _ = write!(
            rows,
            "<tr><td>{}</td><td>{size}</td><td>{}</td><td>{}</td></tr>",
            escape(&name(run)),
            shown(sum),
            bar(&parts)
        );
    }
    match rows.is_empty() {
        true => String::new(),
        false => section(title, &format!("<p>{legend}</p><table><tbody>{rows}</tbody></table>")),
    }
}

fn stages(runs: &[Value]) -> String {
    bars("Time in faults by stage", runs, "/time_ps/stages", |ps| human_time(Ps(ps)))
}

fn energies(runs: &[Value]) -> String {
    bars("Energy of paging by term", runs, "/energy_pj", |pj| format!("{:.3} mJ", pj as f64 / 1e9))
}

fn wear(runs: &[Value]) -> String {
    let row = |run: &Value| {
        let swap = run["swap"].as_object()?;
        let of = |key: &str| swap.get(key).map_or_else(|| "-".into(), count);
        Some(vec![name(run), of("programs"), of("copies"), of("erases"), of("erases_max")])
    };
    let rows: Vec<_> = runs.iter().filter_map(row).collect();
    match rows.is_empty() {
        true => String::new(),
        false => {
            section("Wear of the swap area", &table(&["run", "programs", "copies", "erases", "most worn block"], &rows))
        }
    }
}

fn runs(runs: &[Value]) -> String {
    let row = |(i, run): (usize, &Value)| {
        let cells = [
            name(run),
            ram(run).map_or_else(|| "-".into(), |b| show_bytes(coldframe_core::Bytes(b))),
            count(&run["counts"]["true_faults"]),
            miss_ratio(run).map_or_else(|| "-".into(), |m| format!("{m:.6}")),
            time(&run["fault_latency_ps"]["true"]["p99"]),
            time(&run["time_ps"]["paging"]),
        ];
        let cells: String = cells.iter().map(|c| format!("<td>{}</td>", escape(c))).collect();
        format!("<tr class=\"row\" data-run=\"{i}\" data-faults=\"{}\">{cells}</tr>", run["counts"]["true_faults"])
    };
    let rows: String = runs.iter().enumerate().map(row).collect();
    let heads: String = ["run", "RAM", "true faults", "miss ratio", "p99", "in faults"]
        .iter()
        .map(|h| format!("<th>{h}</th>"))
        .collect();
    let table = format!("<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>");
    let compared =
        "<p class=\"soft\">Choose two runs to see where they differ.</p><table><tbody id=\"compared\"></tbody></table>";
    section("All runs", &format!("{table}{compared}"))
}

/// Address by time; darker is more.
fn map(heat: &Heat) -> String {
    let most = heat.reads.iter().zip(&heat.writes).map(|(r, w)| r + w).max().unwrap_or(1).max(1) as f64;
    let mut cells = String::new();
    for row in 0..heat.rows {
        for column in 0..heat.columns {
            let at = row * heat.columns + column;
            let (reads, writes) = (heat.reads[at], heat.writes[at]);
            if reads + writes == 0 {
                continue;
            }
            let opacity = 0.15 + 0.85 * ((reads + writes) as f64).ln_1p() / most.ln_1p();
            let colour = if writes * 2 > reads + writes { "#d1495b" } else { "#1b6ca8" };
            let y = heat.rows - 1 - row;
            let _ = write!(
                cells,
                "<rect x=\"{column}\" y=\"{y}\" width=\"1\" height=\"1\" fill=\"{colour}\" opacity=\"{opacity:.2}\"/>"
            );
        }
    }
    let svg = format!(
        "<svg viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" style=\"height:20rem\">{cells}</svg>",
        heat.columns, heat.rows
    );
    section("Touched memory: addresses upwards, time to the right; red are mostly writes", &svg)
}
