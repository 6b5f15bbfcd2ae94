//! Tables 5 to 7 and figures 5 to 7, from the runs.

use coldframe_experiment::result::RunResult;
use coldframe_experiment::{string, ExperimentError};
use coldframe_sheet::paging::AccessCounts;
use coldframe_show::plot::{Plot, Series};

use super::experiments::{pair, percent, total, Pair, Program, ACCESSES, TENTHS};
use super::table5;
use crate::figure::{Origin, Row};
use crate::golden::Golden;

const TABLE_5: u64 = 8;

fn accesses(result: &RunResult) -> AccessCounts {
    result.accesses().expect("the system prices its accesses")
}

/// Table 5's text, its counts and its idle time, on our cjpeg.
pub fn table5_on_ours(g: &Golden, program: &Program, rows: &mut Vec<Row>) -> Result<(), ExperimentError> {
    let results = string::run(&program.path, &pair(TABLE_5), &mut |_| {})?;
    let [before, after] = [0, 1].map(|i: usize| accesses(&results[i]));
    let mut add = |row: &str, paper, ours, unit, note: &str| {
        let row = format!("{}, 8 KB: {row}", program.name);
        rows.push(Row::new("table 5, our program", row, paper, ours, unit, Origin::Predicted).note(note));
    };
    let build = "another build of the program; the buffer is one page more in which code runs";
    let saved = 100.0 - percent(after.page_loads as f64, before.page_loads as f64);
    add("loads saved", g.number("text.fewer_loads_percent"), saved, "%", build);
    let writes = "the paper does not say which part of the program its 100,000 accesses are; ours are the first ones";
    for (name, column, ours, note) in [
        ("N_pl", 0, before.page_loads, build),
        ("N_pl", 1, after.page_loads, build),
        ("N_pm", 0, before.page_moves, build),
        ("N_pmdual", 1, after.page_moves_dual, build),
        ("N_rdmain", 0, before.main_reads, writes),
        ("N_rdmain", 1, after.main_reads, writes),
        ("N_rdxip", 1, after.xip_reads, writes),
        ("N_wrmain", 0, before.main_writes, writes),
    ] {
        let row = format!("{name} {}", ["before", "after"][column]);
        add(&row, table5(g, name, column), ours as f64, "accesses", note);
    }
    let idle = results[0].idle.map_or(f64::NAN, |t| t.0 as f64 / 1e9);
    let dense = "one cycle an instruction; ours misses its caches more often per instruction";
    add("t_idle", table5(g, "t_idle", 0), idle, "ms", dense);
    Ok(())
}

/// Figure 5's text, on our cjpeg: two sizes of main memory that save more than those around them, and the size from
/// which the scheme's effect hardly changes.
pub fn figure_5(g: &Golden, program: &Program, rows: &mut Vec<Row>) -> Result<(), ExperimentError> {
    let all: Vec<_> = FIGURE_5.flat_map(pair).collect();
    let results = string::run(&program.path, &all, &mut |_| {})?;
    let time: Vec<f64> = results.chunks(2).map(|pair| percent(total(&pair[1]), total(&pair[0]))).collect();
    let at = |kib: u64| time[(kib.clamp(*FIGURE_5.start(), *FIGURE_5.end()) - FIGURE_5.start()) as usize];
    let steps: Vec<u64> = FIGURE_5.filter(|kib| kib % STEP == 0).collect();
    let saved: Vec<f64> = steps.iter().map(|kib| 100.0 - at(*kib)).collect();
    let peaks = two_peaks(&saved).map(|i| steps[i]);
    let end = *time.last().expect("there are sizes");
    let flat = *steps.iter().rev().take_while(|kib| (at(**kib) - end).abs() < 2.0).last().expect("the end itself");
    let curve = steps.iter().map(|kib| format!("{:.1}", at(*kib))).collect::<Vec<_>>().join(" ");
    let note = format!(
        "another build; in steps of 4 KB, as the paper's figure has them, the two sizes that save more than those \
         beside them, and most; flat: within 2 points of the last; % of before from 4 KB: {curve}"
    );
    let printed: [f64; 3] = g.numbers("text.figure_5_KB");
    let ours = [peaks[0], peaks[1], flat];
    for ((what, paper), ours) in ["first peak", "second peak", "flat from"].into_iter().zip(printed).zip(ours) {
        let row = format!("{}: {what}", program.name);
        rows.push(Row::new("figure 5", row, paper, ours as f64, "KB", Origin::Predicted).note(&note));
    }
    Ok(())
}

/// A step of figure 5 in KiB.
const STEP: u64 = 4;

/// The places of the two peaks of a curve, in order: values above those beside them, the first also if only the next
/// one is lower. Of several, those that rise most above the higher of their neighbours.
fn two_peaks(curve: &[f64]) -> [usize; 2] {
    let beside = |i: usize| {
        let before = i.checked_sub(1).map(|i| curve[i]);
        before.into_iter().chain(curve.get(i + 1).copied()).fold(f64::NEG_INFINITY, f64::max)
    };
    let mut places: Vec<usize> = (0..curve.len() - 1).collect();
    places.sort_by(|a, b| (curve[*b] - beside(*b)).total_cmp(&(curve[*a] - beside(*a))));
    [places[0].min(places[1]), places[0].max(places[1])]
}

/// Main memory of figure 5 in KiB.
const FIGURE_5: std::ops::RangeInclusive<u64> = 2..=56;

/// Table 6.
pub fn working_set(g: &Golden, program: &Program, rows: &mut Vec<Row>) {
    let ours = program.working_set as f64;
    let paper = g.number(&format!("working_set_KB.{}", program.name));
    let note = format!(
        "ours: least memory with which the plain system takes at most twice the time of all in memory; {} accesses. \
         Another build of the program: libjpeg-turbo and glibc, or our fft in soft float, for ARM",
        program.accesses()
    );
    let row = format!("{}: working set", program.name);
    let printed: Vec<f64> = g.keys("working_set_KB").map(|key| g.number(&format!("working_set_KB.{key}"))).collect();
    let mean = printed.iter().sum::<f64>() / printed.len() as f64;
    let row = Row::new("table 6", row, paper, ours, "KB", Origin::Predicted);
    rows.push(row.compared_with("the column's mean", mean).note(note));
}

/// A figure of a program with so many tenths of its working set as main memory.
type Value<'a> = &'a dyn Fn(&Program, u64) -> f64;

/// Averages over the programs and the steps of a range: from the first instruction on, and in a warm window with table
/// 5's idle time. Without programs there are no rows of them.
pub fn table7(g: &Golden, [ours, printed_sets]: [&[Program]; 2], rows: &mut Vec<Row>) {
    let idle = table5(g, "t_idle", 0) / ACCESSES as f64;
    let (cold_time, cold_energy): (Value, Value) = (&|p, t| p.at(t).time(), &|p, t| p.at(t).energy());
    let (warm_time, warm_energy): (Value, Value) = (&|p, t| p.warm(t, idle)[0], &|p, t| p.warm(t, idle)[1]);
    for range in g.keys("table7_percent") {
        let memory: [f64; 2] = g.numbers(&format!("table7_percent.{range}.memory"));
        let [least, most] = memory.map(|m| (m * 10.0).round() as u64);
        for (what, printed, of, why, programs) in [
            ("t_total", "time", cold_time, why(range), ours),
            ("e_paging", "energy", cold_energy, why(range), ours),
            ("t_total, warm", "time", warm_time, WARM, ours),
            ("e_paging, warm", "energy", warm_energy, WARM, ours),
            ("t_total, warm, table 6's sets", "time", warm_time, WARM_SETS, printed_sets),
            ("e_paging, warm, table 6's sets", "energy", warm_energy, WARM_SETS, printed_sets),
        ] {
            if programs.is_empty() {
                continue;
            }
            let paper = g.number(&format!("table7_percent.{range}.{printed}"));
            let values = programs.iter().flat_map(|p| (least..=most).map(move |t| of(p, t)));
            let mean = values.sum::<f64>() / (programs.len() as u64 * (most - least + 1)) as f64;
            let row = format!("{range}, {:.1} to {:.1}: {what}", memory[0], memory[1]);
            let note = format!("{why}; {}", by_step(programs, least..=most, of));
            let origin = if what.contains("warm") { Origin::Input } else { Origin::Predicted };
            let row = Row::new("table 7", row, paper, mean, "%", origin).to(0.1);
            rows.push(row.compared_with("no change", 100.0).note(note));
        }
    }
}

const WARM_SETS: &str = "the same, and main memory in parts of table 6's working sets and not of ours";

const WARM: &str = "table 5's t_idle is an input; without the first fifth of the accesses, and with table 5's idle \
                    time for each access: the paper's programs need not begin with empty memory, and their idle time \
                    is seven times ours";

fn why(range: &str) -> &'static str {
    match range {
        "A" => "other builds of the programs; mean over them and the steps",
        _ => {
            "our cjpeg and djpeg make their accesses in fewer instructions (t_idle), so first loads weigh more, and \
             they still page \
             at their working set, whose corner is less sharp; where one page more of code memory saves many loads, \
             energy falls too"
        }
    }
}

/// Every value of a mean.
fn by_step(programs: &[Program], steps: std::ops::RangeInclusive<u64>, of: Value) -> String {
    let of_program = |p: &Program| {
        let values: Vec<_> = steps.clone().map(|t| format!("{:.1}", of(p, t))).collect();
        format!("{} ({} accesses) {}", p.name, p.accesses(), values.join(" "))
    };
    programs.iter().map(of_program).collect::<Vec<_>>().join(", ")
}

/// Figures 5, 6 and 7: ours, and what the paper prints of them, table 5's point and table 7's two means.
pub fn plots(g: &Golden, programs: &[Program]) -> Vec<Plot> {
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
    let means = |what: &str| {
        let range = |range: &str| {
            let mean = g.number(&format!("table7_percent.{range}.{what}"));
            let memory: [f64; 2] = g.numbers(&format!("table7_percent.{range}.memory"));
            Series { name: format!("paper, mean of {range}"), points: memory.map(|x| (x, mean)).to_vec() }
        };
        g.keys("table7_percent").map(range).collect::<Vec<_>>()
    };
    let each = |y, what| {
        let ours = programs.iter().map(|p| curve(p, p.name.into(), ratio, y));
        ours.chain(means(what)).collect()
    };
    let point = |called: &str, what: &str| Series {
        name: format!("paper, {called}"),
        points: vec![(TABLE_5 as f64, percent(table5(g, what, 1), table5(g, what, 0)))],
    };
    let first = &programs[0];
    let fig5 = vec![
        curve(first, "execution time".into(), kib, Pair::time),
        curve(first, "paging energy".into(), kib, Pair::energy),
        point("execution time", "t_total"),
        point("paging energy", "e_paging"),
    ];
    let axis = "main memory / working set";
    vec![
        plot(&format!("Figure 5: {} by main memory", first.name), "KiB", fig5),
        plot("Figure 6: execution time", axis, each(Pair::time, "time")),
        plot("Figure 7: paging energy", axis, each(Pair::energy, "energy")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_above_those_beside_it_and_the_smallest_size_can_be_one() {
        assert_eq!(two_peaks(&[39.0, 32.0, 31.0, 34.0, 30.0, 28.0]), [0, 3]);
        assert_eq!(two_peaks(&[30.0, 32.0, 31.0, 34.0, 30.0, 28.0]), [1, 3]);
    }
}
