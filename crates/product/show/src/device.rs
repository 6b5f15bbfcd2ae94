//! A device's answer in words: in a sentence, then what it is from, less RAM with zram and with swap on the flash, who
//! has unused memory, and at the end the lines to paste and the sentence again.

use coldframe_answer::device::trial::Counted;
use coldframe_answer::device::{Advice, DeviceAnswer, Life, RamSize, RamVerdict, Swap, ZramTrial, DAY};
use coldframe_sheet::quantity::{human_count, human_seconds, human_size, things};

use crate::paste::park;
use crate::paste::settings::{memory_high, thresholds, zram_lines};
use crate::table::styled;
use crate::text::paragraph;

/// Owners with less unused memory are not worth a line, and so many are.
const UNUSED_LEAST: u64 = 4 << 20;
const OWNERS: usize = 4;
/// Lines of a screen.
const SCREEN: usize = 40;
/// Less watching says nothing of a day.
const HOUR: f64 = 3600.0;
const MINUTE_MS: f64 = 60_000.0;

/// All of it on a screen. `all_killers`: also for programs that this machine does not have; `more`: lines that come
/// after it.
pub fn words(device: &DeviceAnswer, all_killers: bool, more: usize) -> String {
    let sentence = sentence(device);
    let notes = device.notes.iter().map(|note| paragraph(&format!("- {note}."), 2)).collect();
    let parts = [
        // With a trial, the screen has no room for an empty line.
        ("", paragraph(&sentence, 0) + if more == 0 { "\n" } else { "" }),
        ("what it needed", watched(device) + &needed(device)),
        ("sizes", format!("{}\n", sizes(device))),
        ("the disk", disk(device)),
        ("other systems' defaults", default_swaps(device)),
        ("owners", owners(device)),
        ("notes", notes),
        ("", zram_lines(device)),
        ("swappiness", swappiness(device)),
        ("", thresholds(&device.killers, all_killers)),
        ("", paragraph(&format!("In short: {sentence}"), 0)),
    ];
    let rows = |name: &str| -> usize {
        parts.iter().filter(|(other, _)| *other == name).map(|(_, text)| text.lines().count()).sum()
    };
    // The line that names what is left out may be two.
    let mut left = SCREEN.saturating_sub(rows("") + more + 2);
    let mut left_out = Vec::new();
    for name in ["sizes", "the disk", "swappiness", "other systems' defaults", "owners", "what it needed", "notes"] {
        match left.checked_sub(rows(name)) {
            Some(rest) => left = rest,
            None => left_out.push(name),
        }
    }
    let [shown @ .., short] = parts.each_ref();
    let shown = shown.iter().filter(|(name, _)| !left_out.contains(name));
    let mut text: String = shown.map(|(_, text)| text.as_str()).collect();
    if !left_out.is_empty() {
        text += &paragraph(&format!("In --format json: {}.", left_out.join(", ")), 2);
    }
    text + &short.1
}

/// What the device needs, whether that is a zram, and the least RAM that was seen to do.
fn sentence(device: &DeviceAnswer) -> String {
    let (size, here) = (human_size, &device.sizes[0]);
    let zram = |swap: &Swap| format!("{} of zram", size(swap.plan.as_ref().map_or(0, |plan| plan.disk_bytes)));
    let needs = device.needed_at_most_bytes.map_or_else(
        || format!("What it needs of {} was not seen", size(here.ram_bytes)),
        |needed| format!("Needs {} of {}", size(needed), size(here.ram_bytes)),
    );
    let swap = match &here.zram {
        _ if device.needed_at_most_bytes.is_none() => "whether it needs a zram was not seen".into(),
        _ if here.flash.out_bytes == 0 => {
            let without = device.sizes[1..].iter().find(|size| size.flash.out_bytes == 0);
            let down_to = without.map_or(String::new(), |least| format!(", nor in {}", size(least.ram_bytes)));
            format!("no zram is needed{down_to}")
        }
        None => "which zram it needs was not seen".into(),
        Some(swap) => match swap.verdict {
            RamVerdict::Fits | RamVerdict::MayWait => format!("with {} it waits {}", zram(swap), waiting(swap)),
            RamVerdict::TooSmall => "that is too little with any zram".into(),
            RamVerdict::NotSeen => format!("with {} how long it waits was not seen", zram(swap)),
        },
    };
    let fits = |size: &RamSize| size.zram.clone().filter(|zram| zram.out_bytes > 0 && zram.fits);
    let less = device.sizes[1..].iter().rev().find_map(|less| fits(less).map(|swap| (less.ram_bytes, swap)));
    let less = less.map_or("less was not seen to do".into(), |(ram, swap)| {
        format!("in {} with {} it would wait {}", size(ram), zram(&swap), waiting(&swap))
    });
    format!("{needs}; {swap}; {less}.")
}

/// How long, in a sentence.
fn waiting(swap: &Swap) -> String {
    let ms = waits(swap.stall);
    match ms.strip_prefix("< ") {
        Some(most) => format!("less than {most} ms a minute"),
        None => format!("{} ms a minute", ms.replace('-', " to ")),
    }
}

fn watched(device: &DeviceAnswer) -> String {
    let seen = &device.seen;
    let watch_share = 100.0 * seen.own_seconds / seen.seconds.max(1e-9);
    let time = human_seconds(seen.seconds);
    paragraph(
        &format!(
            "Watched for {time}: {}, {} at their page tables, {watch_share:.1} % of a processor.",
            things(seen.processes, "process"),
            things(seen.reads, "look")
        ),
        0,
    )
}

fn needed(device: &DeviceAnswer) -> String {
    let size = human_size;
    let windows = &device.seen.windows;
    let window = windows.iter().map(|window| window.seconds).sum::<f64>() / windows.len().max(1) as f64;
    let mut words = device.needed_bytes.map_or(String::new(), |[half, most_of_it, _]| {
        let (half, most_of_it, window) = (size(half), size(most_of_it), human_seconds(window));
        format!("RAM that was needed: in windows of {window} {half} half of the time, {most_of_it} for 95 % of it. ")
    });
    words += &format!(
        "The kernel, shared memory and its reserve take {}, mapped files {}.",
        size(device.fixed_bytes + device.seen.memory.reserve_bytes),
        size(device.files_bytes)
    );
    let mut text = paragraph(&words, 0);
    let cold: Vec<_> =
        device.cold.iter().map(|(age, bytes)| format!("{} unused for {}", size(*bytes), human_seconds(*age))).collect();
    if !cold.is_empty() {
        let words =
            format!("What could leave, of {} of the programs' own: {}.", size(device.own_bytes), cold.join(", "));
        text += &paragraph(&words, 0);
    }
    let pages = &device.seen.pages;
    if let (Some(lz4), Some(zstd)) = (pages.share(&pages.lz4), pages.share(&pages.zstd)) {
        let words = format!(
            "In zram a page takes {:.0} % of its size by zstd, {:.0} % by lz4 ({} tried, {:.0} % do not shrink).",
            100.0 * zstd,
            100.0 * lz4,
            things(pages.pages, "page"),
            100.0 * pages.lz4.incompressible as f64 / pages.pages as f64,
        );
        text += &paragraph(&words, 0);
    }
    text
}

fn sizes(device: &DeviceAnswer) -> String {
    let long = device.seen.seconds >= HOUR;
    let row = |ram: u64, swap: &Swap| {
        let plan = swap.plan.as_ref();
        let kind = plan.map_or("flash".into(), |plan| format!("{} {}", human_size(plan.disk_bytes), plan.algorithm));
        let low = waits((swap.stall.0, Some(swap.stall.0)));
        let waits = match swap.verdict {
            RamVerdict::Fits | RamVerdict::MayWait => waits(swap.stall),
            RamVerdict::TooSmall => "too small".into(),
            RamVerdict::NotSeen if low != "0" => format!("not seen, > {low}"),
            RamVerdict::NotSeen => "not seen".into(),
        };
        let known = matches!(swap.verdict, RamVerdict::Fits | RamVerdict::MayWait);
        let written = (known && plan.is_none()).then(|| range(swap.written_a_day.0, swap.written_a_day.2, rate(long)));
        let life = if long && (known || plan.is_some()) { years(swap.life) } else { "-".into() };
        vec![human_size(ram), kind, human_size(swap.out_bytes), waits, written.unwrap_or("-".into()), life]
    };
    let rows = |size: &RamSize| match (&size.zram, size.flash.out_bytes) {
        (_, 0) => vec![[human_size(size.ram_bytes), "none is needed".into(), "-".into(), "0".into()]
            .into_iter()
            .chain(["-".into(), if long { years(device.life) } else { "-".into() }])
            .collect()],
        (zram, _) => {
            zram.iter().chain([&size.flash]).map(|swap| row(size.ram_bytes, swap)).collect::<Vec<Vec<String>>>()
        }
    };
    // With no swap, and none that is needed, the first row says both.
    let same = device.seen.swaps.is_empty() && device.sizes[0].flash.out_bytes == 0;
    let sizes = device.sizes.iter().skip(usize::from(same));
    let rows = std::iter::once(now(device)).chain(sizes.flat_map(rows)).collect();
    let to_flash = if long { "flash/day" } else { "flash, MB/s" };
    styled(&["RAM", "zram, or flash", "out", "waits, ms/min", to_flash, "years"], rows, 2).to_string()
}

/// The machine as it is: its swap, and what was counted.
fn now(device: &DeviceAnswer) -> Vec<String> {
    let seen = &device.seen;
    let (long, seconds) = (seen.seconds >= HOUR, seen.seconds.max(1e-9));
    let sum = |zram: bool| {
        let areas = seen.swaps.iter().filter(|(name, ..)| name.starts_with("/dev/zram") == zram);
        areas.map(|(_, size, _)| size).sum::<u64>()
    };
    let swap = match (sum(true), sum(false)) {
        (0, 0) => "no swap".into(),
        (0, disk) => format!("{} disk", human_size(disk)),
        (zram, disk) => format!("{} zram{}", human_size(zram), if disk > 0 { "+disk" } else { "" }),
    };
    let used: u64 = seen.swaps.iter().map(|(_, _, used)| used).sum();
    let out = if used == 0 { "-".into() } else { human_size(used) };
    let waits = seen.traffic.waited_us.map_or("not counted".into(), |us| format!("{:.0}", us as f64 * 0.06 / seconds));
    let years = if long { years(device.life) } else { "-".into() };
    vec![human_size(seen.memory.total_bytes), format!("now: {swap}"), out, waits, "-".into(), years]
}

/// The disk, and how long it lives.
fn disk(device: &DeviceAnswer) -> String {
    let (Some(disk), Some(written)) = (&device.disk, device.written_a_day) else { return String::new() };
    let used = match disk.used_percent {
        Some([low, high]) if low == high => format!("; its own counter: {low} % of its life is used"),
        Some([low, high]) => format!("; its own counter: {low} to {high} % of its life is used"),
        None => String::new(),
    };
    let long = device.seen.seconds >= HOUR;
    let life = match device.life.1 {
        _ if !long => "; an hour of watching (--for 1h) says how many years it lives".into(),
        Some(_) => format!("; it is worn after at most {} years of that", years(device.life)),
        None => String::new(),
    };
    let (size, written) = (human_size(disk.size_bytes), rate(long)(written));
    let per = if long { "a day" } else { "MB/s" };
    let mut text =
        paragraph(&format!("{}, {size}, is written {written} {per}, without swap{life}{used}.", disk.name), 0);
    let kinds = device.life_by_kind.iter().map(|kind| {
        let ([low, high], life) = (kind.cycles, years((Some(kind.years[0]), Some(kind.years[1]))));
        format!("{} ({low} to {high} erases) {life}", kind.kind)
    });
    let kinds: Vec<_> = kinds.collect();
    if long && !kinds.is_empty() {
        let words = "Years by kind of flash, ranges of the kind, not of this device:";
        text += &paragraph(&format!("{words} {}.", kinds.join(", ")), 0);
    }
    let joules = device.sizes.iter().filter_map(|size| {
        Some(format!("{} with {}", human_count(size.flash.joules_a_day? as u64), human_size(size.ram_bytes)))
    });
    let joules: Vec<_> = joules.filter(|_| long).collect();
    if !joules.is_empty() {
        text += &paragraph(&format!("Joules of the flash a day for swap: {}.", joules.join(", ")), 0);
    }
    text
}

/// What other systems would make for this RAM.
fn default_swaps(device: &DeviceAnswer) -> String {
    let swaps = device.defaults.iter().map(|swap| {
        let kind = if swap.zram { "" } else { " on disk" };
        format!("{} {}{kind}", swap.system, human_size(swap.bytes))
    });
    let swaps: Vec<_> = swaps.collect();
    let here = device.seen.system.as_str();
    let here = if here.is_empty() { String::new() } else { format!("This is {here}. ") };
    paragraph(&format!("{here}Zram by default for this RAM: {}.", swaps.join(", ")), 0)
}

/// Bytes a day: as a size, or as MB a second.
fn rate(long: bool) -> fn(f64) -> String {
    let a_second = |bytes: f64| match bytes / DAY / 1e6 {
        rate if rate > 0.0 && rate < 0.005 => "0.01".into(),
        rate => format!("{rate:.2}"),
    };
    if long {
        human_bytes
    } else {
        a_second
    }
}

fn human_bytes(bytes: f64) -> String {
    human_size(bytes as u64)
}

/// From and to; the unit is that of the latter, if both have the same.
fn range(low: f64, high: Option<f64>, show: fn(f64) -> String) -> String {
    let Some(to) = high.map(show) else { return format!("> {}", show(low)) };
    match (show(low), to.rsplit_once(' ')) {
        (from, _) if from == to => to,
        _ if low <= 0.0 => format!("< {to}"),
        (from, Some((_, unit))) => format!("{}-{to}", from.strip_suffix(unit).unwrap_or(&from).trim_end()),
        (from, None) => format!("{from}-{to}"),
    }
}

/// Milliseconds of a minute for which some process waits.
fn waits((low, high): (f64, Option<f64>)) -> String {
    // Two digits are more than is known.
    let ms = |part: f64| match (MINUTE_MS * part.min(1.0)).round() {
        ms if ms >= 1000.0 => format!("{}", (ms / 100.0).round() * 100.0),
        ms if ms >= 100.0 => format!("{}", (ms / 10.0).round() * 10.0),
        ms => format!("{ms}"),
    };
    range(if ms(low) == "0" { 0.0 } else { low }, high, ms)
}

/// Years, at least and at most.
fn years((low, high): Life) -> String {
    let show = |years: f64| match years {
        years if years >= 100.0 => "> 100".into(),
        years if years >= 10.0 => format!("{years:.0}"),
        years => format!("{years:.1}"),
    };
    match (low, high) {
        (_, Some(high)) if high >= 100.0 && low.is_none_or(|low| low >= 100.0) => show(high),
        (Some(low), Some(high)) => range(low, Some(high), show),
        (None, Some(high)) => format!("< {}", show(high)),
        _ => "-".into(),
    }
}

fn owners(device: &DeviceAnswer) -> String {
    let kept = device.seen.owners.iter().zip(&device.advice).filter(|(owner, _)| owner.cold_bytes >= UNUSED_LEAST);
    let kept: Vec<_> = kept.take(OWNERS).collect();
    let rows: Vec<_> = kept
        .iter()
        .map(|(owner, advice)| {
            let advice = match advice {
                Advice::MemoryHigh(bytes) => memory_high(*bytes),
                Advice::Park(_) => "be stopped: see below".into(),
                Advice::Works => "nothing: it works".into(),
                Advice::Slept => "nothing: it slept".into(),
                Advice::OneOfMany => "nothing: several of a name".into(),
                Advice::NoUnitFile => "nothing: no unit file".into(),
                Advice::NotSeen => "not seen: whether it works".into(),
            };
            let name =
                if owner.processes > 1 { format!("{} ({})", owner.name, owner.processes) } else { owner.name.clone() };
            vec![name, advice, human_size(owner.own_bytes), human_size(owner.cold_bytes)]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let time = device.cold.last().map_or(0.0, |(age, _)| *age);
    let unused = format!("unused for {}", human_seconds(time));
    let line = |advice: &Advice| match advice {
        Advice::Park(process) => park(*process),
        _ => String::new(),
    };
    let lines: String = kept.iter().map(|(_, advice)| line(advice)).collect();
    format!("{}\n{lines}", styled(&["who", "could have", "own", &unused], rows, 2))
}

/// What swappiness is, for who has not met it.
fn swappiness(device: &DeviceAnswer) -> String {
    let why = match device.swappiness {
        100 => "100 is even".into(),
        more => format!("100 is even, {more} prefers zram, here faster than the disk"),
    };
    let why = format!("swappiness: to make room, are programs moved to zram, or files dropped and read again? {why}.");
    paragraph(&why, 0)
}

/// What a trial has shown.
pub fn trial(trial: &ZramTrial) -> String {
    let (zram, plan, [out, back]) = (&trial.zram, &trial.plan, trial.own_pages);
    let each = |number: &dyn Fn(&Counted) -> Option<f64>| {
        [&trial.before, &trial.after].map(|phase| number(phase).map(|count| count / phase.seconds.max(1e-9)))
    };
    let row = |name: &str, [before, after]: [Option<f64>; 2]| {
        let shown = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.1}"));
        vec![name.to_string(), shown(before), shown(after)]
    };
    let own = |pages: u64| [None, Some(pages as f64 / trial.after.seconds.max(1e-9))];
    let mut other = each(&|phase| Some(phase.traffic.swapped_out as f64));
    other[1] = other[1].map(|all| (all - out as f64 / trial.after.seconds.max(1e-9)).max(0.0));
    let rows = vec![
        row("pages to this zram, a second", own(out)),
        row("pages back from it, a second", own(back)),
        row("pages to other swap, a second", other),
        row("pages of files back, a second", each(&|phase| Some(phase.traffic.file_refaults as f64))),
        row("waits, ms a minute", each(&|phase| phase.traffic.waited_us.map(|us| us as f64 * 0.06))),
        row("to disks, MB/s", each(&|phase| Some(phase.written_bytes as f64 / 1e6))),
    ];
    let killed = trial.after.traffic.killed;
    let share = match zram.data_bytes {
        0 => "the zram stayed empty".into(),
        data => format!(
            "the zram held {} in {}, {:.0} % of their size ({:.0} % expected)",
            human_size(data),
            human_size(zram.ram_bytes),
            100.0 * zram.ram_bytes as f64 / data as f64,
            100.0 * plan.share
        ),
    };
    let size = human_size(plan.disk_bytes);
    let (before, after) = (human_seconds(trial.before.seconds), human_seconds(trial.after.seconds));
    let words = match trial.says_nothing {
        true => format!(
            "This trial says nothing: {} went to its zram of {size}, since RAM was not short. Try it when the device \
             has more to do.",
            human_size(trial.own_bytes())
        ),
        false => format!(
            "Trial: {size} of zram by {}, {before} before and {after} with it; {share}; {} killed.",
            plan.algorithm,
            things(killed, "process")
        ),
    };
    let table = styled(&["", "before", "with zram"], rows, 1);
    let table = if trial.says_nothing { String::new() } else { format!("{table}\n") };
    format!("\n{}{table}All settings are as before.\n", paragraph(&words, 0))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use coldframe_answer::device::counts::Traffic;
    use coldframe_answer::device::{read, Owner, Seen, ZramPlan};
    use coldframe_sheet::sheet;

    use super::*;

    const GIB: u64 = 1 << 30;

    /// A Debian with five programs, in an emulated machine.
    fn debian() -> Seen {
        read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/traces/debian.device.json")).unwrap()
    }

    /// The same work on other machines: the reader of a long watch, of a large machine, of a full small one, of one in
    /// which nothing could be read, and of a system with its own zram.
    fn machines() -> [(&'static str, Seen); 6] {
        let with = |change: fn(&mut Seen)| {
            let mut seen = debian();
            change(&mut seen);
            seen
        };
        [
            ("as recorded", debian()),
            ("a day", with(|seen| (seen.seconds, seen.killers) = (86_400.0, vec!["systemd-oomd".into()]))),
            ("23.5 GiB", with(|seen| seen.memory.total_bytes = 47 * GIB / 2)),
            ("512 MiB", with(|seen| seen.memory.total_bytes = GIB / 2)),
            ("nothing seen", Seen::default()),
            (
                "own zram",
                with(|seen| {
                    seen.system = "Fedora Linux 42".into();
                    seen.swaps = vec![("/dev/zram0".into(), 965 << 20, 10 << 20), ("/swap".into(), GIB, 0)];
                    seen.traffic.waited_us = Some(1_200_000);
                }),
            ),
        ]
    }

    fn answer(seen: Seen) -> DeviceAnswer {
        DeviceAnswer::new(seen, None)
    }

    #[test]
    fn the_first_sentence_is_the_answer_on_each_machine_and_the_last_one_again() {
        let sentences: Vec<_> = machines().map(|(name, seen)| (name, sentence(&answer(seen)))).into();
        let expected = [
            ("as recorded", "Needs 278 MiB of 965 MiB; no zram is needed;"),
            ("23.5 GiB", "Needs 278 MiB of 23.5 GiB; no zram is needed, nor in 1 GiB; in 512 MiB with 240 MiB of zram"),
            ("512 MiB", "Needs 278 MiB of 512 MiB; with 240 MiB of zram it waits "),
            ("nothing seen", "What it needs of 0 KiB was not seen; whether it needs a zram was not seen;"),
        ];
        for (name, words) in expected {
            let (_, sentence) = sentences.iter().find(|(other, _)| *other == name).unwrap();
            assert!(sentence.starts_with(words), "{name}: {sentence}");
        }
        for (name, seen) in machines() {
            let text = words(&answer(seen), false, 0);
            let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let sentence = &sentences.iter().find(|(other, _)| *other == name).unwrap().1;
            assert!(one_line.starts_with(sentence) && one_line.ends_with(&format!("In short: {sentence}")), "{text}");
        }
    }

    #[test]
    fn a_screen_has_forty_lines_of_eighty_columns_also_with_all_killers_and_a_trial() {
        for (name, mut seen) in machines() {
            seen.owners = (0..9)
                .map(|i| Owner {
                    name: format!("service-with-a-name-{i}.service"),
                    unit: true,
                    own_bytes: GIB,
                    cold_bytes: GIB / 2,
                    busy: Some(if i == 1 { 0.0 } else { 0.5 }),
                    ..Owner::default()
                })
                .collect();
            let device = answer(seen);
            for (all, more) in [(false, 0), (true, 0), (false, 15)] {
                let text = words(&device, all, more);
                assert!(
                    text.lines().count() + more <= SCREEN,
                    "{name}, {all}, {more}: {}\n{text}",
                    text.lines().count()
                );
                assert!(text.lines().all(|line| line.chars().count() <= 80), "{name}: {text}");
            }
        }
    }

    #[test]
    fn below_an_hour_there_are_no_sums_of_a_day_and_from_then_on_years_by_kind() {
        let text = |seen: Seen| words(&answer(seen), false, 0);
        let short = text(debian());
        assert!(short.contains("vda, 4 GiB, is written 0.40 MB/s, without swap; an hour of watching"), "{short}");
        assert!(!short.contains("day") && !short.contains("years |") && !short.contains("erases"), "{short}");
        let long = text(Seen { seconds: 2.0 * HOUR, ..debian() });
        assert!(long.contains("is written 552 MiB a day") && long.contains("flash/day"), "{long}");
        let joined = long.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            joined.contains("not of this device: pSLC (30000 to 100000 erases) > 100, TLC (1000 to 3000 erases)"),
            "{long}"
        );
        let sheet = sheet::find("NVMe-980").unwrap();
        let known = words(&DeviceAnswer::new(Seen { seconds: 2.0 * HOUR, ..debian() }, Some(&sheet)), false, 0);
        assert!(!known.contains("TLC") && known.contains("it is worn after at most"), "{known}");
    }

    #[test]
    fn the_row_as_it_is_has_its_own_swap_and_what_was_counted() {
        let rows: Vec<_> = machines().map(|(name, seen)| (name, now(&answer(seen)).join("|"))).into();
        assert_eq!(rows[0].1, "965 MiB|now: no swap|-|0|-|-");
        // 1.2 s of 120 s.
        assert_eq!(rows[5].1, "965 MiB|now: 965 MiB zram+disk|10 MiB|599|-|-");
        assert_eq!(rows[4].1, "0 KiB|now: no swap|-|not counted|-|-");
        let defaults = default_swaps(&answer(machines()[5].1.clone()));
        assert!(defaults.starts_with("This is Fedora Linux 42.") && defaults.contains("Armbian 483 MiB"), "{defaults}");
    }

    #[test]
    fn not_seen_is_not_too_small_in_the_table() {
        let table = sizes(&answer(debian()));
        let row = |start: &str| table.lines().filter(|line| line.contains(start)).collect::<Vec<_>>().join("\n");
        assert!(row("256 MiB").contains("not seen, > ") && !row("256 MiB").contains("too small"), "{table}");
        assert!(row("128 MiB").contains("too small"), "{table}");
    }

    #[test]
    fn what_could_be_done_is_said_of_each_and_no_limit_is_for_what_slept() {
        let owner = |name: &str, unit, processes, busy| {
            let (own_bytes, cold_bytes, process) = (100 << 20, 60 << 20, 7);
            Owner { name: name.into(), unit, processes, process, own_bytes, cold_bytes, busy, ..Owner::default() }
        };
        let text = |one: Owner| owners(&answer(Seen { owners: vec![one], ..debian() }));
        for (one, words) in [
            (owner("rustc", false, 1, Some(0.9)), "nothing: it works"),
            (owner("bash", false, 22, Some(0.0)), "nothing: several of a name"),
            (owner("editor", false, 1, Some(0.0)), "\n  sudo coldframe park 7\n"),
            (owner("cups.service", true, 1, Some(0.0)), "nothing: it slept"),
            (owner("cups.service", true, 1, Some(0.1)), "MemoryHigh=44M"),
            (owner("a-1.scope", true, 1, Some(0.1)), "nothing: no unit file"),
            (owner("cups.service", true, 1, None), "not seen"),
        ] {
            let shown = text(one.clone());
            assert!(shown.contains(words) && (words.starts_with("Mem") || !shown.contains("MemoryHigh")), "{shown}");
        }
    }

    fn tried(own_pages: [u64; 2], says_nothing: bool) -> ZramTrial {
        let phase = |swapped_out, seconds| Counted {
            seconds,
            traffic: Traffic { swapped_out, ..Traffic::default() },
            written_bytes: 0,
        };
        ZramTrial {
            schema_version: 1,
            version: "0",
            plan: ZramPlan { disk_bytes: GIB, algorithm: "lz4".into(), share: 0.2, limit_bytes: GIB / 4 },
            before: phase(1000, 10.0),
            after: phase(3000, 10.0),
            zram: coldframe_answer::device::counts::Zram::default(),
            own_pages,
            says_nothing,
        }
    }

    #[test]
    fn a_trial_compares_its_own_swap_and_says_when_it_says_nothing() {
        let empty = trial(&tried([1, 0], true));
        assert!(empty.contains("This trial says nothing: 4 KiB went to its zram of 1 GiB"), "{empty}");
        assert!(!empty.contains("with zram") && empty.contains("All settings are as before"), "{empty}");
        let full = trial(&tried([2900, 50], false));
        let row =
            |name: &str| full.lines().find(|line| line.contains(name)).unwrap().split_whitespace().collect::<Vec<_>>();
        assert_eq!(row("to this zram")[6..], ["-", "290.0"]);
        // Of 300 a second 290 were its own; the others' were 100 before.
        assert_eq!(row("to other swap")[6..], ["100.0", "10.0"]);
    }

    #[test]
    fn ranges_say_what_is_not_known() {
        assert_eq!((waits((0.0, Some(0.0))), waits((0.0, Some(0.03)))), ("0".into(), "< 1800".into()));
        assert_eq!((waits((0.01, Some(0.05))), waits((0.1, None))), ("600-3000".into(), "> 6000".into()));
        assert_eq!((years((Some(2.0), Some(3.5))), years((None, None))), ("2.0-3.5".into(), "-".into()));
        assert_eq!((years((Some(200.0), Some(300.0))), years((None, Some(4.0)))), ("> 100".into(), "< 4.0".into()));
        assert_eq!(
            (rate(false)(0.001 * 1e6 * DAY), rate(false)(0.0), rate(true)(1e6)),
            ("0.01".into(), "0.00".into(), "977 KiB".into())
        );
    }
}
