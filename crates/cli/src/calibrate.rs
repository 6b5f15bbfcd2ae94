//! `coldframe calibrate`: this machine as a device.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_core::Ps;
use coldframe_costs::Extent;
use coldframe_sheet::quantity;
use coldframe_sheet::sheet::kept;
use coldframe_sheet::Sheet;
use serde_json::{json, Map, Value};

use crate::failure::Failure;
use crate::here_sheet::{self, said};
use crate::{output, run};

/// Measure what paging costs on this machine, for `--device here`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe calibrate
  coldframe calibrate --show --format json
  coldframe calibrate --backing /mnt/flash
  sudo coldframe calibrate --swap zram --swap /var/tmp/new.swap
  coldframe-lab devices here

This takes about 8 seconds. A pager in this process meets each event some thousand times, as the pager of `coldframe \
run` would. The thread that touches the memory times each event. `best` and `worst` are the means of the best and of \
the worst tenth of stretches of accesses. Stretches in which other programs had the processor do not count. Still, \
measure while the machine has nothing else to do.

The kernel's swap is measured, too: this process pushes out memory of its own and touches it again. If no swap is on, \
--swap makes one for this time.

The numbers are kept as the sheet of the device `here`, in ~/.cache/coldframe/here.toml, each with its source. They \
hold for one processor, kernel and disk; if one of these changes, they are measured again.

Exit codes: 0 done; 4 this machine cannot page (see `coldframe doctor`); 5 the swap file cannot be used.")]
pub struct Args {
    /// Folder (or block device, whose content is lost) for the swap file [default: the folder for temporary files, or /var/tmp
    /// if that is in RAM].
    #[arg(long)]
    backing: Option<PathBuf>,
    /// Measure this swap, too: make it, and take it away again. As root. May repeat.
    #[arg(long, value_name = "zram|FILE", conflicts_with = "show")]
    swap: Vec<String>,
    /// Show the last measurement. Measure only if there is none for this processor, kernel and disk.
    #[arg(long)]
    show: bool,
    /// How to print it.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
    /// Measure for less than a second: for tests.
    #[arg(long, hide = true)]
    short: bool,
}

pub fn run(args: Args, quiet: bool) -> Result<ExitCode, Failure> {
    let backing = args.backing.unwrap_or_else(run::default_backing);
    let extent = if args.short { Extent::Short } else { Extent::Whole };
    let sheet = match args.show {
        true => here_sheet::sheet(&backing, extent, quiet)?,
        false => here_sheet::measured(&backing, extent, &args.swap, quiet)?.0,
    };
    let kept = kept::path();
    let text = match args.format.as_str() {
        "json" => output::json(&exact(&sheet, kept.as_deref())),
        _ => table(&sheet, kept.as_deref()),
    };
    output::write(None, &text)?;
    Ok(ExitCode::SUCCESS)
}

/// Each event, in a user's words.
const EVENTS: [(&str, &str); 15] = [
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
    ("zram_pack", "  such a page compressed by a recorder"),
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

fn table(sheet: &Sheet, kept: Option<&Path>) -> String {
    let machine = sheet.machine.as_ref();
    let of =
        |get: fn(&coldframe_sheet::sheet::machine::Machine) -> &String| machine.map(get).cloned().unwrap_or_default();
    let processors = machine.map_or(0, |m| m.processors);
    let mut text = format!("{}, {processors} CPUs, Linux {}\n", of(|m| &m.processor), of(|m| &m.kernel));
    text += &row("as the program waits for it", ["best", "mean", "worst"].map(Into::into));
    let live = values(&serde_json::to_value(&sheet.live).expect("a sheet is plain data"));
    for (key, words) in EVENTS.iter().filter(|(key, _)| live.contains_key(*key)) {
        text += &row(words, ["low", "mean", "high"].map(|part| shown(&live[*key][part])));
    }
    text += &row(&format!("disk {}", of(|m| &m.disk)), ["p50", "p99", "a page"].map(Into::into));
    let disk = values(&serde_json::to_value(&sheet.disk).expect("a sheet is plain data"));
    for (key, words) in REQUESTS.iter().filter(|(key, _)| disk.contains_key(*key)) {
        text += &row(words, ["p50", "p99", "per_page"].map(|part| shown(&disk[*key][part])));
    }
    let place = kept.map_or("kept by this process only".into(), |path| format!("kept in {}", path.display()));
    format!("{text}measured on {}, {place}\n", of(|m| &m.measured))
}

fn row(words: &str, [a, b, c]: [String; 3]) -> String {
    format!("{words:<44}{a:>10}{b:>10}{c:>10}\n")
}

fn shown(text: &Value) -> String {
    text.as_str().and_then(time).map_or_else(String::new, said)
}

fn time(text: &str) -> Option<Ps> {
    quantity::time(text).ok()
}

/// The values of a table of a sheet, without their sources and without unknown values.
fn values(table: &Value) -> Map<String, Value> {
    let known = table.as_object().into_iter().flatten().filter(|(_, entry)| !entry.is_null());
    known.map(|(key, entry)| (key.clone(), entry["value"].clone())).collect()
}

/// Everything in picoseconds.
fn exact(sheet: &Sheet, kept: Option<&Path>) -> Value {
    let value = serde_json::to_value(sheet).expect("a sheet is plain data");
    let ps = |part: &Value| part.as_str().and_then(time).map(|t| t.0);
    let table = |name: &str| -> Map<String, Value> {
        let numbers = |entry: Value| -> Value {
            entry.as_object().into_iter().flatten().map(|(part, text)| (part.clone(), json!(ps(text)))).collect()
        };
        values(&value[name]).into_iter().map(|(key, entry)| (key, numbers(entry))).collect()
    };
    json!({
        "schema_version": 1,
        "kept": kept,
        "machine": value["machine"],
        "live_ps": table("live"),
        "disk_ps": table("disk"),
    })
}
