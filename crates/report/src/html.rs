//! Results as one HTML page: no network, light and dark, printable. It shows the numbers of the JSON it was given, and holds that JSON.
//!
//! Pictures are SVG made here, and stay without a script; the script only lets runs be chosen and compared, and the data be saved. What a
//! run adds is bounded whatever its trace, so the page's size is bounded by the number of runs.

use coldframe_trace::heat::Heat;
use serde_json::json;

use crate::advise::json::Answer;
use crate::error::ReportError;
use crate::here;
use crate::plot::escape;
use crate::result::{Sections, SimResult, Trace};

mod answer;
mod chart;
mod curves;
mod energy;
mod given;
mod heat;
mod latency;
mod machine;
mod run;
mod runs;
mod stages;
mod swap;
mod tasks;
mod words;

use given::Given;
use run::Run;
use words::section;

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
    advice: Vec<Answer>,
    here: Vec<here::Answer>,
    runs: Vec<SimResult>,
    heat: Option<Heat>,
}

impl Page {
    /// Adds a file's bytes.
    ///
    /// # Errors
    /// Not JSON, of another version, or not a result.
    pub fn add(&mut self, origin: &str, bytes: &[u8]) -> Result<(), ReportError> {
        let bad = |reason: String| ReportError::Unfit { path: origin.into(), reason };
        for one in given::read(bytes).map_err(bad)? {
            match one {
                Given::Run(run) => self.runs.push(*run),
                Given::Advice(answer) => self.advice.push(*answer),
                Given::Here(answer) => self.here.push(*answer),
            }
        }
        match self.runs.len() {
            n if n > RUNS_MAX => Err(bad(format!("makes {n} runs, and a page holds {RUNS_MAX}; give fewer"))),
            _ => Ok(()),
        }
    }

    /// The version and the trace of all that was given.
    fn origins(&self) -> impl Iterator<Item = (&String, &Trace)> {
        let runs = self.runs.iter().map(|run| (&run.version, &run.trace));
        self.advice.iter().map(|advice| (&advice.version, &advice.trace)).chain(runs)
    }

    /// Adds the map of a trace, whose hash must be that of every result.
    ///
    /// # Errors
    /// A result is of another trace.
    pub fn add_heat(&mut self, path: &str, sha256: &str, heat: Heat) -> Result<(), ReportError> {
        if self.origins().any(|(_, trace)| trace.sha256 != sha256) {
            let reason =
                "is not the trace that all results are of; leave out --trace, or report on one trace at a time";
            return Err(ReportError::Unfit { path: path.into(), reason: reason.into() });
        }
        self.heat = Some(heat);
        Ok(())
    }

    /// Adds the map of the trace that an answer about this machine is made from.
    pub fn add_map(&mut self, heat: Heat) {
        self.heat = Some(heat);
    }

    /// All runs: what was given, then what was advised.
    fn all_runs(&self) -> Vec<&SimResult> {
        self.runs.iter().chain(self.advice.iter().filter_map(|advice| advice.run.as_ref())).collect()
    }

    /// The page.
    ///
    /// # Errors
    /// It would be too large.
    pub fn html(&self) -> Result<String, ReportError> {
        let all = self.all_runs();
        let runs = Run::all(&all);
        let mut body = String::new();
        self.advice.iter().enumerate().for_each(|(i, advice)| body += &answer::answer(i, advice));
        self.here.iter().for_each(|answer| body += &machine::answer(answer));
        if self.advice.is_empty() && self.here.is_empty() {
            body += "<h1>coldframe report</h1>";
        }
        match self.runs.iter().any(|run| !matches!(run.sections, Sections::SwapTrace(_))) {
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
        let data = json!({ "advice": self.advice.iter().map(Answer::without_run).collect::<Vec<_>>(), "here": self.here, "runs": all });
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
        for (version, trace) in self.origins() {
            let text = format!("coldframe {version}\n{:#}", json!(trace));
            if !seen.contains(&text) {
                seen.push(text);
            }
        }
        let advised = self.advice.iter().filter_map(|advice| advice.best.as_ref());
        seen.extend(advised.map(|best| format!("advised: {:#}", best.config)));
        let texts: String = seen.iter().map(|text| format!("<pre>{}</pre>", escape(text))).collect();
        section(
            "Configuration and provenance",
            &(texts + "<button type=\"button\" id=\"save\">save the data (JSON)</button>"),
        )
    }
}
