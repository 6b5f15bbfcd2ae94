//! The paper's open questions, measured on the two mixes: the threshold on direct reads as a curve, direct read with
//! SWL's parallel handler and SAP's prefetching lists, and other memories than PCM.

use crate::systems::drswap::{BACKINGS, SWAP_MIB};
use coldframe_core::Bytes;

use super::{input, joules, megabytes, noted, row, Input, NVM, NVM_DR};
use crate::error::ReportError;
use crate::foreground::Outcome;
use crate::papers::{Reached, Row};
use crate::resolve::ForegroundPlan;
use crate::settings::Settings;
use crate::workload::{MachineParameters, Parameters};

/// The mixes; each has the applications of every other category.
const MIXES: [&str; 2] = ["mix1", "mix2"];

pub(super) fn rows(p: &Parameters, rows: &mut Vec<Row>) -> Result<(), ReportError> {
    let mixes = MIXES.map(|category| input(p, category));
    let [first, second] = mixes;
    // 256 MB: the area is not full, so switches do not wait for files that were dropped instead.
    let mut mixes = Mixes { inputs: [first?, second?], machine: p.machine, swap: SWAP_MIB[1] };
    curve(&mixes, rows)?;
    combined(&mixes, rows)?;
    // 128 MB: a chip of STT-MRAM holds no more.
    mixes.swap = SWAP_MIB[0];
    memories(&mixes, rows)
}

struct Mixes {
    inputs: [Input; 2],
    machine: MachineParameters,
    /// MiB of swap.
    swap: u64,
}

impl Mixes {
    fn run(&self, backing: usize, sets: &[&str]) -> Result<Runs, ReportError> {
        let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
        let settings = Settings::read(None, &sets)?;
        let (ram, size) = (megabytes(self.machine.ram_mb), Bytes(self.swap << 20));
        let one = |input: &Input| input.run_with(&settings, &BACKINGS[backing], ram, size, &self.machine);
        let [first, second] = self.inputs.each_ref().map(one);
        Ok(Runs([first?, second?]))
    }
}

/// One configuration on both mixes.
struct Runs([(ForegroundPlan, Outcome); 2]);

impl Runs {
    fn mean(&self, of: impl Fn(&ForegroundPlan, &Outcome) -> f64) -> f64 {
        self.0.iter().map(|(plan, outcome)| of(plan, outcome)).sum::<f64>() / 2.0
    }

    fn swap_ins(&self) -> f64 {
        self.mean(|_, o| o.result.counts.swap_ins as f64)
    }

    /// The wait of switches back, in milliseconds.
    fn delay(&self) -> f64 {
        self.mean(|_, o| o.switch_delay().0 as f64 / 1e9)
    }

    /// Millijoules of swapping and of reading in place: all terms but background and refresh, and the extra cost of
    /// lines read in slots over DRAM.
    fn moved(&self) -> Result<f64, ReportError> {
        let mut sum = 0.0;
        for (plan, o) in &self.0 {
            let e = &o.energy;
            let copies = (e.active.0 + e.read.0 + e.write.0 + e.data_out.0) as f64;
            sum += copies + plan.area().line_excess()? * o.result.reads_in_slots as f64;
        }
        Ok(sum / self.0.len() as f64 / 1e9)
    }
}

/// A page that is read more than N times in its slot is copied.
fn curve(mixes: &Mixes, rows: &mut Vec<Row>) -> Result<(), ReportError> {
    let even = "sheet";
    for n in ["0", "16", "32", "64", even, "128", "256", "1024", "never"] {
        let set = format!("swap.reads_max={n}");
        let runs = if n == "never" { mixes.run(NVM_DR, &[])? } else { mixes.run(NVM_DR, &[&set])? };
        let lines = runs.0[0].0.config.reads_max;
        let name = match lines {
            Some(lines) if n == even => format!("at most {lines} lines read in a slot, the sheets' number"),
            Some(lines) => format!("at most {lines} lines read in a slot"),
            None => "never copied for being read".into(),
        };
        let note = format!(
            "swap.reads_max={n} on both mixes, {} MB: {:.0} swap-ins, {:.0} pages copied for being read often, {:.0} lines read in slots, {:.3} ms a switch back",
            mixes.swap,
            runs.swap_ins(),
            runs.mean(|_, o| o.result.counts.read_often as f64),
            runs.mean(|_, o| o.result.reads_in_slots as f64),
            runs.delay(),
        );
        let of = row("threshold curve", name, None, runs.moved()?, "mJ", Reached::NoClaim);
        rows.push(noted(of, &note));
    }
    Ok(())
}

/// Direct read with parts of the other papers.
fn combined(mixes: &Mixes, rows: &mut Vec<Row>) -> Result<(), ReportError> {
    let (parallel, lists, sheet) = ("handler=parallel", "swap.prefetch=1024", "swap.reads_max=sheet");
    for (name, backing, sets) in [
        ("no direct read", NVM, &[][..]),
        ("DR", NVM_DR, &[]),
        ("DR and SWL's parallel handler", NVM_DR, &[parallel]),
        ("DR and SAP's lists", NVM_DR, &[lists]),
        ("DR, parallel handler, lists and threshold", NVM_DR, &[parallel, lists, sheet]),
    ] {
        let runs = mixes.run(backing, sets)?;
        let note = format!(
            "--set {}: {:.0} swap-ins, {:.0} of them before anyone asked, {:.0} direct reads",
            if sets.is_empty() { "nothing".into() } else { sets.join(" --set ") },
            runs.swap_ins(),
            runs.mean(|_, o| o.result.counts.prefetches as f64),
            runs.mean(|_, o| o.result.counts.direct_reads as f64),
        );
        let of =
            row("combined", format!("{name}: faults of a switch back"), None, runs.delay(), "ms", Reached::NoClaim);
        rows.push(noted(of, &note));
        let of =
            row("combined", format!("{name}: swapped and read in place"), None, runs.moved()?, "mJ", Reached::NoClaim);
        rows.push(noted(of, &note));
    }
    Ok(())
}

/// Direct read on other memories, each priced by its own sheet.
fn memories(mixes: &Mixes, rows: &mut Vec<Row>) -> Result<(), ReportError> {
    for device in ["LPDDR2-PCM", "STT-MRAM", "CXL-DDR4"] {
        let set = format!("device={device}");
        let runs = mixes.run(NVM_DR, &[&set])?;
        let lines = runs.0[0].0.area().break_even()?.map_or_else(|| "never".into(), |even| even.lines().to_string());
        let note = format!("--device {device}, 128 MB, by its own sheet; a copy pays after so many lines: {lines}");
        for (what, ours, unit) in [
            ("energy of 15 minutes", runs.mean(|_, o| joules(o)), "J"),
            ("swapped and read in place", runs.moved()?, "mJ"),
            ("faults of a switch back", runs.delay(), "ms"),
        ] {
            rows.push(noted(row("memories", format!("{device}: {what}"), None, ours, unit, Reached::NoClaim), &note));
        }
    }
    Ok(())
}
