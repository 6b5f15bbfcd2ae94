//! Tasks that take turns in the foreground of a phone: from the rows of a trace to their turns, and what their swap
//! area costs.

use coldframe_core::{Backed, Pj, Ps};
use coldframe_drivers::tasks::{Cpu, TasksResult, TraceTasks, Turns};
use coldframe_drivers::RunError;
use coldframe_sheet::flash::{life_years, wear, Wear};
use coldframe_sheet::swap_energy::{SwapCounts, SwapLedger};
use coldframe_store::{Block, Kind, Provenance, Reference};

use crate::error::ExperimentError;
use crate::phone;
use crate::resolve::{Base, TasksPlan};
use crate::swap_prices::{energy, PhoneArea};
use crate::systems::backing::PAGE;
use crate::systems::front_end::spaces;

/// What a run in the foreground has besides counts and times.
#[derive(Clone, Debug)]
pub struct OnPhone {
    pub area: PhoneArea,
    pub policy: String,
    /// Energy of the swap area by term.
    pub energy: SwapLedger,
    /// Energy of reading pages in their slots, which the equations leave out.
    pub in_slots: Pj,
    pub slot_writes: Wear,
    /// Years until the most written slot reaches its rated writes, under this load without a pause.
    pub life_years: Option<f64>,
    /// The rows had no times, so each reference took the plan's time.
    pub untimed: bool,
}

impl OnPhone {
    pub(super) fn new(plan: &TasksPlan, r: &TasksResult, untimed: bool) -> Option<OnPhone> {
        let area = &plan.backed.as_ref()?.area;
        let turns = r.foreground.as_ref()?;
        let counts = SwapCounts { swap_ins: r.counts.swap_ins, swap_outs: r.counts.swap_outs, up_time: turns.end };
        let worn = wear(&turns.slot_writes);
        let years = area.cycles.and_then(|cycles| life_years(cycles, worn.max.into(), (turns.end.0 / 1_000) as f64));
        Some(OnPhone {
            area: area.clone(),
            policy: plan.config.policy.to_string(),
            energy: energy(area, &counts),
            in_slots: Pj(area.line_energy().0 * r.reads_in_slots),
            slot_writes: worn,
            life_years: years,
            untimed,
        })
    }
}

/// Runs a plan in the foreground over rows in memory.
pub fn run_on_phone(
    plan: &TasksPlan,
    rows: &Block,
    trace: &Provenance,
) -> Result<(TasksResult, OnPhone), ExperimentError> {
    let mut rows = Some(rows);
    let next = |block: &mut Block| Ok::<_, ExperimentError>(rows.take().map(|rows| block.clone_from(rows)).is_some());
    let tasks = read(trace, true, next)?;
    let result = machine(plan, &tasks, trace, true)?.run();
    let on_phone = OnPhone::new(plan, &result, false).expect("the plan is one of a phone");
    Ok((result, on_phone))
}

/// The tasks of a trace with their turns.
pub(super) fn read<E>(
    trace: &Provenance,
    timed: bool,
    next: impl FnMut(&mut Block) -> Result<bool, E>,
) -> Result<TraceTasks, E> {
    let owners = Owners::of(trace);
    TraceTasks::in_turns(PAGE.0.trailing_zeros(), &spaces(trace), timed, &|row| owners.backed(row), next)
}

/// The machine of a plan. `timed`: whether the rows have times.
pub(super) fn machine(
    plan: &TasksPlan,
    tasks: &TraceTasks,
    trace: &Provenance,
    timed: bool,
) -> Result<Cpu, ExperimentError> {
    let mut config = plan.config.clone();
    if let (Base::Phone(phone), false) = (&plan.base, timed) {
        config.reference = phone.reference;
    }
    let mut cpu = Cpu::new(&config, &super::specs(tasks)).map_err(RunError::from)?;
    if let (Base::Phone(_), Some(backed)) = (&plan.base, &plan.backed) {
        let is_service = |space: u32| {
            let mut of_space = trace.tasks.iter().filter(|task| task.space == space);
            of_space.any(|task| task.name.starts_with(phone::SERVICE))
        };
        cpu.take_turns(Turns {
            turns: tasks.turns.clone(),
            unit: if timed { Ps::from_ns(1) } else { config.reference },
            files: tasks.files.clone(),
            services: tasks.programs.iter().map(|(space, _)| is_service(*space)).collect(),
            answer: Ps::from_us(backed.phone.answer_s * 1_000_000),
        });
    }
    Ok(cpu)
}

/// The owners of addresses. Ranges of the trace that are mapped from a file and cannot be written are the file's
/// pages. Memory that the program can write is its own copy. In a trace without mappings, the first touch of a page
/// decides: code comes from a file.
struct Owners(Vec<(u64, u64)>, bool);

impl Owners {
    fn of(trace: &Provenance) -> Owners {
        let file = trace.mappings.iter().filter(|m| !m.name.starts_with('[') && !m.name.is_empty());
        let ranges = file.filter(|m| !m.protection.contains('w')).map(|m| (m.start, m.end)).collect();
        Owners(ranges, trace.mappings.is_empty())
    }

    fn backed(&self, row: &Reference) -> Backed {
        let in_file = self.0.iter().any(|(start, end)| (*start..*end).contains(&row.address));
        if in_file || (self.1 && row.kind == Kind::Fetch) {
            Backed::File
        } else {
            Backed::Anonymous
        }
    }
}
