//! An answer as one HTML page: no network, light and dark, printable. The page shows the numbers of the given data, and
//! contains the data as JSON.
//!
//! Curves are drawn twice: by uPlot (`html/uplot`, MIT, with its licence) on a screen, where they fit its width and can
//! be pointed at, and as SVG for paper and for readers without a script. The rest is HTML and SVG.
//!
//! [`Page`] is the page of an answer about this machine. Its parts ([`chart`], [`heat`], [`group`], [`words`]) and its
//! frame ([`framed`]) make other pages, too.

use coldframe_answer::{Answer, AnswerError, LimitAnswer, Touched};
use coldframe_store::ProcessFacts;
use serde_json::{json, Value};

use crate::plot::escape;

pub mod chart;
pub mod group;
pub mod heat;
pub mod limit;
pub mod machine;
pub mod words;

use words::{folded, section};

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/compare.js");
const DRAWING: &str = include_str!("html/plots.js");
const PARTS: &str = include_str!("html/page.js");
/// uPlot 1.6.32 as published, and its style.
const PLOT: &str = include_str!("html/uplot/uPlot.iife.min.js");
const PLOT_STYLE: &str = include_str!("html/uplot/uPlot.min.css");
/// Most bytes of a page.
pub const BYTES_MAX: usize = 2_000_000;
/// The text about the chosen point, which the script fills in.
const CHOSEN: &str = "<aside id=\"chosen\" hidden><button type=\"button\" id=\"close\">close</button>\
     <table><thead id=\"names\"></thead><tbody id=\"compared\"></tbody></table></aside><div id=\"tip\" hidden></div>";

/// Anything that is shown as a page.
pub trait Html {
    /// The page.
    fn html(&self) -> Result<String, AnswerError>;
}

/// A whole page: its name, its body, and the data that its script reads.
pub fn framed(name: &str, body: &str, data: &Value) -> Result<String, AnswerError> {
    let (title, data) = (escape(&format!("{name} - coldframe report")), data.to_string().replace("</", "<\\/"));
    let page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><link rel=\"icon\" href=\"data:,\">\n\
         <style>\n{PLOT_STYLE}\n{STYLE}</style></head>\n<body>\n<main>{body}</main>{CHOSEN}\
         <script type=\"application/json\" \
         id=\"data\">{data}</script>\n<script>\n{PLOT}</script>\n<script>\n{DRAWING}</script>\n\
         <script>\n{{\n{PARTS}}}\n</script>\n<script>\n{SCRIPT}</script></body></html>\n"
    );
    match page.len() {
        n if n > BYTES_MAX => {
            Err(AnswerError::new(3, format!("report: would be {n} bytes, above {BYTES_MAX}; give fewer results")))
        }
        _ => Ok(page),
    }
}

/// The folded end of a page: settings and origins, and a button for the data.
pub fn provenance(texts: &[String]) -> String {
    let texts: String = texts.iter().map(|text| format!("<pre>{}</pre>", words::prose(text))).collect();
    folded(
        "Configuration and provenance",
        &(texts + "<button type=\"button\" id=\"save\">save the data (JSON)</button>"),
    )
}

/// The page of an answer about this machine.
#[derive(Debug, Default)]
pub struct Page {
    limit: Option<LimitAnswer>,
    answer: Option<Answer>,
    touched: Option<Touched>,
    group: Vec<ProcessFacts>,
}

impl Page {
    /// The page of this answer.
    pub fn new(answer: &Answer) -> Page {
        Page { answer: Some(answer.clone()), ..Page::default() }
    }

    /// The page of an answer that was measured in a memory group.
    pub fn limit(answer: &LimitAnswer) -> Page {
        Page { limit: Some(answer.clone()), answer: answer.prediction.clone(), ..Page::default() }
    }

    /// Adds the map of the memory that was touched.
    pub fn add_map(&mut self, touched: Touched) {
        self.touched = Some(touched);
    }

    /// Adds the processes of a recorded command.
    pub fn add_group(&mut self, group: &[ProcessFacts]) {
        self.group = group.to_vec();
    }
}

impl Html for Page {
    /// The answer with its chart, why, how sure, and folded all the rest.
    fn html(&self) -> Result<String, AnswerError> {
        let answer = |part: fn(&Answer) -> String| self.answer.as_ref().map(part).unwrap_or_default();
        let mut body = match &self.limit {
            Some(measured) => limit::answer(measured) + &answer(machine::recorded_beside),
            None => answer(machine::answer),
        };
        let alone = self.limit.as_ref().map(|answer| answer.program_seconds);
        let alone = alone.or(self.answer.as_ref().map(|answer| answer.program_seconds)).unwrap_or_default();
        let map = self.touched.as_ref().map(|touched| heat::map(touched, alone)).unwrap_or_default();
        let why = group::processes(&self.group) + &map;
        if !why.is_empty() {
            body += &section("Why: which memory, and when", &why);
        }
        // Measured limits need no prediction's assumptions.
        let predicted = |part: fn(&Answer) -> String| if self.limit.is_none() { answer(part) } else { String::new() };
        let sure = predicted(machine::sure);
        if !sure.is_empty() {
            body += &section("How sure", &sure);
        }
        let texts = self.answer.as_ref().map(machine::provenance).unwrap_or_default();
        let details = provenance(&texts);
        body += &format!("<section class=\"details\"><h2>Details</h2>{details}</section>");
        let name = self.limit.as_ref().map(|answer| &answer.program);
        let name = name.or(self.answer.as_ref().map(|answer| &answer.program)).cloned().unwrap_or_default();
        let data = json!({ "limit": self.limit, "here": self.answer });
        framed(&name, &body, &data)
    }
}
