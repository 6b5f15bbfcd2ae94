//! Tables 5 to 7, figures 5 to 7, the three effects and the unpaged architectures, from the runs.

use crate::systems::ddb::golden::Golden;
use crate::systems::ddb::{effects as split, unpaged as architectures};
use coldframe_core::Bytes;
use coldframe_device::energy::{e_paging, t_paging, t_total, AccessCounts};
use coldframe_device::{quantity, sheet};

use super::experiments::{energy, pair, percent, total, Pair, Program, TENTHS};
use super::{shape_row, Row, NO_CLAIM};
use crate::error::ReportError;
use crate::experiment;
use crate::plot::{Plot, Series};
use crate::result::RunResult;

/// Main memory of table 5, KiB.
const TABLE_5: u64 = 8;

fn accesses(result: &RunResult) -> AccessCounts {
    result.accesses().expect("the system prices its accesses")
}

/// Table 5's proportions on our cjpeg.
pub fn table5_shape(g: &Golden, program: &Program, rows: &mut Vec<Row>) -> Result<(), ReportError> {
    let mut results = experiment::run(&program.path, &pair(TABLE_5, program.accesses), &mut |_| {})?;
    let (after, before) = (results.remove(1), results.remove(0));
    let (table, pair) = (&g.table5, Pair { before, after });
    let (n, m) = (accesses(&pair.before), accesses(&pair.after));
    let mut add = |row: &str, [paper, ours]: [f64; 2], unit, holds: bool, note: &str| {
        let row = format!("{}, 8 KB: {row}", program.name);
        rows.push(shape_row("table 5, our program", row, Some(paper), ours, unit, holds, note.into()));
    };
    let share = |a: u64, b: u64| percent(a as f64, b as f64);
    let loads = [share(table.N_pl[1], table.N_pl[0]), share(m.page_loads, n.page_loads)];
    add("N_pl after / before", loads, "%", loads[1] < 100.0, "shape: fewer loads");
    let moves = [share(table.N_pmdual[1], table.N_pl[1]), share(m.page_moves_dual, m.page_loads)];
    let hidden = m.page_moves == 0 && m.page_moves_dual + 1 == m.page_loads;
    add("N_pmdual / N_pl", moves, "%", hidden, "shape: all moves hidden, the last page not moved");
    let reads = [table.N_rdmain[1] + table.N_rdxip[1], m.main_reads + m.xip_reads];
    let xip = [share(table.N_rdxip[1], reads[0]), share(m.xip_reads, reads[1])];
    let unpaged = "shape: most reads are from main memory; more of ours are of .data and .bss, which are never paged";
    add("N_rdxip / reads", xip, "%", xip[1] < 50.0, unpaged);
    let idle = [table.t_idle[0], pair.before.idle.map_or(f64::NAN, |t| t.0 as f64 / 1e9)];
    let dense =
        "shape: the same before and after. One cycle an instruction; ours misses its caches more often per instruction";
    add("t_idle", idle, "ms", pair.before.idle == pair.after.idle, dense);
    let time = [percent(table.t_total[1], table.t_total[0]), pair.time()];
    add("t_total after / before", time, "%", time[1] < 100.0, "shape: faster");
    let energy = [percent(table.e_paging[1], table.e_paging[0]), pair.energy()];
    add("e_paging after / before", energy, "%", energy[1] < 100.0, "shape: less energy");
    Ok(())
}

/// Table 6.
pub fn working_set(g: &Golden, program: &Program, rows: &mut Vec<Row>) {
    let ours = program.working_set as f64;
    let read_only: u64 = image(&program.pairs[0].before).0 >> 10;
    let paper = g.working_set_KB[program.name];
    let near = (ours / paper - 1.0).abs() <= 0.25;
    let note = format!(
        "ours: least memory with which the plain system takes at most twice the time of all in memory; {} accesses, {read_only} KB \
         read-only. Another build of the program: libjpeg-turbo and glibc, or our fft in soft float, for ARM",
        program.accesses()
    );
    let row = format!("{}: working set", program.name);
    rows.push(shape_row("table 6", row, Some(paper), ours, "KB", near, note));
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
        rows.push(shape_row("figure 6", format!("{of}: t_total"), None, pair.time(), "%", wins, note.clone()));
        rows.push(shape_row("figure 7", format!("{of}: e_paging"), None, pair.energy(), "%", NO_CLAIM, note));
    }
}

/// Averages over the programs and the steps of a range.
pub fn table7(g: &Golden, programs: &[Program], which: &str, rows: &mut Vec<Row>) {
    for (range, printed) in &g.table7_percent {
        let [least, most] = printed.memory.map(|m| (m * 10.0).round() as u64);
        for (what, paper, of) in
            [("t_total", printed.time, Pair::time as fn(&Pair) -> f64), ("e_paging", printed.energy, Pair::energy)]
        {
            let values = programs.iter().flat_map(|p| (least..=most).map(|t| of(p.at(t))));
            let ours = values.sum::<f64>() / (programs.len() as u64 * (most - least + 1)) as f64;
            // Time must be saved in both ranges; the paper's energy falls in A and grows in B.
            let holds = if what == "t_total" { ours < 100.0 } else { (ours < 100.0) == (paper < 100.0) };
            let row = format!("{range}, {:.1} to {:.1}, {which}: {what}", printed.memory[0], printed.memory[1]);
            let why =
                if what == "e_paging" && paper > 100.0 { buffer_reads(programs, paper) } else { why(range).into() };
            let note = format!("{why}; {}", by_step(programs, least..=most, of));
            rows.push(shape_row("table 7", row, Some(paper), ours, "%", holds, note));
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

/// The three effects at half of the working set, percent of the plain system's t_total and e_paging.
pub fn effects(program: &Program, rows: &mut Vec<Row>) {
    let Pair { before, after } = program.at(5);
    let (n, m, memory) = (accesses(before), accesses(after), before.memory.as_ref().expect("it is priced"));
    let time = split::in_time(&n, &m, &memory.times);
    let whole = total(before) * 1e9;
    let mut add = |what: &str, saved: i64, of: f64, note: String| {
        let row = format!("{}, 0.5 of the working set: {what}", program.name);
        rows.push(shape_row("three effects", row, None, percent(saved as f64, of), "% saved", NO_CLAIM, note));
    };
    let more = percent(total(before) - total(&program.one_frame_more), total(before));
    let note = format!("the plain system with one frame more, simulated, saves {more:.1} %");
    add("time, more code memory", time.more_memory, whole, note);
    add("time, hidden moves", time.hidden_moves, whole, String::new());
    add("time, slower reads", time.slower_reads, whole, String::new());
    let Ok(price) = &memory.energies else { return };
    let (saved, whole) = (split::in_energy(&n, &m, price), energy(before) * 1e9);
    add("energy, more code memory", saved.more_memory, whole, String::new());
    add("energy, hidden moves", saved.hidden_moves, whole, "only the page still held at the end".into());
    add("energy, slower reads", saved.slower_reads, whole, String::new());
}

/// The read-only sections that are paged.
fn image(result: &RunResult) -> Bytes {
    let text = result.config["front_end"]["paged"].as_str().unwrap_or_default();
    let number = |t: &str| u64::from_str_radix(t.trim_start_matches("0x"), 16).unwrap_or(0);
    let size = |range: &str| range.split_once('-').map_or(0, |(a, b)| number(b) - number(a));
    Bytes(text.split(',').map(size).sum())
}

/// NOR XIP and code shadowing beside the two paged systems at half of the working set.
pub fn unpaged(program: &Program, rows: &mut Vec<Row>) -> Result<(), ReportError> {
    let Pair { before, after } = program.at(5);
    let memory = before.memory.as_ref().expect("it is priced");
    let (n, idle) = (accesses(before), before.idle.unwrap_or_default());
    let mut add = |what: &str, ms: f64, mj: Option<f64>, ram: String| {
        let row = format!("{}: {what}", program.name);
        let note = format!("main memory for code: {ram}; percent of the plain system at 0.5 of the working set");
        rows.push(shape_row(
            "architectures",
            format!("{row}, t_total"),
            None,
            percent(ms, total(before)),
            "%",
            NO_CLAIM,
            note.clone(),
        ));
        if let Some(mj) = mj {
            rows.push(shape_row(
                "architectures",
                format!("{row}, e_paging"),
                None,
                percent(mj, energy(before)),
                "%",
                NO_CLAIM,
                note,
            ));
        }
    };
    add("delayed dual buffering", total(after), Some(energy(after)), before.ram_text());
    let image = image(before);
    let shadow = architectures::code_shadowing(&n, image.0 / before.page.0);
    let ms = t_total(&t_paging(&shadow, &memory.times), idle).0 as f64 / 1e9;
    let mj = memory.energies.as_ref().ok().map(|price| e_paging(&shadow, price).total().0 as f64 / 1e9);
    add("code shadowing", ms, mj, quantity::show_bytes(image));
    let nor = architectures::nor_xip(&n, before.front_end.paged_reads);
    let (times, nor_read) = (&memory.times, sheet::find("StrataFlash")?.read()?);
    let time = architectures::nor_time(&nor, times.main_read, times.main_write, nor_read) + idle;
    add("NOR XIP (no energy: the paper gives none of NOR)", time.0 as f64 / 1e9, None, "none".into());
    Ok(())
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
