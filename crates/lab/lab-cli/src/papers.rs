//! `coldframe-lab papers`: the papers' printed figures and ours.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_figures::figure::{number, percent, tally, Row};
use coldframe_figures::papers::{changed_predictions, plots, rows};
use coldframe_show::plot::stack;
use coldframe_show::table::styled;
use coldframe_show::text::wrap;

use crate::failure::Failure;
use crate::output;
use crate::progress::Line;
use crate::together;

/// Print a paper's figures next to ours.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe-lab papers
  coldframe-lab papers swl
  coldframe-lab papers ddb -o ddb.svg
  coldframe-lab papers sap --all
  coldframe-lab papers swl --format json | jq '.[] | select(.reached == false)'
  coldframe-lab papers all --format markdown > beside.md
  coldframe-lab papers --on sqlite.parquet --on mix.parquet --ram 50% -o combined.svg

The column `origin` says how our number came about: printed input, we put it in; identity, it follows from other \
printed numbers; fitted, free numbers were chosen to give it (below the table: which, and to how many figures); \
predicted, nothing of the row was used; not printed, the paper has no value. `distance` is ours less the paper's, and \
`rounding` what the printed digits alone leave open. `reached` is said of predictions and identities only: within \
rounding, or within a band that the paper states. A trivial rule stands beside ours where it does as well.

--on takes the parts of all five papers on traces of your own, each part alone and all that go together, on one \
device and with equal bytes of memory. It prints the fault time (all time not spent on references), the pages that the \
device loads, and the energy of the devices that hold the pages.")]
pub struct Args {
    /// A system whose paper prints figures (`coldframe-lab policies` lists them), or all.
    #[arg(default_value = "all")]
    paper: String,
    /// Instead: what the papers' parts bring for this trace, alone and together; may repeat.
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["paper", "all", "strict", "traces"])]
    on: Vec<PathBuf>,
    #[command(flatten)]
    machine: together::Machine,
    /// Print every row and curve, not only the paper's headlines.
    #[arg(long)]
    all: bool,
    /// How to print it; Markdown and JSON have every row.
    #[arg(long, value_parser = ["table", "markdown", "json"], default_value = "table")]
    format: String,
    /// Write the paper's curves, drawn from our figures, to this SVG file, beside the table.
    #[arg(short, value_name = "FILE.svg")]
    output: Option<PathBuf>,
    /// The folder with the shipped traces.
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Exit with 1 if a prediction is not where it stood when this program was built.
    #[arg(long)]
    strict: bool,
}

pub fn run(args: Args, quiet: bool) -> Result<ExitCode, Failure> {
    if let Some(path) = args.output.as_ref().filter(|path| path.extension().is_none_or(|suffix| suffix != "svg")) {
        return Err(Failure::usage(format!(
            "-o: `{}` does not end in .svg; the curves are drawn as SVG",
            path.display()
        )));
    }
    if !args.on.is_empty() {
        return together::run(&args.on, &args.machine, &args.format, args.output.as_deref(), quiet);
    }
    let traces = match &args.traces {
        Some(dir) => dir.clone(),
        None => shipped_traces()?,
    };
    let mut line = Line::new(quiet);
    let rows = rows(&args.paper, &traces, &mut |file| line.show(0, None, file))?;
    drop(line);
    let drawn = args.output.is_some() || args.all && args.format == "table";
    let curves = if drawn { plots(&args.paper, &traces)? } else { Vec::new() };
    if args.output.is_some() && curves.is_empty() {
        return Err(Failure::usage(format!("-o: nothing is drawn for `{}`; leave -o away", args.paper)));
    }
    if let Some(path) = &args.output {
        output::file(path, &stack(&curves.iter().map(|plot| plot.svg()).collect::<Vec<_>>()))?;
    }
    let words = || match args.all {
        false => headlines(&rows),
        true => curves.iter().fold(table(&rows), |text, plot| text + "\n" + &plot.text(64, 17)),
    };
    match args.format.as_str() {
        "markdown" => output::exact(None, &markdown(&rows))?,
        form => output::result(form, &rows, words)?,
    }
    let changed = if args.strict { changed_predictions(&rows) } else { Vec::new() };
    changed.iter().for_each(|row| eprintln!("not where it stood: {row}"));
    Ok(if changed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Beside an installed program, in the current folder, or in the source tree that the program was built from.
fn shipped_traces() -> Result<PathBuf, Failure> {
    let installed =
        std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.parent()?.join("share/coldframe/traces")));
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/traces");
    let places = [installed, Some("data/traces".into()), Some(built)];
    let folder_of_traces = places.iter().flatten().find(|dir| dir.is_dir());
    folder_of_traces.cloned().ok_or_else(|| {
        let looked: Vec<_> = places.iter().flatten().map(|p| p.display().to_string()).collect();
        Failure::usage(format!("the shipped traces are in none of {}; give --traces DIR", looked.join(", ")))
    })
}

const HEADINGS: [&str; 10] =
    ["item", "", "paper", "ours", "unit", "origin", "distance", "rounding", "reached", "trivial rule"];

fn cells(row: &Row) -> Vec<String> {
    let dash = || "-".to_string();
    let rounding = row.rounding_percent.map(|percent| format!("± {percent:.*} %", if percent < 0.1 { 3 } else { 1 }));
    let trivial = row.trivial.as_ref().map(|trivial| format!("{} {}", trivial.rule, percent(trivial.distance_percent)));
    vec![
        row.item.clone(),
        row.row.clone(),
        row.paper_value.map_or_else(dash, number),
        number(row.our_value),
        row.unit.to_string(),
        row.origin.word().into(),
        row.distance(),
        rounding.unwrap_or_else(dash),
        row.reached.map_or("-", |reached| if reached { "yes" } else { "no" }).into(),
        trivial.unwrap_or_else(dash),
    ]
}

/// Columns below which a table with every value would not fit.
const WIDE: usize = 140;

fn table(rows: &[Row]) -> String {
    let table = match output::width() {
        WIDE.. => styled(&HEADINGS, rows.iter().map(cells).collect(), 2).to_string() + "\n",
        _ => lines(rows.iter().map(|row| (format!("{}: {}", row.item, row.row), row))),
    };
    let notes: String = notes(rows).iter().map(|note| format!("{note}.\n")).collect();
    format!("{table}{}.\n{notes}", tally(rows))
}

/// A line for each row, under its name. Without 78 columns, the numbers stand below the name.
fn lines<'a>(named: impl Iterator<Item = (String, &'a Row)>) -> String {
    let room = output::width().min(78).saturating_sub(44);
    let room = if room < 24 { 0 } else { room };
    let line = |name: &str, [paper, ours, origin, distance]: [&str; 4]| {
        let mut names = wrap("", name, 2, if room > 0 { room } else { output::width() });
        let last = if room > 0 { names.pop().unwrap_or_default() } else { String::new() };
        names.push(format!("{last:<room$} {paper:>9} {ours:>9}  {origin:<13} {distance:>8}"));
        names.join("\n") + "\n"
    };
    let row = |(name, row): (String, &Row)| {
        let paper = row.paper_value.map_or_else(|| "-".into(), number);
        let name = if row.unit.is_empty() { name } else { format!("{name}, {}", row.unit) };
        line(&name, [&paper, &number(row.our_value), row.origin.word(), &row.distance()])
    };
    let head = line("", ["paper", "ours", "origin", "distance"]);
    head.trim_start_matches('\n').to_string() + &named.map(row).collect::<String>()
}

/// A page for each paper: its main claims, how our numbers came about, and how far they are.
fn headlines(rows: &[Row]) -> String {
    let pages = rows.chunk_by(|a, b| a.paper == b.paper).map(headline_page);
    pages.collect::<Vec<_>>().join("\n")
}

fn headline_page(rows: &[Row]) -> String {
    let claimed: Vec<_> = rows.iter().filter_map(|row| Some((row.claim?, row))).collect();
    let mut out = format!("{}\n", rows[0].paper) + &lines(claimed.iter().map(|(claim, row)| (claim.to_string(), *row)));
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (claim, row) in &claimed {
        if let Some(trivial) = &row.trivial {
            out += &format!("{claim}: {} does as well, {}.\n", trivial.rule, percent(trivial.distance_percent));
        }
        // The first clause is the reason; counts follow.
        let why = row.note.split("; ").next().unwrap_or_default();
        match reasons.iter_mut().find(|one| one.0 == why) {
            _ if row.reached != Some(false) => {}
            Some(one) => one.1.push(claim),
            None => reasons.push((why, vec![claim])),
        }
    }
    let lines = reasons.iter().map(|(why, claims)| format!("{}: {why}.\n", claims.join("; ")));
    let lines = lines.chain(fitted(rows).into_iter().map(|line| format!("{line}.\n")));
    out + &lines.collect::<String>() + &format!("{}; --all shows them and why.\n", tally(rows))
}

/// The table and the notes for a page of Markdown.
fn markdown(rows: &[Row]) -> String {
    let line = |cells: Vec<String>| {
        let escaped: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", escaped.join(" | "))
    };
    let head = line(HEADINGS.map(String::from).to_vec()) + "|---|---|--:|--:|---|---|--:|--:|---|---|\n";
    let body: String = rows.iter().map(|row| line(cells(row))).collect();
    let notes: String = notes(rows).iter().map(|note| format!("- {note}.\n")).collect();
    format!("{head}{body}\n{}.\n\n{notes}", tally(rows))
}

/// What was fitted, to how many figures, for each set of free numbers.
fn fitted(rows: &[Row]) -> Vec<String> {
    let mut sets: Vec<&String> = rows.iter().filter_map(|row| row.fitted.as_ref()).collect();
    sets.dedup();
    sets.iter().map(|set| format!("Fitted: {set}")).collect()
}

/// What was fitted, and the notes of rows. Rows of one item with the same note are joined, in the order of their first.
fn notes(rows: &[Row]) -> Vec<String> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in rows.iter().filter(|row| !row.note.is_empty()) {
        match groups.iter_mut().find(|group| group[0].item == row.item && group[0].note == row.note) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    let note = |group: Vec<&Row>| {
        let (first, more) = (group[0], group.len() - 1);
        let others = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}, {}{others}: {}", first.item, first.row, first.note)
    };
    fitted(rows).into_iter().chain(groups.into_iter().map(note)).collect()
}
