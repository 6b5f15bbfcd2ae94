//! Real programs, recorded by `coldframe record` and switched as in the paper: five of the shipped traces, each in
//! three equal parts of one minute, in turn.
//!
//! They are small compared with a phone's applications. So RAM is a part of what they touch, and the area has room
//! for all of it.

use std::path::{Path, PathBuf};

use crate::systems::drswap::{BACKINGS, PAGE};
use coldframe_core::{Bytes, Ps};
use coldframe_sim::numbering::Numbering;
use coldframe_trace::{merged, Order, Provenance};

use super::{noted, row, DRAM, EMMC, NONE, NVM, NVM_DR};
use crate::error::ReportError;
use crate::foreground::{Outcome, Session};
use crate::papers::{Reached, Row};
use crate::resolve::{spaces, ForegroundPlan};
use crate::settings::Settings;
use crate::workload::MachineParameters;

/// The programs: a database, a shop, a game, a picture packed and unpacked.
const PROGRAMS: [&str; 5] = ["sqlite", "shop", "game", "cjpeg", "djpeg"];

/// Section V.B: three rounds, a minute each.
const ORDER: Order = Order::Visits { rounds: 3, nanoseconds: 60_000_000_000 };

/// RAM in percent of the touched pages.
const RAM: [u64; 2] = [30, 50];

/// Direct read with parts of the other papers.
const COMBINED: [(&str, &[&str]); 3] = [
    ("DR and SWL's parallel handler", &["handler=parallel"]),
    ("DR and SAP's lists", &["swap.prefetch=1024"]),
    ("DR, parallel handler, lists and threshold", &["handler=parallel", "swap.prefetch=1024", "swap.reads_max=sheet"]),
];

pub(super) fn rows(traces: &Path, machine: &MachineParameters, rows: &mut Vec<Row>) -> Result<(), ReportError> {
    let paths: Vec<PathBuf> = PROGRAMS.iter().map(|name| traces.join(format!("{name}.parquet"))).collect();
    let (provenance, pages) = pages(&paths)?;
    let footprint = Bytes(pages as u64 * PAGE.0);
    let machine = MachineParameters { files_min_mb: 0, ..*machine };
    let plan = |percent: u64, backing: usize, sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
        // Rounded like percentages of `sim --ram`.
        let ram = Bytes((pages as u64 * percent + 50) / 100 * PAGE.0);
        ForegroundPlan::with(&Settings::read(None, &sets)?, &BACKINGS[backing], ram, footprint, &machine)
    };
    let mut plans = Vec::new();
    for percent in RAM {
        for backing in 0..BACKINGS.len() {
            plans.push(plan(percent, backing, &[])?);
        }
    }
    for (_, sets) in COMBINED {
        plans.push(plan(RAM[0], NVM_DR, sets)?);
    }
    let mut sessions = plans.iter().map(|p| Session::new(p, &provenance, pages)).collect::<Result<Vec<_>, _>>()?;
    merged(&paths, ORDER, &mut |block| {
        sessions.iter_mut().for_each(|session| session.feed(block));
        Ok(())
    })?;
    let outcomes: Vec<Outcome> = sessions.into_iter().map(Session::finish).collect();
    for (i, percent) in RAM.into_iter().enumerate() {
        let outcomes = &outcomes[i * BACKINGS.len()..][..BACKINGS.len()];
        of_one_size(&format!("RAM of {percent} %"), footprint, outcomes, rows);
    }
    for ((name, sets), o) in COMBINED.iter().zip(&outcomes[RAM.len() * BACKINGS.len()..]) {
        let name = format!("RAM of {} %, {name}: faults of a switch back", RAM[0]);
        let delay = o.switch_delay().0 as f64 / 1e9;
        let c = &o.result.counts;
        let note = format!(
            "--set {}: {} swap-ins after {} wishes of the lists",
            sets.join(" --set "),
            c.swap_ins,
            c.prefetches
        );
        rows.push(noted(row("recorded", name, None, delay, "ms", Reached::NoClaim), &note));
    }
    Ok(())
}

/// The origin of the mix, and its distinct pages.
fn pages(paths: &[PathBuf]) -> Result<(Provenance, usize), ReportError> {
    let provenance = merged(paths, ORDER, &mut |_| Ok(()))?;
    let (spaces, mut numbering) = (spaces(&provenance), Numbering::new(PAGE.0.trailing_zeros()));
    merged(paths, ORDER, &mut |block| {
        block.iter().for_each(|row| {
            numbering.number(spaces.of(row.task), row.address / PAGE.0);
        });
        Ok(())
    })?;
    Ok((provenance, numbering.count()))
}

fn of_one_size(ram: &str, footprint: Bytes, outcomes: &[Outcome], rows: &mut Vec<Row>) {
    let note = format!(
        "{} recorded by qemu-user, 3 visits of 60 s each, {} pages of 4 KiB in all; as `coldframe mix --rounds 3 --visit 60s`",
        PROGRAMS.join(", "),
        footprint.0 / PAGE.0
    );
    let mut push = |name: String, ours: f64, unit, reached| {
        rows.push(noted(row("recorded", format!("{ram}, {name}"), None, ours, unit, reached), &note));
    };
    let swap_ins = |backing: usize| outcomes[backing].result.counts.swap_ins as f64;
    push("direct read disabled".into(), swap_ins(NVM), "swap-ins", Reached::NoClaim);
    push("direct read enabled".into(), swap_ins(NVM_DR), "swap-ins", Reached::NoClaim);
    let saved = (1.0 - swap_ins(NVM_DR) / swap_ins(NVM)) * 100.0;
    push("saved".into(), saved, "%", if saved > 0.0 { Reached::Shape } else { Reached::No });
    push("no swap".into(), outcomes[NONE].result.counts.kills as f64, "ended", Reached::NoClaim);
    for (backing, name) in [(DRAM, "DRAM"), (EMMC, "eMMC"), (NVM, "NVM, no direct read"), (NVM_DR, "DR.Swap")] {
        let delay: Ps = outcomes[backing].switch_delay();
        push(format!("{name}: faults of a switch back"), delay.0 as f64 / 1e9, "ms", Reached::NoClaim);
    }
    for (backing, name) in [(DRAM, "DRAM"), (EMMC, "eMMC"), (NVM_DR, "DR.Swap")] {
        push(format!("{name}: energy"), super::joules(&outcomes[backing]), "J", Reached::NoClaim);
    }
}
