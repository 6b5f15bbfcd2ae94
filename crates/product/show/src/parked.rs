//! Parked programs, and programs that took turns, in words.

use coldframe_answer::service::park::{Parked, Program};
use coldframe_answer::service::turns::{Turned, Turns, TurnsEnd};
use coldframe_sheet::quantity::{human_seconds, human_size};

use crate::table::styled;

/// A program as it was named; one that was named by its number, by its program, too.
fn named(name: &str, program: &str) -> String {
    let number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    if number {
        format!("{program} ({name})")
    } else {
        name.into()
    }
}

/// All that are or were parked, the one with most memory in RAM first.
pub fn table(parked: &Parked) -> String {
    if parked.programs.is_empty() {
        return "No program is parked.\n".into();
    }
    let row = |program: &Program| {
        let state = if program.parked { "parked" } else { "runs" };
        let [ram, swap, used] = [program.bytes.ram, program.bytes.swapped, program.bytes.listed].map(human_size);
        vec![
            program.name.clone(),
            program.program.clone(),
            program.user.clone(),
            state.into(),
            program.process.to_string(),
            ram,
            swap,
            used,
        ]
    };
    let headings = ["name", "program", "user", "", "process", "in RAM", "in swap", "used"];
    let mut programs: Vec<&Program> = parked.programs.iter().collect();
    programs.sort_by_key(|program| std::cmp::Reverse(program.bytes.ram));
    format!("{}\n", styled(&headings, programs.into_iter().map(row).collect(), 4))
}

/// One that has just been parked.
pub fn parked(program: &Program) -> String {
    let used = match program.bytes.listed {
        0 => "What it uses is seen from its next resume on.".into(),
        listed => format!("It has used {} of what was in swap.", human_size(listed)),
    };
    let [swapped, ram] = [program.bytes.swapped, program.bytes.ram].map(human_size);
    let name = named(&program.name, &program.program);
    format!("{name} is parked: {swapped} in swap, {ram} still in RAM. {used}\n")
}

/// One that runs again; `soon`: whose pages are there again.
pub fn resumed(name: &str, program: &Program, soon: bool) -> String {
    let (listed, name) = (human_size(program.bytes.listed), named(name, &program.program));
    let words = match (soon, program.bytes.listed) {
        (true, 0) => format!("{name} has no list yet: it has one when it is parked after a resume.\n"),
        (true, _) => format!("{listed} of {name} fetched; it stands still until `coldframe resume`.\n"),
        (false, 0) => format!("{name} runs.\n"),
        (false, _) => format!("{name} runs; {listed} that it used before are fetched beside it.\n"),
    };
    words + &unordered(program.unordered.as_deref())
}

/// The sentence about a list without an order of its own; empty: it has one.
fn unordered(why: Option<&str>) -> String {
    why.map_or_else(String::new, |why| {
        format!("The kernel records no faults for this user ({why}): what was used is loaded by address.\n")
    })
}

/// Programs that took turns.
pub fn turns(turns: &Turns) -> String {
    let row = |program: &Turned| {
        let (ran, fetched) = (human_seconds(program.seconds), human_size(program.fetched_bytes));
        let state = if program.ended { "ended" } else { "runs" };
        let [turns, idle] = [program.turns, program.idle_turns].map(|n| n.to_string());
        vec![named(&program.name, &program.program), turns, idle, ran, fetched, state.into()]
    };
    let headings = ["name", "turns", "idle", "ran", "fetched", "now"];
    let end = match turns.end {
        TurnsEnd::Signal => "All of them run.",
        TurnsEnd::OneLeft => "Fewer than two programs are left, so there are no more turns.",
    };
    let table = styled(&headings, turns.programs.iter().map(row).collect(), 1);
    let unordered = unordered(turns.programs.iter().find_map(|program| program.unordered.as_deref()));
    format!("{table}\n{} of turns. {end}\n{unordered}", human_seconds(turns.seconds))
}
