//! The recommended size, and the other pager next to it.

use coldframe_answer::{Answer, By, Runs, UNNOTICED};
use coldframe_sheet::quantity::{human_seconds, human_size, ram_size};

use super::sizes::range;
use crate::paste::run::kernel_options;
use crate::text::paragraph;

/// The recommended size with its time, or why there is none.
pub(super) fn recommended(answer: &Answer) -> String {
    let (percent, alone) = (answer.slowdown_percent, answer.program_seconds.max(1e-9));
    let slower = |seconds: f64| match 100.0 * (seconds / alone - 1.0) {
        more if more > percent && seconds - alone <= UNNOTICED => {
            format!("{} longer than alone", human_seconds(seconds - alone))
        }
        more if more >= 0.5 => format!("{more:.0} % slower than alone"),
        _ => "as fast as alone".into(),
    };
    let unpaged = answer.ram_bytes.filter(|_| answer.by == Some(By::Plain));
    let known = answer.ram_bytes.filter(|_| unpaged.is_none()).and_then(|ram| answer.known(ram));
    let Some(known) = known else {
        let largest = answer.runs.iter().filter(|run| run.failed.is_none() && run.ram_bytes.is_some());
        let largest = largest.max_by_key(|run| run.ram_bytes).map(|run| {
            let over = if run.more { "over " } else { "" };
            let (ram, time) = (ram_size(run.ram_bytes.unwrap_or(0)), human_seconds(run.seconds));
            format!(": --ram {ram} takes {over}{time}, {}", slower(run.seconds))
        });
        let why = largest.unwrap_or_default();
        return match unpaged.map(human_size) {
            Some(whole) if why.is_empty() => {
                format!("Recommended: all of its {whole}, unpaged; no run in less was possible.")
            }
            Some(whole) => {
                format!("Recommended: all of its {whole}, unpaged; paged, it is over {percent:.0} % slower{why}.")
            }
            None => format!("Recommended: none; no size keeps it within {percent:.0} % of its own time{why}."),
        };
    };
    let (time, range) = (human_seconds(known.seconds), range(&known));
    let kernel = answer.run(By::Kernel, known.ram_bytes).filter(|_| known.by_kernel);
    let ram = ram_size(known.ram_bytes)
        + &kernel.map_or(String::new(), |run| format!(" {}", kernel_options(run.swap.as_deref())));
    match known.runs {
        0 if known.seconds > (1.0 + percent / 100.0) * alone => {
            format!("Recommended: --ram {ram}: {time} ({range}), predicted, {}.", slower(known.seconds))
        }
        0 => {
            format!("Recommended: --ram {ram}: {time} ({range}), predicted, at most {percent:.0} % slower than alone.")
        }
        1 => format!("Recommended: --ram {ram}: {time} (one run), {}.", slower(known.seconds)),
        runs => format!("Recommended: --ram {ram}: {time} ({range} in {runs} runs), {}.", slower(known.seconds)),
    }
}

/// The other pager next to the recommended size: measured, or the kernel's swap as predicted, zram with its options.
pub(super) fn otherwise(answer: &Answer) -> String {
    let ram = answer.ram_bytes.unwrap_or(answer.needed_bytes / 2);
    let other = if answer.by == Some(By::Kernel) { By::Pager } else { By::Kernel };
    let runs = answer.runs.iter().filter(|run| run.by == other);
    if let Some(run) = runs.min_by_key(|run| run.ram_bytes.map(|size| size.abs_diff(ram))) {
        return paragraph(&by_other(run), 0);
    }
    let Some((swap, point)) =
        answer.recorded().and_then(|recorded| recorded.kernel.as_ref()).and_then(|swap| Some((swap, swap.at(ram)?)))
    else {
        return String::new();
    };
    let (low, size) = (human_seconds(point.seconds_low), ram_size(point.ram_bytes));
    let time = match point.seconds_high {
        Some(high) => format!("about {low} to {}", human_seconds(high)),
        None => format!("at least {low}"),
    };
    let how = if swap.share > 0.0 { " (--by kernel --swap zram)" } else { "" };
    paragraph(&format!("By the kernel, with swap on {}{how}: --ram {size} takes {time}.", swap.kind), 0)
}

/// A run by the pager that is not the recommended one.
fn by_other(run: &Runs) -> String {
    let who = match run.by {
        By::Kernel => format!("the kernel ({})", kernel_options(run.swap.as_deref())),
        _ => "our pager".into(),
    };
    let measured = if run.failed.is_none() { ", measured" } else { "" };
    format!("By {who}: --ram {} {}{measured}.", ram_size(run.ram_bytes.unwrap_or(0)), time_of(run))
}

/// `takes 2.3 s`.
pub(super) fn time_of(run: &Runs) -> String {
    match (&run.failed, human_seconds(run.seconds)) {
        (Some(why), _) => format!("fails: {why}"),
        (None, time) => format!("takes {}{time}", if run.more { "over " } else { "" }),
    }
}
