//! The answer for a board as one HTML page.

use coldframe_answer::AnswerError;
use coldframe_search::json::Answer;
use coldframe_show::html::words::section;
use coldframe_show::html::{framed, provenance, Html};
use serde_json::json;

mod answer;

/// The page of an answer for a board.
#[derive(Debug)]
pub struct Page<'a>(pub &'a Answer);

impl Html for Page<'_> {
    /// The answer with its chart, why, how sure, and folded all the rest.
    fn html(&self) -> Result<String, AnswerError> {
        let answer = self.0;
        let part = |title: &str, text: String| if text.is_empty() { text } else { section(title, &text) };
        let why = part("Why: which memory", answer::regions(answer));
        let sure = part("How sure", answer::sure(answer));
        let details = answer::tried(answer) + &origin(answer);
        let details = format!("<section class=\"details\"><h2>Details</h2>{details}</section>");
        let name = answer.trace.path.rsplit('/').next().unwrap_or_default();
        let data = json!({ "advice": answer.without_run() });
        framed(name, &(answer::answer(answer) + &why + &sure + &details), &data)
    }
}

/// The trace, and the advised settings.
fn origin(answer: &Answer) -> String {
    let trace = format!("coldframe {}\n{:#}", answer.version, json!(answer.trace));
    let advised = answer.best.iter().map(|best| format!("advised: {:#}", json!(best.config)));
    provenance(&std::iter::once(trace).chain(advised).collect::<Vec<_>>())
}
