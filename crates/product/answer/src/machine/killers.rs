//! Thresholds for the programs that kill when memory runs out: above what ordinary work does, and below what makes a
//! machine useless. Where a measure is missing, no threshold is made of it.
//!
//! - systemd-oomd kills a unit that waits (`full`) for more than `DefaultMemoryPressureLimit` for 30 s, and the unit
//!   with most swap once both RAM and swap are used beyond `SwapUsedLimit`; only where `ManagedOOM*=kill`
//!   (oomd.conf(5)).
//! - earlyoom ends the largest process once RAM that is available and swap that is free are both below `-m` and `-s`
//!   percent (earlyoom(1)).
//! - lmkd looks for a process to kill once some, or all, processes waited so many ms in a second
//!   (<https://source.android.com/docs/core/perf/lmkd>).
//! - The kubelet evicts a pod once capacity less the working set is below `memory.available` (Kubernetes, Node-pressure
//!   eviction; 100Mi by default).

use coldframe_proc::Tree;
use coldframe_sheet::quantity::human_size;
use schemars::JsonSchema;
use serde::Serialize;

/// The least part of swap that is used at a kill, and the most.
const SWAP_USED: (f64, f64) = (0.8, 0.97);
/// A killer acts at so many times the waits of ordinary work: from a fifth of the time on nobody can work, and 60 % is
/// systemd-oomd's default.
const WAITS: f64 = 4.0;
const PRESSURE: (f64, f64) = (0.2, 0.6);
/// Percent of RAM and of swap at which earlyoom acts: 10 is its default for both, less than 2 is the kernel's reserve.
const PERCENT: (f64, f64) = (2.0, 10.0);
/// lmkd's default for some process, in ms of a second; and the kubelet's default.
const PARTIAL_MS: f64 = 70.0;
const AVAILABLE: u64 = 100 << 20;

/// What ordinary work needs of a machine.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OrdinaryWork {
    /// The machine's RAM.
    pub ram_bytes: u64,
    /// The most of it that was needed; `None`: not seen.
    pub needed_bytes: Option<u64>,
    /// The swap that there is, or that is recommended; 0: none.
    pub swap_bytes: u64,
    /// The part of it that is used.
    pub swap_fill: f64,
    /// The part of the time that some process waits, at most; `None`: not seen.
    pub waits: Option<f64>,
    /// Units that would have much of the swap: systemd-oomd would kill them, not what grows.
    pub sleepers: Vec<String>,
}

impl OrdinaryWork {
    /// Of this machine as it is, with so many more bytes in its swap instead of RAM, and such waits.
    pub(crate) fn with_more_in_swap(tree: &Tree, more: u64, waits: f64) -> OrdinaryWork {
        let (ram_bytes, swap_bytes) = (tree.meminfo("MemTotal"), tree.meminfo("SwapTotal"));
        let used = (swap_bytes - tree.meminfo("SwapFree").min(swap_bytes) + more).min(swap_bytes);
        OrdinaryWork {
            ram_bytes,
            needed_bytes: Some(ram_bytes.saturating_sub(tree.meminfo("MemAvailable") + more)),
            swap_bytes,
            swap_fill: used as f64 / swap_bytes.max(1) as f64,
            waits: Some(waits),
            sleepers: Vec::new(),
        }
    }
}

/// Settings of one program that kills.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Killer {
    /// Its name.
    pub name: &'static str,
    /// Whether this machine has it.
    pub present: bool,
    /// Where the settings go, and they; empty: its defaults stay.
    pub settings: Vec<(&'static str, String)>,
    /// Why these.
    pub reason: String,
}

/// The names of those that a machine has: as a running process, or as a program that it can run.
pub(crate) fn present(tree: &Tree) -> Vec<String> {
    let running: Vec<String> = tree.processes().into_iter().map(|pid| tree.process(pid).name()).collect();
    let has = |name: &&str| running.iter().any(|one| one == name) || tree.path(format!("/usr/bin/{name}")).exists();
    ["systemd-oomd", "earlyoom", "lmkd", "kubelet"].into_iter().filter(has).map(String::from).collect()
}

/// The thresholds of all killers; `present`: those that the machine has.
pub fn killers(work: &OrdinaryWork, present: &[String]) -> Vec<Killer> {
    let (fill, percent) = (work.swap_fill.clamp(0.0, 1.0), |part: f64| format!("{:.0}", 100.0 * part));
    let pressure = work.waits.map(|waits| (WAITS * waits).clamp(PRESSURE.0, PRESSURE.1));
    let waits = work.waits.map_or("how long it waits was not seen: its default stays".into(), |waits| {
        format!("it waits at most {} ms/s", (1000.0 * waits).ceil())
    });
    let used = match work.swap_bytes {
        0 => "there is no swap".into(),
        _ => format!("swap is {} % full", percent(fill)),
    };
    let free = (50.0 * (1.0 - fill)).clamp(PERCENT.0, PERCENT.1).floor();
    let spare = work.needed_bytes.map(|needed| work.ram_bytes.saturating_sub(needed));
    let spared =
        spare.map_or("what it needs was not seen".into(), |spare| format!("{} of RAM is spare", human_size(spare)));
    let mut oomd = vec![];
    if work.swap_bytes > 0 {
        let limit = ((1.0 + fill) / 2.0).clamp(SWAP_USED.0, SWAP_USED.1);
        oomd.push((OOMD, format!("SwapUsedLimit={}%", percent(limit))));
        oomd.push((SHELL, "systemctl set-property -- -.slice ManagedOOMSwap=kill".into()));
        // `avoid` reorders only those that have more than 5 % of the swap, and the program that grows may have less.
        let omit = |unit: &String| (SHELL, format!("systemctl set-property {unit} ManagedOOMPreference=omit"));
        oomd.extend(work.sleepers.iter().map(omit));
        if !work.sleepers.is_empty() {
            // systemd 252 marks the group of a unit that runs only then.
            oomd.push((SHELL, "systemctl daemon-reload".into()));
        }
    }
    if let Some(limit) = pressure {
        oomd.push((OOMD, format!("DefaultMemoryPressureLimit={}%", percent(limit))));
        oomd.push((SHELL, "systemctl set-property system.slice ManagedOOMMemoryPressure=kill".into()));
    }
    oomd.sort_by_key(|(place, _)| *place == SHELL);
    let earlyoom = spare.map(|spare| {
        let available = (50.0 * spare as f64 / work.ram_bytes.max(1) as f64).clamp(PERCENT.0, PERCENT.1).floor();
        // With 100 it looks at RAM only.
        let swap = if work.swap_bytes == 0 { 100.0 } else { free };
        ("/etc/default/earlyoom", format!("EARLYOOM_ARGS=\"-m {available} -s {swap}\""))
    });
    let lmkd = work.waits.zip(pressure).map(|(waits, limit)| {
        let complete = 1000.0 * limit;
        let partial = (2000.0 * waits).clamp(PARTIAL_MS, complete / 2.0).round();
        let settings = [("psi_partial_stall_ms", partial), ("psi_complete_stall_ms", complete.round())];
        let swap = (work.swap_bytes > 0).then_some(("swap_free_low_percentage", free));
        settings.into_iter().chain(swap).map(|(name, value)| ("vendor/build.prop", format!("ro.lmk.{name}={value}")))
    });
    let kubelet = spare.filter(|spare| *spare / 2 >= 1 << 20).map(|spare| {
        let available = (spare / 2).min(AVAILABLE) >> 20;
        ("kubelet's configuration", format!("evictionHard: {{memory.available: {available}Mi}}"))
    });
    let killer = |name: &'static str, settings, reason: String| Killer {
        name,
        present: present.iter().any(|one| one == name),
        settings,
        reason: format!("in ordinary work {reason}"),
    };
    vec![
        killer("systemd-oomd", oomd, format!("{used}, {waits}")),
        killer("earlyoom", earlyoom.into_iter().collect(), format!("{spared}, {used}")),
        killer("lmkd", lmkd.into_iter().flatten().collect(), format!("{waits}, {used}")),
        killer("kubelet", kubelet.into_iter().collect(), spared),
    ]
}

const OOMD: &str = "/etc/systemd/oomd.conf.d/60-coldframe.conf";
const SHELL: &str = "sudo";

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn settings(work: OrdinaryWork) -> String {
        let lines = killers(&work, &[]).into_iter().flat_map(|killer| killer.settings);
        lines.map(|(_, setting)| setting).collect::<Vec<_>>().join("\n")
    }

    fn board() -> OrdinaryWork {
        OrdinaryWork {
            ram_bytes: GIB,
            needed_bytes: Some(GIB - (160 << 20)),
            swap_bytes: GIB / 2,
            swap_fill: 0.8,
            waits: Some(0.02),
            sleepers: vec!["cups.service".into()],
        }
    }

    #[test]
    fn a_killer_acts_above_ordinary_work_and_before_the_machine_stalls() {
        let text = settings(board());
        // Halfway from 80 % to full; 4 times 2 % is less than a fifth; half of 160 MiB of 1 GiB; half of 20 % of swap.
        for line in [
            "SwapUsedLimit=90%",
            "DefaultMemoryPressureLimit=20%",
            "set-property cups.service ManagedOOMPreference=omit",
            "systemctl daemon-reload",
            "-m 7 -s 9",
            "psi_partial_stall_ms=70",
            "psi_complete_stall_ms=200",
            "swap_free_low_percentage=9",
            "memory.available: 80Mi",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    #[test]
    fn a_fuller_zram_and_longer_waits_raise_the_thresholds_and_never_below_what_is_ordinary() {
        for tenth in 0..10 {
            let part = f64::from(tenth) / 10.0;
            let text = settings(OrdinaryWork { swap_fill: part, waits: Some(part / 10.0), ..board() });
            let number = |name: &str| {
                let rest = text.split(name).nth(1).unwrap();
                rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse::<f64>().unwrap()
            };
            assert!(number("SwapUsedLimit=") > 100.0 * part && number("SwapUsedLimit=") <= 97.0, "{text}");
            assert!(number("-s ") < 100.0 * (1.0 - part) && number("-s ") <= 10.0, "{text}");
            assert!(number("PressureLimit=") > 10.0 * part && number("PressureLimit=") <= 60.0, "{text}");
            assert!(number("partial_stall_ms=") > 100.0 * part, "{text}");
            assert!(number("complete_stall_ms=") >= 2.0 * number("partial_stall_ms="), "{text}");
        }
        let half = settings(OrdinaryWork { waits: Some(0.1), ..board() });
        assert!(half.contains("DefaultMemoryPressureLimit=40%") && half.contains("partial_stall_ms=200"), "{half}");
    }

    #[test]
    fn what_was_not_seen_makes_no_threshold_and_without_swap_none_is_for_swap() {
        let unseen = settings(OrdinaryWork { needed_bytes: None, waits: None, sleepers: vec![], ..board() });
        assert_eq!(unseen, "SwapUsedLimit=90%\nsystemctl set-property -- -.slice ManagedOOMSwap=kill");
        let dry = settings(OrdinaryWork { swap_bytes: 0, swap_fill: 0.0, ..board() });
        assert!(
            !dry.contains("Swap") && !dry.contains("cups") && !dry.contains("swap_free") && dry.contains("-m 7 -s 100"),
            "{dry}"
        );
        let full = settings(OrdinaryWork { needed_bytes: Some(2 * GIB), ..board() });
        assert!(!full.contains("memory.available") && full.contains("-m 2"), "{full}");
        let large = settings(OrdinaryWork { ram_bytes: 24 * GIB, needed_bytes: Some(2 * GIB), ..board() });
        assert!(large.contains("memory.available: 100Mi") && large.contains("-m 10"), "{large}");
    }

    #[test]
    fn of_a_machine_as_it_is_more_in_swap_is_less_in_ram() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        let text = "MemTotal: 1000 kB\nMemAvailable: 300 kB\nSwapTotal: 400 kB\nSwapFree: 300 kB\n";
        std::fs::write(folder.path().join("proc/meminfo"), text).unwrap();
        let work = OrdinaryWork::with_more_in_swap(&Tree::new(folder.path()), 100 << 10, 0.02);
        assert_eq!((work.needed_bytes, work.swap_fill, work.waits), (Some(600 << 10), 0.5, Some(0.02)));
        assert_eq!(OrdinaryWork::with_more_in_swap(&Tree::new(folder.path()), 1 << 30, 0.0).swap_fill, 1.0);
    }

    #[test]
    fn those_that_run_or_are_installed_are_present_and_the_reason_says_what_was_measured() {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in [("proc/7/comm", "systemd-oomd\n"), ("usr/bin/earlyoom", ""), ("proc/8/comm", "bash\n")] {
            std::fs::create_dir_all(folder.path().join(file).parent().unwrap()).unwrap();
            std::fs::write(folder.path().join(file), text).unwrap();
        }
        let names = present(&Tree::new(folder.path()));
        assert_eq!(names, ["systemd-oomd", "earlyoom"]);
        let all = killers(&board(), &names);
        assert_eq!(all.iter().map(|one| one.present).collect::<Vec<_>>(), [true, true, false, false]);
        assert_eq!(all[0].reason, "in ordinary work swap is 80 % full, it waits at most 20 ms/s");
        assert_eq!(all[1].reason, "in ordinary work 160 MiB of RAM is spare, swap is 80 % full");
    }
}
