//! Parked programs, and programs that took turns, in words.

use coldframe_answer::service::park::{Parked, Program};
use coldframe_answer::service::turns::{Turned, Turns, TurnsEnd};
use coldframe_sheet::quantity::{human_seconds, human_size};

use crate::table::styled;

/// All that are or were parked, the one with most memory in RAM first.
pub fn table(all: &Parked) -> String {
    if all.programs.is_empty() {
        return "No program is parked.\n".into();
    }
    let row = |of: &Program| {
        let state = if of.parked { "parked" } else { "runs" };
        let [ram, swap, used] = [of.bytes.ram, of.bytes.swapped, of.bytes.listed].map(human_size);
        vec![
            of.name.clone(),
            of.program.clone(),
            of.user.clone(),
            state.into(),
            of.process.to_string(),
            ram,
            swap,
            used,
        ]
    };
    let headings = ["name", "program", "user", "", "process", "in RAM", "in swap", "used"];
    let mut programs: Vec<&Program> = all.programs.iter().collect();
    programs.sort_by_key(|of| std::cmp::Reverse(of.bytes.ram));
    format!("{}\n", styled(&headings, programs.into_iter().map(row).collect(), 4))
}

/// One that has just been parked.
pub fn parked(of: &Program) -> String {
    let used = match of.bytes.listed {
        0 => "What it uses is seen from its next resume on.".into(),
        listed => format!("It has used {} of what was in swap.", human_size(listed)),
    };
    let [swapped, ram] = [of.bytes.swapped, of.bytes.ram].map(human_size);
    format!("{} is parked: {swapped} in swap, {ram} still in RAM. {used}\n", of.name)
}

/// One that runs again; `soon`: whose pages are there again.
pub fn resumed(name: &str, of: &Program, soon: bool) -> String {
    let listed = human_size(of.bytes.listed);
    match (soon, of.bytes.listed) {
        (true, 0) => format!("{name} has no list yet: it has one when it is parked after a resume.\n"),
        (true, _) => format!("{listed} of {name} fetched; it stands still until `coldframe resume`.\n"),
        (false, 0) => format!("{name} runs.\n"),
        (false, _) => format!("{name} runs; {listed} that it used before are fetched beside it.\n"),
    }
}

/// Programs that took turns.
pub fn turns(of: &Turns) -> String {
    let row = |one: &Turned| {
        let (ran, fetched) = (human_seconds(one.seconds), human_size(one.fetched_bytes));
        let state = if one.ended { "ended" } else { "runs" };
        let (process, [turns, idle]) = (one.process.to_string(), [one.turns, one.idle_turns].map(|n| n.to_string()));
        vec![one.name.clone(), one.program.clone(), process, turns, idle, ran, fetched, state.into()]
    };
    let headings = ["name", "program", "process", "turns", "idle", "ran", "fetched", "now"];
    let end = match of.end {
        TurnsEnd::Signal => "All of them run.",
        TurnsEnd::OneLeft => "Fewer than two programs are left, so there are no more turns.",
    };
    let table = styled(&headings, of.programs.iter().map(row).collect(), 2);
    format!("{table}\n{} of turns. {end}\n", human_seconds(of.seconds))
}
