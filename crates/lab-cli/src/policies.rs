//! `coldframe-lab policies`: everything that has a name in a configuration.

use std::process::ExitCode;

use coldframe_core::fault::handler;
use coldframe_core::policy;
use coldframe_drivers::oracle;
use coldframe_show::table::styled;
use serde_json::{json, Value};

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

pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let text = if args.format == "json" { output::json(&value()) } else { words() };
    output::write(None, &text)?;
    Ok(ExitCode::SUCCESS)
}

fn value() -> Value {
    let plain = |name: &str, summary: &str, source: &str| json!({ "name": name, "summary": summary, "source": source });
    let policies = policy::ALL.iter().map(|p| {
        let params = p.params.iter().map(|q| json!({ "name": q.name, "help": q.help, "expected": q.expected() }));
        let mut value = plain(p.name, p.summary, p.source);
        value["params"] = params.collect();
        value
    });
    json!({
        "policies": policies.collect::<Vec<_>>(),
        "oracles": oracle::ALL.iter().map(|o| plain(o.name, o.summary, o.source)).collect::<Vec<_>>(),
        "handlers": handler::ALL.iter().map(|h| plain(h.name, h.summary, h.source)).collect::<Vec<_>>(),
        "systems": coldframe_experiment::systems::ALL.iter().map(|s| plain(s.name, s.summary, s.paper)).collect::<Vec<_>>(),
    })
}

fn words() -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for p in policy::ALL {
        rows.push(vec!["policy".into(), p.name.into(), p.summary.into(), p.source.into()]);
        for q in p.params {
            rows.push(vec![String::new(), format!("  {}=", q.name), q.help.into(), q.expected().into()]);
        }
    }
    let mut add = |kind: &str, name: &str, summary: &str, source: &str| {
        rows.push([kind, name, summary, source].map(Into::into).to_vec());
    };
    oracle::ALL.iter().for_each(|o| add("oracle", o.name, o.summary, o.source));
    handler::ALL.iter().for_each(|h| add("handler", h.name, h.summary, h.source));
    coldframe_experiment::systems::ALL.iter().for_each(|s| add("system", s.name, s.summary, s.paper));
    format!("{}\n", styled(&["", "name", "what it does", "source, or what may be written"], rows, 4))
}
