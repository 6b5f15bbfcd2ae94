//! What paging costs on this machine, as a table.

use std::collections::BTreeMap;

use coldframe_answer::machine::calibrate::Calibrated;
use coldframe_core::Ps;
use coldframe_sheet::quantity::human_time;

/// Each event, in a user's words.
const EVENTS: [(&str, &str); 14] = [
    ("zero_fill_native", "first touch, the kernel's own"),
    ("zero_fill_huge", "  the same with its huge pages"),
    ("zero_fill", "first touch, paged"),
    ("memory_fault", "page back, not yet written"),
    ("device_fault", "page back from the disk"),
    ("read_ahead", "  the same in a stream"),
    ("false_fault", "touch of an unmapped page"),
    ("first_write", "first write to a read page"),
    ("evict_clean", "more if a clean page leaves"),
    ("evict_dirty", "more if a written page leaves"),
    ("evict_dirty_read", "  the same behind a disk read"),
    ("zram_fault", "page back from the kernel's zram"),
    ("swap_fault", "page back from the kernel's swap on a disk"),
    ("swap_ahead", "  the same in a stream"),
];

/// Each request, in words.
const REQUESTS: [(&str, &str); 6] = [
    ("read_1", "4 KiB read"),
    ("read_4", "  4 in flight"),
    ("read_16", "  16 in flight"),
    ("write_1", "4 KiB write"),
    ("write_8", "32 KiB write"),
    ("write_32", "128 KiB write, in order"),
];

/// The table.
pub fn words(calibrated: &Calibrated) -> String {
    let machine = calibrated.machine.clone().unwrap_or_default();
    let mut text = format!("{}, {} CPUs, Linux {}\n", machine.processor, machine.processors, machine.kernel);
    text += &row("as the program waits for it", ["best", "mean", "worst"].map(Into::into));
    for (key, words) in EVENTS {
        text += &calibrated
            .live_ps
            .get(key)
            .map_or(String::new(), |times| row(words, shown(times, ["low", "mean", "high"])));
    }
    text += &row(&format!("disk {}", machine.disk), ["p50", "p99", "a page"].map(Into::into));
    for (key, words) in REQUESTS {
        text += &calibrated
            .disk_ps
            .get(key)
            .map_or(String::new(), |times| row(words, shown(times, ["p50", "p99", "per_page"])));
    }
    let place = match &calibrated.sheet_file {
        Some(path) => format!("kept in {}", path.display()),
        None => "kept by this process only".into(),
    };
    format!("{text}measured on {}, {place}\n", machine.measured)
}

fn row(words: &str, [a, b, c]: [String; 3]) -> String {
    format!("{words:<44}{a:>10}{b:>10}{c:>10}\n")
}

fn shown(times: &BTreeMap<String, Option<u64>>, parts: [&str; 3]) -> [String; 3] {
    parts.map(|part| times.get(part).copied().flatten().map_or(String::new(), |ps| human_time(Ps(ps))))
}
