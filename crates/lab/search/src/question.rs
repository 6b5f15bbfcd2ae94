//! The user's question: limits, and the settings that may be varied to meet them.

use coldframe_sheet::quantity::{self, show_time};

use coldframe_core::fault::handler;
use coldframe_core::policy;
use coldframe_core::swap::collect;
use coldframe_core::{Bytes, Ps};
use coldframe_experiment::systems::{self, System};
use coldframe_sheet::sheet;
use coldframe_store::Provenance;

use crate::limits::Limits;
use crate::Candidate;
use coldframe_experiment::error::ExperimentError;
use coldframe_experiment::resolve::{drive, Drive};
use coldframe_experiment::settings::{vary, Settings, Swap};

/// The default limit of the slowdown, in percent of the program's own time.
pub const SLOWDOWN_DEFAULT: f64 = 5.0;
/// The default device: the shipped sheet of a flash chip with times, energies and endurance.
pub const DEVICE_DEFAULT: &str = "NAND01GW3B2B";
/// Handlers that any machine can run. The others execute from the device's buffers; they are tried if they are named.
const HANDLERS_DEFAULT: [&str; 2] = ["parallel", "sequential"];
/// Pages read ahead with a fault: none, and the live pager's window.
const READ_AHEADS_DEFAULT: [u32; 2] = [0, coldframe_recording::plan::READ_AHEAD];
/// When to load the next task's pages: never, and at SAP's two moments.
const PREFETCHES_DEFAULT: [&str; 3] = ["off", "75", "50"];

#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The settings that are not varied.
    pub base: Settings,
    pub limits: Limits,
    /// Devices; empty: the settings' or [`DEVICE_DEFAULT`].
    pub devices: Vec<String>,
    /// Policies; empty: all that have defaults, and SWL's.
    pub policies: Vec<String>,
    /// Handlers; empty: parallel and sequential.
    pub handlers: Vec<String>,
    /// Pages of a sequential stream read ahead with a fault; empty: none, and the live pager's window.
    pub read_aheads: Vec<u32>,
    /// Collectors of a swap area in log order; empty: pages are written in place.
    pub collectors: Vec<String>,
    /// When to load the next task's pages, and who predicts the next task; empty: see [`Question::families`]. For
    /// several tasks only.
    pub prefetches: Vec<String>,
    /// Schedulers; empty: the settings'.
    pub schedulers: Vec<String>,
    /// Bytes of the flash that pages are written to; `None`: the whole device.
    pub swap_area: Option<Bytes>,
    /// Time of the program alone, for the whole trace.
    pub program_time: Option<Ps>,
    /// The most references times configurations that are simulated in full. Above it, a shortened string or
    /// successive halving selects the configurations.
    pub work_max: Option<u64>,
}

impl Question {
    /// The question with a price for the program's own time, if the trace allows one, and with a limit.
    pub fn priced(&self, trace: &Provenance) -> Result<Question, ExperimentError> {
        self.check_kind()?;
        let mut question = self.clone();
        if question.limits.is_empty() {
            question.limits.slowdown = Some(SLOWDOWN_DEFAULT);
        }
        let front = &mut question.base.front_end;
        let given = front.instruction.is_some() || front.reference.is_some();
        let tasks = self.is_of_tasks();
        let system = question.base.system.as_deref().and_then(systems::find);
        let front_end = front.name.as_deref().or(system.map(|system| system.defaults.front_end));
        let other = front_end.is_some_and(|name| name != "none");
        let data_only = question.base.stream.as_deref() == Some("D");
        let (field, of) = match trace.instructions {
            _ if tasks => (&mut front.reference, trace.references),
            0 => (&mut front.reference, trace.references),
            _ if data_only => (&mut front.reference, trace.reads + trace.writes),
            n => (&mut front.instruction, n),
        };
        match (self.program_time, given || other, trace.instructions) {
            (Some(_), true, _) => {
                let reason = "is for the front end none without prices of its own; leave it or them out";
                return Err(ExperimentError::setting("program-time", reason));
            }
            (Some(time), ..) => {
                let each = Ps(time.0 / of.max(1));
                if each == Ps::ZERO {
                    let reason = format!("{} for {of} references is less than a picosecond each", show_time(time));
                    return Err(ExperimentError::setting("program-time", reason));
                }
                *field = Some(show_time(each));
            }
            (None, ..) if tasks => {}
            (None, false, 1..) if data_only => {
                let each = systems::instruction().0 as f64 * trace.instructions as f64 / of.max(1) as f64;
                *field = Some(show_time(Ps(each.round() as u64)));
            }
            (None, false, 1..) => *field = Some(show_time(systems::instruction())),
            (None, ..) => {}
        }
        Ok(question)
    }

    /// Checks that settings for several tasks are used with several tasks, and that no setting is used that tasks do
    /// not have.
    fn check_kind(&self) -> Result<(), ExperimentError> {
        if drive(&self.base) == Drive::Foreground {
            let name = systems::of(&self.base).unwrap_or(systems::of_foreground().0).name;
            let reason = format!(
                "{name} is not searched: its answer is kills and energy beside time; run \
                                  `coldframe-lab sim --system {name}` over RAM and swap sizes"
            );
            return Err(ExperimentError::setting("system", reason));
        }
        let tasks = self.is_of_tasks();
        for (field, given, for_tasks) in [
            ("scheduler", !self.schedulers.is_empty(), true),
            ("prefetch", !self.prefetches.is_empty(), true),
            ("read-ahead", !self.read_aheads.is_empty(), false),
            ("collector", !self.collectors.is_empty(), false),
        ] {
            if given && for_tasks != tasks {
                let names = systems::names(System::schedules);
                let reason = match for_tasks {
                    true => format!("is for several tasks; give the system {names}"),
                    false => format!("is not simulated for several tasks; leave out the system {names}"),
                };
                return Err(ExperimentError::setting(field, reason));
            }
        }
        Ok(())
    }

    /// The settings of each family: all that is varied, without RAM. If the settings give RAM, it is the only size
    /// tried.
    pub fn families(&self) -> Vec<Settings> {
        let mut families = vec![self.base.clone()];
        if families[0].system.is_none() && self.devices.is_empty() && families[0].device.is_none() {
            families[0].device = Some(DEVICE_DEFAULT.into());
        }
        let own = |value: &Option<String>| value.clone().into_iter().collect::<Vec<_>>();
        let or = |given: &[String], own: Vec<String>, all: Vec<String>| match (given, own) {
            ([], own) if own.is_empty() => all,
            ([], own) => own,
            (given, _) => given.to_vec(),
        };
        let policies = or(&self.policies, own(&self.base.policy), policies_default());
        let handlers = HANDLERS_DEFAULT.map(Into::into).to_vec();
        let handlers = or(&self.handlers, own(&self.base.handler), handlers);
        vary(&mut families, &self.devices, |s, v| s.device = Some(v.into()));
        if self.is_of_tasks() {
            let prefetches =
                or(&self.prefetches, own(&self.base.tasks.prefetch), PREFETCHES_DEFAULT.map(Into::into).to_vec());
            vary(&mut families, &policies, |s, v| s.policy = Some(v.into()));
            vary(&mut families, &handlers, |s, v| s.handler = Some(v.into()));
            vary(&mut families, &self.schedulers, |s, v| s.tasks.scheduler = Some(v.into()));
            vary(&mut families, &prefetches, |s, v| s.tasks.prefetch = Some(v.into()));
            return families;
        }
        vary(&mut families, &policies, |s, v| s.policy = Some(v.into()));
        vary(&mut families, &handlers, |s, v| s.handler = Some(v.into()));
        vary_read_ahead(&mut families, &self.read_aheads);
        self.vary_areas(&mut families);
        families
    }

    /// With a swap area of known size, its slots are simulated: as a log with each collector, and with Linux's
    /// allocation of slots. This is not done for devices without blocks in their sheets, nor if the settings describe
    /// the area.
    fn vary_areas(&self, families: &mut Vec<Settings>) {
        if !self.collectors.is_empty() {
            return vary(families, &self.collectors, |s, v| s.swap.collector = Some(v.into()));
        }
        if self.swap_area.is_none() || self.base.swap != Swap::default() {
            return;
        }
        let of = |s: &Settings| {
            let system = s.system.as_deref().and_then(systems::find);
            let device = s.device.as_deref().or(system.map(|system| system.defaults.device)).unwrap_or(DEVICE_DEFAULT);
            let erased = sheet::find(device).is_ok_and(|sheet| sheet.block().is_ok() && sheet.erase().is_ok());
            if !erased {
                return vec![s.clone()];
            }
            let log = collect::ALL.iter().map(|collector| ("log", collector.name));
            let all = log.chain([("linux", collect::ALL[0].name)]);
            let with = |(layout, collector): (&str, &str)| {
                let mut one = s.clone();
                (one.swap.layout, one.swap.collector) = (Some(layout.into()), Some(collector.into()));
                one
            };
            all.map(with).collect()
        };
        *families = families.iter().flat_map(of).collect();
    }

    /// Whether there are several tasks under a scheduler, and not one string of references.
    pub fn is_of_tasks(&self) -> bool {
        drive(&self.base) == Drive::Tasks
    }

    pub fn assumptions(&self, trace: &Provenance, best: Option<&Candidate>) -> Vec<String> {
        let mut all = Vec::new();
        let front = &self.base.front_end;
        match (self.program_time, &front.instruction, &front.reference) {
            (Some(time), ..) => all.push(format!("the program alone takes {} (--program-time)", show_time(time))),
            (None, Some(each), _) if quantity::time(each) == Ok(systems::instruction()) => all.push(format!(
                "an instruction takes {each}, the 100 MHz of SWL's board (LCTES 2007, table 2), whose handler the \
                 stages' times are of; \
                 give --program-time"
            )),
            (None, Some(each), _) => all.push(format!("an instruction takes {each} (front_end.instruction)")),
            (None, None, Some(each)) => all.push(format!("a reference takes {each} (front_end.reference)")),
            (None, None, None) if self.is_of_tasks() => {
                all.push(format!(
                    "a reference takes {} (assumed); give \
                                  --program-time",
                    show_time(systems::of_tasks().1.reference)
                ));
            }
            (None, None, None) => {}
        }
        if let Some(rows) = self.base.limit.skip.filter(|rows| *rows > 0) {
            all.push(format!("the first {} rows are left out; RAM is empty after them", quantity::human_count(rows)));
        }
        all.push(
            "every page is on the device when the run begins; slowdown is beside a run with RAM for all pages".into(),
        );
        all.push(match (self.is_of_tasks(), trace.tasks.len()) {
            (true, _) => "a task that waits gives the processor to the next; what it does does not hang on when".into(),
            (false, 0 | 1) => "one task: there is no switch before which to prefetch".into(),
            (false, n) => format!(
                "{n} tasks take turns as they did when recorded; --system {} schedules them and searches prefetch",
                systems::names(System::schedules)
            ),
        });
        if best.is_some_and(|b| b.cost.life.as_ref().is_ok_and(Option::is_some)) {
            all.push("life: the same work without a pause, the erases spread evenly over the area".into());
        }
        all.extend(trace.notes.iter().cloned());
        all
    }
}

/// All policies that need no parameter, and those of systems with the parameters of their papers.
fn policies_default() -> Vec<String> {
    let complete = |name: &&str| policy::PolicyChoice::parse(name).is_ok();
    let of_systems = systems::ALL.iter().map(|system| system.defaults.policy).filter(|name| name.contains(':'));
    let names = policy::ALL.iter().map(|spec| spec.name).filter(complete).chain(of_systems);
    names.map(Into::into).collect()
}

/// Pages cannot be read ahead into buffers that hold pages. So handlers that need such buffers are tried without
/// read-ahead, unless the user asks for both.
fn vary_read_ahead(all: &mut Vec<Settings>, given: &[u32]) {
    let own = |s: &Settings| {
        let holds = s.handler.as_deref().and_then(handler::find).is_some_and(|handler| handler.needs_xip);
        match (given, s.machine.read_ahead) {
            ([], Some(pages)) => vec![pages],
            ([], None) if holds => vec![0],
            ([], None) => READ_AHEADS_DEFAULT.to_vec(),
            (given, _) => given.to_vec(),
        }
    };
    let with = |s: &Settings, pages: u32| {
        let mut one = s.clone();
        one.machine.read_ahead = Some(pages);
        one
    };
    *all = all.iter().flat_map(|s| own(s).into_iter().map(|pages| with(s, pages)).collect::<Vec<_>>()).collect();
}
