//! Lines that give a unit or a container a limit, a machine its zram, and killers their thresholds.

use coldframe_answer::device::{DeviceAnswer, ZramPlan};
use coldframe_answer::machine::killers::Killer;
use coldframe_answer::service::history::Suggested;

use super::{PasteLine, PasteReader, BETWEEN};
use crate::text::{paragraph, wrap};

/// What a hard limit has more than the peak was: a tenth.
const MARGIN: u64 = 10;
/// The least limit that docker takes, in MiB.
const DOCKER_LEAST: u64 = 6;

/// A size that a unit or container can be given: whole MiB, rounded up.
pub(crate) fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// Hard limits of so many MiB, and what is enough for readers that have a soft one.
pub fn units(enough: Option<u64>, hard: u64) -> Vec<PasteLine> {
    let docker = hard.max(DOCKER_LEAST);
    let soft = enough.map(|enough| enough.max(DOCKER_LEAST).min(docker));
    let both = |hard: String, soft: Option<String>| [Some(hard), soft].into_iter().flatten().collect();
    let options = soft.map_or(String::new(), |soft| format!(" --memory-reservation {soft}m"));
    let line = |reader, lines| PasteLine { reader, lines };
    vec![
        line(PasteReader::Docker, vec![format!("--memory {docker}m{options}")]),
        line(
            PasteReader::Compose,
            both(format!("mem_limit: {docker}m"), soft.map(|soft| format!("mem_reservation: {soft}m"))),
        ),
        line(
            PasteReader::Kubernetes,
            both(
                format!("limits: {{memory: {hard}Mi}}"),
                enough.map(|enough| format!("requests: {{memory: {enough}Mi}}")),
            ),
        ),
        line(
            PasteReader::Systemd,
            both(format!("MemoryMax={hard}M"), enough.map(|enough| format!("MemoryHigh={enough}M"))),
        ),
    ]
}

/// Hard limits that hold the peak and a tenth more.
pub(crate) fn hard(peak: u64) -> String {
    short(&units(None, mib(peak + peak / MARGIN)), None)
}

/// Lines of the terminal for hard limits; `enough`: above it, systemd moves to swap.
pub(crate) fn short(units: &[PasteLine], enough: Option<u64>) -> String {
    let shown = |unit: &PasteLine| format!("{} {}", unit.reader.name(), unit.lines.join(BETWEEN));
    let high = enough.map_or(String::new(), |enough| format!("{BETWEEN}MemoryHigh={enough}M"));
    let two = |pair: &[PasteLine]| format!("  {}\n", pair.iter().map(shown).collect::<Vec<_>>().join(BETWEEN));
    let text: String = units.chunks(2).map(two).collect();
    format!("{}{high}\n", text.trim_end())
}

/// Both, for the peak and a tenth more, so that nothing is killed that does the same again, and for what was enough.
pub(crate) fn limits(enough: u64, peak: u64) -> String {
    let units = units(Some(mib(enough)), mib(peak + peak / MARGIN));
    units.iter().map(PasteLine::line).collect::<String>().trim_end().to_string() + " (above it, to swap)\n"
}

/// The same for the page: a block for each reader, to be copied.
pub(crate) fn blocks(enough: u64, peak: u64) -> String {
    let units = units(Some(mib(enough)), mib(peak + peak / MARGIN));
    let block =
        |unit: &PasteLine| format!("<p>{}</p><pre class=\"copy\">{}</pre>", unit.reader.name(), unit.lines.join("\n"));
    units.iter().map(block).collect()
}

/// A container's resources in YAML, and a VerticalPodAutoscaler's.
pub(crate) fn resources(it: &Suggested) -> String {
    let (requests, limits) = (&it.resources.requests.memory, &it.resources.limits.memory);
    let mut text = format!("resources:\n  requests: {{memory: {requests}}}\n  limits: {{memory: {limits}}}\n");
    for container in &it.recommendation.container_recommendations {
        let bound = |name: &str, memory: &str| format!("    {name}: {{memory: {memory}}}\n");
        text += "# as a VerticalPodAutoscaler says it\nrecommendation:\n  containerRecommendations:\n";
        text += &format!("  - containerName: {}\n", container.container_name);
        text += &bound("lowerBound", &container.lower_bound.memory);
        text += &bound("target", &container.target.memory);
        text += &bound("upperBound", &container.upper_bound.memory);
    }
    text
}

/// `MemoryHigh=` of a unit.
pub(crate) fn memory_high(bytes: u64) -> String {
    format!("MemoryHigh={}M", mib(bytes).max(1))
}

fn place(place: &str, lines: Vec<String>) -> PasteLine {
    PasteLine { reader: PasteReader::Place(place.into()), lines }
}

/// The settings of a zram, each with the word before its place: two ways to have it, and what it needs of the kernel.
pub fn zram(device: &DeviceAnswer) -> Vec<(&'static str, PasteLine)> {
    let Some(plan) = device.sizes.first().and_then(|size| size.zram.as_ref()?.plan.as_ref()) else {
        return Vec::new();
    };
    let ZramPlan { disk_bytes, algorithm, limit_bytes, .. } = plan;
    let (size, limit) = (mib(*disk_bytes), mib(*limit_bytes));
    let mut all = vec![
        (
            "",
            place(
                "/etc/systemd/zram-generator.conf",
                vec![
                    "[zram0]".into(),
                    format!("zram-size = {size}"),
                    format!("compression-algorithm = {algorithm}"),
                    format!("zram-resident-limit = {limit}"),
                ],
            ),
        ),
        ("or ", place("/etc/default/zramswap", vec![format!("ALGO={algorithm} SIZE={size} PRIORITY=100")])),
        (
            "",
            place(
                "/etc/sysctl.d/60-zram.conf",
                vec!["vm.page-cluster = 0".into(), format!("vm.swappiness = {}", device.swappiness)],
            ),
        ),
    ];
    let disks = device.seen.swaps.iter().map(|(name, ..)| name.as_str()).filter(|name| !name.starts_with("/dev/zram"));
    let disks: Vec<&str> = disks.collect();
    if !disks.is_empty() {
        let percent = (100 * limit_bytes).div_ceil(device.seen.memory.total_bytes.max(1)).clamp(1, 50);
        let lines =
            vec![format!("zswap.enabled=1 zswap.compressor={algorithm}"), format!("zswap.max_pool_percent={percent}")];
        all.push(("or ", place(&format!("zswap before {}, in the kernel's line:", disks.join(", ")), lines)));
    }
    all
}

/// A zram's settings with their heading.
pub(crate) fn zram_lines(device: &DeviceAnswer) -> String {
    let all = zram(device);
    if all.is_empty() {
        return String::new();
    }
    let heading = match device.sizes[0].flash.out_bytes {
        0 => "If it is to have a zram all the same, for what was unused for a minute:",
        _ => "Lines to paste, for this RAM:",
    };
    format!("{heading}\n{}", all.iter().map(|(before, line)| line.block(before)).collect::<String>())
}

/// A killer's settings by their places, and its commands.
pub fn killer(killer: &Killer) -> (Vec<PasteLine>, Vec<String>) {
    let mut files: Vec<PasteLine> = Vec::new();
    let (shell, settings): (Vec<_>, Vec<_>) = killer.settings.iter().partition(|(place, _)| *place == "sudo");
    for (at, setting) in settings {
        match files.iter_mut().find(|file| file.reader.name() == *at) {
            Some(file) => file.lines.push(setting.clone()),
            None if at.contains("oomd.conf") => files.push(place(at, vec!["[OOM]".into(), setting.clone()])),
            None => files.push(place(at, vec![setting.clone()])),
        }
    }
    (files, shell.iter().map(|(_, command)| format!("sudo {command}")).collect())
}

/// Settings for the programs that kill when memory runs out: those of this machine, or all; each with its reason.
pub(crate) fn thresholds(killers: &[Killer], all: bool) -> String {
    let shown: Vec<&Killer> = killers.iter().filter(|killer| all || killer.present).collect();
    if shown.is_empty() && !killers.is_empty() {
        return "Nothing here kills but the kernel; for others: coldframe device --killers.\n".into();
    }
    let mut text = String::new();
    for one in shown {
        let kept = if one.settings.is_empty() { "; its defaults stay" } else { "" };
        text += &paragraph(&format!("{}: {}{kept}.", one.name, one.reason), 2);
        let (files, commands) = killer(one);
        text += &files.iter().map(|file| file.block("")).collect::<String>();
        for line in commands {
            text += &(wrap("  ", &line, 4, 78).join(" \\\n") + "\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use coldframe_answer::machine::killers::{killers, OrdinaryWork};

    use super::*;

    fn work(sleepers: &[&str]) -> OrdinaryWork {
        OrdinaryWork {
            ram_bytes: 1 << 30,
            needed_bytes: Some(900 << 20),
            swap_bytes: 1 << 29,
            swap_fill: 0.8,
            waits: Some(0.02),
            sleepers: sleepers.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn this_machines_killers_are_shown_or_all_and_each_line_fits() {
        let work = work(&[]);
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

    #[test]
    fn a_settings_line_is_one_setting_and_a_command_is_whole() {
        let (mut files, mut commands) = (Vec::new(), Vec::new());
        for one in killers(&work(&["a@b.service"]), &[]) {
            let (settings, shell) = killer(&one);
            files.extend(settings);
            commands.extend(shell);
        }
        let section = |line: &String| line.starts_with('[') && line.ends_with(']');
        let setting = |line: &String| line.split_once(['=', ':']).is_some_and(|(key, _)| !key.trim().contains(' '));
        for file in &files {
            assert!(file.lines.iter().all(|line| section(line) || setting(line)), "{file:?}");
            assert_eq!(file.lines.iter().filter(|line| section(line)).count(), usize::from(section(&file.lines[0])));
        }
        assert_eq!((files.len(), commands.len()), (4, 4));
        let systemctl = |line: &String| shlex::split(line).filter(|words| words[..2] == ["sudo", "systemctl"]);
        let whole = |line: &String| {
            systemctl(line).is_some_and(|words| words[2] == "set-property" || words[2..] == ["daemon-reload"])
        };
        assert!(commands.iter().all(whole), "{commands:?}");
    }

    #[test]
    fn docker_and_compose_get_no_size_that_docker_refuses_and_no_reservation_above_its_limit() {
        for (enough, hard) in [(Some(1), 1), (Some(5), 9), (Some(18), 27), (None, 2)] {
            let all = units(enough, hard);
            let sizes: Vec<u64> = all[0].lines[0].split([' ', 'm']).filter_map(|word| word.parse().ok()).collect();
            assert!(sizes.iter().all(|mib| *mib >= DOCKER_LEAST) && sizes.is_sorted_by(|a, b| a >= b), "{all:?}");
            assert_eq!(all[3].lines[0], format!("MemoryMax={hard}M"));
        }
    }
}
