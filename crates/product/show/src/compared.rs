//! A comparison in words: a table, the fastest way, the command to paste.

use coldframe_answer::bench::compared::{sorted, Arm, Compared};
use coldframe_sheet::quantity::{human_seconds, human_size};

use crate::table::styled;
use crate::text::{command, paragraph, width};

/// The whole comparison.
pub fn words(of: &Compared) -> String {
    let plain = &of.plain;
    let rows = of.sizes.iter().flat_map(|size| size.arms.iter().map(|arm| row(of, size.ram_bytes, arm))).collect();
    let headings = ["RAM", "paged by", "s", "range, s", "x plain", "output"];
    let head = format!(
        "plain: {} ({} s); {} of memory that can leave; {} runs of each kind, in turn",
        human_seconds(plain.median_seconds),
        range(&sorted(&plain.runs)),
        human_size(of.memory_bytes),
        plain.runs.len(),
    );
    // What became of the runs must be read, so it is the last that is dropped.
    let table = styled(&headings, rows, 2).least(&["x plain", "range, s"]);
    let mut text = paragraph(&head, 0) + &format!("\n{}\n", table.text(width()));
    for lacking in &of.left_out {
        text += &paragraph(&format!("Left out: {lacking}."), 2);
    }
    let arms = of.sizes.iter().flat_map(|size| &size.arms);
    for (arm, why) in arms.filter_map(|arm| Some((arm, arm.failed.as_ref()?))) {
        text += &paragraph(&format!("Failed: {}: {why}.", arm.by), 2);
    }
    text + &fastest(of)
}

fn fastest(of: &Compared) -> String {
    let (Some(best), Some(paste)) = (&of.fastest, of.command()) else {
        return paragraph("No way ended as the plain run did, with its output, in each run at each size.", 0);
    };
    let note = if of.plain.varies {
        " The plain run's output is another one each time, so outputs were not compared."
    } else {
        ""
    };
    let (by, times) = (best.by, best.times_plain);
    let sentence = format!("Fastest with equal memory: {by}, {times:.2} times the plain run's time.{note}");
    let words = shlex::split(paste).unwrap_or_default();
    let quoted = |word: &String| shlex::try_quote(word).map_or_else(|_| word.clone(), |word| word.into_owned());
    let words: Vec<String> = words.iter().map(quoted).collect();
    paragraph(&sentence, 0) + &command(words.iter().map(String::as_str), 2, 5) + "\n"
}

fn range(seconds: &[f64]) -> String {
    match (seconds.first(), seconds.last()) {
        (Some(least), Some(most)) => format!("{least:.2} to {most:.2}"),
        _ => "-".into(),
    }
}

fn row(of: &Compared, ram: u64, arm: &Arm) -> Vec<String> {
    let percent = 100.0 * ram as f64 / of.memory_bytes.max(1) as f64;
    let shown = |number: Option<f64>| number.map_or("-".into(), |n| format!("{n:.2}"));
    vec![
        format!("{} {percent:.0} %", human_size(ram)),
        arm.by.into(),
        shown(arm.median_seconds),
        range(&arm.times(&of.plain)),
        shown(arm.median_seconds.map(|seconds| seconds / of.plain.median_seconds)),
        arm.output(&of.plain),
    ]
}

#[cfg(test)]
mod tests {
    use coldframe_answer::bench::compared::{Plain, Size, Timed};

    use super::*;

    fn arm(by: &'static str, seconds: &[f64], killed: bool) -> Arm {
        let run = |seconds: &f64| Timed { seconds: *seconds, equal: true, killed, ..Timed::default() };
        let command = "coldframe run --ram 2MiB --swap /a/swap -- sort 'a b'".into();
        Arm { by, command, runs: seconds.iter().map(run).collect(), ..Arm::default() }
    }

    fn compared(memory_bytes: u64, sizes: Vec<Size>) -> Compared {
        let plain = Plain { runs: arm("", &[1.0, 2.0, 9.0], false).runs, ..Plain::default() };
        let (schema_version, version, program, left_out) = (1, "0", vec![], vec![]);
        let mut all =
            Compared { schema_version, version, program, memory_bytes, plain, sizes, left_out, fastest: None };
        all.finish();
        all
    }

    #[test]
    fn the_table_fits_80_columns_and_ends_with_the_command() {
        let fits = |text: &str| text.lines().all(|line| line.chars().count() <= 80);
        let size = |ram_bytes, killed| Size {
            ram_bytes,
            arms: vec![arm("slow", &[3.0, 4.0, 5.0], false), arm("dead", &[0.1], killed)],
        };
        let text = words(&compared(4 << 20, vec![size(2 << 20, false), size(1 << 20, true)]));
        assert!(fits(&text) && text.contains("1 of 1 killed") && text.contains("3.00 to 5.00"), "{text}");
        assert_eq!(text.lines().last().unwrap().trim(), "coldframe run --ram 2MiB --swap /a/swap -- sort 'a b'");
        // The killed run has no time: it did not do the work.
        let dead = text.lines().filter(|line| line.contains("dead")).nth(1).unwrap();
        assert!(!dead.contains("0.10"), "{dead}");
        // Hours for a large program, in a way with a long name: what became of the runs is still there.
        let mut long = Size { ram_bytes: 997 << 30, arms: vec![arm("kernel, zswap", &[98765.43, 99999.99], true)] };
        long.arms[0].runs[0].killed = false;
        let text = words(&compared(999 << 30, vec![long]));
        assert!(fits(&text) && text.contains("1 of 2 killed") && text.ends_with("at each size.\n"), "{text}");
    }
}
