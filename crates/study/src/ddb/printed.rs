//! Tables 5 to 7 and figures 5 to 7, from the runs.

use coldframe_core::Bytes;
use coldframe_device::energy::AccessCounts;
use coldframe_experiment::result::RunResult;
use coldframe_experiment::{string, ExperimentError};
use coldframe_show::plot::{Plot, Series};

use super::experiments::{energy, pair, percent, Pair, Program, TENTHS};
use super::table5;
use crate::figure::{Origin, Row};
use crate::golden::Golden;

/// Main memory of table 5, KiB.
const TABLE_5: u64 = 8;

fn accesses(result: &RunResult) -> AccessCounts {
    result.accesses().expect("the system prices its accesses")
}

/// Table 5's text and its idle time, on our cjpeg.
pub fn table5_on_ours(g: &Golden, program: &Program, rows: &mut Vec<Row>) -> Result<(), ExperimentError> {
    let results = string::run(&program.path, &pair(TABLE_5, program.accesses), &mut |_| {})?;
    let [before, after] = [0, 1].map(|i: usize| accesses(&results[i]).page_loads as f64);
    let mut add = |row: &str, paper, ours, unit, note: &str| {
        let row = format!("{}, 8 KB: {row}", program.name);
        rows.push(Row::new("table 5, our program", row, paper, ours, unit, Origin::Predicted).noted(note));
    };
    let note = "another build of the program; the buffer is one page more in which code runs";
    add("loads saved", g.number("text.fewer_loads_percent"), 100.0 - percent(after, before), "%", note);
    let idle = results[0].idle.map_or(f64::NAN, |t| t.0 as f64 / 1e9);
    let dense = "one cycle an instruction; ours misses its caches more often per instruction";
    add("t_idle", table5(g, "t_idle", 0), idle, "ms", dense);
    Ok(())
}

/// Table 6.
pub fn working_set(g: &Golden, program: &Program, rows: &mut Vec<Row>) {
    let ours = program.working_set as f64;
    let read_only: u64 = image(&program.pairs[0].before).0 >> 10;
    let paper = g.number(&format!("working_set_KB.{}", program.name));
    let note = format!(
        "ours: least memory with which the plain system takes at most twice the time of all in memory; {} accesses, {read_only} KB \
         read-only. Another build of the program: libjpeg-turbo and glibc, or our fft in soft float, for ARM",
        program.accesses()
    );
    let row = format!("{}: working set", program.name);
    let printed: Vec<f64> = g.keys("working_set_KB").map(|key| g.number(&format!("working_set_KB.{key}"))).collect();
    let mean = printed.iter().sum::<f64>() / printed.len() as f64;
    let row = Row::new("table 6", row, paper, ours, "KB", Origin::Predicted);
    rows.push(row.beside("the column's mean", mean).noted(note));
}

/// Averages over the programs and the steps of a range.
pub fn table7(g: &Golden, programs: &[Program], rows: &mut Vec<Row>) {
    for range in g.keys("table7_percent") {
        let memory: [f64; 2] = g.numbers(&format!("table7_percent.{range}.memory"));
        let [least, most] = memory.map(|m| (m * 10.0).round() as u64);
        for (what, printed, of) in
            [("t_total", "time", Pair::time as fn(&Pair) -> f64), ("e_paging", "energy", Pair::energy)]
        {
            let paper = g.number(&format!("table7_percent.{range}.{printed}"));
            let values = programs.iter().flat_map(|p| (least..=most).map(|t| of(p.at(t))));
            let ours = values.sum::<f64>() / (programs.len() as u64 * (most - least + 1)) as f64;
            let row = format!("{range}, {:.1} to {:.1}: {what}", memory[0], memory[1]);
            let why =
                if what == "e_paging" && paper > 100.0 { buffer_reads(programs, paper) } else { why(range).into() };
            let note = format!("{why}; {}", by_step(programs, least..=most, of));
            let row = Row::new("table 7", row, paper, ours, "%", Origin::Predicted).to(0.1);
            rows.push(row.beside("no change", 100.0).noted(note));
        }
    }
}

fn why(range: &str) -> &'static str {
    match range {
        "A" => "other builds of the programs; mean over them and the steps",
        _ => {
            "our cjpeg and djpeg make their accesses in fewer instructions (t_idle), so first loads weigh more, and they still page \
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
