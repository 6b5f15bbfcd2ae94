//! Tables 5 to 7 and figures 5 to 7, from the runs.

use coldframe_core::Bytes;
use coldframe_device::energy::AccessCounts;
use coldframe_experiment::result::RunResult;
use coldframe_experiment::{string, ExperimentError};
use coldframe_show::plot::{Plot, Series};

use super::experiments::{energy, pair, percent, Pair, Program, TENTHS};
use super::{counts, table5};
use crate::figure::{Reached, Row};
use crate::golden::Golden;

/// Main memory of table 5, KiB.
const TABLE_5: u64 = 8;

fn accesses(result: &RunResult) -> AccessCounts {
    result.accesses().expect("the system prices its accesses")
}

/// Table 5's proportions on our cjpeg.
pub fn table5_shape(g: &Golden, program: &Program, rows: &mut Vec<Row>) -> Result<(), ExperimentError> {
    let mut results = string::run(&program.path, &pair(TABLE_5, program.accesses), &mut |_| {})?;
    let (after, before) = (results.remove(1), results.remove(0));
    let pair = Pair { before, after };
    let (n, m) = (accesses(&pair.before), accesses(&pair.after));
    let ([before, after], table) = ([0, 1].map(|column| counts(g, column)), |name, column| table5(g, name, column));
    let mut add = |row: &str, [paper, ours]: [f64; 2], unit, holds: bool, note: &str| {
        let row = format!("{}, 8 KB: {row}", program.name);
        rows.push(Row::new("table 5, our program", row, paper, ours, unit, Reached::shape_if(holds)).noted(note));
    };
    let share = |a: u64, b: u64| percent(a as f64, b as f64);
    let loads = [share(after.page_loads, before.page_loads), share(m.page_loads, n.page_loads)];
    add("N_pl after / before", loads, "%", loads[1] < 100.0, "shape: fewer loads");
    let moves = [share(after.page_moves_dual, after.page_loads), share(m.page_moves_dual, m.page_loads)];
    let hidden = m.page_moves == 0 && m.page_moves_dual + 1 == m.page_loads;
    add("N_pmdual / N_pl", moves, "%", hidden, "shape: all moves hidden, the last page not moved");
    let reads = [after.main_reads + after.xip_reads, m.main_reads + m.xip_reads];
    let xip = [share(after.xip_reads, reads[0]), share(m.xip_reads, reads[1])];
    let unpaged = "shape: most reads are from main memory; more of ours are of .data and .bss, which are never paged";
    add("N_rdxip / reads", xip, "%", xip[1] < 50.0, unpaged);
    let idle = [table("t_idle", 0), pair.before.idle.map_or(f64::NAN, |t| t.0 as f64 / 1e9)];
    let dense =
        "shape: the same before and after. One cycle an instruction; ours misses its caches more often per instruction";
    add("t_idle", idle, "ms", pair.before.idle == pair.after.idle, dense);
    let time = [percent(table("t_total", 1), table("t_total", 0)), pair.time()];
    add("t_total after / before", time, "%", time[1] < 100.0, "shape: faster");
    let energy = [percent(table("e_paging", 1), table("e_paging", 0)), pair.energy()];
    add("e_paging after / before", energy, "%", energy[1] < 100.0, "shape: less energy");
    Ok(())
}

/// Table 6.
pub fn working_set(g: &Golden, program: &Program, rows: &mut Vec<Row>) {
    let ours = program.working_set as f64;
    let read_only: u64 = image(&program.pairs[0].before).0 >> 10;
    let paper = g.number(&format!("working_set_KB.{}", program.name));
    let near = (ours / paper - 1.0).abs() <= 0.25;
    let note = format!(
        "ours: least memory with which the plain system takes at most twice the time of all in memory; {} accesses, {read_only} KB \
         read-only. Another build of the program: libjpeg-turbo and glibc, or our fft in soft float, for ARM",
        program.accesses()
    );
    let row = format!("{}: working set", program.name);
    rows.push(Row::new("table 6", row, paper, ours, "KB", Reached::shape_if(near)).noted(note));
}

/// Figures 6 and 7. If memory is smaller than the working set, the scheme must save time.
pub fn figures_6_and_7(program: &Program, rows: &mut Vec<Row>) {
    for tenths in TENTHS {
        let pair = program.at(tenths);
        let of =
            format!("{}, {:.1} of the working set ({})", program.name, tenths as f64 / 10.0, pair.before.ram_text());
        let loads = |r: &RunResult| r.true_faults();
        let note = format!("loads {} before, {} after", loads(&pair.before), loads(&pair.after));
        let wins = tenths > 7 || pair.time() < 100.0;
        let time = Row::new("figure 6", format!("{of}: t_total"), None, pair.time(), "%", Reached::shape_if(wins));
        let energy = Row::new("figure 7", format!("{of}: e_paging"), None, pair.energy(), "%", Reached::NoClaim);
        rows.extend([time, energy].map(|row| row.noted(note.clone())));
    }
}

/// Averages over the programs and the steps of a range.
pub fn table7(g: &Golden, programs: &[Program], which: &str, rows: &mut Vec<Row>) {
    for range in g.keys("table7_percent") {
        let memory: [f64; 2] = g.numbers(&format!("table7_percent.{range}.memory"));
        let [least, most] = memory.map(|m| (m * 10.0).round() as u64);
        for (what, printed, of) in
            [("t_total", "time", Pair::time as fn(&Pair) -> f64), ("e_paging", "energy", Pair::energy)]
        {
            let paper = g.number(&format!("table7_percent.{range}.{printed}"));
            let values = programs.iter().flat_map(|p| (least..=most).map(|t| of(p.at(t))));
            let ours = values.sum::<f64>() / (programs.len() as u64 * (most - least + 1)) as f64;
            // Time must be saved in both ranges; the paper's energy falls in A and grows in B.
            let holds = if what == "t_total" { ours < 100.0 } else { (ours < 100.0) == (paper < 100.0) };
            let row = format!("{range}, {:.1} to {:.1}, {which}: {what}", memory[0], memory[1]);
            let why =
                if what == "e_paging" && paper > 100.0 { buffer_reads(programs, paper) } else { why(range).into() };
            let note = format!("{why}; {}", by_step(programs, least..=most, of));
            rows.push(Row::new("table 7", row, paper, ours, "%", Reached::shape_if(holds)).noted(note));
        }
    }
}

fn why(range: &str) -> &'static str {
    match range {
        "A" => "mean over the programs and steps",
        _ => {
            "our cjpeg and djpeg make their accesses in fewer instructions (t_idle above), so first loads weigh more, and they still page \
             at their working set, whose corner is less sharp; where one page more of code memory saves many loads, energy falls too"
        }
    }
}

/// The condition under which the scheme costs energy, and our programs' values. At the largest memory no load is
/// saved any more. The only extra cost is then the reads in the buffer, and the last page's move is saved.
///
/// ```text
///   reads a load = ((percent / 100 - 1) x e_paging before + e_pm) / (e_rdxip - e_rdmain) / N_pl
/// ```
fn buffer_reads(programs: &[Program], percent: f64) -> String {
    let of = |program: &Program| {
        let Pair { before, after } = program.at(*TENTHS.end());
        let price = before.memory.as_ref()?.energies.as_ref().ok()?;
        let (n, m) = (accesses(before), accesses(after));
        let dearer = price.xip_read.0 as f64 - price.main_read.0 as f64;
        let more = (percent / 100.0 - 1.0) * energy(before) * 1e9 + price.page_move.0 as f64;
        let (takes, ours) = (more / dearer / n.page_loads as f64, m.xip_reads as f64 / m.page_loads as f64);
        Some(format!("{} {takes:.1} (ours {ours:.1})", program.name))
    };
    let each: Vec<String> = programs.iter().filter_map(of).collect();
    format!(
        "with no load saved, {percent:.1} % takes so many reads in the buffer a load: {}; more of our reads are of .data and .bss, which are \
         never paged, and below 1.2 our working sets still save loads",
        each.join(", ")
    )
}

/// Every value of a mean.
fn by_step(programs: &[Program], steps: std::ops::RangeInclusive<u64>, of: fn(&Pair) -> f64) -> String {
    let of_program = |p: &Program| {
        let values: Vec<_> = steps.clone().map(|t| format!("{:.1}", of(p.at(t)))).collect();
        format!("{} ({} accesses) {}", p.name, p.accesses(), values.join(" "))
    };
    programs.iter().map(of_program).collect::<Vec<_>>().join(", ")
}

/// The read-only sections that are paged.
fn image(result: &RunResult) -> Bytes {
    let text = result.config["front_end"]["paged"].as_str().unwrap_or_default();
    let number = |t: &str| u64::from_str_radix(t.trim_start_matches("0x"), 16).unwrap_or(0);
    let size = |range: &str| range.split_once('-').map_or(0, |(a, b)| number(b) - number(a));
    Bytes(text.split(',').map(size).sum())
}

/// Figures 5, 6 and 7.
pub fn plots(programs: &[Program]) -> Vec<Plot> {
    let curve = |p: &Program, name: String, x: fn(&Program, u64) -> f64, y: fn(&Pair) -> f64| Series {
        name,
        points: TENTHS.map(|t| (x(p, t), y(p.at(t)))).collect(),
    };
    let plot = |title: &str, x: &str, series| Plot {
        title: title.into(),
        x: x.into(),
        y: "% of the system without the scheme".into(),
        series,
        log_x: false,
        log_y: false,
    };
    let ratio: fn(&Program, u64) -> f64 = |_, t| t as f64 / 10.0;
    let kib: fn(&Program, u64) -> f64 = |p, t| p.at(t).before.ram().0 as f64 / 1024.0;
    let each = |y| programs.iter().map(|p| curve(p, p.name.into(), ratio, y)).collect();
    let first = &programs[0];
    let fig5 = vec![
        curve(first, "execution time".into(), kib, Pair::time),
        curve(first, "paging energy".into(), kib, Pair::energy),
    ];
    let axis = "main memory / working set";
    vec![
        plot(&format!("Figure 5, ours: {} by main memory", first.name), "KiB", fig5),
        plot("Figure 6, ours: execution time", axis, each(Pair::time)),
        plot("Figure 7, ours: paging energy", axis, each(Pair::energy)),
    ]
}
