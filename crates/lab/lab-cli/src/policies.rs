//! `coldframe-lab policies`: everything that has a name in a configuration.

use std::process::ExitCode;

use coldframe_core::fault::handler;
use coldframe_core::policy::{self, Param, PolicySpec};
use coldframe_drivers::oracle;
use coldframe_experiment::systems;
use coldframe_show::table::styled;
use schemars::JsonSchema;
use serde::Serialize;

use coldframe_terminal::verb::Verb;

use crate::failure::Failure;
use crate::output;

/// List policies with their parameters, oracles, handlers and systems, each with its source.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  coldframe-lab policies\n  coldframe-lab policies --format json | jq '.policies[].name'"
)]
pub struct Args {
    /// How to print it.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
}

/// Everything that has a name, by kind.
#[derive(Serialize, JsonSchema)]
pub struct Names {
    policies: Vec<Name>,
    oracles: Vec<Name>,
    handlers: Vec<Name>,
    systems: Vec<Name>,
}

#[derive(Serialize, JsonSchema)]
struct Name {
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    /// Of a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<Vec<Parameter>>,
}

#[derive(Serialize, JsonSchema)]
struct Parameter {
    name: &'static str,
    help: &'static str,
    /// What may be written.
    expected: &'static str,
}

impl Verb<Failure> for Args {
    fn run(self, _: bool) -> Result<ExitCode, Failure> {
        let names = names();
        output::result(&self.format, &names, || words(&names))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn names() -> Names {
    let of = |name, summary, source| Name { name, summary, source, params: None };
    let parameter = |p: &Param| Parameter { name: p.name, help: p.help, expected: p.expected() };
    let policy = |p: &PolicySpec| Name {
        params: Some(p.params.iter().map(parameter).collect()),
        ..of(p.name, p.summary, p.source)
    };
    Names {
        policies: policy::ALL.iter().copied().map(policy).collect(),
        oracles: oracle::ALL.iter().map(|o| of(o.name, o.summary, o.source)).collect(),
        handlers: handler::ALL.iter().map(|h| of(h.name, h.summary, h.source)).collect(),
        systems: systems::ALL.iter().map(|s| of(s.name, s.summary, s.paper)).collect(),
    }
}

fn words(all: &Names) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let kinds =
        [("policy", &all.policies), ("oracle", &all.oracles), ("handler", &all.handlers), ("system", &all.systems)];
    for (kind, one) in kinds.into_iter().flat_map(|(kind, names)| names.iter().map(move |one| (kind, one))) {
        rows.push([kind, one.name, one.summary, one.source].map(Into::into).to_vec());
        for p in one.params.iter().flatten() {
            rows.push(vec![String::new(), format!("  {}=", p.name), p.help.into(), p.expected.into()]);
        }
    }
    format!("{}\n", styled(&["", "name", "what it does", "source, or what may be written"], rows, 4))
}
