//! `coldframe papers`: the papers' printed figures beside ours.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_show::plot::stack;
use coldframe_show::table::{folded, styled};
use coldframe_study::figure::{Reached, Row};
use coldframe_study::papers::{plots, rows};

use crate::output::{self, Failure, Line};
use crate::together;

/// Print a paper's figures beside ours.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe papers swl
  coldframe papers ddb -o ddb.svg
  coldframe papers all
  coldframe papers sap --all
  coldframe papers swl --format json | jq '.[] | select(.reached == false)'
  coldframe papers all --format markdown > beside.md
  coldframe papers --on sqlite.parquet --on mix.parquet --ram 50% -o combined.svg

The column `reached`: yes, within rounding; no, with the reason; shape, the paper's input is not free, and ours is of \
the same kind and shows what the paper claims; no claim, the paper does not claim this figure.

--on takes the parts of all five papers on traces of your own, each part alone and all that go together, on one \
device. It prints the fault time (all time not spent on references) and the energy of the devices that hold the pages. \
`without` says how much longer faults take together when the part is taken out.")]
pub struct Args {
    /// A system whose paper prints figures (`coldframe policies` lists them), or all.
    #[arg(required_unless_present = "on")]
    paper: Option<String>,
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
    /// Exit with 1 if a figure is not reached.
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
    let paper = args.paper.unwrap_or_default();
    let traces = match args.traces {
        Some(dir) => dir,
        None => shipped_traces()?,
    };
    let mut line = Line::new(quiet);
    let rows = rows(&paper, &traces, &mut |file| line.show(file))?;
    let drawn = args.output.is_some() || args.all && args.format == "table";
    let curves = if drawn { plots(&paper, &traces)? } else { Vec::new() };
    drop(line);
    if args.output.is_some() && curves.is_empty() {
        return Err(Failure::usage(format!("-o: nothing is drawn for `{paper}`; leave -o away")));
    }
    let text = match args.format.as_str() {
        "json" => output::json(&serde_json::to_value(&rows).expect("rows are plain data")),
        "markdown" => markdown(&rows),
        _ if !args.all => headlines(&rows),
        _ => curves.iter().fold(table(&rows), |text, plot| text + "\n" + &plot.text(64, 17)),
    };
    if let Some(path) = &args.output {
        output::write(Some(path), &stack(&curves.iter().map(|plot| plot.svg()).collect::<Vec<_>>()))?;
    }
    match args.format.as_str() {
        "markdown" => output::exact(None, &text)?,
        _ => output::write(None, &text)?,
    }
    let missed = rows.iter().any(|row| row.reached == Reached::No);
    Ok(if args.strict && missed { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Beside an installed program, in the current folder, or in the source tree that the program was built from.
fn shipped_traces() -> Result<PathBuf, Failure> {
    let beside =
        std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.parent()?.join("share/coldframe/traces")));
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces");
    let places = [beside, Some("data/traces".into()), Some(built)];
    let found = places.iter().flatten().find(|dir| dir.is_dir());
    found.cloned().ok_or_else(|| {
        let looked: Vec<_> = places.iter().flatten().map(|p| p.display().to_string()).collect();
        Failure::usage(format!("the shipped traces are in none of {}; give --traces DIR", looked.join(", ")))
    })
}

fn number(value: f64) -> String {
    match value.abs() {
        v if v != 0.0 && v < 0.1 => format!("{value:.6}"),
        v if v < 1.0 => format!("{value:.4}"),
        _ => format!("{value:.2}"),
    }
}

const HEADINGS: [&str; 7] = ["item", "", "paper", "ours", "unit", "deviation", "reached"];

fn cells(row: &Row) -> Vec<String> {
    let dash = || "-".to_string();
    vec![
        row.item.clone(),
        row.row.clone(),
        row.paper_value.map_or_else(dash, number),
        number(row.our_value),
        row.unit.to_string(),
        row.deviation_percent.map_or_else(dash, |d| format!("{d:+.1} %")),
        verdict(row.reached).into(),
    ]
}

fn verdict(reached: Reached) -> &'static str {
    match reached {
        Reached::Yes => "yes",
        Reached::No => "NO",
        Reached::Shape => "shape",
        Reached::NoClaim => "no claim",
    }
}

fn table(rows: &[Row]) -> String {
    let table = styled(&HEADINGS, rows.iter().map(cells).collect(), 2).least(&["unit"]);
    let missed: String = reasons(rows).iter().map(|reason| format!("Not reached: {reason}.\n")).collect();
    format!("{table}\n{}.\n{missed}", tally(rows))
}

/// A page for each paper: its main claims, and why those that are not reached are not.
fn headlines(rows: &[Row]) -> String {
    let pages = rows.chunk_by(|a, b| a.paper == b.paper).map(headline_page);
    pages.collect::<Vec<_>>().join("\n")
}

fn headline_page(rows: &[Row]) -> String {
    let dash = || "-".to_string();
    let mut out = format!("{:<46} {:>10} {:>10}  reached\n", rows[0].paper, "paper", "ours");
    for row in rows {
        let Some(claim) = row.claim else { continue };
        let paper = row.paper_value.map_or_else(dash, number);
        out += &format!("{claim:<46} {paper:>10} {:>10}  {}\n", number(row.our_value), verdict(row.reached));
    }
    for row in rows.iter().filter(|row| row.claim.is_some() && row.reached == Reached::No) {
        // The first clause is the reason; counts follow.
        let why = row.note.split("; ").next().unwrap_or_default();
        out += &(folded(&format!("{}: {why}.", row.claim.unwrap_or_default()), 78) + "\n");
    }
    out + &folded(&format!("{}; --all shows each of the {} rows and why.", tally(rows), rows.len()), 78) + "\n"
}

/// The table and the reasons for a page of Markdown.
fn markdown(rows: &[Row]) -> String {
    let line = |cells: Vec<String>| {
        let escaped: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", escaped.join(" | "))
    };
    let head = line(HEADINGS.map(String::from).to_vec()) + "|---|---|--:|--:|---|--:|---|\n";
    let body: String = rows.iter().map(|row| line(cells(row))).collect();
    let missed: String = reasons(rows).iter().map(|reason| format!("- {reason}.\n")).collect();
    format!("{head}{body}\n{}.\n\n{missed}", tally(rows))
}

/// Why rows are not reached. Rows of one item with the same reason are joined, in the order of their first.
fn reasons(rows: &[Row]) -> Vec<String> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in rows.iter().filter(|row| row.reached == Reached::No) {
        match groups.iter_mut().find(|group| group[0].item == row.item && group[0].note == row.note) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    let reason = |group: Vec<&Row>| {
        let (first, more) = (group[0], group.len() - 1);
        let others = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}, {}{others}: {}", first.item, first.row, first.note)
    };
    groups.into_iter().map(reason).collect()
}

fn tally(rows: &[Row]) -> String {
    let of = |reached| rows.iter().filter(|row| row.reached == reached).count();
    format!(
        "{} reached, {} not, {} compared in shape, {} with nothing claimed",
        of(Reached::Yes),
        of(Reached::No),
        of(Reached::Shape),
        of(Reached::NoClaim)
    )
}
