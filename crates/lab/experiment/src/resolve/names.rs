//! Resolves names. The message for an unknown name suggests the nearest known name.

use coldframe_core::fault::handler::{self, Handler};
use coldframe_core::policy::{self, PolicyChoice, PolicyError};
use coldframe_core::swap::collect::{self, Collector};
use coldframe_drivers::front_end::Stream;
use coldframe_drivers::{oracle, scheduler};

use crate::error::{nearest, ExperimentError};
use crate::settings::Settings;
use crate::systems::backing::{self, Backing};
use crate::systems::front_end::{self, FrontEnd};
use crate::systems::{self, System};

/// The thing with this name; the error lists the known names.
fn known<T>(
    field: &str,
    kind: &str,
    name: &str,
    value: Option<T>,
    names: &[&'static str],
) -> Result<T, ExperimentError> {
    value.ok_or_else(|| {
        let near = nearest(name, names.iter().copied());
        ExperimentError::setting(field, format!("there is no {kind} `{name}`; there are {}{near}", names.join(", ")))
    })
}

pub(super) fn system(settings: &Settings) -> Result<Option<&'static System>, ExperimentError> {
    let Some(name) = &settings.system else { return Ok(None) };
    let names: Vec<_> = systems::ALL.iter().map(|s| s.name).collect();
    known("system", "system", name, systems::find(name), &names).map(Some)
}

pub(super) fn handler(name: &str) -> Result<&'static Handler, ExperimentError> {
    let names: Vec<_> = handler::ALL.iter().map(|h| h.name).collect();
    known("handler", "handler", name, handler::find(name), &names)
}

pub(super) fn policy(text: &str) -> Result<PolicyChoice, ExperimentError> {
    PolicyChoice::parse(text).or_else(|error| match error {
        PolicyError::UnknownPolicy { name } => {
            let names: Vec<_> = policy::ALL.iter().map(|s| s.name).chain(oracle::ALL.iter().map(|s| s.name)).collect();
            known("policy", "policy", &name, None, &names)
        }
        other => Err(other.into()),
    })
}

pub(super) fn scheduler(name: &str) -> Result<(&'static str, scheduler::Make), ExperimentError> {
    let names: Vec<_> = scheduler::ALL.iter().map(|(name, _)| *name).collect();
    let choice = scheduler::ALL.iter().copied().find(|(one, _)| *one == name);
    known("tasks.scheduler", "scheduler", name, choice, &names)
}

pub(super) fn backing(name: &str) -> Result<&'static Backing, ExperimentError> {
    let names: Vec<_> = backing::all().map(|backing| backing.name).collect();
    known("swap.backing", "backing", name, backing::find(name), &names)
}

/// A front end; `none` means that there is none.
pub(super) fn front_end(name: &str) -> Result<Option<&'static FrontEnd>, ExperimentError> {
    if name == "none" {
        return Ok(None);
    }
    let front_end = front_end::find(name).ok_or_else(|| {
        let names = || ["none"].into_iter().chain(front_end::all().map(|f| f.name));
        let also: Vec<_> = front_end::all().flat_map(|f| f.aliases).copied().collect();
        let (list, near) = (names().collect::<Vec<_>>().join(", "), nearest(name, names()));
        let reason = format!("there is no front end `{name}`; there are {list} (or {}){near}", also.join(", "));
        ExperimentError::setting("front_end.name", reason)
    });
    front_end.map(Some)
}

pub(super) fn stream(text: &str) -> Result<Stream, ExperimentError> {
    match text {
        "I" => Ok(Stream::Instructions),
        "D" => Ok(Stream::Data),
        "ID" => Ok(Stream::Both),
        other => Err(ExperimentError::setting("stream", format!("`{other}` is not known; give I, D or ID"))),
    }
}

/// A collector and its victims at a time, `name:victims`. The slides' abbreviations are accepted, too.
pub fn collector(text: &str) -> Result<(&'static Collector, u32), ExperimentError> {
    const FIELD: &str = "swap.collector";
    let (name, victims) = text.split_once(':').unwrap_or((text, "1"));
    let name = match name {
        "cb" => "cost-benefit",
        "cat" => "cost-age-times",
        "cba" => "cost-benefit-age",
        name => name,
    };
    let names: Vec<_> = collect::ALL.iter().map(|c| c.name).collect();
    let collector = known(FIELD, "collector", name, collect::find(name), &names)?;
    match victims.parse() {
        Ok(n @ 1..=coldframe_core::swap::VICTIMS_MAX) => Ok((collector, n)),
        _ => Err(ExperimentError::setting(FIELD, format!("`{text}`: give 1 to 4 victims at a time, such as {name}:4"))),
    }
}
