//! A limit that is held low: a line for each change, what is suggested from its history, metrics for Prometheus.

use coldframe_answer::service::history::Suggested;
use coldframe_answer::service::hold::HoldReason;
use coldframe_answer::service::holding::{Change, Standing};
use coldframe_answer::service::squeeze::Squeezed;
use coldframe_sheet::quantity::{human_seconds, human_size};

use crate::paste::settings::resources;
use crate::table::styled;
use crate::text::paragraph;

fn why(why: HoldReason) -> &'static str {
    match why {
        HoldReason::Calm => "calm",
        HoldReason::Waits => "it waited too long",
        HoldReason::CameBack => "what was taken came back",
        HoldReason::Latency => "its latency has grown",
        HoldReason::Check => "its check failed",
        HoldReason::Starved => "a process got no page",
        HoldReason::Stuck => "no more can leave",
        HoldReason::Foreign => "somebody else has set the limit, which stays",
        HoldReason::Stopped => "stopped",
        HoldReason::Gone => "its last process has ended",
    }
}

/// What a hold would do.
pub(super) fn would(squeezed: &Squeezed, latency: Option<f64>) -> String {
    let (watch, stall) = (human_seconds(squeezed.watch_seconds), squeezed.max_stall_percent);
    let latency = latency.map_or(String::new(), |within| {
        format!(", when it gives no answer, or when its latency grows by more than {within} %")
    });
    format!(
        "The limit would go down by at most a sixteenth after each calm {watch}, until Ctrl-C, and back to the old \
         limit at once when some process waits for memory for more than {stall} % of {watch}, or when what was taken \
         comes back{latency}. What failed is tried again after a pause. Nothing was changed; --yes does it."
    )
}

/// A change in a line.
pub fn line(change: &Change) -> String {
    let limit = match (&change.foreign, change.limit_bytes) {
        (Some(theirs), _) => theirs.parse().map_or(theirs.clone(), human_size),
        (None, Some(bytes)) => human_size(bytes),
        (None, None) => "as before".into(),
    };
    format!(
        "{} {}: limit {limit}: {}; {} in use, {} in swap, {:.2} % waited, {:.0} pages back/s\n",
        utc(change.time_seconds),
        change.name,
        why(change.why),
        human_size(change.in_use_bytes),
        human_size(change.swapped_bytes),
        change.waited_percent,
        change.pages_back_per_second,
    )
}

/// Seconds since 1970 as ISO 8601 has them. Days to dates: Howard Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms".
fn utc(seconds: f64) -> String {
    let (days, second) = (seconds as i64 / 86_400, seconds as i64 % 86_400);
    let from_march = days + 719_468;
    let (era, of_era) = (from_march / 146_097, from_march % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let part = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * part + 2) / 5 + 1, if part < 10 { part + 3 } else { part - 9 });
    let year = era * 400 + year + i64::from(month < 3);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z", second % 60)
}

/// Requests and limits to paste.
pub fn suggested(it: &Suggested) -> String {
    let [p50, p95, p99, peak] = [it.p50_bytes, it.p95_bytes, it.p99_bytes, it.peak_bytes].map(human_size);
    let watched = format!("{}: RAM in use while it was held, {}:", it.name, human_seconds(it.watched_seconds));
    let table = styled(&["p50", "p95", "p99", "charged at most"], vec![vec![p50, p95, p99, peak]], 0);
    let text = format!("{}\n{table}\n\n", paragraph(&watched, 0));
    let request = "The request is p95; the limit is the most that it was charged, and a tenth more.";
    text + &paragraph(request, 0) + &resources(it)
}

/// OpenMetrics text.
pub fn metrics(it: &Standing) -> String {
    let name = it.now.name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let mut text = String::new();
    let mut add = |metric: &str, kind: &str, help: &str, value: Option<f64>| {
        let Some(value) = value else { return };
        let total = if kind == "counter" { "_total" } else { "" };
        text += &format!("# HELP coldframe_hold_{metric} {help}\n# TYPE coldframe_hold_{metric} {kind}\n");
        text += &format!("coldframe_hold_{metric}{total}{{name=\"{name}\"}} {value}\n");
    };
    let bytes = |of: fn(&Suggested) -> u64| it.suggested.as_ref().map(|it| of(it) as f64);
    // Without a limit of ours: NaN, as Prometheus has it.
    add(
        "limit_bytes",
        "gauge",
        "Limit that is held; NaN: the old one.",
        Some(it.now.limit_bytes.map_or(f64::NAN, |it| it as f64)),
    );
    add("in_use_bytes", "gauge", "Bytes charged to the group.", Some(it.now.in_use_bytes as f64));
    add("swapped_bytes", "gauge", "Bytes of the group in swap.", Some(it.now.swapped_bytes as f64));
    add("waited_seconds", "counter", "Seconds in which some process waited for memory.", Some(it.waited_seconds));
    add("pages_back", "counter", "Pages that came back.", Some(it.pages_back as f64));
    add("steps_down", "counter", "Times that the limit was lowered.", Some(it.steps.0 as f64));
    add("steps_up", "counter", "Times that it was raised.", Some(it.steps.1 as f64));
    add("p50_bytes", "gauge", "RAM that was enough for half of the time.", bytes(|it| it.p50_bytes));
    add("p95_bytes", "gauge", "RAM that was enough for 95 % of the time.", bytes(|it| it.p95_bytes));
    add("p99_bytes", "gauge", "RAM that was enough for 99 % of the time.", bytes(|it| it.p99_bytes));
    add("peak_bytes", "gauge", "The most that was charged.", bytes(|it| it.peak_bytes));
    add("latency_bound_seconds", "gauge", "99th percentile without a limit.", it.bound_ms.map(|ms| ms / 1e3));
    text + "# EOF\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change() -> Change {
        Change {
            schema_version: 1,
            version: "0",
            name: "a.service".into(),
            time_seconds: 1_709_164_799.5,
            why: HoldReason::Waits,
            limit_bytes: None,
            foreign: None,
            in_use_bytes: 60 << 20,
            swapped_bytes: 8 << 20,
            waited_percent: 0.51,
            pages_back_per_second: 12.0,
        }
    }

    #[test]
    fn a_change_is_one_line_with_its_time_and_reason() {
        let line = line(&change());
        assert_eq!(
            line,
            "2024-02-28T23:59:59Z a.service: limit as before: it waited too long; 60 MiB in use, 8 MiB in swap, 0.51 % \
             waited, 12 pages back/s\n"
        );
        assert_eq!(utc(0.0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(1_709_164_800.0), "2024-02-29T00:00:00Z");
        let foreign = Change { foreign: Some("max".into()), why: HoldReason::Foreign, ..change() };
        assert!(super::line(&foreign).contains("limit max: somebody else has set the limit, which stays"));
    }

    #[test]
    fn metrics_are_open_metrics_and_end() {
        let standing = Standing {
            now: change(),
            waited_seconds: 1.5,
            pages_back: 7,
            steps: (3, 1),
            suggested: None,
            bound_ms: Some(2.0),
        };
        let text = metrics(&standing);
        assert!(text.contains("\ncoldframe_hold_steps_down_total{name=\"a.service\"} 3\n"), "{text}");
        assert!(text.contains("\ncoldframe_hold_limit_bytes{name=\"a.service\"} NaN\n"), "{text}");
        assert!(text.contains("\ncoldframe_hold_latency_bound_seconds{name=\"a.service\"} 0.002\n"), "{text}");
        assert!(text.ends_with("# EOF\n") && !text.contains("p95"), "{text}");
    }
}
