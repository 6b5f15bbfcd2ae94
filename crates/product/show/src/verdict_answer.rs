//! Yes or no about a program's memory, in words: at most a few lines of 80 columns.

use coldframe_answer::bench::limit::is_open;
use coldframe_answer::{By, Method, Need, Runs, Verdict};
use coldframe_sheet::quantity::{human_seconds, human_size};

use crate::text::paragraph;

/// The most lines for what grew.
const GROWN: usize = 5;

/// The verdict: the number, the distance to the limit, what it rests on, and what grew.
pub fn words(verdict: &Verdict) -> String {
    let mut out = paragraph(&(sentence(verdict) + "."), 0);
    if let (Some(plain), Some(paged)) = (&verdict.plain, &verdict.paged) {
        out += &paragraph(&measured(verdict, plain, paged), 0);
    }
    let Some(need) = &verdict.need else { return out };
    if verdict.paged.is_some() {
        out += &paragraph(&(need_in_words(verdict, need) + "."), 0);
    }
    out += &paragraph(&rests_on(need), 0);
    if need.method == Method::ReferencedBits {
        let noise = verdict.noise_percent;
        let words = format!("Watched by referenced bits, not by the pager: coarser; answers were {noise:.0} % apart.");
        out += &paragraph(&words, 0);
    }
    out + &grown(verdict)
}

/// One line: yes or no, the number and the distance.
pub fn sentence(verdict: &Verdict) -> String {
    let word = match (verdict.certain, verdict.within) {
        (false, _) => "cannot tell",
        (true, true) => "yes",
        (true, false) => "no",
    };
    let number = match (verdict.plain.as_ref().zip(verdict.paged.as_ref()), &verdict.need) {
        (Some((plain, paged)), _) => {
            let time = match (&paged.failed, paged.more) {
                (Some(why), _) => why.clone(),
                (None, true) => format!("it takes more than {}", human_seconds(paged.seconds)),
                (None, false) => format!("it takes {}", human_seconds(paged.seconds)),
            };
            let (program, ram) = (&verdict.program, human_size(verdict.max_ram_bytes.unwrap_or(0)));
            let (limit, off) = (verdict.slowdown_percent, 100.0 * (paged.seconds / plain.seconds.max(1e-9) - 1.0));
            let plain = human_seconds(plain.seconds);
            format!("{program} in {ram}: {time}, alone {plain} ({off:+.0} %; the limit is +{limit:.0} %)")
        }
        (None, Some(need)) => need_in_words(verdict, need),
        (None, None) => verdict.program.clone(),
    };
    match verdict.max_ram_bytes {
        Some(_) => format!("{word}: {number}"),
        None => number,
    }
}

fn need_in_words(verdict: &Verdict, need: &Need) -> String {
    let bound = if need.at_most { "at most " } else { "" };
    let (program, size, percent) = (&need.program, human_size(need.need_bytes), need.slowdown_percent);
    let number = format!("{program} needs {bound}{size} of heap in RAM to be at most {percent:.0} % slower");
    match (verdict.max_ram_bytes, verdict.distance_bytes) {
        (Some(limit), Some(distance)) => {
            let side = if distance < 0 { "over" } else { "below" };
            let part = 100.0 * distance.unsigned_abs() as f64 / limit.max(1) as f64;
            let distance = human_size(distance.unsigned_abs());
            format!("{number}, {distance} ({part:.1} %) {side} the limit of {}", human_size(limit))
        }
        _ => number,
    }
}

/// How it was measured.
fn measured(verdict: &Verdict, plain: &Runs, paged: &Runs) -> String {
    let times = |runs: &Runs| match runs.range() {
        None => "one run".into(),
        Some((low, high)) => format!("{} runs, {} to {}", runs.runs.len(), human_seconds(low), human_seconds(high)),
    };
    let by = if paged.by == By::Kernel { "the kernel" } else { "our pager" };
    let near = match is_open(plain, paged, verdict.slowdown_percent / 100.0) {
        true => " Single runs are on both sides of the limit; the medians decide.",
        false => "",
    };
    format!("Measured: alone {}; by {by}: {}.{near}", times(plain), times(paged))
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
        "It takes {} alone and touches {} of heap, {} at one time{largest}; {} is not paged (code, stacks, libraries) \
         and not counted.",
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
    for row in verdict.grown.iter().take(GROWN) {
        let (before, now) = (human_size(row.before_bytes), human_size(row.now_bytes));
        let percent = match row.before_bytes {
            0 => "new".into(),
            bytes => format!("+{:.1} %", 100.0 * (row.now_bytes as f64 / bytes as f64 - 1.0)),
        };
        out += &format!("  {}: {before} to {now} ({percent})\n", row.what);
    }
    out
}
