//! Yes or no about a program's memory, in words: at most a few lines of 80 columns.

use coldframe_answer::bench::limit_answer::ending;
use coldframe_answer::bench::need::GROWTH;
use coldframe_answer::{Need, Runs, Verdict, NO_SWAP};
use coldframe_sheet::quantity::{how_often, human_seconds, human_size};

use crate::text::paragraph;

/// The most lines for what grew.
const GROWN: usize = 6;

/// The verdict: yes or no, what it rests on, and what grew.
pub fn words(verdict: &Verdict) -> String {
    let mut out = paragraph(&(sentence(verdict) + "."), 0);
    if verdict.max_ram_bytes.is_some() && verdict.baseline.is_some() {
        out += &paragraph(&(since(verdict) + "."), 0);
    }
    out += &paragraph(&rests_on(verdict), 0);
    out += &grown(verdict);
    for note in &verdict.notes {
        out += &paragraph(&format!("Note: {note}."), 0);
    }
    out
}

/// The most important sentence: yes or no, and the numbers.
pub fn sentence(verdict: &Verdict) -> String {
    match (verdict.max_ram_bytes, &verdict.baseline) {
        (Some(ram), _) => in_limit(verdict, ram),
        (None, Some(_)) => since(verdict),
        (None, None) => verdict.need.as_ref().map_or(verdict.program.clone(), |need| takes(verdict, need)),
    }
}

/// Whether it lives in its limit.
fn in_limit(verdict: &Verdict, ram: u64) -> String {
    let word = match verdict.lives {
        None => "cannot tell",
        Some(true) => "yes",
        Some(false) => "no",
    };
    let (program, ram, why) = (&verdict.program, human_size(ram), verdict.why.as_deref().unwrap_or_default());
    let Some(limited) = verdict.limited.as_ref().filter(|_| !verdict.estimated) else {
        let seen = verdict.peak_bytes.map_or("it was too short to be seen".into(), |peak| {
            format!("it had at most {} when it ran without a limit", human_size(peak))
        });
        return format!("{word}, estimated: {program} in {ram}: {seen}");
    };
    let with = match (limited.swap_words(), limited.swap.as_deref()) {
        (_, Some(NO_SWAP)) => "without swap".into(),
        (name, _) => format!("with swap in {name}"),
    };
    let (alone, most) = (human_seconds(verdict.program_seconds), verdict.slowdown_percent);
    let ended = match (&limited.failed, verdict.times) {
        (Some(failed), _) => format!("{failed}; without a limit it takes {alone}"),
        (None, None) => format!("it takes more than {}, without a limit {alone}", human_seconds(limited.seconds)),
        (None, Some(times)) => {
            let time = human_seconds(limited.seconds);
            let off = 100.0 * (times - 1.0);
            let by = if verdict.by_work { " by processor time and waits" } else { "" };
            format!("it takes {time}, without a limit {alone} ({off:+.0} %{by}; at most {most:+.0} %)")
        }
    };
    let why = if verdict.lives.is_none() { format!(", but {why}") } else { String::new() };
    format!("{word}: {program} in {ram} {with}: {ended}{why}")
}

/// What it takes at its peak.
fn takes(verdict: &Verdict, need: &Need) -> String {
    let group = need.peak_bytes.map(|bytes| format!("{} at its peak", human_size(bytes)));
    let heap = need.heap_bytes.map(|bytes| format!("{} of heap", human_size(bytes)));
    let numbers: Vec<String> = group.into_iter().chain(heap).collect();
    format!("{} takes {}", verdict.program, numbers.join(", "))
}

/// Whether it grew.
fn since(verdict: &Verdict) -> String {
    let (Some(file), Some(need), Some(before)) = (&verdict.baseline, &verdict.need, &verdict.before) else {
        return String::new();
    };
    let word = if verdict.grown.is_empty() { "yes" } else { "no" };
    let percent = |now: u64, before: u64| 100.0 * (now as f64 / before.max(1) as f64 - 1.0);
    let pairs = [(need.peak_bytes, before.peak_bytes), (need.heap_bytes, before.heap_bytes)];
    let change = pairs.into_iter().find_map(|(now, before)| Some((now?, before?)));
    let change = change.map_or(String::new(), |(now, before)| {
        let (percent, before) = (percent(now, before), human_size(before));
        format!(
            "; {file} has {before} ({percent:+.1} %; at most {:+.0} %, or {})",
            100.0 * GROWTH.0,
            human_size(GROWTH.1)
        )
    });
    format!("{word}: {}{change}", takes(verdict, need))
}

/// What the verdict rests on.
fn rests_on(verdict: &Verdict) -> String {
    let count = format!("It ran {}", how_often(verdict.run_count as u64));
    if let (Some(why), true) = (&verdict.why, verdict.estimated) {
        return format!(
            "Estimated: {why}. {count}. For a measured verdict run it as root, or with `systemd-run --user --scope` \
             before it."
        );
    }
    let times = |runs: &Runs| {
        let word = ending(runs).map_or(String::new(), |word| format!(", {word}"));
        match (runs.range(), runs.runs.len()) {
            (Some((low, high)), count) => {
                format!("{count} runs, {} to {}{word}", human_seconds(low), human_seconds(high))
            }
            (None, _) => format!("one run{word}"),
        }
    };
    let (Some(plain), Some(limited)) = (&verdict.plain, &verdict.limited) else {
        return format!(
            "{count}. Peaks are those of a memory group without a limit, and of the heap that was recorded."
        );
    };
    let peak = verdict.peak_bytes.map_or("not known".into(), human_size);
    let work = if verdict.by_work { " Other programs had the processors." } else { "" };
    let (plain, limited) = (times(plain), times(limited));
    format!("Its peak without a limit is {peak}. {count}; compared: without a limit {plain}; in it {limited}.{work}")
}

fn grown(verdict: &Verdict) -> String {
    let Some(file) = verdict.baseline.as_deref().filter(|_| !verdict.grown.is_empty()) else { return String::new() };
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
