//! What a user asks: limits, and what may be varied to meet them.

use coldframe_core::policy;
use coldframe_core::{Bytes, Pj, Ps};
use coldframe_device::quantity::{self, show_bytes, show_energy, show_time};
use coldframe_systems::swl;
use coldframe_trace::Provenance;
use serde_json::{json, Value};

use crate::advise::Candidate;
use crate::error::ReportError;
use crate::settings::Settings;

/// Slowdown allowed where no limit is given, in percent of the program's own time.
pub const SLOWDOWN_DEFAULT: f64 = 5.0;
/// The device where none is given: the only shipped sheet that has a price for a page written.
pub const DEVICE_DEFAULT: &str = "LOBI-NAND";
/// Handlers that need nothing of the machine. The others execute from the device's buffers; name them to have them tried.
const HANDLERS_DEFAULT: [&str; 2] = ["parallel", "sequential"];

/// What must hold, at the bad end of each range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Most that the run may take longer than with all the RAM it can use, in percent of the program's own time.
    pub slowdown: Option<f64>,
    /// Longest 99th percentile of a true fault's latency.
    pub p99: Option<Ps>,
    /// Least life of the device in years, if the program runs without a pause.
    pub life: Option<f64>,
    /// Most energy of paging for the whole run.
    pub energy: Option<Pj>,
    /// Most RAM.
    pub ram: Option<Bytes>,
}

impl Limits {
    /// Whether nothing but RAM is limited.
    pub fn is_empty(&self) -> bool {
        let Limits { slowdown, p99, life, energy, ram: _ } = self;
        slowdown.is_none() && p99.is_none() && life.is_none() && energy.is_none()
    }

    /// With their units.
    pub fn json(&self) -> Value {
        json!({
            "max_slowdown_percent": self.slowdown, "max_p99_ps": self.p99.map(|t| t.0), "min_life_years": self.life,
            "max_energy_pj": self.energy.map(|e| e.0), "max_ram_bytes": self.ram.map(|b| b.0),
        })
    }

    /// For people.
    pub fn words(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.slowdown.map(|s| format!("slowdown at most {s} %")));
        parts.extend(self.p99.map(|t| format!("p99 of a fault at most {}", show_time(t))));
        parts.extend(self.life.map(|y| format!("life at least {y} years")));
        parts.extend(self.energy.map(|e| format!("energy of paging at most {}", show_energy(e))));
        parts.extend(self.ram.map(|b| format!("RAM at most {}", show_bytes(b))));
        parts.join(", ")
    }
}

/// Reads `5%` or `5`.
///
/// # Errors
/// Not a number from 0 on.
pub fn percent(field: &str, text: &str) -> Result<f64, ReportError> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let number = number.filter(|n| n.is_finite() && *n >= 0.0);
    number.ok_or_else(|| ReportError::setting(field, format!("`{text}` cannot be read; give a share such as 5%")))
}

/// Reads `5y` or `5`.
///
/// # Errors
/// Not a positive number.
pub fn years(field: &str, text: &str) -> Result<f64, ReportError> {
    let number = text.strip_suffix('y').unwrap_or(text).trim().parse::<f64>().ok();
    let number = number.filter(|n| n.is_finite() && *n > 0.0);
    number.ok_or_else(|| ReportError::setting(field, format!("`{text}` cannot be read; give years such as 5y")))
}

/// The whole question.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// What is not varied.
    pub base: Settings,
    /// What must hold.
    pub limits: Limits,
    /// Devices; empty: the settings' or [`DEVICE_DEFAULT`].
    pub devices: Vec<String>,
    /// Policies; empty: all that have defaults, and SWL's.
    pub policies: Vec<String>,
    /// Handlers; empty: parallel and sequential.
    pub handlers: Vec<String>,
    /// Collectors of a swap area in log order; empty: pages are written in place.
    pub collectors: Vec<String>,
    /// Bytes of the flash that pages are written to; `None`: the whole device.
    pub swap_area: Option<Bytes>,
    /// Time of the program alone, for the whole trace.
    pub program_time: Option<Ps>,
    /// Most references times configurations that are simulated in full; above that, by successive halving.
    pub work_max: Option<u64>,
}

impl Question {
    /// The question with a price for the program's own time, wherever the trace can carry one, and with a limit.
    ///
    /// # Errors
    /// A program time for a trace without references, or one too short.
    pub fn priced(&self, trace: &Provenance) -> Result<Question, ReportError> {
        let mut question = self.clone();
        if question.limits.is_empty() {
            question.limits.slowdown = Some(SLOWDOWN_DEFAULT);
        }
        let front = &mut question.base.front_end;
        let given = front.instruction.is_some() || front.reference.is_some();
        let other = front.name.as_deref().is_some_and(|name| name != "none") || question.base.system.is_some();
        let data_only = question.base.stream.as_deref() == Some("D");
        let (field, of) = match trace.instructions {
            0 => (&mut front.reference, trace.references),
            _ if data_only => (&mut front.reference, trace.reads + trace.writes),
            n => (&mut front.instruction, n),
        };
        match (self.program_time, given || other, trace.instructions) {
            (Some(_), true, _) => {
                let reason = "is for the front end none without prices of its own; leave it or them out";
                return Err(ReportError::setting("program-time", reason));
            }
            (Some(time), ..) => {
                let each = Ps(time.0 / of.max(1));
                if each == Ps::ZERO {
                    let reason = format!("{} for {of} references is less than a picosecond each", show_time(time));
                    return Err(ReportError::setting("program-time", reason));
                }
                *field = Some(show_time(each));
            }
            (None, false, 1..) if data_only => {
                let each = swl::FRONT_END.instruction.0 as f64 * trace.instructions as f64 / of.max(1) as f64;
                *field = Some(show_time(Ps(each.round() as u64)));
            }
            (None, false, 1..) => *field = Some(show_time(swl::FRONT_END.instruction)),
            (None, ..) => {}
        }
        Ok(question)
    }

    /// The settings of each family: all that is varied but RAM. The RAM of the settings stays: it is then the only one tried.
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
        vary(&mut families, &policies, |s, v| s.policy = Some(v.into()));
        vary(&mut families, &handlers, |s, v| s.handler = Some(v.into()));
        vary(&mut families, &self.collectors, |s, v| s.swap.collector = Some(v.into()));
        families
    }

    /// What the answer takes for granted.
    pub fn assumptions(&self, trace: &Provenance, best: Option<&Candidate>) -> Vec<String> {
        let mut all = Vec::new();
        let front = &self.base.front_end;
        match (self.program_time, &front.instruction, &front.reference) {
            (Some(time), ..) => all.push(format!("the program alone takes {} (--program-time)", show_time(time))),
            (None, Some(each), _) if quantity::time(each) == Ok(swl::FRONT_END.instruction) => all.push(format!(
                "an instruction takes {each}, the 100 MHz of SWL's board (LCTES 2007, table 2), whose handler the stages' times are of; \
                 give --program-time"
            )),
            (None, Some(each), _) => all.push(format!("an instruction takes {each} (front_end.instruction)")),
            (None, None, Some(each)) => all.push(format!("a reference takes {each} (front_end.reference)")),
            (None, None, None) => {}
        }
        all.push(
            "every page is on the device when the run begins; slowdown is beside a run with RAM for all pages".into(),
        );
        all.push("the engine loads one page a fault: read-ahead and prefetch are not searched".into());
        if best.is_some_and(|b| b.cost.life.as_ref().is_ok_and(Option::is_some)) {
            all.push("life: the same work without a pause, the erases spread evenly over the area".into());
        }
        all.extend(trace.notes.iter().cloned());
        all
    }
}

/// All policies that need no parameter, and SWL's with its paper's.
fn policies_default() -> Vec<String> {
    let complete = |name: &&str| policy::PolicyChoice::parse(name).is_ok();
    let names = policy::ALL.iter().map(|spec| spec.name).filter(complete).chain([(swl::SYSTEM.defaults)().policy]);
    names.map(Into::into).collect()
}

fn vary(all: &mut Vec<Settings>, values: &[String], set: impl Fn(&mut Settings, &str)) {
    if values.is_empty() {
        return;
    }
    let mut out = Vec::with_capacity(all.len() * values.len());
    for one in all.iter() {
        for value in values {
            let mut one = one.clone();
            set(&mut one, value);
            out.push(one);
        }
    }
    *all = out;
}
