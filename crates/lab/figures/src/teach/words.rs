//! A lesson as text: each step has a few lines, with the frames after the step.

use coldframe_core::Ps;
use coldframe_sheet::quantity::fine_time;

use crate::teach::{Held, Lesson, Played, Step};

const WIDTH: usize = 72;
/// Steps of each setup at its begin and at its end that a handout has.
const HEAD: usize = 4;
const TAIL: usize = 2;
/// Lines of a step that a handout has; the last of them says how many more there are.
const LINES: usize = 6;
/// The first step with a line like this is in a handout, whole.
const HINT: &str = "on the list";
/// So many steps are a handout as they are: Belady's twelve.
const WHOLE: usize = 12;

/// The text before the first step.
pub fn opening(lesson: &Lesson) -> String {
    format!(
        "{}\n{}\n(after {})\n{}",
        lesson.title,
        lesson.about,
        lesson.source,
        if lesson.is_of_tasks() { "" } else { "\nIn a frame: page, * its reference bit, w dirty; > the hand.\n" }
    )
}

/// The text before a setup's steps.
pub fn setup(played: &Played) -> String {
    let s = played.setup;
    match played.priced {
        true => {
            format!("\n=== {}, {} handler, {} frames, prices of {} ===\n", s.policy, s.handler, s.frames, s.system())
        }
        false if s.sets.is_empty() => format!("\n=== {}, {} frames ===\n", s.policy, s.frames),
        false => format!("\n=== {} frames, {} ===\n", s.frames, s.sets.join(", ")),
    }
}

/// A step with all its lines.
pub fn step(number: usize, step: &Step) -> String {
    let verb = if step.writing { "write" } else { "read" };
    let result = match step.fault {
        Some(latency) => format!("fault, {}", fine_time(latency)),
        None if step.hit => "hit".into(),
        None => "fault".into(),
    };
    let mut out = format!("\n{number:>3}. {verb} page {}: {result}\n", step.page);
    step.lines.iter().for_each(|line| out += &format!("       {line}\n"));
    if !step.frames.is_empty() {
        out += &format!("     frames {}\n", frames(step));
    }
    if !step.log.is_empty() {
        let blocks: Vec<String> = step.log.iter().map(|block| block.join(" ")).collect();
        out += &format!("     blocks |{}|\n", blocks.join("|"));
    }
    if step.buffers.iter().any(Option::is_some) {
        let shown = |page: &Option<u32>| page.map_or_else(|| "-".into(), |page| page.to_string());
        out += &format!("     buffers {}\n", step.buffers.iter().map(shown).collect::<Vec<_>>().join(" "));
    }
    out
}

fn frames(step: &Step) -> String {
    let cell = |(i, held): (usize, &Option<Held>)| {
        let hand = if step.hand == Some(i) { ">" } else { " " };
        let shown = held.map_or_else(
            || "-".into(),
            |h| format!("{}{}{}", h.page, if h.referenced { "*" } else { "" }, if h.dirty { "w" } else { "" }),
        );
        format!("{hand}{shown}")
    };
    step.frames.iter().enumerate().map(cell).collect::<Vec<_>>().join(" ")
}

/// When each buffer was loading (`=`), and when its page (by its last digit) stayed in it.
pub fn timeline(played: &Played) -> String {
    let column = |time: Ps| (time.0 as u128 * WIDTH as u128 / u128::from(played.time.0.max(1))) as usize;
    let buffers = played.busy.iter().map(|busy| busy.buffer + 1).max().unwrap_or(0);
    let mut rows = vec![vec!['.'; WIDTH]; buffers];
    for busy in &played.busy {
        let digit = char::from_digit(busy.page % 10, 10).unwrap_or('?');
        let row = &mut rows[busy.buffer];
        row[column(busy.loading).min(WIDTH - 1)..column(busy.loaded).min(WIDTH)].fill('=');
        row[column(busy.loaded).min(WIDTH - 1)..column(busy.moved).min(WIDTH)].fill(digit);
    }
    let line = |(i, row): (usize, &Vec<char>)| format!("  buffer {i} |{}|\n", row.iter().collect::<String>());
    let rows: String = rows.iter().enumerate().map(line).collect();
    format!("\n{rows}           0 to {}; = loading, a digit: that page is in it\n", fine_time(played.time))
}

/// The text after the last step.
pub fn closing(lesson: &Lesson, all: &[Played]) -> String {
    format!("\nSo: {}\n", (lesson.so)(all))
}

/// A lesson as a handout: all steps with `all`, else the first and the last ones of each setup, and how many are
/// between.
pub fn whole(lesson: &Lesson, played: &[Played], all: bool) -> String {
    let mut out = opening(lesson);
    for one in played {
        out += &setup(one);
        let hint = one.steps.iter().position(|step| step.lines.iter().any(|line| line.contains(HINT)));
        let gap = left_out(one.steps.len()).filter(|_| !all).unwrap_or_default();
        let mut skipped = 0;
        for (i, of) in one.steps.iter().enumerate() {
            if gap.contains(&i) && Some(i) != hint {
                skipped += 1;
                continue;
            }
            out += &more(std::mem::take(&mut skipped));
            out += &if all || Some(i) == hint { step(i + 1, of) } else { short(i + 1, of) };
        }
        if lesson.timeline {
            out += &timeline(one);
        }
    }
    out + &closing(lesson, played)
}

/// The line for steps that are left out.
fn more(steps: usize) -> String {
    match steps {
        0 => String::new(),
        steps => format!("\n  ... {steps} more steps ...\n"),
    }
}

/// The steps that a handout leaves out, of so many; `None`: none.
fn left_out(steps: usize) -> Option<std::ops::Range<usize>> {
    (steps > WHOLE).then(|| HEAD..steps - TAIL)
}

/// A step with its first lines.
fn short(number: usize, of: &Step) -> String {
    let more = of.lines.len().saturating_sub(LINES);
    if more < 2 {
        return step(number, of);
    }
    let mut lines = of.lines[..LINES - 1].to_vec();
    lines.push(format!("... {} more, to:", more));
    lines.extend(of.lines.last().cloned());
    step(number, &Step { lines, ..of.clone() })
}
