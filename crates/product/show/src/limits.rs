//! Lines that give a unit or a container a limit, and killers their thresholds, to paste.

use coldframe_answer::machine::killers::Killer;

use crate::text::{paragraph, wrap};

/// What a hard limit has more than the peak was: a tenth.
const MARGIN: u64 = 10;

/// A size that a unit or container can be given: whole MiB, rounded up.
pub(crate) fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// Hard limits that hold the peak and a tenth more.
pub(crate) fn hard(peak: u64) -> String {
    let hard = mib(peak + peak / MARGIN);
    format!(
        "  docker --memory {hard}m · compose mem_limit: {hard}m\n  Kubernetes limits: {{memory: {hard}Mi}} · systemd \
         MemoryMax={hard}M\n"
    )
}

/// Lines for units and containers: hard limits hold the peak and a tenth more, so that nothing is killed that does the
/// same again; below them is what was enough.
pub(crate) fn limits(enough: u64, peak: u64) -> String {
    let (enough, hard) = (mib(enough), mib(peak + peak / MARGIN));
    format!(
        "  docker      --memory {hard}m --memory-reservation {enough}m\n  compose     mem_limit: {hard}m, \
         mem_reservation: {enough}m\n  Kubernetes  limits: {{memory: {hard}Mi}}, requests: {{memory: {enough}Mi}}\n  \
         systemd     MemoryMax={hard}M MemoryHigh={enough}M (above it, to swap)\n"
    )
}

/// The column of a setting whose place is shorter.
const SETTING: usize = 35;

/// Settings for the programs that kill when memory runs out: those of this machine, or all; each with its reason.
pub(crate) fn thresholds(killers: &[Killer], all: bool) -> String {
    let shown: Vec<&Killer> = killers.iter().filter(|killer| all || killer.present).collect();
    if shown.is_empty() && !killers.is_empty() {
        return "Nothing here kills but the kernel; for others: coldframe device --killers.\n".into();
    }
    let mut text = String::new();
    for killer in shown {
        let kept = if killer.settings.is_empty() { "; its defaults stay" } else { "" };
        text += &paragraph(&format!("{}: {}{kept}.", killer.name, killer.reason), 2);
        let mut before = "";
        for (place, setting) in &killer.settings {
            let shown = if *place == before && *place != "sudo" { "" } else { *place };
            let section = if place.contains("oomd.conf") && *place != before { "[OOM]\n  " } else { "" };
            text += &match (*place, section) {
                ("sudo", _) => wrap("  ", &format!("sudo {setting}"), 4, 78).join(" \\\n") + "\n",
                (_, "") => format!("  {shown:SETTING$}{setting}\n"),
                _ => format!("  {shown}  {section}{:SETTING$}{setting}\n", ""),
            };
            before = place;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use coldframe_answer::machine::killers::{killers, OrdinaryWork};

    use super::*;

    #[test]
    fn this_machines_killers_are_shown_or_all_and_each_line_fits() {
        let work = OrdinaryWork {
            ram_bytes: 1 << 30,
            needed_bytes: Some(900 << 20),
            swap_bytes: 1 << 29,
            swap_fill: 0.8,
            waits: Some(0.02),
            sleepers: vec![],
        };
        let text = |present: &[&str], all| {
            let present: Vec<String> = present.iter().map(ToString::to_string).collect();
            thresholds(&killers(&work, &present), all)
        };
        assert_eq!(
            text(&["systemd-oomd"], false),
            "systemd-oomd: in ordinary work swap is 80 % full, it waits at most 20 ms/s.\n  \
             /etc/systemd/oomd.conf.d/60-coldframe.conf  [OOM]\n                                     \
             SwapUsedLimit=90%\n                                     DefaultMemoryPressureLimit=20%\n  sudo systemctl \
             set-property -- -.slice ManagedOOMSwap=kill\n  sudo systemctl set-property system.slice \
             ManagedOOMMemoryPressure=kill\n"
        );
        assert!(text(&[], false).contains("--killers") && text(&[], false).lines().count() == 1);
        let all = text(&[], true);
        assert!(["oomd", "earlyoom", "lmkd", "kubelet"].iter().all(|name| all.contains(name)), "{all}");
        assert!(all.lines().all(|line| line.chars().count() <= 80), "{all}");
    }
}
