//! Outcomes of tasks in the foreground as a table.

use coldframe_experiment::foreground::{life, Outcome, Stored};
use coldframe_experiment::resolve::ForegroundPlan;
use coldframe_experiment::result::caveat;
use coldframe_experiment::systems::backing::{self, PAGE};
use coldframe_sheet::quantity::{human_count, human_size, human_time};

use crate::tasks_table::failures;
use coldframe_show::table::styled;

const HEADINGS: [&str; 12] = [
    "backing",
    "swap",
    "RAM",
    "policy",
    "swap-ins",
    "direct reads",
    "swap-outs",
    "ended",
    "card I/O",
    "switch back",
    "energy",
    "life",
];

/// One row for each outcome, then what the columns mean.
pub fn table(stored: &Stored) -> String {
    let rows = stored.outcomes.iter().map(|(plan, outcome)| row(plan, outcome));
    format!(
        "{}\n{}",
        styled(&HEADINGS, rows.collect(), 4).least(&["ended", "card I/O", "swap", "policy"]),
        legend(stored)
    )
}

fn row(plan: &ForegroundPlan, o: &Outcome) -> Vec<String> {
    let c = &o.result.counts;
    let dash = || "-".to_string();
    vec![
        backing(plan),
        if plan.area().size.0 == 0 { dash() } else { human_size(plan.area().size.0) },
        human_size(plan.config.frames as u64 * PAGE.0),
        plan.config.policy.to_string(),
        human_count(c.swap_ins),
        human_count(c.direct_reads),
        human_count(c.swap_outs),
        human_count(c.kills),
        human_count(o.result.card_reads + o.result.card_writes),
        human_time(o.switch_delay()),
        format!("{:.3} J", o.energy.total().0 as f64 / 1e12),
        life(plan, o).map_or_else(dash, |years| format!("{years:.1} years")),
    ]
}

/// The backing, and the device if it is not its own.
fn backing(plan: &ForegroundPlan) -> String {
    let own = backing::all().any(|b| b.name == plan.area().name && b.sheet.unwrap_or_default() == plan.area().device);
    if own {
        plan.area().name.into()
    } else {
        format!("{}, {}", plan.area().name, plan.area().device)
    }
}

fn legend(stored: &Stored) -> String {
    let mut out = String::from(
        "ended: tasks that the low memory killer took. switch back: mean fault handling until the task answers, from each task's second visit on.\n\
         energy: of the swap area by DR.Swap's equations 1 to 14; its terms and every switch are in --format json. life: the same load without a pause.\n",
    );
    out += &caveat(&stored.trace).map(|label| label + "\n").unwrap_or_default();
    let homeless: u64 = stored.outcomes.iter().map(|(_, o)| o.result.counts.homeless).sum();
    if homeless > 0 {
        let pages = human_count(homeless);
        out += &format!(
            "{pages} anonymous pages found no place, and no task was left to end. Such rows have too little memory.\n"
        );
    }
    for (_, outcome) in &stored.outcomes {
        out += &failures(outcome.result.counts.failures, outcome.result.halts);
    }
    if stored.untimed {
        out += "The trace has no times: each reference took front_end.reference (1ns unless set).\n";
    }
    if stored.tasks < 2 {
        out += "There is only one task: no switch, and no task to end. `coldframe-lab trace mix` and `coldframe-lab generate phone` make several.\n";
    }
    out
}
