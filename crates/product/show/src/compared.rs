//! A comparison in words: a table, the fastest way, the command to paste.

pub mod fit;

use coldframe_answer::bench::compared::{Compared, Contender};
use coldframe_answer::NO_SWAP;
use coldframe_sheet::quantity::{human_seconds, human_size};

use crate::table::styled;
use crate::text::{command, paragraph, width};

/// The whole comparison.
pub fn words(compared: &Compared) -> String {
    let plain = &compared.plain;
    let ways = || compared.sizes.iter().flat_map(|size| size.ways.iter().map(|way| (size.ram_bytes, way)));
    let rows = ways().map(|(ram, way)| row(compared, ram, way)).collect();
    let headings = ["limit", "swap", "s", "range, s", "x plain", "output"];
    let head = format!(
        "without a limit: {} ({} s), with at most {}{}; {} runs of each kind, in turn",
        human_seconds(plain.seconds),
        range(&plain.ended()),
        human_size(compared.peak_bytes),
        if compared.in_group { "" } else { " in RAM, as seen from outside" },
        plain.runs.len(),
    );
    let table = styled(&headings, rows, 2);
    let mut text = paragraph(&head, 0) + &format!("\n{}\n", table.text(width()));
    for lacking in &compared.left_out {
        text += &paragraph(&format!("Left out: {lacking}."), 2);
    }
    for (way, why) in ways().filter_map(|(_, way)| Some((way, way.refused.as_ref()?))) {
        text += &paragraph(&format!("Failed: {}: {why}.", way.name), 2);
    }
    if ways().any(|(_, way)| way.refused.is_none() && way.runs.runs.is_empty()) {
        text += &paragraph("Not run: it took too long in a larger limit.", 2);
    }
    text + &fastest(compared)
}

fn fastest(compared: &Compared) -> String {
    let (Some(best), Some(paste)) = (&compared.fastest, compared.command()) else {
        return paragraph("No way ended as the plain run did, with its output, in each run at each size.", 0);
    };
    let note = if compared.varies {
        " The plain run's output is another one each time, so outputs were not compared."
    } else {
        ""
    };
    let name = match best.name.as_str() {
        NO_SWAP => "no swap",
        name => name,
    };
    let times = best.times_plain;
    let sentence = format!("Fastest with equal memory: {name}, {times:.2} times the plain run's time.{note}");
    let words = shlex::split(paste).unwrap_or_default();
    let quoted = |word: &String| shlex::try_quote(word).map_or_else(|_| word.clone(), |word| word.into_owned());
    let words: Vec<String> = words.iter().map(quoted).collect();
    paragraph(&sentence, 0) + &command(words.iter().map(String::as_str), 2, 5) + "\n"
}

fn range(seconds: &[f64]) -> String {
    match (seconds.first(), seconds.last()) {
        (Some(shortest), Some(longest)) => format!("{shortest:.2} to {longest:.2}"),
        _ => "-".into(),
    }
}

fn row(compared: &Compared, ram: u64, way: &Contender) -> Vec<String> {
    let percent = 100.0 * ram as f64 / compared.peak_bytes.max(1) as f64;
    let (shown, median) =
        (|number: Option<f64>| number.map_or("-".into(), |n| format!("{n:.2}")), way.runs.ended_seconds());
    vec![
        format!("{} {percent:.0} %", human_size(ram)),
        way.name.clone(),
        shown(median),
        range(&way.runs.ended()),
        shown(median.map(|seconds| seconds / compared.plain.seconds.max(1e-9))),
        way.output(compared.varies),
    ]
}

#[cfg(test)]
mod tests {
    use coldframe_answer::bench::compared::{fastest, SizeRuns};
    use coldframe_answer::run::runs::{Unlike, Way};
    use coldframe_answer::{Run, Runs};

    use super::*;

    fn way(name: &str, seconds: &[f64], killed: bool) -> Contender {
        let mut runs = Runs::new(&Way::pager(), None);
        for seconds in seconds {
            runs.add(&Run { seconds: *seconds, killed, ..Run::default() }, killed.then_some(Unlike::Killed));
        }
        let command = "coldframe run --ram 2MiB --swap /a/swap -- sort 'a b'".into();
        Contender { name: name.into(), command, refused: None, runs }
    }

    fn compared(peak_bytes: u64, sizes: Vec<SizeRuns>) -> Compared {
        let plain = way("", &[1.0, 2.0, 9.0], false).runs;
        let (schema_version, version, program, left_out) = (1, "0", vec![], vec![]);
        let fastest = fastest(&plain, &sizes);
        let (in_group, varies) = (true, false);
        Compared { schema_version, version, program, peak_bytes, in_group, plain, varies, sizes, left_out, fastest }
    }

    #[test]
    fn the_table_fits_80_columns_and_ends_with_the_command() {
        let fits = |text: &str| text.lines().all(|line| line.chars().count() <= 80);
        let size = |ram_bytes, killed| SizeRuns {
            ram_bytes,
            ways: vec![way("slow", &[3.0, 4.0, 5.0], false), way("dead", &[0.1], killed)],
        };
        let text = words(&compared(4 << 20, vec![size(2 << 20, false), size(1 << 20, true)]));
        assert!(fits(&text) && text.contains("1 of 1 killed") && text.contains("3.00 to 5.00"), "{text}");
        assert_eq!(text.lines().last().unwrap().trim(), "coldframe run --ram 2MiB --swap /a/swap -- sort 'a b'");
        // The killed run has no time: it did not do the work.
        let dead = text.lines().filter(|line| line.contains("dead")).nth(1).unwrap();
        assert!(!dead.contains("0.10"), "{dead}");
        // A way without a run was too slow in more RAM.
        let unrun = SizeRuns { ram_bytes: 1 << 20, ways: vec![way("slow", &[], false)] };
        let text = words(&compared(4 << 20, vec![size(2 << 20, false), unrun]));
        assert!(fits(&text) && text.contains("not run") && text.contains("Not run: it took too long"), "{text}");
        // Hours for a large program, in a way with a long name: what became of the runs is still there.
        let mut long = SizeRuns { ram_bytes: 997 << 30, ways: vec![way("kernel, zswap", &[98765.43, 99999.99], true)] };
        long.ways[0].runs.runs[0].killed = false;
        let text = words(&compared(999 << 30, vec![long]));
        assert!(fits(&text) && text.contains("1 of 2 killed") && text.ends_with("at each size.\n"), "{text}");
    }
}
