//! Results as one HTML page: no network, light and dark, printable. It shows the numbers of the JSON it was given, and holds that JSON.
//!
//! Pictures are SVG made here, and stay without a script; the script only lets runs be chosen and compared, and the data be saved. What a
//! run adds is bounded whatever its trace, so the page's size is bounded by the number of runs.

use coldframe_trace::heat::Heat;
use serde_json::{json, Value};

use crate::error::ReportError;
use crate::plot::escape;
use crate::result::SCHEMA_VERSION;

mod answer;
mod chart;
mod curves;
mod energy;
mod heat;
mod latency;
mod run;
mod runs;
mod stages;
mod swap;
mod tasks;
mod words;

use run::{Differs, Run};
use words::{section, words};

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/compare.js");
/// Most runs on a page, at about two thousand bytes each.
pub const RUNS_MAX: usize = 600;
/// Most bytes of a page.
pub const BYTES_MAX: usize = 2_000_000;
/// What the script shows of what is chosen.
const CHOSEN: &str =
    "<aside id=\"chosen\" hidden><button type=\"button\" id=\"close\">close</button><div id=\"pair\"></div>\
     <table><thead id=\"names\"></thead><tbody id=\"compared\"></tbody></table></aside><div id=\"tip\" hidden></div>";

/// What a page is made of: results as `sim` and `advise` write them with `--format json`.
#[derive(Debug, Default)]
pub struct Page {
    advice: Vec<Value>,
    runs: Vec<Value>,
    heat: Option<Heat>,
}

impl Page {
    /// Adds a file's bytes.
    ///
    /// # Errors
    /// Not JSON, of another version, or not a result.
    pub fn add(&mut self, origin: &str, bytes: &[u8]) -> Result<(), ReportError> {
        let bad = |reason: String| ReportError::Unfit { path: origin.into(), reason };
        let value: Value = serde_json::from_slice(bytes).map_err(|e| bad(what_it_is(bytes, &e)))?;
        let all = match value {
            Value::Array(all) if all.is_empty() => return Err(bad(format!("holds no result; {GIVE}"))),
            Value::Array(all) => all,
            one => vec![one],
        };
        for one in all {
            self.add_result(one).map_err(bad)?;
        }
        match self.runs.len() {
            n if n > RUNS_MAX => Err(bad(format!("makes {n} runs, and a page holds {RUNS_MAX}; give fewer"))),
            _ => Ok(()),
        }
    }

    fn add_result(&mut self, one: Value) -> Result<(), String> {
        match &one["schema_version"] {
            version if *version == SCHEMA_VERSION => {}
            Value::Null => return Err(format!("is no result; {GIVE}")),
            version => {
                let by = one["version"].as_str().map(|by| format!(" (of coldframe {by})")).unwrap_or_default();
                return Err(format!(
                    "is of schema version {version}{by}, and this program reads {SCHEMA_VERSION}; run it again"
                ));
            }
        }
        match (one["kind"].as_str(), one["counts"].is_object() && one["config"].is_object()) {
            (Some("advice"), _) if one["search"].is_object() => self.advice.push(one),
            (None, true) => self.runs.push(one),
            (Some(kind), _) if kind != "advice" => {
                return Err(format!("is of the kind `{kind}`, which a report does not show; {GIVE}"))
            }
            _ => return Err(format!("lacks most of a result; {GIVE}")),
        }
        Ok(())
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

    /// All runs: what was given, then what was advised.
    fn all_runs(&self) -> Vec<&Value> {
        self.runs.iter().chain(self.advice.iter().map(|advice| &advice["run"]).filter(|run| run.is_object())).collect()
    }

    /// The page.
    ///
    /// # Errors
    /// It would be too large.
    pub fn html(&self) -> Result<String, ReportError> {
        let all = self.all_runs();
        let differs = Differs::among(&all);
        let runs: Vec<Run<'_>> = all.iter().enumerate().map(|(number, json)| Run { number, json, differs }).collect();
        let mut body = String::new();
        self.advice.iter().enumerate().for_each(|(i, advice)| body += &answer::answer(i, advice));
        if self.advice.is_empty() {
            body += "<h1>coldframe report</h1>";
        }
        match self.runs.iter().any(|run| run["config"]["policy"].is_string()) {
            true => body += &curves::curves(&runs),
            false => self.advice.iter().for_each(|advice| body += &curves::searched(advice)),
        }
        body += &tasks::tasks(&runs);
        body += &latency::latencies(&runs);
        body += &stages::stages(&runs);
        body += &energy::energies(&runs);
        body += &swap::swap_areas(&runs);
        body += &self.heat.as_ref().map(heat::map).unwrap_or_default();
        body += &runs::runs(&runs);
        body += &self.provenance();
        let data = json!({ "advice": self.advice.iter().map(without_run).collect::<Vec<_>>(), "runs": all });
        let data = data.to_string().replace("</", "<\\/");
        let page = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>coldframe report</title>\n\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}</style></head>\n\
             <body>\n{body}{CHOSEN}<script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{SCRIPT}</script></body></html>\n"
        );
        match page.len() {
            n if n > BYTES_MAX => Err(ReportError::Unfit {
                path: "report".into(),
                reason: format!("would be {n} bytes, above {BYTES_MAX}; give fewer results"),
            }),
            _ => Ok(page),
        }
    }

    fn provenance(&self) -> String {
        let mut seen: Vec<String> = Vec::new();
        for one in self.advice.iter().chain(&self.runs) {
            let text = format!("coldframe {}\n{:#}", words(&one["version"]), one["trace"]);
            if !seen.contains(&text) {
                seen.push(text);
            }
        }
        let advised = self.advice.iter().filter(|advice| advice["met"] == true);
        seen.extend(advised.map(|advice| format!("advised: {:#}", advice["best"]["config"])));
        let texts: String = seen.iter().map(|text| format!("<pre>{}</pre>", escape(text))).collect();
        section(
            "Configuration and provenance",
            &(texts + "<button type=\"button\" id=\"save\">save the data (JSON)</button>"),
        )
    }
}

/// The remedy.
const GIVE: &str = "give what `coldframe sim` or `coldframe advise` wrote with --format json";

/// The advised run is among the page's runs.
fn without_run(advice: &Value) -> Value {
    let mut advice = advice.clone();
    advice.as_object_mut().and_then(|advice| advice.remove("run"));
    advice
}

/// What a file that is no JSON is, as far as its first bytes say.
fn what_it_is(bytes: &[u8], error: &serde_json::Error) -> String {
    match bytes {
        [] => format!("is empty; {GIVE}"),
        bytes if bytes.starts_with(b"PAR1") => {
            format!("is a Parquet file, and so perhaps a trace; {GIVE}, and the trace with --trace")
        }
        bytes if std::str::from_utf8(bytes).is_err() => format!("is binary, no text; {GIVE}"),
        _ if error.is_eof() => format!("ends in the middle of its JSON ({error}); write it again, and {GIVE}"),
        _ => format!("is no JSON: {error}; {GIVE}"),
    }
}
