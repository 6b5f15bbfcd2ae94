//! Yes or no about a program's memory, in words: at most a few lines of 80 columns.

use coldframe_answer::{Method, Need, Verdict};
use coldframe_sheet::quantity::{human_seconds, human_size};

use crate::text::paragraph;

/// The most lines for what grew.
const GROWN: usize = 5;

/// The verdict: the number, the distance to the limit, what it rests on, and what grew.
pub fn words(verdict: &Verdict) -> String {
    let mut out = paragraph(&(sentence(verdict) + "."), 0);
    out += &paragraph(&rests_on(&verdict.need), 0);
    if verdict.need.method == Method::ReferencedBits {
        out += &paragraph("Watched by referenced bits, not by the pager: coarser, and its noise is not known.", 0);
    }
    out + &grown(verdict)
}

/// One line: yes or no, the number and the distance.
pub fn sentence(verdict: &Verdict) -> String {
    let need = &verdict.need;
    let least = if need.at_most { "at most " } else { "" };
    let number = format!(
        "{} needs {least}{} of heap in RAM to be at most {:.0} % slower",
        need.program,
        human_size(need.need_bytes),
        need.slowdown_percent
    );
    match (verdict.max_ram_bytes, verdict.distance_bytes) {
        (Some(limit), Some(distance)) => {
            let side = if distance < 0 { "over" } else { "below" };
            let part = 100.0 * distance.unsigned_abs() as f64 / limit.max(1) as f64;
            let (word, distance) = (if verdict.within { "yes" } else { "no" }, human_size(distance.unsigned_abs()));
            format!("{word}: {number}, {distance} ({part:.1} %) {side} the limit of {}", human_size(limit))
        }
        _ => number,
    }
}

fn rests_on(need: &Need) -> String {
    let largest = match need.processes.len() {
        2.. => format!(
            " in {} processes, of which the largest has {}",
            need.processes.len(),
            human_size(need.managed_bytes)
        ),
        _ => String::new(),
    };
    format!(
        "It takes {} alone and touches {} of heap, {} at one time{largest}; {} is not paged (code, stacks, libraries) and not counted.",
        human_seconds(need.program_seconds),
        human_size(need.touched_bytes),
        human_size(need.together_bytes.max(need.managed_bytes)),
        human_size(need.not_paged_bytes),
    )
}

fn grown(verdict: &Verdict) -> String {
    let Some(file) = &verdict.baseline else { return String::new() };
    let noise = verdict.noise_percent;
    if verdict.grown.is_empty() {
        return paragraph(&format!("Nothing grew by more than {noise:.0} % since {file}."), 0);
    }
    let mut out = format!("Grew since {file}:\n");
    for one in verdict.grown.iter().take(GROWN) {
        let (before, now) = (human_size(one.before_bytes), human_size(one.now_bytes));
        let percent = match one.before_bytes {
            0 => "new".into(),
            bytes => format!("+{:.1} %", 100.0 * (one.now_bytes as f64 / bytes as f64 - 1.0)),
        };
        out += &format!("  {}: {before} to {now} ({percent})\n", one.what);
    }
    out
}
