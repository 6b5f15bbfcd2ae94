//! How many at a time fit into so much RAM, in words: the sentence, the RAM of one, a line for each number.

use coldframe_answer::bench::jobs::counted::{HowManyFit, JobRuns, JobsEnd};
use coldframe_answer::NO_SWAP;
use coldframe_sheet::quantity::{human_seconds, human_size};

use crate::export::{names, Column, Exported};
use crate::table::styled;
use crate::text::paragraph;

/// Processors that others used, from which on times are doubted.
const OTHERS: f64 = 0.3;

/// All of it.
pub fn words(counted: &HowManyFit) -> String {
    let mut out = paragraph(&sentence(counted), 0);
    let largest = counted.largest.filter(|jobs| Some(*jobs) != counted.fastest);
    if let (Some(jobs), true) = (largest, counted.fastest.is_some()) {
        out += &paragraph(&format!("The largest that lives: {}.", counted.short(jobs)), 0);
    }
    out += &memory(counted).map_or(String::new(), |memory| paragraph(&memory, 0));
    out += &table(counted);
    if let Some(others) = counted.others.filter(|others| *others > OTHERS && counted.fastest.is_some()) {
        out += &paragraph(&format!("Other programs used {others:.1} processors meanwhile, so times vary."), 0);
    }
    out
}

/// The first sentence.
fn sentence(counted: &HowManyFit) -> String {
    let swap = if counted.swap == NO_SWAP { String::new() } else { format!(" with swap ({})", counted.swap) };
    let ram = format!("{}{swap}", human_size(counted.ram_bytes));
    let best = counted.fastest.or(counted.largest);
    let Some((jobs, best)) = best.and_then(|jobs| Some((jobs, counted.size(jobs)?))) else {
        let one = counted.dead().map_or("does not live".into(), |one| is(counted, one));
        return format!("{} {one} in {ram}; give more --ram.", counted.name(1));
    };
    let (name, each) = (counted.name(jobs), human_seconds(best.cost(counted.copies)));
    let mut text = match counted.served_seconds {
        Some(served) => {
            let verb = if counted.copies && jobs > 1 { "live" } else { "lives" };
            format!("{name} {verb} for {} in {ram}", human_seconds(served))
        }
        None if counted.copies => format!("{name} at a time: {each} for each in {ram}"),
        None => format!("{name}: {each} in {ram}"),
    };
    let next = counted.above(jobs).filter(|next| next.lives());
    let slower = next.map(|next| match next.is_slower(best, counted.copies) {
        true => format!("{} {} slower", counted.short(next.jobs), be(counted, next.jobs)),
        false => format!("{} {} no faster", counted.short(next.jobs), be(counted, next.jobs)),
    });
    let dead = counted.dead().map(|dead| format!("{} {}", counted.short(dead.jobs), is(counted, dead)));
    let more: Vec<String> = slower.into_iter().chain(dead).collect();
    text += &match (more.is_empty(), counted.dead()) {
        (true, _) => "; more was not run (--up-to)".into(),
        (false, None) => format!("; {}, more than {} was not run (--up-to)", more.join(", "), counted.up_to),
        (false, Some(_)) => format!("; {}", more.join(", ")),
    };
    text + "."
}

/// `is`, or of copies `are`.
fn be(counted: &HowManyFit, jobs: u32) -> &'static str {
    if counted.copies && jobs > 1 {
        "are"
    } else {
        "is"
    }
}

/// What became of a number that does not live.
fn is(counted: &HowManyFit, size: &JobRuns) -> String {
    match size.end {
        JobsEnd::Killed => format!("{} killed", be(counted, size.jobs)),
        JobsEnd::Failed => format!("ended with exit code {}", size.status),
        JobsEnd::Late => format!("took over {}", human_seconds(size.seconds)),
        JobsEnd::Lives => "lives".into(),
    }
}

/// What one takes, and each further one.
fn memory(counted: &HowManyFit) -> Option<String> {
    let one = counted.size(1).filter(|one| one.lives() && one.fixed_bytes > 0)?;
    let mut text = format!("{} takes {} beside files", counted.short(1), human_size(one.fixed_bytes));
    if let (Some(each), Some(shared)) = (counted.each_more_bytes, counted.shared_bytes) {
        let to = counted.short(counted.largest?);
        text += &match each {
            0 => format!(", and further ones up to {to} take no more"),
            each => format!(", and each more {} on average up to {to}", human_size(each)),
        };
        if shared > 0 && each > 0 {
            text += &format!(": {} are shared, or not in use at the same time", human_size(shared));
        }
    }
    Some(text + ".")
}

fn table(counted: &HowManyFit) -> String {
    let row = |size: &JobRuns| {
        let (shortest, longest) = size.range_seconds;
        let range = format!("{shortest:.2} to {longest:.2}");
        let size_of = |bytes| if bytes == 0 { "-".into() } else { human_size(bytes) };
        let what = match size.end {
            JobsEnd::Killed => "killed".into(),
            JobsEnd::Failed => format!("exit code {}", size.status),
            JobsEnd::Late => "too slow".into(),
            JobsEnd::Lives if Some(size.jobs) == counted.fastest => "* fastest".into(),
            JobsEnd::Lives => "lives".into(),
        };
        let timed = counted.served_seconds.is_none() && size.lives();
        vec![
            counted.short(size.jobs),
            if timed { format!("{:.2}", size.seconds) } else { "-".into() },
            if timed && size.runs > 1 { range } else { "-".into() },
            if timed && counted.copies { format!("{:.2}", size.cost(true)) } else { "-".into() },
            size_of(size.fixed_bytes),
            size_of(size.files_bytes),
            what,
        ]
    };
    let headings = ["", "s", "range, s", "s for each", "RAM", "files", ""];
    let rows = counted.sizes.iter().map(row).collect();
    format!("{}\n", styled(&headings, rows, 1))
}

/// The columns of the table.
const SIZES: [Column<JobRuns>; 6] = [
    (names("jobs", "n", "How many at a time"), |size| size.jobs.into()),
    (names("lives", "lives", "Whether they live"), |size| size.lives().into()),
    (names("seconds", "time", "Run time"), |size| size.lives().then_some(size.seconds).into()),
    (names("runs", "runs", "Runs"), |size| size.runs.into()),
    (names("fixed_bytes", "RAM", "Memory that cannot leave without swap"), |size| size.fixed_bytes.into()),
    (names("files_bytes", "files", "Files in the cache beside it"), |size| size.files_bytes.into()),
];

/// For `--export`.
pub fn exported(counted: &HowManyFit) -> Exported {
    Exported::new(&counted.program.join(" "), words(counted), &SIZES, &counted.sizes, counted)
}
