//! What this machine allows, in words.

use coldframe_answer::machine::doctor::{Doctor, Finding, Health, RIGHT};

use crate::table::styled;
use crate::text::{page, wrap};

/// What matters in a few lines; with `full`, everything in a table.
pub fn words(doctor: &Doctor, full: bool) -> String {
    lines_of(&doctor.findings, doctor.run_works, full, page().unwrap_or(80))
}

/// As for [`words`].
fn lines_of(findings: &[Finding], good: bool, full: bool, width: usize) -> String {
    if full {
        return table(findings, good, width);
    }
    let by_health = |health| findings.iter().filter(move |finding| finding.health == health);
    let mut text = format!("{}\n", verdict(good));
    for finding in bad(findings) {
        let remedy = if finding.remedy.is_empty() { String::new() } else { format!(". Remedy: {}", finding.remedy) };
        text += &lines(&format!("{}: {}{remedy}", finding.name, finding.state), width);
    }
    if !good {
        text += &lines(WITHOUT, width);
    }
    let well: Vec<&str> = by_health(Health::Good).map(|finding| finding.name).collect();
    if good && !well.is_empty() {
        text += &format!("ok: {}\n", well.join("; "));
    }
    for name in if good { &NOTED[..] } else { &NOTED[..1] } {
        text += &by_health(Health::Note)
            .find(|finding| finding.name == *name)
            .map_or(String::new(), |finding| format!("{name}: {}\n", finding.state));
    }
    text + "More: coldframe doctor --all\n"
}

/// What works without any right.
const WITHOUT: &str = "Works already: `coldframe -- PROGRAM`, `coldframe --pid N`.";

/// What should be mended: the right to page first, and then without all that only fails for want of it.
fn bad(findings: &[Finding]) -> Vec<&Finding> {
    let right = findings.iter().find(|finding| finding.name == RIGHT && finding.health == Health::Missing);
    match right {
        Some(right) => vec![right],
        None => findings.iter().filter(|f| matches!(f.health, Health::Warning | Health::Missing)).collect(),
    }
}

fn lines(text: &str, width: usize) -> String {
    wrap("", text, 2, width).join("\n") + "\n"
}

/// Notes that get a line: readers quote them with a question or a figure.
const NOTED: [&str; 2] = ["kernel", "measured"];

fn verdict(good: bool) -> &'static str {
    if good {
        "`coldframe run` works here."
    } else {
        "`coldframe run` does not work here with the pager."
    }
}

fn table(findings: &[Finding], good: bool, width: usize) -> String {
    let word = |health| match health {
        Health::Good => "ok",
        Health::Warning => "warning",
        Health::Missing => "MISSING",
        Health::Note => "",
    };
    let row = |f: &Finding| vec![f.name.to_string(), word(f.health).to_string(), f.state.clone(), f.remedy.clone()];
    let verdict = verdict(good);
    let table = styled(&["", "", "found", "remedy"], findings.iter().map(row).collect(), 4);
    format!("{}\n{verdict}\n", table.text(width))
}

#[cfg(test)]
mod tests {
    use crate::text::folded;

    use super::*;

    #[test]
    fn all_is_well_in_eight_lines_and_what_is_not_has_its_remedy() {
        let finding = |name, health, state: &str, remedy: &str| Finding {
            name,
            health,
            state: state.into(),
            remedy: remedy.into(),
        };
        // As on a machine without problems.
        let mut findings = vec![
            finding("kernel", Health::Note, "Linux 6.18.44, 2 CPUs", ""),
            finding("userfaultfd, faults of the kernel too", Health::Good, "allowed", ""),
            finding("userfaultfd, faults of the program", Health::Good, "allowed", ""),
            finding("pages move without copying", Health::Good, "UFFDIO_MOVE is there", ""),
            finding("scattered pages leave with one flush", Health::Good, "works", ""),
            finding("pages are held in a pipe", Health::Good, "vmsplice works", ""),
            finding("io_uring", Health::Good, "allowed", ""),
            finding("transparent huge pages", Health::Note, "always [madvise] never; off for managed memory", ""),
            finding("memory cgroup", Health::Note, "version 1, limit 9223372036854771712 bytes", ""),
            finding("kernel swap", Health::Note, "none; the pager does not need it", ""),
            finding("swap file", Health::Good, "/tmp: ext4, 44261 MiB free", ""),
            finding("measured", Health::Note, "a page of 4 KiB comes back in 60.9 us (median)", ""),
            finding("preload library", Health::Good, "/usr/lib/coldframe/libcoldframe_preload.so", ""),
        ];
        let text = folded(&lines_of(&findings, true, false, 80), 80);
        assert!(text.lines().count() <= 8 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.starts_with("`coldframe run` works here.\n") && text.contains("swap file"), "{text}");
        findings[6] = finding("io_uring", Health::Warning, "refused", "sysctl -w kernel.io_uring_disabled=0");
        let text = lines_of(&findings, true, false, 80);
        assert!(text.contains("io_uring: refused. Remedy: sysctl -w kernel.io_uring_disabled=0"), "{text}");
        assert!(lines_of(&findings, true, true, 200).contains("9223372036854771712"));
    }

    #[test]
    fn a_right_that_is_missing_comes_first_and_alone_with_its_remedy_and_what_works() {
        let finding = |name, health, remedy: &str| Finding {
            name,
            health,
            state: "Operation not permitted (os error 1) (vm.unprivileged_userfaultfd=0)".into(),
            remedy: remedy.into(),
        };
        let findings = [
            finding("kernel", Health::Note, ""),
            finding("pages move without copying", Health::Warning, "Linux 6.8"),
            finding(RIGHT, Health::Missing, "sudo coldframe doctor --setup (once; then log in again)"),
            finding("measured", Health::Missing, "give a folder"),
            finding("io_uring", Health::Good, ""),
        ];
        let text = lines_of(&findings, false, false, 80);
        assert!(text.lines().count() <= 8 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let place = |word| flat.find(word).unwrap_or_else(|| panic!("{word} is not in {text}"));
        assert!(
            place("sudo coldframe doctor --setup") < place("--pid N") && place("--pid N") < place("kernel:"),
            "{text}"
        );
        assert!(!text.contains("Linux 6.8") && !text.contains("give a folder"), "{text}");
    }

    #[test]
    fn what_is_found_and_mends_it_fits_the_terminal() {
        let long = |n| "a sentence that goes on and on, as those about userfaultfd without rights do; ".repeat(n);
        let path = format!("/nowhere/{}", "folder/".repeat(20));
        let finding =
            |state, remedy| Finding { name: "pages are held in a pipe", health: Health::Missing, state, remedy };
        let findings = [finding(long(3), long(4)), finding(path, String::new())];
        for width in [80, 200] {
            let text = table(&findings, false, width);
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= width, "{widest} of {width} columns:\n{text}");
        }
    }
}
